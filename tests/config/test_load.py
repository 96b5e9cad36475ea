"""spillgate.yaml, its policies and its keys as one: a Config, or every problem with its place."""

import json
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from ruamel.yaml import YAML

from gateway.config.findings import CODES, ConfigErrors
from gateway.config.keys import KeyEntry, add_key, generate, hash_of
from gateway.config.load import Examined, examine, load, schema
from gateway.config.shipped import SHIPPED

Write = Callable[[str, str], Path]
Find = Callable[..., list[str]]
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/examples/spillgate.yaml"


def test_the_example_in_the_docs_loads_clean() -> None:
    examined = examine(EXAMPLE, {"SERVERLESS_API_KEY": "sk-CANARY"})
    assert examined.findings == ()
    assert examined.config is not None
    assert "CANARY" not in repr(examined.config)
    key = examined.config.endpoints[0].api_key
    assert key is not None
    assert key.reveal() == "sk-CANARY"


def test_money_is_exactly_what_the_file_says() -> None:
    config = load(EXAMPLE, {"SERVERLESS_API_KEY": "x"})
    price = config.models[0].overflow[0].price
    assert price is not None
    assert (str(price.input), str(price.cached_input), str(price.output)) == ("0.40", "0.10", "0.70")
    cost = config.engines[0].cost
    assert cost is not None
    assert cost.usd_per_hour == Decimal("5.80")


def test_without_a_folder_the_built_in_policies_are_there(
    good: str, examined: Callable[..., Examined]
) -> None:
    config = examined(good).config
    assert config is not None
    assert dict(config.policies) == dict(SHIPPED)


def test_a_policy_of_the_folder_takes_the_place_of_a_built_in_one(
    good: str, write: Write, examined: Any
) -> None:
    write("policies/balanced.yaml", "name: balanced\npin: local\n")
    write("policies/mine.yml", "name: mine\n")
    write("policies/.hidden.yaml", "]")
    write("policies/README.md", "]")
    config = examined(f"policies: policies/\n{good}    policy: mine\n").config
    assert config is not None
    assert config.policies["balanced"].pin == "local"
    assert set(config.policies) == {*SHIPPED, "mine"}
    assert config.models[0].policy == "mine"


def test_problems_of_all_files_come_in_one_list(good: str, write: Write, examined: Any) -> None:
    write("policies/one.yaml", "name: one\npin: nowhere\n")
    write("policies/two.yaml", "name: one\n")
    write("policies/three.yaml", "name: drei\n")
    write("keys.yaml", "keys: [{name: k, hash: x}]\n")
    text = (
        f"policies: policies\nclients: {{keys_file: keys.yaml}}\nlisten: {{port: x}}\n{good}    policy: on\n"
    )
    findings = examined(text).findings
    assert [(Path(f.file).name, f.line, f.code) for f in findings] == [
        ("spillgate.yaml", 3, "wrong_type"),
        ("spillgate.yaml", 14, "unknown_name"),
        ("one.yaml", 2, "bad_value"),
        ("three.yaml", 1, "name_differs"),
        ("two.yaml", 1, "duplicate_name"),
        ("keys.yaml", 1, "bad_value"),
    ]


def test_a_policy_with_errors_still_counts_as_a_name(good: str, write: Write, examined: Any) -> None:
    write("policies/broken.yaml", "name: broken\npin: 5\n")
    codes = [f.code for f in examined(f"policies: policies\n{good}    policy: broken\n").findings]
    assert codes == ["bad_value"]


@pytest.mark.parametrize("folder", ["nowhere/", "spillgate.yaml"])
def test_a_policy_folder_that_is_none_is_an_error(good: str, found: Find, folder: str) -> None:
    assert found(f"policies: {folder}\n{good}") == ["1:11 unreadable"]


