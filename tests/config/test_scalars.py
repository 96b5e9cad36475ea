"""One value at a time: what each kind of field takes, and that no refusal repeats a secret."""

from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from gateway.config.derive import InvalidError, build
from gateway.config.env import substitute
from gateway.config.hints import keys_of
from gateway.config.scalars import LiteralSecretError, default_text
from gateway.config.schema import DatabaseUrl, HttpUrl, Name, Usd, UsdPerMtok
from gateway.config.secret import Secret
from gateway.routing.units import Bytes, Seconds

ENV = {
    "N": "7",
    "T": "True",
    "D": "1.5",
    "DUR": "3s",
    "KEY": "sk-CANARY",
    "PW": "CANARY",
    "BROKEN": "sk-CANARY\n",
}


@dataclass(frozen=True)
class Kinds:
    text: str = ""
    name: Name = "x"
    whole: int = 0
    real: float = 0.0
    truth: bool = False
    pause: Seconds = 0.0
    size: Bytes = 0
    money: Usd = Decimal(0)
    price: UsdPerMtok = Decimal(0)
    key: Secret | None = None
    url: Annotated[str, HttpUrl(bare=True)] = "http://a"
    database: Annotated[Secret | None, DatabaseUrl()] = None
    path: Path | None = None
    day: date | None = None
    choice: Literal["a", "b"] = "a"


def made(key: str, value: Any) -> Any:
    return getattr(build(Kinds, substitute({key: value}, ENV).tree, Path("/base")), key)


def refusal(key: str, value: Any) -> str:
    with pytest.raises(InvalidError) as caught:
        made(key, value)
    (error,) = caught.value.errors
    return str(error.get("ctx", {}).get("error", error["msg"]))


