"""Validation problems in words: what, where, what to write instead; nothing of secrets."""

from pathlib import Path

import pytest

from gateway.config.derive import InvalidError, build
from gateway.config.document import parse
from gateway.config.env import substitute
from gateway.config.explain import explain
from gateway.config.schema import SpillgateFile
from gateway.routing.policy import Policy


def explained(text: str, cls: type = SpillgateFile) -> list[str]:
    document = parse(text, "f")
    with pytest.raises(InvalidError) as caught:
        build(cls, substitute(document.tree, {"PORT": "CANARY"}).tree, Path())
    return [str(finding) for finding in explain(caught.value.errors, cls, document.places, document.failed)]


@pytest.mark.parametrize(
    ("text", "place", "code", "message"),
    [
        ("lisen: {}", "1:1", "unknown_key", "unknown key 'lisen'; nearest known name: 'listen'"),
        ("listen: {zz: 1}", "1:10", "unknown_key", "unknown key 'zz'; known: host, port"),
        ("admin: {}", "1:8", "missing_key", "key 'key' is missing here"),
        ("listen: {port: x}", "1:16", "wrong_type", "'port' takes a whole number, not 'x'"),
        ("listen: {port: 70000}", "1:16", "bad_value", "'port' must be at most 65535, not '70000'"),
        ("listen: {port: -1}", "1:16", "bad_value", "'port' must be at least 0, not '-1'"),
        ("listen: {port: [1]}", "1:16", "wrong_type", "'port' takes a whole number, not a list"),
        ("listen: 5", "1:9", "wrong_type", "'listen' takes a mapping of keys, not '5'"),
        ("engines: {}", "1:10", "wrong_type", "'engines' takes a list, not a mapping"),
        ("engines: [5]", "1:11", "wrong_type", "entry 1 of 'engines' takes a mapping of keys, not '5'"),
        ("ledger: {required: no}", "1:20", "wrong_type", "'required' takes true or false, not 'no'"),
        ("scrape: {timeout: 0s}", "1:19", "bad_value", "'timeout' must be above 0, not '0s'"),
        (
            *("scrape: {timeout: 3}", "1:19", "bad_value"),
            "'timeout': a duration needs a unit, like 500ms, 2s, 15m, 1h or 1d; found '3'",
        ),
        (
            *("endpoints: [{name: e, kind: opnai}]", "1:29", "bad_value"),
            "'kind' takes one of openai, litellm, not 'opnai'; nearest known name: 'openai'",
        ),
        (
            *("listen: {host: 1e3}", "1:16", "wrong_type"),
            "'host' takes text, not '1e3' (a number or word of YAML here): quote it, \"1e3\"",
        ),
        ("listen: {host: ''}", "1:16", "bad_value", "'host' must not be empty"),
        ("listen: {port: '${PORT}'}", "1:16", "wrong_type", "'port' takes a whole number, not '${PORT}'"),
        (
            *("admin: {key: CANARY}", "1:14", "literal_secret"),
            "'key': a secret comes from the environment only: write ${NAME}, without a default",
        ),
    ],
)
def test_each_problem_has_its_sentence(text: str, place: str, code: str, message: str) -> None:
    assert explained(f"{text}\nmodels: [{{name: m}}]\n") == [f"f:{place}: error: {message} [{code}]"]


def test_an_empty_list_and_a_missing_one_are_told_apart() -> None:
    assert explained("models: []") == ["f:1:9: error: 'models' must have at least one entry [bad_value]"]
    assert explained("listen: {}") == ["f:1:1: error: key 'models' is missing here [missing_key]"]
    assert explained("[]") == ["f:1:1: error: the file takes a mapping of keys, not a list [wrong_type]"]


def test_a_policy_s_choices_are_named() -> None:
    (finding,) = explained("name: p\noverflow: {when: [queue, headrom]}\n", Policy)
    assert finding.startswith("f:2:26: error: entry 2 of 'when' takes one of headroom, queue,")
    assert finding.endswith("not 'headrom'; nearest known name: 'headroom' [bad_value]")


@pytest.mark.parametrize(
    "text",
    [
        "admin: {key: 12345678}",
        "admin: {key: [CANARY]}",
        "admin: {key: {CANARY: 1}}",
        "admin: {token: CANARY, key: '${PORT}'}",
        "engines: [{name: a, url: 'http://CANARY@h'}]",
        "engines: [{name: a, url: CANARY}]",
        "listen: {port: '${PORT}'}",
        "scrape: {interval: '${PORT}'}",
        "engines: [{name: a, url: 'http://h', cost: {usd_per_hour: '${PORT}'}}]",
        "ledger: {url: 'CANARY'}",
    ],
)
def test_no_message_holds_a_secret(text: str) -> None:
    findings = explained(f"{text}\nmodels: [{{name: m}}]\n")
    assert findings
    assert "CANARY" not in "".join(findings).replace("{CANARY", "")
    assert "12345678" not in "".join(findings)


def test_places_that_already_have_a_finding_get_no_second_one() -> None:
    assert explained("listen: {port: }\nmodels: [{name: m}]\n") == []
