"""Client keys: stored hashed, found in equal work, expired by the clock that is asked."""

import hashlib
import hmac
import os
import stat
import threading
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.findings import ConfigErrors
from gateway.config.keys import KeyEntry, KeyRing, add_key, generate, hash_of, read_keys, revoke_key

KEY = "sg-" + "k" * 43
OTHERS = [KeyEntry(name=f"n{i}", hash=hash_of(f"other{i}")) for i in range(3)]
RING = KeyRing([*OTHERS, KeyEntry(name="mine", hash=hash_of(KEY)), *[KeyEntry(name="z", hash=hash_of("z"))]])


def test_a_generated_key_is_43_urlsafe_characters_after_its_prefix() -> None:
    made = {generate() for _ in range(100)}
    assert len(made) == 100
    for key in made:
        assert key.startswith("sg-")
        assert len(key) == 46
        assert key.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("presented", [KEY, KEY.encode()])
def test_a_key_is_found_by_its_hash(presented: bytes | str) -> None:
    found = RING.find(presented)
    assert found is not None
    assert found.name == "mine"


@pytest.mark.parametrize(
    "presented",
    [
        "",
        "é",
        KEY[:-1],
        KEY + "x",
        KEY.upper(),
        KEY + "\0",
        "x" * 2**20,
        "\udcff",
        b"\xff\xfe",
        hash_of(KEY),
        "' or 1=1 --",
    ],
)
def test_anything_else_is_not_found(presented: bytes | str) -> None:
    assert RING.find(presented) is None


@given(st.one_of(st.text(), st.binary()))
def test_no_presented_value_raises(presented: bytes | str) -> None:
    assert RING.find(presented) is None or presented in (
        KEY,
        KEY.encode(),
        "z",
        b"z",
        "other0",
        "other1",
        "other2",
    )


@pytest.mark.parametrize("presented", ["other0", KEY, "z", "none of them", KEY[:20]])
def test_every_entry_is_compared_whichever_matches(presented: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []
    compare = hmac.compare_digest

    def counting(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return compare(a, b)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    RING.find(presented)
    assert compared == [(32, 32)] * len(RING.entries)


def test_a_key_expires_after_its_last_day_while_the_ring_lives() -> None:
    day = date(2027, 6, 30)
    entry = KeyEntry(name="a", hash=hash_of(KEY), expires=day)
    days = iter([day, date(2027, 7, 1)])
    ring = KeyRing([entry], today=lambda: next(days))
    assert ring.find(KEY) == entry
    assert ring.find(KEY) is None


def test_added_keys_are_hashed_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    first = KeyEntry(name="a", hash=hash_of(KEY), created=date(2026, 12, 1))
    second = KeyEntry(
        name="b", hash=hash_of("x"), expires=date(2027, 1, 1), policy="balanced", show_costs=True
    )
    add_key(path, first)
    add_key(path, second)
    assert KeyRing.load(path).entries == (first, second)
    assert KEY not in path.read_text()
    assert hashlib.sha256(KEY.encode()).hexdigest() in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["keys.yaml"], "no temporary file stays"


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    add_key(path, OTHERS[0])
    before = path.read_bytes()
    with pytest.raises(ValueError, match="'n0' exists"):
        add_key(path, OTHERS[0])
    assert path.read_bytes() == before


def test_revoking_takes_one_entry_out_and_keeps_what_people_wrote(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    first, second = (f"  - {{name: {name}, hash: '{hash_of(name)}'}}\n" for name in "ab")
    path.write_text(f"keys:\n{first}  # the lab's\n{second}")
    add_key(path, OTHERS[0])
    assert revoke_key(path, "a")
    assert not revoke_key(path, "a")
    assert [entry.name for entry in KeyRing.load(path).entries] == ["b", "n0"]
    assert "the lab's" in path.read_text()


def test_keys_added_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    adding = [
        threading.Thread(target=add_key, args=(path, KeyEntry(name=f"n{i}", hash=hash_of(str(i)))))
        for i in range(6)
    ]
    for thread in adding:
        thread.start()
    for thread in adding:
        thread.join()
    assert sorted(e.name for e in KeyRing.load(path).entries) == [f"n{i}" for i in range(6)]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys.yaml"
    add_key(path, OTHERS[0])
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        add_key(path, OTHERS[1])
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["keys.yaml"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("keys: [{name: a, hash: CANARY}]", "bad_value"),
        ("keys: [{name: a, hash: 'sha256:CANARY'}]", "bad_value"),
        ("keys: [{name: a, key: CANARY, hash: 'sha256:" + "0" * 64 + "'}]", "unknown_key"),
        ("keys:", "empty_value"),
        (
            "keys: [{name: a, hash: 'sha256:" + "0" * 64 + "'}, {name: a, hash: 'sha256:" + "1" * 64 + "'}]",
            "duplicate_name",
        ),
        (
            "keys: [{name: a, hash: 'sha256:" + "0" * 64 + "'}, {name: b, hash: 'sha256:" + "0" * 64 + "'}]",
            "duplicate_name",
        ),
    ],
)
def test_a_wrong_keys_file_is_refused_and_no_message_holds_a_key(
    tmp_path: Path, text: str, code: str
) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(text)
    with pytest.raises(ConfigErrors) as caught:
        KeyRing.load(path)
    assert [f.code for f in caught.value.findings] == [code]
    assert "CANARY" not in str(caught.value)


def test_a_missing_keys_file_opens_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors):
        KeyRing.load(tmp_path / "none.yaml")
    assert read_keys(tmp_path / "none.yaml").value is None


def test_an_empty_list_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text("keys: []\n")
    assert KeyRing.load(path).find(KEY) is None
