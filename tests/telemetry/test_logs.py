"""Log lines: one JSON object each, whatever is in them."""

import json
import logging

import pytest

from gateway.telemetry.logs import configure, expect_broken_bodies, is_worth_logging


def test_every_line_is_one_json_object(capsys: pytest.CaptureFixture[str], restored_logging: None) -> None:
    configure("INFO")
    log = logging.getLogger("gateway.tests")
    log.info("two\nlines and a %s", '\x1b[31m quote "')
    log.debug("not asked for")
    try:
        raise ValueError("inner\ntext")
    except ValueError:
        log.exception("it failed")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["level"], line["logger"]) for line in lines] == [
        ("info", "gateway.tests"),
        ("error", "gateway.tests"),
    ]
    assert lines[0]["message"] == 'two\nlines and a \x1b[31m quote "'
    assert "ValueError: inner\ntext" in lines[1]["exception"]
    assert lines[0]["at"].endswith("+00:00")


def test_a_body_broken_off_on_purpose_is_no_complaint() -> None:
    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, text, (), None)

    assert not is_worth_logging(record("ASGI callable returned without completing response."))
    assert is_worth_logging(record("Exception in ASGI application"))
    expect_broken_bodies()
    expect_broken_bodies()
    assert logging.getLogger("uvicorn.error").filters.count(is_worth_logging) == 1
