"""How far a start has come, by the lines of a vLLM log over all versions (contract §3.1 to §3.3).

Knows the texts of starts, milestones and ends; the causes of failures are in `bootlog_causes`.
"""

import re
from typing import NamedTuple

# In order. A start is at the latest whose milestone was seen.
STAGES = ("config", "before_load", "load", "profile", "kv_cache", "graphs", "warmup")

# The API process begins; 0.32 has no line with its version in words.
API_START = re.compile(r"vLLM API server version|non-default args: |^usage: (?:vllm|api_server)")
# With data parallelism every core writes this, so it marks a new start only where no API line did.
CORE_START = re.compile(r"Initializing an? (?:V1 )?LLM engine \(v([^)]+)\)")
# Also what only a serving engine writes, since a log may be read from its middle.
SERVING = re.compile(r'Application startup complete|Avg prompt throughput: |HTTP/1\.[01]" 200')
# A process is ending, and the traceback that follows says why.
DYING = re.compile(
    r"(?:EngineCore|WorkerProc) failed to start|(?:EngineCore|WorkerProc) hit an exception|^Process \S+:$"
    r"|^ +File \".*(?:bin/vllm|vllm/entrypoints/\S+)\", line \d+, in <module>$"
)
# Something above failed: never a cause.
WRAPPER = re.compile(
    r"Engine core initialization failed|Engine process failed to start|WorkerProc initialization failed"
    r"|Worker proc \S+ died unexpectedly|please check the stack trace above"
)
# The API process gives up: if nothing was found above, nothing will be.
LAST_WORDS = re.compile(r"Engine core initialization failed|Engine process failed to start")
ERROR_LINE = re.compile(r"^(?:[A-Za-z_]\w*\.)*(\w*(?:Error|Exception|Interrupt)): (.+)")
# The body of a pydantic error, below its first line.
DETAIL = re.compile(
    r"^ +(?:Value error, (.+?)|(Input should be .+?))(?: \[type=(?:.*?input_value=([^,\]]+))?.*)?$"
)


class Milestone(NamedTuple):
    """A line that a start passes, the stage that begins with it and the figures it gives."""

    stage: str
    pattern: re.Pattern[str]


def _milestone(stage: str, pattern: str) -> Milestone:
    return Milestone(stage, re.compile(pattern))


MILESTONES = (
    _milestone("before_load", r"Initializing an? (?:V1 )?LLM engine \(v(?P<vllm_version>[^)]+)\)"),
    _milestone("load", r"Starting to load model|Loading (?:safetensors|pt) checkpoint shards"),
    _milestone("profile", r"(?:Model loading|Loading model weights) took (?P<weights_gib>[\d.]+) Gi?B"),
    _milestone("kv_cache", r"Available KV cache memory: (?P<kv_cache_gib>-?[\d.]+) GiB"),
    _milestone("kv_cache", r"rest of the memory reserved for KV Cache is (?P<kv_cache_gib>-?[\d.]+) ?GiB"),
    _milestone("kv_cache", r"reserved (?P<kv_cache_gib>[\d.]+) ?GiB memory for KV Cache as specified"),
    _milestone("kv_cache", r"Explicitly set \((?P<cpu_kv_gib>[\d.]+)/[\d.]+\) GiB for KV cache"),
    _milestone("graphs", r"\w+ KV cache size: (?P<kv_cache_tokens>[\d,]+) tokens"),
    _milestone("graphs", r"# \w+ blocks: (?P<num_gpu_blocks>\d+)"),
    # Runner 2 also writes this for its rehearsal, before there is a KV cache: the reader looks at the order.
    _milestone("warmup", r"Graph capturing finished in"),
)
