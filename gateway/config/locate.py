"""From a value's path to its place in the text it was read from. Knows nothing of what the values mean."""

from dataclasses import dataclass, field
from typing import NamedTuple

# ("engines", 0, "url"): the way from the top of a file to a value.
Loc = tuple[str | int, ...]


class Place(NamedTuple):
    """Line and column, both from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Places:
    """Where every key and value of one file stands, how scalars are spelled, and what the others are."""

    file: str
    keys: dict[Loc, Place] = field(default_factory=dict)
    values: dict[Loc, Place] = field(default_factory=dict)
    spellings: dict[Loc, str] = field(default_factory=dict)
    shapes: dict[Loc, str] = field(default_factory=dict)

    def of_value(self, loc: Loc) -> Place:
        """Where the value stands; for one that is not there, the nearest value around it."""
        while loc not in self.values and loc:
            loc = loc[:-1]
        return self.values.get(loc, Place(1, 1))

    def of_key(self, loc: Loc) -> Place:
        """Where the key stands; list entries and the top of the file have none, so their value's place."""
        return self.keys.get(loc) or self.of_value(loc)

    def spelling(self, loc: Loc) -> str | None:
        """A scalar as the file writes it, before anything was replaced; None for lists and mappings."""
        return self.spellings.get(loc)
