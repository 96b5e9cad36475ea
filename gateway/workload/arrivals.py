"""Who sends what when: arrivals as plain values, made from a seed or read from a trace.

Knows no clock, socket or text. A run in virtual time and one in real time take the same arrivals. Randomness
is an argument: a callable that gives numbers in [0, 1), such as `Uniform(seed)`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

Draw = Callable[[], float]


class Arrival(NamedTuple):
    """One request: `at` seconds after the start. `output_tokens` is what it will really make, within
    `max_tokens`.
    """

    at: float
    prompt_tokens: int
    max_tokens: int
    output_tokens: int
    model: str = ""
    stream: bool = True
    key: str | None = None
    tag: str = ""


class Uniform:
    """Repeatable numbers in [0, 1) from an integer seed (splitmix64, Steele, Lea and Flood 2014)."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def __call__(self) -> float:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        # 53 bits are what a float holds.
        return ((mixed ^ (mixed >> 31)) >> 11) / 2**53


_MASK = 2**64 - 1


class Mix(NamedTuple):
    """What requests look like: lengths are log-normal, given by median and spread, and cut at 1 and at the
    limit.

    A spread of 0 makes every length the median. `max_tokens` is what clients ask for, the same for all.
    """

    prompt_median: float = 300.0
    prompt_spread: float = 0.8
    output_median: float = 150.0
    output_spread: float = 0.8
    max_prompt: int = 4096
    max_tokens: int = 512
    model: str = ""
    stream: bool = True
    key: str | None = None
    tag: str = ""


def constant(rps: float, seconds: float, draw: Draw, mix: Mix | None = None) -> list[Arrival]:
    """Arrivals at a constant mean rate (requests per second), independent of each other (Poisson)."""
    return shaped(lambda at: rps, rps, seconds, draw, mix)


def ramp(
    start_rps: float, peak_rps: float, seconds: float, draw: Draw, mix: Mix | None = None
) -> list[Arrival]:
    """Arrivals whose mean rate goes in a straight line from `start_rps` to `peak_rps` (which may be the
    lower).
    """
    slope = (peak_rps - start_rps) / seconds if seconds > 0 else 0.0
    return shaped(lambda at: start_rps + slope * at, max(start_rps, peak_rps), seconds, draw, mix)


def shaped(
    rate: Callable[[float], float], most_rps: float, seconds: float, draw: Draw, mix: Mix | None = None
) -> list[Arrival]:
    """Arrivals with the mean rate `rate(at)`, which never exceeds `most_rps`, by thinning (Lewis and Shedler
    1979).
    """
    arrivals: list[Arrival] = []
    mix = mix or Mix()
    at = 0.0
    while most_rps > 0:
        at -= math.log(1.0 - draw()) / most_rps
        if at >= seconds:
            break
        if draw() * most_rps < rate(at):
            arrivals.append(_one(at, draw, mix))
    return arrivals


def shifted(arrivals: Iterable[Arrival], by: float) -> list[Arrival]:
    """The same arrivals `by` seconds later."""
    return [arrival._replace(at=arrival.at + by) for arrival in arrivals]


def merge(*streams: Sequence[Arrival]) -> list[Arrival]:
    """All arrivals in order of time; at the same instant in the order given."""
    return sorted((arrival for stream in streams for arrival in stream), key=lambda arrival: arrival.at)


def from_azure_csv(
    lines: Iterable[str],
    speed: float = 1.0,
    *,
    max_tokens: int | None = None,
    model: str = "",
    stream: bool = True,
) -> Iterator[Arrival]:
    """Read rows of the Azure LLM inference trace 2023: TIMESTAMP,ContextTokens,GeneratedTokens, in order of
    time.

    `speed` 4 makes the trace four times as fast. The trace does not say what clients asked for: `max_tokens`
    is taken for every request whose answer is not longer, and its real length where it is None. Lines that
    begin with `#` and the header are skipped; any other bad line raises ValueError with its number.
    """
    first: float | None = None
    for number, line in enumerate(lines, 1):
        row = line.strip()
        if not row or row.startswith(("#", "TIMESTAMP")):
            continue
        try:
            stamp, context, generated = row.split(",")
            when, prompt, output = _seconds(stamp), max(1, int(context)), max(1, int(generated))
        except ValueError as error:
            raise ValueError(f"line {number}: not a row of the trace: {row[:80]!r}") from error
        first = when if first is None else first
        yield Arrival((when - first) / speed, prompt, max(output, max_tokens or 0), output, model, stream)


def _one(at: float, draw: Draw, mix: Mix) -> Arrival:
    prompt = _length(mix.prompt_median, mix.prompt_spread, mix.max_prompt, draw)
    output = _length(mix.output_median, mix.output_spread, mix.max_tokens, draw)
    return Arrival(at, prompt, mix.max_tokens, output, mix.model, mix.stream, mix.key, mix.tag)


def _length(median: float, spread: float, most: int, draw: Draw) -> int:
    # Box and Muller's normal number; 1 - draw() is never 0.
    normal = math.sqrt(-2.0 * math.log(1.0 - draw())) * math.cos(2.0 * math.pi * draw())
    return max(1, min(most, round(median * math.exp(spread * normal))))


def _seconds(stamp: str) -> float:
    # Seven digits of a second in the trace; datetime keeps six.
    whole, _, fraction = stamp.partition(".")
    return (datetime.fromisoformat(whole) - _EPOCH).total_seconds() + float(f"0.{fraction or 0}")


_EPOCH = datetime(2023, 1, 1)  # noqa: DTZ001  the trace gives no time zone, and only differences are used
