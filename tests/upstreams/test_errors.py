"""The tree of upstream errors."""

from typing import get_args

import pytest

from gateway.ledger.records import Outcome
from gateway.upstreams import errors


def leaves() -> list[type[errors.UpstreamError]]:
    return errors.UpstreamError.__subclasses__()


def test_every_error_has_an_outcome_that_the_ledger_knows() -> None:
    outcomes = [error.outcome for error in leaves()]
    assert set(outcomes) <= set(get_args(Outcome))
    assert len(set(outcomes)) == len(outcomes)


def test_the_docstring_draws_every_error() -> None:
    assert errors.__doc__ is not None
    for error in leaves():
        assert error.__name__ in errors.__doc__


@pytest.mark.parametrize("error", [errors.Refused, errors.PoolFull])
def test_what_never_left_cannot_have_been_sent(error: type[errors.Refused]) -> None:
    assert error("why").sent is False
