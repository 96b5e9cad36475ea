"""Who may ask: one identical refusal for everything that is no key."""

from datetime import date

import pytest

from gateway.api.auth import authenticate
from gateway.api.errors import Rejected
from gateway.config.keys import KeyEntry, KeyRing, generate, hash_of

KEY = generate()
RING = KeyRing([KeyEntry(name="team", hash=hash_of(KEY), created=date(2026, 1, 1))])


@pytest.mark.parametrize(
    "headers",
    [
        {b"authorization": b"Bearer " + KEY.encode()},
        {b"authorization": b"bearer  " + KEY.encode() + b" "},
        {b"x-api-key": KEY.encode()},
        {b"authorization": b"Basic abc", b"x-api-key": KEY.encode()},
    ],
)
def test_a_key_is_found_where_openais_and_anthropics_sdks_put_it(headers: dict[bytes, bytes]) -> None:
    entry = authenticate(RING, headers)
    assert entry is not None
    assert entry.name == "team"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {b"authorization": b""},
        {b"authorization": b"Bearer"},
        {b"authorization": b"Bearer " + KEY[:-1].encode()},
        {b"authorization": b"Bearer \xff\xfe"},
        {b"authorization": KEY.encode()},
        {b"authorization": b"Basic " + KEY.encode()},
        {b"authorization": b"Bearer wrong", b"x-api-key": KEY.encode()},
        {b"x-api-key": b"x" * 2**20},
        {b"x-api-key": b"' OR 1=1 --"},
        {b"x-api-key": hash_of(KEY).encode()},
    ],
)
def test_every_refusal_is_the_same(headers: dict[bytes, bytes]) -> None:
    refused = []
    for asked in (headers, {}):
        with pytest.raises(Rejected) as caught:
            authenticate(RING, asked)
        refused.append(caught.value.answer)
    assert refused[0] == refused[1]
    assert refused[0].status == 401
    assert KEY.encode() not in refused[0].body


def test_where_no_keys_are_configured_everybody_may_ask() -> None:
    assert authenticate(None, {}) is None
