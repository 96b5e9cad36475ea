"""The errors' tree."""

import pytest

from gateway.ledger import errors


@pytest.mark.parametrize(
    "error",
    [errors.JournalInUse, errors.JournalFull, errors.StoreUnavailable, errors.StoreMisconfigured],
)
def test_every_error_is_one_of_the_ledger_and_of_no_other(error: type[errors.LedgerError]) -> None:
    assert error.__mro__[1] is errors.LedgerError
    assert error.__name__ in (errors.__doc__ or "")