@pytest.mark.parametrize(
    ("key", "value", "result"),
    [
        ("text", "no", "no"),
        ("text", "${D}", "1.5"),
        ("name", "meta-llama/Llama-3.1:free", "meta-llama/Llama-3.1:free"),
        ("whole", "${N}", 7),
        ("real", Decimal("0.95"), 0.95),
        ("real", 1, 1.0),
        ("real", "${D}", 1.5),
        ("truth", "${T}", True),
        ("pause", "500ms", 0.5),
        ("pause", "${DUR}", 3.0),
        ("size", "20MiB", 20 * 2**20),
        ("size", 512, 512),
        ("money", Decimal("0.40"), Decimal("0.40")),
        ("money", "0.40", Decimal("0.40")),
        ("money", 5, Decimal(5)),
        ("money", "${D}", Decimal("1.5")),
        ("price", 0, Decimal(0)),
        ("price", 10000, Decimal(10000)),
        ("price", Decimal("0.0001"), Decimal("0.0001")),
        ("key", "${KEY}", Secret("sk-CANARY")),
        ("key", "os.environ/KEY", Secret("sk-CANARY")),
        ("url", "http://10.0.0.5:8000/", "http://10.0.0.5:8000"),
        ("url", "https://[::1]:80/prefix", "https://[::1]:80/prefix"),
        ("database", "sqlite:///x.db", Secret("sqlite:///x.db")),
        ("database", "postgresql+psycopg://u@h/d", Secret("postgresql+psycopg://u@h/d")),
        ("database", "postgresql://u:${PW}@h/d", Secret("postgresql://u:CANARY@h/d")),
        ("database", "${KEY}", None),
        ("path", "k.yaml", Path("/base/k.yaml")),
        ("path", "/abs/k.yaml", Path("/abs/k.yaml")),
        ("day", "2027-06-30", date(2027, 6, 30)),
        ("choice", "b", "b"),
    ],
)
def test_what_is_taken(key: str, value: Any, result: Any) -> None:
    if result is None:
        assert "postgresql" in refusal(key, value)
        return
    got = made(key, value)
    assert got == result
    assert type(got) is type(result) or isinstance(result, Path)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("text", Decimal("1e3"), "string"),
        ("text", 5, "string"),
        ("text", True, "string"),
        ("text", None, "string"),
        ("text", ["x"], "string"),
        ("name", "two words", "printable"),
        ("name", "é", "printable"),
        ("name", "line\n", "printable"),
        ("name", "", "printable"),
        ("whole", "7", "integer"),
        ("whole", True, "integer"),
        ("whole", Decimal("7.0"), "integer"),
        ("whole", "${D}", "integer"),
        ("real", "0.5", "number"),
        ("real", Decimal("NaN"), "finite"),
        ("real", "${T}", "decimal"),
        ("truth", "no", "boolean"),
        ("truth", 1, "boolean"),
        ("pause", 2, "needs a unit"),
        ("pause", Decimal("2.5"), "needs a unit"),
        ("pause", "2", "unit"),
        ("pause", "${N}", "unit"),
        ("pause", True, "number"),
        ("size", "20M", "unit"),
        ("size", Decimal("1.5"), "integer"),
        ("size", True, "integer"),
        ("money", -1, "negative"),
        ("money", Decimal("1e99"), "cannot be meant"),
        ("money", Decimal("NaN"), "decimal"),
        ("money", True, "decimal"),
        ("money", "$5", "decimal"),
        ("price", 15000, "above 10000 USD"),
        ("price", Decimal("1.5e-7"), "USD per token"),
        ("key", 5, "environment only"),
        ("url", "10.0.0.5:8000", "like http://"),
        ("url", "ftp://x", "like http://"),
        ("url", "http://", "like http://"),
        ("url", "http://x:99999", "address"),
        ("url", "http://x y", "like http://"),
        ("url", "http://x:8000/v1/", "without /v1"),
        ("database", "mysql://x", "postgresql"),
        ("path", "", "path"),
        ("path", 5, "path"),
        ("day", "2027-02-30", "calendar"),
        ("day", "30.6.2027", "2027-06-30"),
        ("choice", "c", "'a' or 'b'"),
    ],
)
def test_what_is_refused_and_how(key: str, value: Any, says: str) -> None:
    assert says in refusal(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("key", "sk-CANARY"),
        ("key", "${NONE:-CANARY}"),
        ("key", "Bearer ${KEY}"),
        ("key", "${KEY:-CANARY}"),
        ("database", "postgresql://u:CANARY@h/d"),
        ("database", "postgresql://u:CANARY${PW}@h/d"),
        ("database", "postgresql://u:${NONE:-CANARY}@h/d"),
        ("database", "postgresql://h/d?user=u&password=CANARY"),
    ],
)
def test_a_literal_secret_is_refused_by_its_own_error(key: str, value: str) -> None:
    with pytest.raises(InvalidError) as caught:
        made(key, value)
    (error,) = caught.value.errors
    assert isinstance(error["ctx"]["error"], LiteralSecretError)
    assert "CANARY" not in str(caught.value.errors)


@pytest.mark.parametrize(
    "url",
    ["https://h/?key=CANARY", "https://CANARY@h", "https://u:CANARY@h/v1", "https://h#CANARY", "${KEY}"],
)
def test_a_key_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    assert "CANARY" not in refusal("url", url)


def test_a_secret_with_a_line_break_is_refused_and_not_repeated() -> None:
    assert (
        refusal("key", "${BROKEN}") == "holds a space, a line break or a character outside ASCII: not a key"
    )


def test_defaults_are_shown_as_they_would_be_written() -> None:
    shown = {key: default_text(known.default(), known.hint) for key, known in keys_of(Kinds).items()}
    assert shown["pause"] == "0s"
    assert shown["size"] == "0B"
    assert shown["money"] == "0"
    assert default_text(Secret("CANARY"), keys_of(Kinds)["key"].hint) == "***"
    assert {f.name for f in fields(replace(Kinds()))} == set(shown)
