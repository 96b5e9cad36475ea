"""One request by its id, as the store has it. Blocking; belongs in a worker thread."""

from typing import Any

from sqlalchemy import Engine, select

from gateway.ledger.schema import attempts, requests


def find_request(engine: Engine, request_id: str) -> dict[str, Any] | None:
    """The request's row with its attempts in order, as plain values; None where the store has no such request
    (yet).
    """
    wanted = select(requests).where(requests.c.request_id == request_id)
    tries = select(attempts).where(attempts.c.request_id == request_id).order_by(attempts.c.n)
    with engine.connect() as connection:
        row = connection.execute(wanted).mappings().first()
        if row is None:
            return None
        return {**row, "attempts": [dict(attempt) for attempt in connection.execute(tries).mappings()]}
