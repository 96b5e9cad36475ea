"""The types themselves: frozen, masked, described."""

from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import Any

import pytest
from annotated_types import DocInfo

from gateway.config.hints import keys_of, unwrap
from gateway.config.schema import Config, ModelConfig, Settings, SpillgateFile
from gateway.config.shipped import SHIPPED


def mappings(cls: type) -> list[type]:
    found = [cls]
    for known in keys_of(cls).values():
        inner: Any = unwrap(known.hint.inner) if known.hint.base is tuple else known.hint
        if is_dataclass(inner.base):
            found += mappings(inner.base)  # type: ignore[arg-type]  # a class here, never an instance
    return found


def test_every_key_has_a_meaning_and_every_mapping_a_sentence() -> None:
    for cls in mappings(SpillgateFile):
        assert cls.__doc__
        assert "(" not in cls.__doc__.split(".")[0], "not the signature that dataclasses make up"
        for key, known in keys_of(cls).items():
            assert known.hint.mark(DocInfo), f"{cls.__name__}.{key}"


def test_a_config_takes_over_every_setting_of_the_file() -> None:
    file = SpillgateFile(models=(ModelConfig(name="m", engines=("a",)),))
    config = Config.of(file, SHIPPED)
    assert {f.name for f in fields(SpillgateFile)} == {f.name for f in fields(Config)}
    assert all(getattr(config, f.name) is getattr(file, f.name) for f in fields(Settings))
    assert config.models == file.models
    assert config.policies is SHIPPED


def test_a_config_cannot_be_changed() -> None:
    config = Config()
    with pytest.raises(FrozenInstanceError):
        config.models = ()  # type: ignore[misc]  # what the test is about


def test_nothing_is_open_or_unbounded_by_default() -> None:
    config = Config()
    assert config.listen.host == "127.0.0.1"
    assert config.admin is None
    assert config.limits.max_body == 20 * 2**20
    assert config.limits.max_in_flight == 2000
    assert (config.scrape.interval, config.scrape.timeout, config.shutdown.drain) == (1.0, 1.0, 30.0)
    assert config.ledger.url.reveal() == "sqlite:///spillgate.db"
