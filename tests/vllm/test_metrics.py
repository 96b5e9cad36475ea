"""Metrics pages of real engines, of old dialects, of several ranks, and of no engine at all."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.vllm.metrics import CacheFacts, EngineMetrics, RankMetrics, expose, parse

Page = Callable[[str], bytes]


def one(text: str) -> RankMetrics:
    """The only rank of a page."""
    (rank,) = parse(text.encode()).ranks
    return rank


def test_a_real_page_of_0_32_says_all_there_is(page: Page) -> None:
    assert parse(page("0.32.0-preempt-under-load")) == EngineMetrics(
        ranks=(
            RankMetrics(
                rank="0",
                kv_usage=1.0,
                running=4,
                waiting=4,
                waiting_capacity=4,
                preemptions=7,
                prompt_tokens=32,
                generation_tokens=5088,
                cached_prompt_tokens=0,
                success=6,
                awake=True,
                cache=CacheFacts(64, 32, 2048, True),
            ),
        ),
        model_name="tiny",
        rejections=0,
        dialect="v1",
    )


@pytest.mark.parametrize(
    ("name", "usage", "running", "preemptions", "capacity"),
    [
        ("0.13.0-preempt-under-load", 1.0, 5, 5, None),
        ("0.20.2-preempt-under-load", 1 / 3, 1, 105, 1),
        ("0.32.0-idle", 0.0, 0, 0, 0),
    ],
)
def test_older_pages_give_what_they_have(
    page: Page, name: str, usage: float, running: int, preemptions: int, capacity: int | None
) -> None:
    metrics = parse(page(name))
    (rank,) = metrics.ranks
    assert rank.kv_usage == pytest.approx(usage)
    assert (rank.running, rank.preemptions, rank.waiting_capacity) == (running, preemptions, capacity)
    assert (rank.cache.num_gpu_blocks, rank.cache.block_size) == (64, 32)
    assert (rank.cache.kv_cache_size_tokens is None) == ("0.32" not in name)
    assert (metrics.rejections is None) == ("0.32" not in name)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>vllm: 502 Bad Gateway</body></html>",
        b"# TYPE vllm:num_requests_running gauge\n",
        b'python_info{version="3.11"} 1.0\nprocess_resident_memory_bytes 5e8\n',
        b"vllm:num_requests_running",
        b'vllm:num_requests_running{engine="0" 3',
        b'vllm:num_requests_running{engine="0} 3',
        b'vllm:num_requests_running_max{engine="0"} 3',
        b"\xff\xfe\x00",
    ],
)
def test_a_page_without_vllm_series_is_unknown_and_never_idle(body: bytes) -> None:
    assert parse(body) == EngineMetrics(ranks=(), model_name=None, rejections=None, dialect="none")


def test_v0_has_no_engine_label_and_the_old_name_of_usage() -> None:
    metrics = parse(
        b'vllm:num_requests_running{model_name="m"} 3.0\nvllm:num_requests_swapped{model_name="m"} 0.0\n'
        b'vllm:gpu_cache_usage_perc{model_name="m"} 0.25\nvllm:num_preemptions_total{model_name="m"} 2.0\n'
        b'vllm:cache_config_info{block_size="16",num_gpu_blocks="2048",swap_space="4"} 1.0\n'
    )
    assert metrics.dialect == "v0"
    assert metrics.ranks == (
        RankMetrics("0", kv_usage=0.25, running=3, preemptions=2, cache=CacheFacts(2048, 16)),
    )


@pytest.mark.parametrize("old_first", [True, False])
def test_the_new_name_of_usage_wins_where_both_are_there(old_first: bool) -> None:
    lines = ['vllm:gpu_cache_usage_perc{engine="0"} 0.1', 'vllm:kv_cache_usage_perc{engine="0"} 0.2']
    text = "\n".join(lines if old_first else lines[::-1])
    assert one(text).kv_usage == 0.2
    assert parse(text.encode()).dialect == "v1-old"


def test_hits_stand_in_for_cached_prompt_tokens_where_those_are_not_counted() -> None:
    hits = 'vllm:prefix_cache_hits_total{engine="0"} 5\n'
    assert one(hits).cached_prompt_tokens == 5
    assert one(hits + 'vllm:prompt_tokens_cached_total{engine="0"} 4\n').cached_prompt_tokens == 4


def test_ranks_are_kept_apart_and_in_order_of_number() -> None:
    lines = [f'vllm:kv_cache_usage_perc{{engine="{rank}",model_name="m"}} 0.{rank}' for rank in (10, 9, 0)]
    lines += [
        f'vllm:cache_config_info{{engine="{rank}",num_gpu_blocks="{rank + 1}"}} 1.0' for rank in (0, 10)
    ]
    ranks = parse("\n".join(lines).encode()).ranks
    assert [(rank.rank, rank.kv_usage, rank.cache.num_gpu_blocks) for rank in ranks] == [
        ("0", 0.0, 1),
        ("9", 0.9, None),
        ("10", 0.1, 11),
    ]


def test_success_is_the_sum_over_reasons_and_rejections_over_reasons() -> None:
    metrics = parse(
        b'vllm:request_success_total{engine="0",finished_reason="stop"} 2.0\n'
        b'vllm:request_success_total{engine="0",finished_reason="length"} 40.0\n'
        b'vllm:request_success_created{engine="0",finished_reason="stop"} 1.79e+09\n'
        b'vllm:admission_rejections_total{model_name="m",reason="max_num_queued_reqs"} 3\n'
        b'vllm:admission_rejections_total{model_name="m",reason="max_num_queued_tokens"} 4\n'
    )
    assert metrics.ranks[0].success == 42
    assert (metrics.rejections, metrics.dialect) == (7, "v1")


@pytest.mark.parametrize("value", ["NaN", "nan", "+Inf", "-1.0", "1e300", "soon", ""])
def test_what_is_no_count_is_unknown(value: str) -> None:
    rank = one(
        f'vllm:num_requests_running{{engine="0"}} 1\nvllm:num_requests_waiting{{engine="0"}} {value}\n'
    )
    assert (rank.running, rank.waiting) == (1, None)


def test_a_nan_of_the_new_name_leaves_the_old_one() -> None:
    text = 'vllm:kv_cache_usage_perc{engine="0"} NaN\nvllm:gpu_cache_usage_perc{engine="0"} 0.5\n'
    assert one(text).kv_usage == 0.5


def test_sleep_is_seen_and_other_sleep_states_do_not_matter() -> None:
    states = 'vllm:engine_sleep_state{{engine="0",sleep_state="{}"}} {}\n'
    assert one(states.format("weights_offloaded", 1) + states.format("awake", 0)).awake is False
    assert one(states.format("awake", 1) + states.format("discard_all", 0)).awake is True
    assert parse(states.format("discard_all", 0).encode()).ranks == ()


def test_label_values_may_hold_anything() -> None:
    name = r"a \"b\", {c=\"d\"} \\ \n e"
    line = f'vllm:num_requests_running{{engine="0",model_name="{name}",note="}} 7"}} 2.0 1700000000\n'
    metrics = parse(line.encode())
    assert metrics.model_name == 'a "b", {c="d"} \\ \n e'
    assert metrics.ranks[0].running == 2


@pytest.mark.parametrize("text", ["None", "", "-1", "1.5", "٣", "9" * 5000])
def test_a_cache_label_that_is_no_number_is_unknown(text: str) -> None:
    facts = one(f'vllm:cache_config_info{{block_size="{text}",num_gpu_blocks="64"}} 1.0\n').cache
    assert facts == CacheFacts(num_gpu_blocks=64)


def test_an_exposed_page_is_typed_as_a_real_one() -> None:
    text = expose((RankMetrics("0", preemptions=3, cache=CacheFacts(64, 32)),), "tiny", 1)
    assert text.splitlines() == [
        "# HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.",
        "# TYPE vllm:num_preemptions_total counter",
        'vllm:num_preemptions_total{engine="0",model_name="tiny"} 3.0',
        "# HELP vllm:admission_rejections_total Number of requests rejected at admission.",
        "# TYPE vllm:admission_rejections_total counter",
        'vllm:admission_rejections_total{model_name="tiny",reason="max_num_queued_reqs"} 1.0',
        "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig",
        "# TYPE vllm:cache_config_info gauge",
        'vllm:cache_config_info{block_size="32",enable_prefix_caching="None",engine="0",'
        'kv_cache_size_tokens="None",num_gpu_blocks="64"} 1.0',
    ]


counts = st.none() | st.integers(0, 2**53)
sizes = st.none() | st.integers(0, 10**12)
ranks = st.builds(
    RankMetrics,
    rank=st.integers(0, 40).map(str),
    kv_usage=st.none() | st.floats(0, 1),
    running=st.integers(0, 1024),
    waiting=counts,
    waiting_capacity=counts,
    preemptions=counts,
    prompt_tokens=counts,
    generation_tokens=counts,
    cached_prompt_tokens=counts,
    success=counts,
    awake=st.none() | st.booleans(),
    cache=st.builds(CacheFacts, sizes, sizes, sizes, st.none() | st.booleans()),
)
fleets = st.lists(ranks, min_size=1, max_size=4, unique_by=lambda rank: rank.rank)
names = st.none() | st.text(min_size=1)


@given(fleets, names, counts)
@example([RankMetrics("0", running=0)], '"} 9\nvllm:num_requests_running{engine="1"} 1', None)
def test_what_is_exposed_is_parsed_back(
    fleet: list[RankMetrics], name: str | None, rejections: int | None
) -> None:
    fleet.sort(key=lambda rank: int(rank.rank))
    assert parse(expose(fleet, name, rejections).encode()) == EngineMetrics(
        tuple(fleet), name, rejections, "v1"
    )


@given(st.binary(), st.integers(0, 60), st.sampled_from(["0.13.0-idle", "0.32.0-preempt-under-load"]))
def test_no_page_however_broken_raises(page_bytes: bytes, at: int, start: str) -> None:
    parse(page_bytes)
    parse(b"vllm:num_requests_running" + page_bytes)
    parse(b'vllm:cache_config_info{engine="' + page_bytes + start.encode()[:at])


def test_a_page_cut_anywhere_does_not_raise(page: Page) -> None:
    whole = page("0.32.0-idle")
    for end in range(0, len(whole), 7):
        assert len(parse(whole[:end]).ranks) <= 1
