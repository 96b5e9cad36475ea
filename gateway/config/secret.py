"""A value that must not be shown. Does not know where it came from or what it opens."""

import hmac

MASK = "***"


class Secret:
    """A text that every way of printing masks; `reveal` is the only way to it.

    >>> f"{Secret('abc')} {Secret('abc')!r}"
    '*** Secret(***)'
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself: for the one place that sends or compares it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self._value)
