"""How one value of a file becomes one value of Python, per type and marker. Knows no keys and no shapes.

Problems are ValueErrors that never repeat the value. Text from the environment may stand for a number.
"""

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypeGuard
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
)

from gateway.config.env import FromEnv
from gateway.config.hints import Hint
from gateway.config.schema import DatabaseUrl, HttpUrl, Matches, Money
from gateway.config.secret import MASK, Secret
from gateway.config.units import (
    DURATION_PATTERN,
    SIZE_PATTERN,
    decimal,
    seconds,
    seconds_text,
    size,
    size_text,
)
from gateway.routing.units import Unit

_DATABASE = re.compile(r"(sqlite|postgresql)(\+\w+)?://.*", re.DOTALL)
_ONE_REFERENCE = re.compile(r"\$\{\w+\}")
_FROM_ENV_TOO = r"|^.*\$\{.*$"


class LiteralSecretError(ValueError):
    """A secret stands in the file itself."""


def annotation_of(hint: Hint) -> Any:
    """The pydantic annotation of a scalar type; Literal and plain text stay what they are."""
    make = _ANNOTATIONS.get(hint.base)
    return make(hint) if make else hint.base


def default_text(value: object, hint: Hint) -> object:
    """A default as it would be written in a file, out of plain JSON types."""
    unit = hint.mark(Unit)
    if unit is Unit.SECONDS and isinstance(value, float):
        return seconds_text(value)
    if unit is Unit.BYTES and isinstance(value, int):
        return size_text(value)
    if isinstance(value, Secret):
        return value.reveal() if hint.mark(DatabaseUrl) else MASK
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Decimal) else value


def _text(hint: Hint) -> Any:
    if form := hint.mark(Matches):
        return Annotated[
            str, AfterValidator(_matching(form)), WithJsonSchema(_text_schema(f"^{form.pattern}$"))
        ]
    if address := hint.mark(HttpUrl):
        return Annotated[str, AfterValidator(_address(address)), WithJsonSchema(_text_schema("^https?://"))]
    return str


def _text_schema(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern + _FROM_ENV_TOO}


def _matching(form: Matches) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not re.fullmatch(form.pattern, text):
            raise ValueError(form.says)
        return text

    return check


def _address(kind: HttpUrl) -> Callable[[str], str]:
    def check(text: str) -> str:
        try:
            parts = urlsplit(text)
            port_fits = parts.port is None or parts.port > 0
        except ValueError:
            raise ValueError("is not an address") from None
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or not port_fits
            or re.search(r"[^!-~]", text)
        ):
            raise ValueError("takes an address like http://10.0.0.5:8000")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("takes no user, query or fragment in an address: a key goes under api_key")
        if kind.bare and parts.path.rstrip("/").endswith("/v1"):
            raise ValueError("takes the address without /v1")
        return text.rstrip("/")

    return check


def _whole(hint: Hint) -> Any:
    if hint.mark(Unit) is Unit.BYTES:
        schema = {"anyOf": [{"type": "integer"}, _text_schema(SIZE_PATTERN)]}
        return Annotated[
            int, BeforeValidator(lambda v: size(v) if isinstance(v, str) else v), WithJsonSchema(schema)
        ]
    return Annotated[int, BeforeValidator(_number_from_env)]


def _real(hint: Hint) -> Any:
    if hint.mark(Unit) is Unit.SECONDS:
        return Annotated[float, BeforeValidator(_seconds), WithJsonSchema(_text_schema(DURATION_PATTERN))]
    return Annotated[float, BeforeValidator(_inexact)]


def _seconds(value: object) -> object:
    if _is_number(value):
        raise ValueError("a duration needs a unit, like 500ms, 2s, 15m, 1h or 1d")
    return seconds(value) if isinstance(value, str) else value


def _number_from_env(value: object) -> object:
    if not isinstance(value, FromEnv):
        return value
    return int(value) if re.fullmatch(r"[+-]?[0-9]{1,18}", value, re.ASCII) else value


def _inexact(value: object) -> object:
    if isinstance(value, FromEnv):
        value = decimal(value)
    return float(value) if isinstance(value, Decimal) else value


def _truth(hint: Hint) -> Any:
    words = {"true": True, "false": False}
    return Annotated[
        bool, BeforeValidator(lambda v: words.get(v.lower(), v) if isinstance(v, FromEnv) else v)
    ]


def _exact(hint: Hint) -> Any:
    schema = WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]})
    if money := hint.mark(Money):
        return Annotated[Decimal, PlainValidator(_decimal), AfterValidator(_amount(money)), schema]
    return Annotated[Decimal, PlainValidator(_decimal), schema]


def _decimal(value: object) -> Decimal:
    if isinstance(value, str):
        return decimal(value)
    if _is_number(value) and Decimal(value).is_finite():
        return Decimal(value)
    raise ValueError("takes a decimal number, like 0.40")


def _is_number(value: object) -> TypeGuard[int | Decimal]:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _amount(money: Money) -> Callable[[Decimal], Decimal]:
    def check(amount: Decimal) -> Decimal:
        if amount < 0:
            raise ValueError("an amount of money cannot be negative")
        if amount > money.most:
            raise ValueError(f"an amount above {money.most:f} USD cannot be meant here")
        if 0 < amount < money.least:
            raise ValueError("takes USD per million tokens; this looks like USD per token")
        return amount

    return check


def _secret(hint: Hint) -> Any:
    validator = _database_url if hint.mark(DatabaseUrl) else _sole_reference
    return Annotated[
        Secret, PlainValidator(validator), PlainSerializer(lambda _: MASK), WithJsonSchema({"type": "string"})
    ]


def _sole_reference(value: object) -> Secret:
    if not isinstance(value, FromEnv) or not value.is_sole_reference:
        raise LiteralSecretError("a secret comes from the environment only: write ${NAME}, without a default")
    # A header cannot carry these, and a line break pasted with a key is the usual cause.
    if re.search(r"[^!-~]", value):
        raise ValueError("holds a space, a line break or a character outside ASCII: not a key")
    return Secret(str(value))


def _database_url(value: object) -> Secret:
    if not isinstance(value, str) or not _DATABASE.fullmatch(value):
        raise ValueError("takes sqlite:///FILE or postgresql://USER:${PASSWORD}@HOST/DATABASE")
    source = value.source if isinstance(value, FromEnv) else value
    login = source.partition("://")[2].partition("/")[0].rpartition("@")[0]
    password = login.partition(":")[2]
    if (password and not _ONE_REFERENCE.fullmatch(password)) or "password=" in source.lower():
        raise LiteralSecretError(
            "a password comes from the environment only: write postgresql://USER:${PASSWORD}@HOST/DATABASE"
        )
    return Secret(str(value))


def _path(hint: Hint) -> Any:
    return Annotated[Path, PlainValidator(_below), WithJsonSchema({"type": "string"})]


def _below(value: object, info: ValidationInfo) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("takes a path")
    return Path(info.context or ".") / value


def _day(hint: Hint) -> Any:
    return Annotated[date, PlainValidator(_iso_day), WithJsonSchema({"type": "string", "format": "date"})]


def _iso_day(value: object) -> date:
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        raise ValueError("takes a day, like 2027-06-30")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValueError("takes a day that the calendar has") from None


_ANNOTATIONS: dict[Any, Callable[[Hint], Any]] = {
    str: _text,
    int: _whole,
    float: _real,
    bool: _truth,
    Decimal: _exact,
    Secret: _secret,
    Path: _path,
    date: _day,
}
