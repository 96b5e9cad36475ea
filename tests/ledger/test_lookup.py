"""One request as the store has it."""

import json
from collections.abc import Callable

from gateway.ledger.lookup import find_request
from gateway.ledger.records import AttemptRecord, RequestRecord
from gateway.ledger.store import Store

Requests = Callable[..., RequestRecord]
Attempts = Callable[..., AttemptRecord]


def test_one_request_is_found_with_its_attempts_in_order(
    store: Store, request_record: Requests, attempt_record: Attempts
) -> None:
    store.write(
        [request_record("a", attempts=(attempt_record(n=2), attempt_record(n=1))), request_record("b")]
    )
    found = find_request(store.engine, "a")
    assert found is not None
    assert (found["request_id"], found["outcome"]) == ("a", "ok")
    assert [(attempt["request_id"], attempt["n"]) for attempt in found["attempts"]] == [("a", 1), ("a", 2)]
    json.dumps(found)


def test_an_id_from_outside_is_never_part_of_the_statement(store: Store, request_record: Requests) -> None:
    store.write([request_record("a")])
    assert find_request(store.engine, "x' OR '1'='1") is None
