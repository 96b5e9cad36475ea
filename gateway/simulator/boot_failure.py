"""The log of an engine that cannot boot: what vLLM 0.32.0 writes when the KV cache is too small for one
request.

Knows the words, not the diagnosis. Lines, prefixes, the repeated traceback and the wrapper at the end, which
is never the cause, follow a real capture of 0.32.0; nothing listens on the engine's port afterwards.
"""

from dataclasses import dataclass
from pathlib import Path

_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class BootFailureLog:
    """A start with a window that needs more KV cache than there is. Sizes in tokens, bytes and GiB."""

    model: str = "tiny"
    max_model_len: int = 131_072
    kv_bytes_per_token: int = 131_072
    weights_gib: float = 14.99
    kv_cache_gib: float = 4.48
    block_size: int = 16
    when: str = "12-01 03:55:32"

    @property
    def longest_context(self) -> int:
        """The length that vLLM says would fit: whole blocks, less the null block."""
        blocks = int(self.kv_cache_gib * _GIB) // (self.kv_bytes_per_token * self.block_size)
        return (blocks - 1) * self.block_size

    @property
    def needed_gib(self) -> float:
        """KV cache for one request of the full window."""
        return self.max_model_len * self.kv_bytes_per_token / _GIB

    def text(self) -> str:
        """The whole log. Raises ValueError if this engine would boot."""
        if self.max_model_len <= self.longest_context:
            raise ValueError(
                f"{self.max_model_len} tokens fit in {self.kv_cache_gib} GiB: this start would not fail"
            )
        return "\n".join([*self._milestones(), *self._failure(), *_WRAPPER]) + "\n"

    def write(self, path: Path) -> None:
        """Write the log as a fresh start of the engine would: from the top."""
        path.write_text(self.text(), encoding="utf-8")

    def _milestones(self) -> list[str]:
        api, core, worker = (f"({name} pid={pid}) INFO {self.when} " for name, pid in _PROCESSES)
        arguments = {
            "model_tag": self.model,
            "max_model_len": self.max_model_len,
            "block_size": self.block_size,
        }
        return [
            f"{api}[api_utils.py:347]    version 0.32.0",
            f"{api}[api_utils.py:286] non-default args: {arguments}",
            f"{api}[model.py:733] Resolved architecture: LlamaForCausalLM",
            f"{api}[model.py:2152] Using max model len {self.max_model_len}",
            f"{core}[core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='{self.model}', "
            f"dtype=torch.bfloat16, max_seq_len={self.max_model_len}, quantization=None",
            f"{worker}[default_loader.py:501] Loading weights took 2.41 seconds",
            f"{worker}[gpu_model_runner.py:5012] Model loading took {self.weights_gib} GiB memory "
            "and 3.02 seconds",
            f"{worker}[gpu_worker.py:512] Available KV cache memory: {self.kv_cache_gib:.2f} GiB",
        ]

    def _failure(self) -> list[str]:
        needed, available = f"{self.needed_gib:.2f} GiB", f"{self.kv_cache_gib:.2f} GiB"
        cause = (
            f"ValueError: To serve at least one request with the model's max seq len ({self.max_model_len}), "
            f"({needed} KV cache is needed, which is larger than the available KV cache memory "
            f"({available}). Based on the available memory, the estimated maximum model length is "
            f"{self.longest_context}. "
            "Try increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or "
            "decreasing `max_model_len` when initializing the engine. See "
            "https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
        )
        prefix = f"(EngineCore pid=1433) ERROR {self.when} [core.py:1510] "
        logged = [prefix + line for line in ("EngineCore failed to start.", *_TRACEBACK, cause)]
        # The process prints the same traceback once more, bare, as it dies.
        return [*logged, "Process EngineCore:", *_TRACEBACK, cause]


_PROCESSES = (("APIServer", 926), ("EngineCore", 1433), ("Worker", 1445))
_TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "vllm/v1/engine/core.py", line 1482, in run_engine_core',
    "    engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)",
    '  File "vllm/v1/engine/core.py", line 326, in _initialize_kv_caches',
    "    kv_cache_configs = get_kv_cache_configs(",
    '  File "vllm/v1/core/kv_cache_utils.py", line 1030, in _check_enough_kv_cache_memory',
    "    raise ValueError(",
)
_WRAPPER = (
    "Traceback (most recent call last):",
    '  File "vllm/entrypoints/cli/main.py", line 120, in main',
    "    args.dispatch_function(args)",
    '  File "vllm/v1/engine/utils.py", line 1431, in wait_for_engine_startup',
    "    raise RuntimeError(",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
)
