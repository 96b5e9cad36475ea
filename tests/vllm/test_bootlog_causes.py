"""Each cause by its text, in the words of several versions and of public reports."""

import pytest

from gateway.vllm.bootlog import read
from gateway.vllm.bootlog_causes import CAUSES, OOM_OUTCOMES, number
from gateway.vllm.bootlog_patterns import STAGES

_SEEN = [
    (
        "kv_lt_one_seq",
        "ValueError: To serve at least one request with the models's max seq len (262144), (36.0 GiB "
        "KV cache is "
        "needed, which is larger than the available KV cache memory (6.94 GiB). Based on the "
        "available memory, the "
        "estimated maximum model length is 50512. Try increasing `gpu_memory_utilization`",
        "startup_oom_context_too_long",
        "KV cache too small for one request of max_model_len 262144 (needs 36 GiB, has 6.94 GiB): "
        "lower --max-model-len to 50512, or give the KV cache more memory",
    ),
    (
        "kv_lt_one_seq",
        "ValueError: To serve at least one request with the models's max seq len (116160), (4.43 GB "
        "KV cache is "
        "needed, which is larger than the available KV cache memory (3.48 GB).",
        "startup_oom_context_too_long",
        "KV cache too small for one request of max_model_len 116160 (needs 4.43 GiB, has 3.48 GiB): "
        "lower --max-model-len, or give the KV cache more memory",
    ),
    (
        "v0_seq",
        "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that "
        "can be stored in "
        "KV cache (4512). Try increasing `gpu_memory_utilization`",
        "startup_oom_context_too_long",
        "KV cache too small for one request of max_model_len 8192: lower --max-model-len to 4512, "
        "or give the KV cache more memory",
    ),
    (
        "no_kv",
        "ValueError: No available memory for the cache blocks.",
        "startup_oom_no_kv_blocks",
        "no memory is left for the KV cache after the weights and the profile run: raise "
        "--gpu-memory-utilization, "
        "lower --max-num-batched-tokens, or use smaller weights",
    ),
    (
        "no_kv",
        "ValueError: Cannot auto-fit max_model_len: not even one token fits",
        "startup_oom_no_kv_blocks",
        "no memory is left for the KV cache after the weights and the profile run: raise "
        "--gpu-memory-utilization, "
        "lower --max-num-batched-tokens, or use smaller weights",
    ),
    (
        "free_lt_requested",
        "ValueError: Free memory on device cuda:1 (19.77/22.05 GiB) on startup is less than desired "
        "GPU memory "
        "utilization (0.9, 19.84 GiB). Decrease GPU memory utilization",
        "startup_free_memory_low",
        "only 19.77 of 22.05 GiB were free at start, but --gpu-memory-utilization 0.9 asks for 19.84 GiB: "
        "free the GPU of what else runs there, or lower --gpu-memory-utilization to 0.89",
    ),
    (
        "free_lt_requested",
        "ValueError: Free memory on device xpu:0 (0.22/30.3 GiB) on startup is less than desired GPU memory "
        "utilization (0.7, 21.21 GiB).",
        "startup_free_memory_low",
        "only 0.22 of 30.3 GiB were free at start, but --gpu-memory-utilization 0.7 asks for 21.21 GiB: "
        "free the GPU of what else runs there",
    ),
    (
        "external_weights",
        "ValueError: External weights exceed the desired GPU memory utilization",
        "startup_free_memory_low",
        "weights that another process holds leave less than the engine's budget: raise "
        "--gpu-memory-utilization, "
        "or free the GPU",
    ),
    (
        "load_oom",
        "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization",
        "startup_oom_weights",
        "out of GPU memory: the weights do not fit: use quantized weights, a larger --tensor-parallel-size, "
        "or a larger GPU",
    ),
    (
        "sampler_oom",
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. "
        "Please try "
        "lowering `max_num_seqs` or `gpu_memory_utilization`",
        "startup_oom_cuda_graph",
        "out of GPU memory in the sampler's warm-up: lower --max-num-seqs or --gpu-memory-utilization",
    ),
    (
        "profile_race",
        "AssertionError: Error in memory profiling. Initial free memory 82.94 GiB, current free "
        "memory 90.17 GiB.",
        "other",
        "another process released GPU memory while this one was profiling: start it again, alone",
    ),
    (
        "mamba_blocks",
        "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (524)",
        "other",
        "max_num_seqs 1024 needs more Mamba cache blocks than there are (524): lower --max-num-seqs "
        "to 524, or give "
        "the cache more memory",
    ),
    (
        "port_taken",
        "OSError: [Errno 98] Address already in use",
        "other",
        "the port is taken: end what listens there, or choose another --port",
    ),
    (
        "nccl",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:77, ncclSystemError",
        "other",
        "the GPUs cannot talk to each other (NCCL): look for an error of one rank above it, then at "
        "the network and "
        "shared memory",
    ),
    (
        "host_kill",
        "ERROR 12-01 04:00:00 [multiproc_executor.py:315] Worker proc VllmWorker-0 died unexpectedly "
        "(exit code: -9), "
        "shutting down executor.",
        "other",
        "a worker was killed from outside, most likely because the machine's own memory ran out: "
        "give it more host "
        "memory, or load less at a time",
    ),
]


@pytest.mark.parametrize(("cause", "line", "outcome", "text"), _SEEN)
def test_a_cause_is_named_with_its_figures_and_the_first_knob(
    cause: str, line: str, outcome: str, text: str
) -> None:
    failure = read([line]).failure
    assert failure is not None
    assert (failure.outcome, failure.text, dict(failure.facts)["cause"]) == (outcome, text, cause)


_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.74 GiB. GPU 1 has a total capacity of "
)
_OOM += "23.57 GiB of which 605.88 MiB is free."
_PATH = {
    "load": "Starting to load model m...",
    "profile": "Model loading took 14.99 GiB memory and 3 seconds",
    "kv_cache": "Available KV cache memory: 4.48 GiB",
    "graphs": "GPU KV cache size: 36,704 tokens",
    "warmup": "Graph capturing finished in 20 secs, took 0.5 GiB",
}


@pytest.mark.parametrize("stage", [*_PATH, "config"])
def test_an_out_of_memory_is_judged_by_the_moment_it_comes(stage: str) -> None:
    passed = [line for name, line in _PATH.items() if STAGES.index(name) <= STAGES.index(stage)]
    failure = read([*passed, _OOM]).failure
    assert failure is not None
    assert (failure.stage, failure.outcome, failure.memory) == (stage, OOM_OUTCOMES[stage], True)
    assert dict(failure.facts)["gpu_total_gib"] == 23.57
    assert failure.text.startswith("out of GPU memory of 23.57 GiB: ")


def test_every_stage_has_an_outcome_for_out_of_memory() -> None:
    assert set(OOM_OUTCOMES) == set(STAGES)
    assert {cause.stage for cause in CAUSES} <= {*STAGES, None}


def test_every_cause_is_tried_here_or_with_a_capture() -> None:
    captured = {"cpu_free_lt_requested", "len_too_long", "batch_lt_len", "block_size", "arguments", "oom"}
    assert {cause.id for cause in CAUSES} == {row[0] for row in _SEEN} | captured


@pytest.mark.parametrize(
    ("value", "text"), [(1048576.0, "1048576"), (6.939, "6.94"), (0.5, "0.5"), ("x", "x")]
)
def test_figures_are_written_as_a_person_would(value: float | str, text: str) -> None:
    assert number(value) == text
