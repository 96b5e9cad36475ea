"""Why starts of vLLM fail, over all versions, as a table: text, meaning, what to try first (contract §3.4).

Knows single lines; which of several is the cause is decided in `bootlog`.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

Facts = Mapping[str, float | str]


class Cause(NamedTuple):
    """One known cause. `stage` None: the one that the milestones tell.

    A cause of more weight takes the place of one of less that came before it: a bare out-of-memory is often
    named by the line that follows it. Errors that nobody knows weigh 0.
    """

    id: str
    outcome: str
    stage: str | None
    memory: bool
    pattern: re.Pattern[str]
    sentence: Callable[[Facts], str]
    weight: int = 2


def number(value: float | str) -> str:
    """Without a point where it is whole; two decimals at most."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else f"{value:.2f}".rstrip("0").rstrip(".")


def _filled(template: str) -> Callable[[Facts], str]:
    return lambda facts: template.format_map({name: number(value) for name, value in facts.items()})


def _one_request(facts: Facts) -> str:
    sizes = ""
    if facts.get("available_gib"):
        sizes = f" (needs {number(facts['needed_gib'])} GiB, has {number(facts['available_gib'])} GiB)"
    longest = facts.get("longest_context")
    to = f" to {number(longest)}" if longest else ""
    return (
        f"KV cache too small for one request of max_model_len {number(facts['max_model_len'])}{sizes}: "
        f"lower --max-model-len{to}, or give the KV cache more memory"
    )


def _too_long(facts: Facts) -> str:
    longest = facts.get("longest_context")
    most, to = (f" ({number(longest)})", f" to {number(longest)}") if longest else ("", "")
    return (
        f"max_model_len {number(facts['max_model_len'])} is longer than the model itself allows{most}: "
        f"lower --max-model-len{to}"
    )


# With less to set utilization to, no engine is worth starting.
_LEAST_UTILIZATION = 0.1


def _free_memory(facts: Facts) -> str:
    free, total = facts["free_gib"], facts["total_gib"]
    knob = ""
    if isinstance(free, float) and isinstance(total, float) and free > _LEAST_UTILIZATION * total > 0:
        knob = f", or lower --gpu-memory-utilization to {number(math.floor(100 * free / total) / 100)}"
    return (
        f"only {number(free)} of {number(total)} GiB were free at start, but --gpu-memory-utilization "
        f"{number(facts['utilization'])} asks for {number(facts['requested_gib'])} GiB: free the GPU of what "
        f"else runs there{knob}"
    )


def _no_kv(facts: Facts) -> str:
    if "cpu_kv_gib" in facts:
        return (
            f"no memory for the KV cache (VLLM_CPU_KVCACHE_SPACE gives {number(facts['cpu_kv_gib'])} GiB): "
            "raise VLLM_CPU_KVCACHE_SPACE"
        )
    weights = f" of {number(facts['weights_gib'])} GiB" if "weights_gib" in facts else ""
    return (
        f"no memory is left for the KV cache after the weights{weights} and the profile run: "
        "raise --gpu-memory-utilization, lower --max-num-batched-tokens, or use smaller weights"
    )


# What to try first differs by the moment of an out-of-memory; lowering utilization does not make weights fit.
OOM_OUTCOMES = {
    "config": "other",
    "before_load": "startup_oom_weights",
    "load": "startup_oom_weights",
    "profile": "startup_oom_profile",
    "kv_cache": "startup_oom_cuda_graph",
    "graphs": "startup_oom_cuda_graph",
    "warmup": "startup_oom_cuda_graph",
}
_OOM_TEXTS = {
    "other": "the log does not show at which step: lower --gpu-memory-utilization or --max-num-seqs, "
    "or use smaller weights",
    "startup_oom_weights": "the weights do not fit: use quantized weights, a larger --tensor-parallel-size, "
    "or a larger GPU",
    "startup_oom_profile": "the profile run needs too much: lower --max-num-batched-tokens or --max-num-seqs",
    "startup_oom_cuda_graph": "allocating the KV cache, capturing graphs or warming up needs more than was "
    "left: lower --gpu-memory-utilization or --max-num-seqs, or use --enforce-eager",
}


def _out_of_memory(facts: Facts) -> str:
    where = f" of {number(facts['gpu_total_gib'])} GiB" if "gpu_total_gib" in facts else ""
    return f"out of GPU memory{where}: {_OOM_TEXTS[str(facts['outcome'])]}"


def _cause(
    id: str,
    outcome: str,
    stage: str | None,
    pattern: str,
    sentence: str | Callable[[Facts], str],
    *,
    memory: bool = True,
    weight: int = 2,
) -> Cause:
    said = _filled(sentence) if isinstance(sentence, str) else sentence
    return Cause(id, outcome, stage, memory, re.compile(pattern), said, weight)


