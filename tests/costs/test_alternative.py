"""The route not taken."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.costs.alternative import LOCAL_KINDS, alternative_of_local, alternative_of_overflow
from gateway.costs.money import usd_text
from gateway.costs.prices import TokenPrice, new_price
from gateway.costs.work import EngineRate
from gateway.wire.usage import Usage

PriceMaker = Callable[..., TokenPrice]
RateMaker = Callable[..., EngineRate]

USAGE = Usage(prompt=2000, cached=1500, completion=600, source="reported")


def test_a_local_request_is_a_band_of_the_serverless_price(price: PriceMaker) -> None:
    other = alternative_of_local(USAGE, price(), equivalent=True)
    assert (other.route, other.target, other.kind, other.equivalent) == (
        "overflow",
        "serverless",
        "serverless",
        True,
    )
    assert usd_text(other.low) == "0.00061"
    assert usd_text(other.high) == "0.00076"
    assert other.expected == other.high


def test_a_measured_cache_share_is_what_is_expected(price: PriceMaker) -> None:
    other = alternative_of_local(USAGE, price(), measured_share=0.5)
    assert [usd_text(amount) for amount in (other.low, other.expected, other.high)] == [
        "0.00061",
        "0.00066",
        "0.00076",
    ]


def test_a_measured_share_above_our_own_widens_the_band_downwards(price: PriceMaker) -> None:
    other = alternative_of_local(USAGE, price(), measured_share=1.0)
    assert other.low == other.expected
    assert usd_text(other.low) == "0.00056"


def test_a_whole_cached_prompt_is_never_assumed(price: PriceMaker) -> None:
    other = alternative_of_local(Usage(prompt=2000, completion=600, source="reported"), price())
    assert other.low == other.expected == other.high


@pytest.mark.parametrize(
    ("usage", "known", "why"),
    [
        (None, True, "prompt tokens unknown"),
        (USAGE, False, "price unknown"),
        (Usage(prompt=5, source="reported"), True, "completion tokens unknown"),
    ],
)
def test_an_alternative_without_tokens_or_price_is_null(
    price: PriceMaker, usage: Usage | None, known: bool, why: str
) -> None:
    other = alternative_of_local(usage, price() if known else None)
    assert (other.low, other.expected, other.high, other.why) == (None, None, None, why)


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.none() | st.floats(0, 1),
    st.decimals(0, 10, places=3),
    st.decimals(0, 10, places=3),
)
def test_the_band_is_in_order_whatever_the_prices(
    prompt: int, cached: int, output: int, share: float | None, input: object, cached_input: object
) -> None:
    price = new_price("a", "m", "t", input=input, cached_input=cached_input, output=None)  # type: ignore[arg-type] # decimals
    usage = Usage(prompt, min(cached, prompt), 0, source="reported")
    other = alternative_of_local(usage, price, measured_share=share)
    assert other.low is not None
    assert other.expected is not None
    assert other.high is not None
    assert 0 <= other.low <= other.expected <= other.high


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("kv_full", "preempt"),
        ("preempting", "preempt"),
        ("queue_long", "queue"),
        ("ttft_slo", "queue"),
        ("pinned", "free_capacity"),
        ("low_value", "free_capacity"),
    ],
)
def test_an_engine_that_could_have_served_costs_no_cash(
    engine_rate: RateMaker, reason: str, kind: str
) -> None:
    other = alternative_of_overflow(reason, USAGE, engine_rate())
    assert (other.route, other.target, other.kind, other.expected) == ("local", "h100-a", kind, 0)
    assert usd_text(other.standard) == "0.000296527778"


@pytest.mark.parametrize(
    "reason",
    [
        "context_too_long",
        "engine_unbootable",
        "engine_booting",
        "engine_unreachable",
        "attempt_failed",
        "only_choice",
    ],
)
def test_an_infeasible_alternative_has_no_price(engine_rate: RateMaker, reason: str) -> None:
    other = alternative_of_overflow(reason, USAGE, engine_rate())
    assert (other.kind, other.expected, other.standard) == ("infeasible", None, None)
    assert other.why == "no engine could serve it"


@pytest.mark.parametrize("reason", ["signal_stale", "a code of a later version"])
def test_a_reason_that_tells_nothing_of_the_engine_gives_no_price(
    engine_rate: RateMaker, reason: str
) -> None:
    other = alternative_of_overflow(reason, USAGE, engine_rate())
    assert (other.kind, other.expected) == ("unknown", None)


def test_without_a_capacity_cash_is_known_and_standard_is_not(engine_rate: RateMaker) -> None:
    other = alternative_of_overflow("kv_full", USAGE, engine_rate(capacity=None))
    assert (other.expected, other.standard, other.why) == (0, None, "capacity unknown")


def test_every_reason_named_here_is_one_that_routing_has() -> None:
    from gateway.routing.reasons import Reason

    assert set(LOCAL_KINDS) <= {reason.value for reason in Reason}
