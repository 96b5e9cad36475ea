"""Boot logs of real engines, whole and as they grow: which line is the cause, and what is forgotten."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.boot_failure import BootFailureLog
from gateway.vllm.bootlog import BootLogReader, read

BootLog = Callable[[str], list[str]]

GOOD = [
    "0.13.0-boot-preempt-engine-died",
    "0.20.2-boot-eager",
    "0.32.0-boot-eager-24-layers",
    "0.32.0-boot-then-enginecore-sigkill",
    "0.32.0-engine-died-on-first-request",
    "0.32.0-sigterm-with-open-stream",
]
# Outcome, stage, memory, text, line of the cause.
BAD = {
    "0.32.0-fail-blocks-too-few": (
        "startup_oom_context_too_long",
        "kv_cache",
        True,
        "KV cache too small for one request of max_model_len 8192: lower --max-model-len to 2016, "
        "or give the KV cache more memory",
        16,
    ),
    "0.32.0-fail-kvspace-zero": (
        "startup_oom_no_kv_blocks",
        "kv_cache",
        True,
        "no memory for the KV cache (VLLM_CPU_KVCACHE_SPACE gives 0 GiB): raise VLLM_CPU_KVCACHE_SPACE",
        15,
    ),
    "0.32.0-fail-kvspace-huge": (
        "startup_free_memory_low",
        "kv_cache",
        True,
        "only 21.79 of 23.54 GiB were free but the KV cache asks for 500 GiB: lower VLLM_CPU_KVCACHE_SPACE "
        "or --kv-cache-memory-bytes",
        14,
    ),
    "0.32.0-fail-bad-value": (
        "config",
        "graphs",
        False,
        "the attention backend has no blocks of 33 tokens (CPU_ATTN: [MultipleOf(32)]): set "
        "--block-size to one "
        "that it has, or leave it out",
        16,
    ),
    "0.32.0-fail-block-size-16-with-compile": (
        "config",
        "graphs",
        False,
        "the attention backend has no blocks of 16 tokens (CPU_ATTN: [MultipleOf(32)]): set "
        "--block-size to one "
        "that it has, or leave it out",
        17,
    ),
    "0.32.0-fail-len-over-model": (
        "config",
        "config",
        False,
        "max_model_len 20000 is longer than the model itself allows (8192): lower --max-model-len to 8192",
        8,
    ),
    "0.32.0-fail-len-auto": (
        "config",
        "config",
        False,
        "max_num_batched_tokens 16 is smaller than max_model_len 1024 without chunked prefill: "
        "raise --max-num-batched-tokens to 1024, or lower --max-model-len",
        9,
    ),
    "0.32.0-fail-gpu-util-over-1": (
        "config",
        "config",
        False,
        "vLLM refuses its configuration: gpu_memory_utilization: Input should be less than or equal "
        "to 1 (given: 1.5)",
        10,
    ),
    "0.32.0-fail-sleep-mode-unsupported": (
        "config",
        "config",
        False,
        "vLLM refuses its configuration: Sleep mode is not supported on current platform",
        8,
    ),
    "0.32.0-fail-bad-flag": (
        "config",
        "config",
        False,
        "vLLM refuses its command line: unrecognized arguments: --no-such-flag 1",
        3,
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_an_engine_that_served_has_no_boot_failure_whatever_came_after(name: str, boot_log: BootLog) -> None:
    reader = read(boot_log(name))
    assert (reader.started, reader.serving, reader.failure) == (True, True, None)


@pytest.mark.parametrize("name", GOOD)
def test_before_it_serves_a_good_boot_is_only_started(name: str, boot_log: BootLog) -> None:
    lines = boot_log(name)
    end = next(n for n, line in enumerate(lines) if "Application startup complete" in line)
    reader = BootLogReader()
    for line in lines[:end]:
        reader.feed([line])
        assert (reader.serving, reader.failure) == (False, None)
    assert reader.started


@pytest.mark.parametrize("name", BAD)
def test_the_cause_of_a_failed_boot_is_its_first_error(name: str, boot_log: BootLog) -> None:
    outcome, stage, memory, text, line = BAD[name]
    lines = boot_log(name)
    reader = read(lines)
    failure = reader.failure
    assert failure is not None
    assert (failure.outcome, failure.stage, failure.memory, failure.text) == (outcome, stage, memory, text)
    assert (reader.started, reader.serving) == (True, False)
    number, said = failure.evidence[-1]
    assert number == line
    assert said in lines[line - 1]


@pytest.mark.parametrize("name", BAD)
def test_a_failure_once_known_is_not_renamed_by_what_follows(name: str, boot_log: BootLog) -> None:
    lines = boot_log(name)
    reader = BootLogReader()
    seen = {reader.feed([line]).failure for line in lines if line}
    # A pydantic error is first known by its headline alone.
    assert len(seen - {None}) <= 2
    assert reader.failure is not None
    assert reader.failure.text == BAD[name][3]


def test_the_figures_of_the_start_are_kept_with_the_failure() -> None:
    log = BootFailureLog(max_model_len=131_072, kv_cache_gib=4.48, weights_gib=14.99)
    failure = read(log.text().splitlines()).failure
    assert failure is not None
    facts = dict(failure.facts)
    assert facts["longest_context"] == log.longest_context
    assert (facts["weights_gib"], facts["kv_cache_gib"], facts["vllm_version"]) == (14.99, 4.48, "0.32.0")
    assert [text for _, text in failure.evidence[:2]] == [
        "Model loading took 14.99 GiB memory and 3.02 seconds",
        "Available KV cache memory: 4.48 GiB",
    ]
    assert f"lower --max-model-len to {log.longest_context}" in failure.text


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-12-01T04:00:00.123456789Z stderr F ",
        "2026-12-01T04:00:00Z ",
        "vllm-1  | ",
        "[pod/vllm-7c9/server] ",
        "\x1b[0;36m(EngineCore_DP0 pid=14602)\x1b[0;0m ",
        "(RayWorkerWrapper pid=77, ip=10.0.0.2) ",
        "vllm-1  | (Worker_TP0 pid=3) ERROR 12-01 03:57:41 [core.py:1510] ",
        "ERROR 12-01 03:57:41 core.py:1510] ",
    ],
)
def test_prefixes_of_containers_processes_and_loggers_do_not_hide_a_cause(prefix: str) -> None:
    reader = read([prefix + "ValueError: No available memory for the cache blocks. Try increasing"])
    assert reader.failure is not None
    assert reader.failure.evidence == (
        (1, "ValueError: No available memory for the cache blocks. Try increasing"),
    )


def test_what_is_only_reported_at_info_is_no_cause() -> None:
    line = "INFO 12-01 03:57:41 [core.py:1] seen before: No available memory for the cache blocks"
    assert read([line]).failure is None


def test_a_bare_out_of_memory_is_named_by_the_line_that_follows() -> None:
    oom = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.74 GiB. GPU 1 has a total "
        "capacity of 23.57 "
    )
    oom += "GiB of which 605.88 MiB is free."
    reader = read([oom])
    assert reader.failure is not None
    assert dict(reader.failure.facts)["cause"] == "oom"
    reader.feed(
        ["RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests."]
    )
    assert reader.failure.text.startswith("out of GPU memory in the sampler's warm-up")
    facts = dict(reader.failure.facts)
    assert (facts["cause"], facts["gpu_total_gib"], facts["dummy_requests"]) == ("sampler_oom", 23.57, 256)
    named = reader.failure
    assert reader.feed(["Engine core initialization failed. See root cause above.", oom]).failure == named


def test_the_smallest_rank_binds() -> None:
    lines = [
        f"(Worker_TP{n} pid={n}) INFO 12-01 03:57:41 [g.py:1] Available KV cache memory: {n} GiB"
        for n in (3, 2, 5)
    ]
    failure = read([*lines, "ValueError: No available memory for the cache blocks."]).failure
    assert failure is not None
    assert dict(failure.facts)["kv_cache_gib"] == 2
    assert failure.evidence[0][0] == 2


def test_an_unknown_error_counts_only_when_its_process_ends() -> None:
    caught = ["Traceback (most recent call last):", "ImportError: no flash_attn"]
    reader = read(["(APIServer pid=1) INFO 12-01 03:57:41 [a.py:1] non-default args: {}", *caught])
    assert reader.failure is None
    reader.feed(
        [
            "ERROR 12-01 03:57:41 [core.py:1] EngineCore failed to start.",
            "ERROR 12-01 03:57:41 [core.py:1] Traceback (most recent call last):",
            "ERROR 12-01 03:57:41 [core.py:1] KeyError: 'rope_scaling'",
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        ]
    )
    assert reader.failure is not None
    assert (reader.failure.outcome, reader.failure.memory) == ("other", False)
    assert reader.failure.text == "the start failed with KeyError: 'rope_scaling'"


def test_a_log_that_does_not_say_why_says_so() -> None:
    failure = read(["RuntimeError: Engine core initialization failed. See root cause above."]).failure
    assert failure is not None
    assert failure.text == "the start failed, and the log does not say why"


@pytest.mark.parametrize("name", BAD)
def test_a_new_start_forgets_the_failure_of_the_last(name: str, boot_log: BootLog) -> None:
    reader = read(boot_log(name))
    good = boot_log("0.32.0-boot-eager-24-layers")
    start = next(n for n, line in enumerate(good) if "non-default args" in line)
    reader.feed(good[: start + 1])
    assert (reader.started, reader.serving, reader.failure) == (True, False, None)
    assert reader.feed(good[start + 1 :]).serving


def test_a_failed_restart_below_a_serving_start_is_seen(boot_log: BootLog) -> None:
    reader = read(boot_log("0.32.0-boot-eager-24-layers"))
    reader.feed(boot_log("0.32.0-fail-kvspace-zero"))
    assert not reader.serving
    assert reader.failure is not None
    assert reader.failure.outcome == "startup_oom_no_kv_blocks"


def test_a_second_core_of_the_same_start_does_not_forget_the_first_ones_failure() -> None:
    core = (
        "(EngineCore_DP1 pid=2) INFO 12-01 03:57:41 [core.py:1] Initializing a V1 LLM engine "
        "(v0.13.0) with config: x"
    )
    failed = [
        "INFO 12-01 03:57:40 [a.py:1] vLLM API server version 0.13.0",
        core,
        "ValueError: No available memory for the cache blocks",
    ]
    assert read([*failed, core]).failure is not None
    # Without the API's lines it is the only sign of a new start.
    assert read([*failed[1:], core]).failure is None


def test_the_middle_of_a_serving_engines_log_is_serving() -> None:
    stats = (
        "INFO 12-01 03:59:20 [loggers.py:271] Engine 000: Avg prompt throughput: 1.0 tokens/s, "
        "Running: 1 reqs"
    )
    reader = read([stats, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.5 GiB"])
    assert (reader.started, reader.serving, reader.failure) == (False, True, None)


def test_runner_2s_rehearsal_of_graphs_is_not_the_warm_up() -> None:
    lines = [
        "Model loading took 9 GiB memory and 2 seconds",
        "Graph capturing finished in 3 secs, took 0.2 GiB",
    ]
    failure = read([*lines, "torch.OutOfMemoryError: CUDA out of memory"]).failure
    assert failure is not None
    assert (failure.stage, failure.outcome) == ("profile", "startup_oom_profile")


@given(st.data())
def test_it_does_not_matter_where_a_growing_log_is_cut(data: st.DataObject) -> None:
    lines = BootFailureLog().text().splitlines()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(lines)), max_size=5)))
    reader = BootLogReader()
    for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True):
        reader.feed(line + "\n" for line in lines[start:end])
    assert reader.failure == read(lines).failure


_PIECES = st.sampled_from(
    [
        "(EngineCore pid=1) ",
        "ERROR 12-01 03:57:41 [core.py:1] ",
        "Free memory on device (1.2.3/..",
        "9" * 400,
        " GiB) ",
        "on startup is less than desired GPU memory utilization (",
        "., .. GiB)",
        "max_num_seqs (",
        ") exceeds available",
        " Mamba cache blocks (",
        "{x}",
        ")",
        "vllm: error: {",
        "EngineCore failed to start",
        "ValueError: {0}",
        "\n",
    ]
)


@given(st.lists(st.lists(_PIECES | st.text(), max_size=8).map("".join), max_size=8))
def test_no_line_however_broken_raises(lines: list[str]) -> None:
    read(lines)


def test_figures_that_are_no_numbers_do_not_raise() -> None:
    failure = read(
        [
            "Free memory on device (1.2.3/. GiB) on startup is less than desired GPU memory "
            "utilization (., .. GiB)"
        ]
    ).failure
    assert failure is not None
    assert failure.outcome == "startup_free_memory_low"
