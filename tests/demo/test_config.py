"""The demo's configuration is one that `check` would take."""

from pathlib import Path

from gateway.config.load import load
from gateway.demo.config import ADMIN_KEY, BIG_MODEL, ENDPOINT_KEY, MODEL, Addresses, config_text, policy_text

AT = Addresses(
    "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:9", "http://127.0.0.1:3/v1", "c.log", "l.db"
)


def test_it_loads_and_names_what_the_demo_shows(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "demo.yaml").write_text(policy_text(30.0))
    path = tmp_path / "spillgate.yaml"
    path.write_text(config_text(AT, 1234.4))
    config = load(path, {ADMIN_KEY: "k1", ENDPOINT_KEY: "k2"})
    assert [e.name for e in config.engines] == ["l4-a", "l4-b", "l4-c"]
    assert [m.name for m in config.models] == [MODEL, BIG_MODEL]
    capacity = config.engines[0].cost.capacity_work_units_per_second if config.engines[0].cost else None
    assert capacity == 1234
    assert {m.policy for m in config.models} == {"demo"} <= set(config.policies)
    assert config.listen.host == "127.0.0.1"
    assert "k2" not in repr(config)


def test_ramps_fit_into_the_length_of_the_demo() -> None:
    for seconds in (5.0, 30.0, 3600.0):
        ramp = max(1.0, seconds / 10)
        assert f"return: {{ramp: {ramp:.1f}s" in policy_text(seconds)
