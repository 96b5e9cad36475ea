"""A JSON request body kept as its own text: members can be read and replaced, all other bytes stay.

Knows JSON's outermost level and where each member lies; knows nothing of what a member means.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

_BOM = "\ufeff"
# From, to, replacement.
_Splice = tuple[int, int, str]


class BadBody(Exception):  # noqa: N818 -- it names what the client sent, as an error row names it
    """A body that cannot be used. `message` is a phrase without a full stop, `param` the member at fault."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class Member(NamedTuple):
    """Offsets in the decoded text: the key's quote, the value's first character, the first one behind it."""

    start: int
    value_start: int
    end: int
    value: Any


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


@dataclass(frozen=True, slots=True)
class JsonObject:
    """One JSON object: `raw` is what came, to the byte; `members` are in the text's order, keys unescaped."""

    raw: bytes
    members: dict[str, Member]
    # The offset behind the opening brace.
    inside: int

    @classmethod
    def parse(cls, body: bytes) -> "JsonObject":
        """Read `body` once. Raises BadBody: not UTF-8, not one JSON object, NaN, a key twice, too deep."""
        if not body:
            raise BadBody("it is empty")
        try:
            text = body.decode()
            inside = _expect(text, _skip(text, 1 if text.startswith(_BOM) else 0), "{")
            return cls(body, _members(text, inside), inside)
        except UnicodeDecodeError as error:
            raise BadBody(f"it is not UTF-8 at byte {error.start}") from error
        except RecursionError as error:
            raise BadBody("it is nested too deeply") from error
        except json.JSONDecodeError as error:
            raise BadBody(f"it is not valid JSON: {error.msg} at character {error.pos}") from error
        except ValueError as error:
            # NaN, Infinity, or a number with more digits than Python converts.
            raise BadBody(f"it is not valid JSON: {str(error).partition(';')[0]}") from error

    def get(self, key: str) -> Any:
        """The member's value, or None where it is null or not there."""
        member = self.members.get(key)
        return None if member is None else member.value

    def __contains__(self, key: str) -> bool:
        """Is there such a member, even a null one?"""
        return key in self.members

    def length_of(self, key: str) -> int:
        """Characters of the member's value as it was written; 0 where it is not there."""
        member = self.members.get(key)
        return 0 if member is None else member.end - member.value_start

    def source(self, member: Member) -> bytes:
        """The value as it was written."""
        return self.raw.decode()[member.value_start : member.end].encode()

    def edited(self, set: Mapping[str, bytes | str], drop: Collection[str] = ()) -> bytes:
        """The body with the members of `set` (JSON texts) replaced or added and those of `drop` taken out.

        A key in both is set. Without any change it is `raw` itself.
        """
        dropped = {key for key in drop if key in self.members and key not in set}
        if not set and not dropped:
            return self.raw
        text = self.raw.decode()
        pieces: list[str] = []
        at = 0
        for start, end, replacement in self._splices(set, dropped):
            pieces += (text[at:start], replacement)
            at = end
        pieces.append(text[at:])
        return "".join(pieces).encode()

    def _splices(self, new: Mapping[str, bytes | str], dropped: Collection[str]) -> list[_Splice]:
        """In the order of the text, not overlapping."""
        members = list(self.members.values())
        last_kept = max((i for i, key in enumerate(self.members) if key not in dropped), default=-1)
        splices: list[_Splice] = []
        for i, (key, member) in enumerate(self.members.items()):
            if key in new:
                splices.append((member.value_start, member.end, _json_text(new[key])))
            elif key in dropped and i < last_kept:
                # With its comma, up to the next key.
                splices.append((member.start, members[i + 1].start, ""))
        # Behind the last member that stays, everything goes and the new ones come.
        first_start = members[0].start if members else self.inside
        tail = members[last_kept].end if last_kept >= 0 else first_start
        added = [f"{json.dumps(key)}:{_json_text(new[key])}" for key in new if key not in self.members]
        comma = "," if added and last_kept >= 0 else ""
        splices.append((tail, members[-1].end if members else tail, comma + ",".join(added)))
        return splices


def _members(text: str, inside: int) -> dict[str, Member]:
    members: dict[str, Member] = {}
    at = _skip(text, inside)
    more = text[at : at + 1] != "}"
    while more:
        start = at
        _expect(text, start, '"')
        key, at = _DECODER.raw_decode(text, start)
        if key in members:
            raise BadBody(f"the member {key[:64]!r} is there twice", key)
        value_start = _skip(text, _expect(text, _skip(text, at), ":"))
        value, end = _DECODER.raw_decode(text, value_start)
        members[key] = Member(start, value_start, end, value)
        at = _skip(text, end)
        more = text[at : at + 1] == ","
        if more:
            at = _skip(text, at + 1)
    end = _skip(text, _expect(text, at, "}"))
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return members


def _skip(text: str, at: int) -> int:
    """The offset of the next character that is not white space."""
    while text[at : at + 1] in (" ", "\n", "\r", "\t"):
        at += 1
    return at


def _expect(text: str, at: int, character: str) -> int:
    """The offset behind `character`. Raises JSONDecodeError where another one stands."""
    if text[at : at + 1] != character:
        raise json.JSONDecodeError(f"Expecting {character!r}", text, at)
    return at + 1


def _json_text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
