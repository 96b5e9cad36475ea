"""What the journal and the tables rely on in the record types."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from typing import get_args

import pytest

from gateway.ledger.records import (
    AttemptRecord,
    Outcome,
    Record,
    Recovered,
    RequestRecord,
)


def test_a_record_is_written_once(request_record: Callable[..., RequestRecord]) -> None:
    with pytest.raises(FrozenInstanceError):
        request_record().outcome = "ok"  # type: ignore[misc] # frozen is what is tested


def test_every_amount_and_count_may_be_unknown() -> None:
    amounts = {"cash_marginal", "standard", "prompt_tokens", "cached_tokens", "completion_tokens"}
    for cls in (RequestRecord, AttemptRecord):
        types = {field.name: str(field.type) for field in fields(cls)}
        assert {types[name] for name in amounts} == {"int | None"}


def test_an_interrupted_request_has_an_outcome_of_its_own() -> None:
    assert "interrupted" in get_args(Outcome)


def test_two_recoveries_share_no_list() -> None:
    assert Recovered().records is not Recovered().records


def test_an_attempt_is_no_record_of_its_own() -> None:
    assert AttemptRecord not in get_args(Record)
