"""The series of a vLLM metrics page that routing uses, over all versions, as one table.

Knows names, labels and what stands in for what; neither reads nor writes a page.
"""

from typing import Literal, NamedTuple


class Series(NamedTuple):
    """One series: its name on the wire, the field it fills, and how its values are read."""

    name: str
    field: str
    unit: Literal["share", "count", "flag", "labels"]
    type: Literal["gauge", "counter"]
    help: str
    # Only the sample with this label and value counts.
    only: tuple[str, str] | None = None
    # The label by which one figure is spread over samples, and a value of it: they are summed.
    spread: tuple[str, str] | None = None
    per_rank: bool = True
    # Stands in where the series with the same field further up is absent; never written.
    fallback: bool = False


# In the order of a real page. Counters have `_total` on the wire in every version, whatever the source says.
SERIES: tuple[Series, ...] = (
    Series(
        "vllm:num_requests_running",
        "running",
        "count",
        "gauge",
        "Number of requests in model execution batches.",
    ),
    Series(
        "vllm:num_requests_waiting",
        "waiting",
        "count",
        "gauge",
        "Number of requests waiting to be processed.",
    ),
    Series(
        "vllm:num_requests_waiting_by_reason",
        "waiting_capacity",
        "count",
        "gauge",
        "Number of waiting requests by reason.",
        only=("reason", "capacity"),
    ),
    Series(
        "vllm:engine_sleep_state",
        "awake",
        "flag",
        "gauge",
        "Engine sleep state; awake = 0 means engine is sleeping.",
        only=("sleep_state", "awake"),
    ),
    Series(
        "vllm:kv_cache_usage_perc", "kv_usage", "share", "gauge", "KV-cache usage. 1 means 100 percent usage."
    ),
    # The name up to 0.11; both are on in 0.9 and 0.10.
    Series("vllm:gpu_cache_usage_perc", "kv_usage", "share", "gauge", "GPU KV-cache usage.", fallback=True),
    Series(
        "vllm:num_preemptions_total",
        "preemptions",
        "count",
        "counter",
        "Cumulative number of preemption from the engine.",
    ),
    Series(
        "vllm:prompt_tokens_total", "prompt_tokens", "count", "counter", "Number of prefill tokens processed."
    ),
    Series(
        "vllm:prompt_tokens_cached_total",
        "cached_prompt_tokens",
        "count",
        "counter",
        "Number of cached prompt tokens.",
    ),
    # Tokens since 0.9; before, the name was gpu_prefix_cache_hits and the unit blocks.
    Series(
        "vllm:prefix_cache_hits_total",
        "cached_prompt_tokens",
        "count",
        "counter",
        "Prefix cache hits, in tokens.",
        fallback=True,
    ),
    Series(
        "vllm:generation_tokens_total",
        "generation_tokens",
        "count",
        "counter",
        "Number of generation tokens processed.",
    ),
    Series(
        "vllm:request_success_total",
        "success",
        "count",
        "counter",
        "Count of successfully processed requests.",
        spread=("finished_reason", "stop"),
    ),
    Series(
        "vllm:admission_rejections_total",
        "rejections",
        "count",
        "counter",
        "Number of requests rejected at admission.",
        spread=("reason", "max_num_queued_reqs"),
        per_rank=False,
    ),
    Series("vllm:cache_config_info", "cache", "labels", "gauge", "Information of the LLMEngine CacheConfig"),
)
