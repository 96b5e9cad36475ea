"""Allow-lists in both directions."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstreams.headers import (
    ENDPOINT_REQUEST,
    ENGINE_REQUEST,
    bearer,
    for_target,
    forward_request,
    forward_response,
)

NAMES = st.text(string.ascii_letters + string.digits + "-", min_size=1, max_size=20).map(str.encode)
VALUES = st.binary(max_size=30)


@pytest.mark.parametrize(
    "name",
    ["Authorization", "Cookie", "Host", "Connection", "TE", "Upgrade", "Proxy-Authorization", "Expect",
     "Forwarded",
     "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Content-Length", "Transfer-Encoding",
     "Content-Encoding",
     "Accept-Encoding", "User-Agent", "X-Api-Key", "Api-Key", "OpenAI-Organization", "X-Request-Id",
     "Keep-Alive",
     "X-Data-Parallel-Rank", "X-Portkey-Custom-Host", "Trailer"],
)  # fmt: skip
def test_a_client_s_header_that_must_not_pass_does_not(name: str) -> None:
    """F48, F52, C15, C16."""
    assert forward_request([(name.encode(), b"x"), (b"Content-Type", b"application/json")]) == (
        (b"content-type", b"application/json"),
    )


def test_what_an_engine_understands_passes() -> None:
    sent = [
        (b"X-Session-ID", b"s"),
        (b"X-Vllm-Priority", b"1"),
        (b"Traceparent", b"00-a"),
        (b"Accept", b"*/*"),
    ]
    assert forward_request(sent) == tuple((name.lower(), value) for name, value in sent)


def test_a_header_named_in_connection_does_not_pass() -> None:
    """F52."""
    sent = [(b"connection", b"close, X-Session-Id"), (b"Connection", b"accept"), (b"x-session-id", b"s"),
            (b"accept", b"*/*"), (b"content-type", b"a/b")]  # fmt: skip
    assert forward_request(sent) == ((b"content-type", b"a/b"),)


@pytest.mark.parametrize(
    "name", ["set-cookie", "server", "date", "transfer-encoding", "content-length", "content-encoding",
    "connection",
             "keep-alive", "x-request-id", "location", "www-authenticate", "openai-organization", "alt-svc"]
)  # fmt: skip
def test_a_target_s_header_that_must_not_pass_does_not(name: str) -> None:
    assert forward_response([(name.encode(), b"x")]) == ()


def test_what_a_client_can_use_passes() -> None:
    sent = ((b"content-type", b"a/b"), (b"retry-after", b"2"), (b"x-ratelimit-reset-requests", b"1s"))
    assert forward_response(sent) == sent


@given(st.lists(st.tuples(NAMES, VALUES)))
def test_whatever_comes_only_listed_names_and_one_line_values_pass(
    headers: list[tuple[bytes, bytes]],
) -> None:
    for name, value in (*forward_request(headers), *forward_response(headers)):
        assert name == name.lower()
        assert b"\r" not in value
        assert b"\n" not in value
        assert b"\0" not in value
    assert {name for name, _ in forward_request(headers)} <= ENGINE_REQUEST


def test_an_attempt_has_its_own_id_and_our_credentials(make_exchange: object) -> None:
    exchange = make_exchange(  # type: ignore[operator] # a fixture that makes an Exchange
        headers=[(b"content-type", b"a/b"), (b"x-session-id", b"s"), (b"traceparent", b"t")], request_id="r-2"
    )
    own = [(b"x-request-id", b"r-2"), (b"authorization", b"Bearer k")]
    assert for_target(exchange, ENDPOINT_REQUEST, bearer("k")) == [(b"content-type", b"a/b"), *own]
    assert for_target(exchange, ENGINE_REQUEST, None) == [*exchange.headers, own[0]]


@pytest.mark.parametrize("key", ["", "a b", "CANARY\n", "CANARY\r\nx: y", "CANÄRY"])
def test_what_cannot_be_a_key_is_refused_without_quoting_it(key: str) -> None:
    with pytest.raises(ValueError, match="API key") as caught:
        bearer(key)
    assert "CAN" not in str(caught.value)
