"""The failing boot log says what a real one says, and only where the start would really fail."""

import re
from pathlib import Path

import pytest

from gateway.simulator.boot_failure import BootFailureLog


def test_the_cause_is_worded_as_vllm_words_it() -> None:
    text = BootFailureLog(max_model_len=131_072, kv_cache_gib=4.48).text()
    pattern = (
        r"To serve at least one request with the models?'s max seq len \((\d+)\), "
        r"\(([\d.]+) Gi?B KV cache is needed, "
        r"which is larger than the available KV cache memory \(([\d.]+) Gi?B\)"
    )
    causes = re.findall(pattern, text)
    # Logged by the engine core, and once more, bare, as the process dies.
    assert causes == [("131072", "16.00", "4.48")] * 2


def test_the_length_it_offers_fits_in_whole_blocks_less_the_null_block() -> None:
    log = BootFailureLog(max_model_len=8192, kv_bytes_per_token=2**20, kv_cache_gib=2.0, block_size=32)
    assert log.longest_context == 2016
    assert "the estimated maximum model length is 2016." in log.text()


def test_the_last_line_is_the_wrapper_and_never_the_cause() -> None:
    assert BootFailureLog().text().splitlines()[-1] == (
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    )


def test_the_milestones_before_the_failure_are_there() -> None:
    text = BootFailureLog(model="llama").text()
    assert "Initializing a V1 LLM engine (v0.32.0) with config: model='llama'" in text
    assert "Model loading took 14.99 GiB memory and 3.02 seconds" in text
    assert "Available KV cache memory: 4.48 GiB" in text
    assert "Application startup complete" not in text


def test_a_start_that_would_not_fail_has_no_such_log() -> None:
    with pytest.raises(ValueError, match="would not fail"):
        BootFailureLog(max_model_len=2048).text()


def test_a_new_start_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    path.write_text("an older start\n" * 1000)
    BootFailureLog().write(path)
    assert path.read_text() == BootFailureLog().text()
