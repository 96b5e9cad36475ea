"""The milestones of a start, as each version writes them."""

import pytest

from gateway.vllm.bootlog_patterns import MILESTONES, STAGES


@pytest.mark.parametrize(
    ("line", "stage", "figures"),
    [
        (
            "Initializing an LLM engine (v0.6.6) with config: model='m'",
            "before_load",
            {"vllm_version": "0.6.6"},
        ),
        ("Initializing a V1 LLM engine (v0.32.0) with config: x", "before_load", {"vllm_version": "0.32.0"}),
        ("Loading model weights took 14.9888 GB", "profile", {"weights_gib": "14.9888"}),
        ("Model loading took 14.99 GiB and 3.2 seconds", "profile", {"weights_gib": "14.99"}),
        ("Model loading took 14.99 GiB memory and 3.2 seconds", "profile", {"weights_gib": "14.99"}),
        ("Available KV cache memory: -1.2 GiB", "kv_cache", {"kv_cache_gib": "-1.2"}),
        (
            "Initial free memory 20.0 GiB, reserved 4.0 GiB memory for KV Cache as specified by "
            "kv_cache_memory_bytes",
            "kv_cache",
            {"kv_cache_gib": "4.0"},
        ),
        ("GPU KV cache size: 2,048 tokens", "graphs", {"kv_cache_tokens": "2,048"}),
        ("# GPU blocks: 2842, # CPU blocks: 512", "graphs", {"num_gpu_blocks": "2842"}),
        ("Graph capturing finished in 20 secs, took 0.5 GiB", "warmup", {}),
    ],
)
def test_a_milestone_is_known_in_every_spelling(line: str, stage: str, figures: dict[str, str]) -> None:
    found = [(kind, match.groupdict()) for kind, pattern in MILESTONES if (match := pattern.search(line))]
    assert found == [(stage, figures)]


def test_milestones_stand_in_the_order_of_the_stages() -> None:
    order = [STAGES.index(stage) for stage, _ in MILESTONES]
    assert order == sorted(order)