CAUSES = (
    _cause(
        "kv_lt_one_seq",
        "startup_oom_context_too_long",
        "kv_cache",
        # "models's" up to 0.21; GB in 0.7; the opening bracket is missing in some versions.
        r"To serve at least one request with the models?'s max seq len \((?P<max_model_len>\d+)\), "
        r"\(?(?P<needed_gib>[\d.]+) Gi?B KV cache is needed, which is larger than the available KV cache "
        r"memory(?: \((?P<available_gib>[\d.]+) Gi?B\))?"
        r"(?:.*estimated maximum model length is (?P<longest_context>\d+))?",
        _one_request,
    ),
    _cause(
        "v0_seq",
        "startup_oom_context_too_long",
        "kv_cache",
        r"max seq len \((?P<max_model_len>\d+)\) is larger than the maximum number of tokens that can be "
        r"stored in KV cache \((?P<longest_context>\d+)\)",
        _one_request,
    ),
    _cause(
        "no_kv",
        "startup_oom_no_kv_blocks",
        "kv_cache",
        r"No available memory for the cache blocks|Cannot auto-fit max_model_len",
        _no_kv,
    ),
    _cause(
        "free_lt_requested",
        "startup_free_memory_low",
        "before_load",
        r"Free memory on device .*\((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) GiB\) on startup is less than "
        r"desired GPU memory utilization \((?P<utilization>[\d.]+), (?P<requested_gib>[\d.]+) GiB\)",
        _free_memory,
    ),
    _cause(
        "external_weights",
        "startup_free_memory_low",
        "before_load",
        r"exceed the desired GPU memory utilization|less than the engine's budget after excluding",
        "weights that another process holds leave less than the engine's budget: raise "
        "--gpu-memory-utilization, or free the GPU",
    ),
    _cause(
        "cpu_free_lt_requested",
        "startup_free_memory_low",
        "kv_cache",
        r"Available memory on node \d+ \((?P<free_gib>[\d.]+)/(?P<total_gib>[\d.]+) GiB\) on kv cache "
        r"allocation is less than requested memory for kv \((?P<requested_gib>[\d.]+) GiB\)",
        "only {free_gib} of {total_gib} GiB were free but the KV cache asks for {requested_gib} GiB: lower "
        "VLLM_CPU_KVCACHE_SPACE or --kv-cache-memory-bytes",
    ),
    _cause(
        "load_oom",
        "startup_oom_weights",
        "load",
        r"Failed to load model - not enough GPU memory",
        _out_of_memory,
    ),
    _cause(
        "sampler_oom",
        "startup_oom_cuda_graph",
        "warmup",
        r"out of memory occurred when warming up (?P<what>sampler|pooler)"
        r"(?: with (?P<dummy_requests>\d+) dummy)?",
        "out of GPU memory in the {what}'s warm-up: lower --max-num-seqs or --gpu-memory-utilization",
    ),
    _cause(
        "profile_race",
        "other",
        "profile",
        r"Error in memory profiling",
        "another process released GPU memory while this one was profiling: start it again, alone",
    ),
    _cause(
        "mamba_blocks",
        "other",
        "kv_cache",
        r"max_num_seqs \((?P<max_num_seqs>\d+)\) exceeds available Mamba cache blocks \((?P<blocks>\d+)\)",
        "max_num_seqs {max_num_seqs} needs more Mamba cache blocks than there are ({blocks}): lower "
        "--max-num-seqs to {blocks}, or give the cache more memory",
    ),
    _cause(
        "oom",
        "by_stage",
        None,
        r"OutOfMemoryError|CUDA out of memory\. Tried to allocate|CUDA error: out of memory"
        r"|HIP out of memory",
        _out_of_memory,
        weight=1,
    ),
    _cause(
        "len_too_long",
        "config",
        "config",
        r"User-specified max_model_len \((?P<max_model_len>\d+)\) is greater than the derived max_model_len"
        r"(?: \(\w+=(?P<longest_context>\d+))?",
        _too_long,
        memory=False,
    ),
    _cause(
        "batch_lt_len",
        "config",
        "config",
        r"max_num_batched_tokens \((?P<max_num_batched_tokens>\d+)\) is smaller than max_model_len "
        r"\((?P<max_model_len>\d+)\)",
        "max_num_batched_tokens {max_num_batched_tokens} is smaller than max_model_len {max_model_len} "
        "without chunked prefill: raise --max-num-batched-tokens to {max_model_len}, or lower "
        "--max-model-len",
        memory=False,
    ),
    _cause(
        "block_size",
        "config",
        "graphs",
        r"No common block size for (?P<block_size>\d+) \((?P<allowed>.+?)\)(?:[.']|$)",
        "the attention backend has no blocks of {block_size} tokens ({allowed}): set --block-size to one "
        "that it has, or leave it out",
        memory=False,
    ),
    _cause(
        "arguments",
        "config",
        "config",
        r"^(?:vllm|api_server\.py)[\w ]*: error: (?P<why>.+)",
        "vLLM refuses its command line: {why}",
        memory=False,
    ),
    _cause(
        "port_taken",
        "other",
        None,
        r"Address already in use|error while attempting to bind on address",
        "the port is taken: end what listens there, or choose another --port",
        memory=False,
    ),
    _cause(
        "nccl",
        "other",
        "before_load",
        r"NCCL error|ncclUnhandledCudaError|ncclSystemError|ncclInternalError",
        "the GPUs cannot talk to each other (NCCL): look for an error of one rank above it, then at the "
        "network and shared memory",
        memory=False,
        weight=1,
    ),
    _cause(
        "host_kill",
        "other",
        None,
        r"Worker proc \S+ died unexpectedly \(exit code: -9\)",
        "a worker was killed from outside, most likely because the machine's own memory ran out: give it "
        "more host memory, or load less at a time",
        weight=0,
    ),
)
# The out-of-memory texts of torch give figures that the line of the cause may lack.
OOM_FIGURES = re.compile(
    r"Tried to allocate (?P<tried>[\d.]+ [KMG]iB).*?has a total capacity of (?P<gpu_total_gib>[\d.]+) GiB "
    r"of which (?P<gpu_free>[\d.]+ [KMG]iB) is free"
)
