"""Low value is relative to what has been arriving, and matters under pressure only."""

from gateway.routing.value import ValueSample, value_of


def sample(values: range) -> ValueSample:
    values_seen = ValueSample()
    for value in values:
        values_seen.add(float(value))
    return values_seen


def test_no_pressure_or_too_little_seen_spills_nothing() -> None:
    assert not sample(range(100)).is_low(-1.0, 0.8)
    assert not sample(range(10)).is_low(-1.0, 1.0)


def test_the_closer_to_the_limit_the_more_leave() -> None:
    seen = sample(range(100))
    leaving = [sum(seen.is_low(float(v), pressure) for v in range(100)) for pressure in (0.85, 0.95, 1.0)]
    assert leaving == sorted(leaving)
    assert leaving[0] > 0
    assert leaving[-1] == 49


def test_only_the_recent_count() -> None:
    seen = sample(range(1000))
    assert seen.is_low(760.0, 1.0)


def test_an_unknown_price_has_no_value() -> None:
    assert value_of(None, 3, 10) is None
    assert value_of(600, 3, 10) == 20.0
    assert value_of(600, 0, 10) is None