def test_an_empty_policy_folder_is_a_warning(good: str, found: Find, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    assert found(f"policies: p\n{good}") == ["1:11 unused"]


def test_a_missing_keys_file_is_an_error_and_never_an_open_door(good: str, found: Find) -> None:
    text = f"clients: {{keys_file: keys.yaml}}\nlisten: {{host: 0.0.0.0}}\n{good}"
    assert found(text) == ["1:22 unreadable"]


def test_keys_and_policies_must_know_each_other(
    good: str, write: Write, examined: Any, tmp_path: Path
) -> None:
    add_key(tmp_path / "keys.yaml", KeyEntry(name="hr", hash=hash_of(generate()), policy="strict"))
    write("policies/p.yaml", "name: p\noverflow: {forbid: {keys: [hr, lab]}}\n")
    examined_now = examined(f"policies: policies\nclients: {{keys_file: keys.yaml}}\n{good}")
    assert [(Path(f.file).name, f.code, f.level) for f in examined_now.findings] == [
        ("p.yaml", "unknown_name", "warning"),
        ("keys.yaml", "unknown_name", "error"),
    ]


def test_every_missing_variable_is_in_one_error_and_no_value_is(good: str, write: Write) -> None:
    text = (
        good.replace("- name: e", "- name: e\n    api_key: ${ONE}")
        + "admin: {key: '${TWO}'}\nledger: {url: '${SET}'}\n"
    )
    path = write("spillgate.yaml", text)
    with pytest.raises(ConfigErrors) as caught:
        load(path, {"TWO": "", "SET": "CANARY"})
    assert [f.code for f in caught.value.findings] == ["env_missing", "env_missing", "bad_value"]
    assert "ONE is not set" in str(caught.value)
    assert "TWO is empty" in str(caught.value)
    assert "CANARY" not in str(caught.value)


def test_a_file_that_cannot_be_read_has_one_finding(tmp_path: Path) -> None:
    (finding,) = examine(tmp_path / "none.yaml", {}).findings
    assert str(finding).startswith(f"{tmp_path / 'none.yaml'}:1:1: error: the file cannot be read")


def test_warnings_alone_do_not_raise(good: str, write: Write) -> None:
    path = write("spillgate.yaml", good.replace("engines: [a]", "engines: []"))
    assert load(path, {}).models[0].engines == ()


def test_a_truncated_file_is_never_half_believed(write: Write) -> None:
    whole = EXAMPLE.read_text()
    for end in range(0, len(whole), 97):
        examined = examine(write("spillgate.yaml", whole[:end]), {"SERVERLESS_API_KEY": "x"})
        assert all(f.code in CODES and f.line >= 1 and f.column >= 1 for f in examined.findings)
        assert examined.config is None or "models:\n  - name:" in whole[:end]


def test_the_schema_accepts_what_the_loader_accepts() -> None:
    described = schema()
    yaml = YAML(typ="safe", pure=True)
    example = json.loads(json.dumps(yaml.load(EXAMPLE.read_text()), default=str))
    jsonschema.validate(example, described)
    for path in (ROOT / "policies").glob("*.yaml"):
        policy = json.loads(json.dumps(yaml.load(path.read_text()), default=str))
        jsonschema.validate(policy, {**described["$defs"]["Policy"], "$defs": described["$defs"]})


@pytest.mark.parametrize(
    "wrong", [{"models": []}, {"modles": []}, {"models": [{"nam": "x"}]}, {"scrape": {"interval": 3}}]
)
def test_the_schema_refuses_what_the_loader_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"models": [{"name": "m"}], **wrong}, schema())


def test_paths_start_at_the_folder_of_the_file(good: str, write: Write, tmp_path: Path) -> None:
    path = write("deep/spillgate.yaml", good.replace("- name: a", "- name: a\n    boot_log: logs/a.log"))
    relative = Path(os.path.relpath(path))
    assert load(path, {}).engines[0].boot_log == tmp_path / "deep/logs/a.log"
    assert load(relative, {}).engines[0].boot_log == relative.parent / "logs/a.log"
