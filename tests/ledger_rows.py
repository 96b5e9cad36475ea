"""Records of a ledger with good defaults, for tests that report on them.

The day is 1 December 2026; engine time and requests are in its hours 8 to 11.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from gateway.ledger.records import AttemptRecord, EngineSpan, PriceRow, RateRow, Record, RequestRecord

SINCE = datetime(2026, 12, 1, 8, tzinfo=UTC)
UNTIL = datetime(2026, 12, 1, 12, tzinfo=UTC)

_ATTEMPT = AttemptRecord(
    n=1, target="a", route="local", remote_model=None, reason="headroom", moment="end", outcome="ok",
    status=200, billable="no", t_dial="2026-12-01T08:00:00.000100+00:00", ms_to_sent=0.2, ms_to_headers=11.5,
    ms_to_first_event=35.25, ms_total=900.0, prompt_tokens=1000, cached_tokens=900, completion_tokens=100,
    reasoning_tokens=0, usage_source="reported", cash_marginal=0, standard=350_000_000, price_id=None,
    price_source=None, rate_id="rate-a",
)  # fmt: skip
_REQUEST = RequestRecord(
    request_id="r", t_in="2026-12-01T08:00:00.000001+00:00", key="team-a", tags=None,
    path="/v1/chat/completions", requested_model="llama", model="llama-70b", policy="balanced", stream=True,
    route="local", target="a", reason="headroom", outcome="ok", status=200, attempts=(_ATTEMPT,),
    prompt_tokens=1000, cached_tokens=900, completion_tokens=100, reasoning_tokens=0, usage_source="reported",
    cash_marginal=0, standard=350_000_000, work_units_milli=590_000, weight_set="1/0.1/4", price_id=None,
    price_source=None, alternative_route="overflow", alternative_target="serverless",
    alternative_kind="serverless", alternative_cash=640_000_000, alternative_standard=None,
    alternative_low=590_000_000, equivalent=True, ttft_ms=35.5, duration_ms=901.0, overhead_ms=0.4,
)  # fmt: skip


def local(request_id: str, **changes: Any) -> RequestRecord:
    """A request that engine `a` answered."""
    attempt = replace(_ATTEMPT, target=changes.get("target", "a"))
    return replace(_REQUEST, request_id=request_id, **{"attempts": (attempt,), **changes})


def overflow(request_id: str, cash: int | None = 700_000_000, **changes: Any) -> RequestRecord:
    """A request that the endpoint answered, for this much."""
    attempt = replace(
        _ATTEMPT, target="serverless", route="overflow", reason="kv_full", billable="yes", cash_marginal=cash,
        standard=cash, price_id="p1", price_source="contract", rate_id=None,
    )  # fmt: skip
    alternative: dict[str, Any] = {
        "alternative_route": "local", "alternative_target": "a", "alternative_kind": "preempt",
        "alternative_cash": 0, "alternative_standard": 350_000_000, "alternative_low": 0,
    }  # fmt: skip
    own = {"route": "overflow", "target": "serverless", "reason": "kv_full", "attempts": (attempt,)}
    money = {"cash_marginal": cash, "standard": cash, "price_id": "p1", "price_source": "contract"}
    return replace(_REQUEST, request_id=request_id, **{**alternative, **own, **money, **changes})


def refused(request_id: str, outcome: str = "shed", **changes: Any) -> RequestRecord:
    """A request that was sent nowhere."""
    nothing = dict.fromkeys(
        ("target", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens",
         "work_units_milli", "weight_set", "alternative_route", "alternative_target",
         "alternative_kind", "alternative_cash",
         "alternative_low", "equivalent", "ttft_ms")
    )  # fmt: skip
    own: dict[str, Any] = {
        "route": "shed" if outcome == "shed" else None, "reason": "overloaded" if outcome == "shed" else None,
        "outcome": outcome, "status": 503, "attempts": (), "usage_source": "none",
        "cash_marginal": 0, "standard": 0,
    }  # fmt: skip
    return replace(_REQUEST, request_id=request_id, **{**nothing, **own, **changes})


def engine_time(start: str, end: str, bill: int, *, engine: str = "a", busy: bool = True) -> EngineSpan:
    """A stretch between two clock times of the day, such as `08:00:00`."""
    partition: Literal["serving_busy", "serving_idle"] = "serving_busy" if busy else "serving_idle"
    begin, finish = (datetime.fromisoformat(f"2026-12-01T{clock}+00:00") for clock in (start, end))
    seconds = (finish - begin).total_seconds()
    times = (begin.isoformat(), finish.isoformat())
    return EngineSpan(engine, partition, *times, seconds, f"rate-{engine}", bill)


PRICE = PriceRow(
    "p1", "serverless", "org/m", "2026-12-01T00:00:00+00:00", "contract", "0.2", "0.1", "0.6", None, "h" * 64
)
RATE = RateRow("rate-a", "a", "2026-12-01T00:00:00+00:00", "2.5", "0.3", "on_demand", "8000", "h" * 64)

# Busy three hours of four, at 2.80 USD per hour.
FOUR_HOURS = (
    engine_time("08:00:00", "09:30:00", 4_200_000_000_000),
    engine_time("09:30:00", "10:30:00", 2_800_000_000_000, busy=False),
    engine_time("10:30:00", "12:00:00", 4_200_000_000_000),
)

# One of everything that counts in a way of its own.
MIXED: tuple[Record, ...] = (
    *FOUR_HOURS,
    PRICE,
    RATE,
    *(
        local(f"l{n}", t_in=f"2026-12-01T{8 + n % 4:02}:10:00.5+00:00", key=f"team-{'ab'[n % 2]}")
        for n in range(9)
    ),
    *(overflow(f"o{n}", 700_000_000 + n, t_in=f"2026-12-01T{8 + n:02}:20:00+00:00") for n in range(3)),
    overflow("unpriced", None, reason="queue_long"),
    local("other-weights", equivalent=False, model="llama-70b-fp8"),
    local("no-price", alternative_cash=None, alternative_low=None, tags="batch"),
    local("no-capacity", standard=None, target="a"),
    local(
        "no-answer", outcome="upstream_timeout", status=None, usage_source="none", prompt_tokens=None,
        cached_tokens=None, completion_tokens=None, alternative_cash=None, alternative_low=None,
    ),
    overflow("too-long", 900_000_000, alternative_kind="infeasible", alternative_cash=None),
    refused("shed"),
    refused("wrong", "rejected", model=None),
    refused("crashed", "interrupted", status=None, cash_marginal=None, standard=None),
)  # fmt: skip
