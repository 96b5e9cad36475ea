"""From one scrape to the next: an engine's state and its snapshot, as pure functions. Knows no sockets and no
clock.

The traps are those of the reference: no vllm series means unknown and never idle; gauges of a hung engine
repeat; the preemption counter comes seconds after the gauges have shown it; counters fall when the engine
restarts."""

from dataclasses import replace
from enum import Enum
from math import ceil
from typing import NamedTuple

from gateway.routing.view import EngineSnapshot, EngineState
from gateway.vllm.metrics import EngineMetrics, RankMetrics

# One failed scrape is noise (a busy API process answered after 4.7 s once); two in a row are an engine that
# is away.
FAILURES_UNTIL_AWAY = 2
# Running requests and no token for this long: hung (SIGSTOP of the core shows nothing else; 0.32.0).
HUNG_AFTER = 10.0
# How long the state shows a preemption; routing judges by the tuples and its own window.
_SHOW_PREEMPTING = 5.0
_PREEMPTIONS_KEPT = 120.0


class BootSign(Enum):
    """What the engine's boot log says, where there is one."""

    NONE = "none"
    STARTING = "starting"
    FAILED = "failed"
    SERVING = "serving"


class Observation(NamedTuple):
    """One look at an engine. `answered` is None where no scrape has ended yet."""

    answered: bool | None
    has_series: bool = False
    asleep: bool = False
    stuck: bool = False
    preempting: bool = False
    failures: int = 0
    boot: BootSign = BootSign.NONE
    draining: bool = False


def next_state(current: EngineState, seen: Observation) -> EngineState:
    """The state after this observation; the first row that holds decides."""
    if seen.draining and seen.failures < FAILURES_UNTIL_AWAY:
        return EngineState.DRAINING
    if seen.answered:
        return _answering(seen)
    return _silent(current, seen)


def _answering(seen: Observation) -> EngineState:
    if not seen.has_series:
        return EngineState.UNKNOWN
    if seen.asleep:
        return EngineState.ASLEEP
    if seen.stuck:
        return EngineState.HUNG
    return EngineState.PREEMPTING if seen.preempting else EngineState.READY


# What a boot log makes of an engine that does not answer.
_BY_LOG = {BootSign.STARTING: EngineState.BOOTING, BootSign.FAILED: EngineState.UNBOOTABLE}
_WAS_UP = frozenset({EngineState.READY, EngineState.PREEMPTING, EngineState.ASLEEP, EngineState.HUNG})


def _silent(current: EngineState, seen: Observation) -> EngineState:
    """No answer. A log that shows a start or its failure is believed at once: a serving engine would have
    answered."""
    if seen.answered is None and seen.boot is BootSign.NONE:
        return current
    if seen.boot in _BY_LOG and (seen.failures > 0 or current not in _WAS_UP):
        return _BY_LOG[seen.boot]
    if seen.failures >= FAILURES_UNTIL_AWAY or current in (EngineState.BOOTING, EngineState.UNBOOTABLE):
        return EngineState.UNREACHABLE
    return current if current is not EngineState.DRAINING else EngineState.UNREACHABLE


class OwnTraffic(NamedTuple):
    """What the gateway itself had done with this engine when the page was read. Counts are since start."""

    blocks: int
    sent: int
    finished: int


class Capacity(NamedTuple):
    """Blocks over all ranks; None where the engine does not tell."""

    usable: int | None
    used: int | None
    block_size: int | None


def capacity_of(ranks: tuple[RankMetrics, ...]) -> Capacity:
    """Usable blocks without each rank's null block (vLLM v1/core/block_pool.py), and those in use.

    Where the token capacity is not blocks x block_size (hybrid models draw a request's blocks from several
    groups), blocks are counted as stretches of block_size tokens. Used is the fullest rank's share of all:
    the rank is not ours to choose."""
    usable = [_usable(rank) for rank in ranks]
    usages = [rank.kv_usage for rank in ranks if rank.kv_usage is not None]
    block_size = next((r.cache.block_size for r in ranks if r.cache.block_size), None)
    if not usable or None in usable or len(usages) < len(ranks):
        # A pool of which nobody knows how full it is must not look empty.
        return Capacity(None, None, block_size)
    total = sum(u for u in usable if u is not None)
    return Capacity(total, ceil(round(max(usages) * total, 6)), block_size)


def _usable(rank: RankMetrics) -> int | None:
    cache = rank.cache
    if cache.num_gpu_blocks is None or not cache.block_size:
        return None
    blocks = cache.num_gpu_blocks
    if cache.kv_cache_size_tokens is not None:
        blocks = min(blocks, cache.kv_cache_size_tokens // cache.block_size)
    return max(0, blocks - 1)


def is_restart(before: EngineMetrics, after: EngineMetrics) -> bool:
    """Did any counter fall, or the pool change? Then nothing learned from earlier pages holds."""
    if [rank.cache for rank in before.ranks] != [rank.cache for rank in after.ranks]:
        return True
    return any(
        old is not None and new is not None and new < old
        for name in ("preemptions", "prompt_tokens", "generation_tokens", "success")
        for old, new in ((total(before, name), total(after, name)),)
    )


def total(metrics: EngineMetrics, field: str) -> int | None:
    """A count over all ranks; None where any rank does not tell."""
    values = [getattr(rank, field) for rank in metrics.ranks]
    return sum(values) if values and None not in values else None


class Preempted(NamedTuple):
    """Preemptions between two pages: what the counter rose by, and what the gauges show beyond doubt."""

    counted: int
    shown: int


def preempted_since(
    before: EngineMetrics, after: EngineMetrics, was: OwnTraffic, own: OwnTraffic
) -> Preempted:
    """The counter comes up to three seconds after the gauges have shown it (0.32.0).

    The gauges convict only where all traffic is ours: running fell by more than was seen to finish, by us or
    by the engine's own count, and what waits for room rose by more than we sent.
    """
    counted = max(0, _rise(before, after, "preemptions") or 0)
    running, waiting = total(after, "running"), total(after, "waiting")
    if running is None or waiting is None or running + waiting > own.sent - own.finished:
        return Preempted(counted, 0)
    finished = max(own.finished - was.finished, _rise(before, after, "success") or 0)
    fell = -(_rise(before, after, "running") or 0) - finished
    queued = _rise(before, after, "waiting_capacity")
    rose = (_rise(before, after, "waiting") or 0 if queued is None else queued) - (own.sent - was.sent)
    return Preempted(counted, min(fell, rose) if fell > 0 and rose > 0 else 0)


# Long prefills move the pool before any token is counted.
_MOVES = ("generation_tokens", "prompt_tokens", "kv_usage")


def made_progress(before: EngineMetrics, after: EngineMetrics) -> bool:
    """Did every busy rank move? An idle rank need not, and counters that are not there prove nothing."""
    earlier = {rank.rank: rank for rank in before.ranks}
    return all(_moved(earlier.get(rank.rank), rank) for rank in after.ranks)


def stands_still(before: EngineMetrics | None, after: EngineMetrics) -> bool:
    """Did nothing at all move since the last page? A dead core's last figures look like an idle engine's."""
    return before is not None and before.ranks == after.ranks


def _moved(before: RankMetrics | None, after: RankMetrics) -> bool:
    busy = (after.running or 0) + (after.waiting or 0)
    if before is None or busy == 0:
        return True
    pairs = [(getattr(before, name), getattr(after, name)) for name in _MOVES]
    return any(old is None or new is None or old != new for old, new in pairs)


def _rise(before: EngineMetrics, after: EngineMetrics, field: str) -> int | None:
    old, new = total(before, field), total(after, field)
    return None if old is None or new is None else new - old


def with_page(
    snapshot: EngineSnapshot, metrics: EngineMetrics, own: OwnTraffic, preempted: int, now: float
) -> EngineSnapshot:
    """The snapshot with a new page's figures; its state is set by `with_state`."""
    capacity = capacity_of(metrics.ranks)
    recent = tuple(seen for seen in snapshot.preemptions if now - seen[0] <= _PREEMPTIONS_KEPT)
    if preempted:
        recent = (*recent, (now, preempted))
    return replace(
        snapshot,
        scraped_at=now if metrics.ranks else snapshot.scraped_at,
        usable_blocks=capacity.usable,
        block_size=capacity.block_size,
        used_blocks=capacity.used,
        own_blocks=own.blocks,
        running=total(metrics, "running"),
        waiting=total(metrics, "waiting"),
        preemptions=recent,
        ranks=max(1, len(metrics.ranks)),
    )


def is_preempting(snapshot: EngineSnapshot, now: float) -> bool:
    """Was a preemption seen moments ago?"""
    return bool(snapshot.preemptions) and now - snapshot.preemptions[-1][0] <= _SHOW_PREEMPTING


_UP = frozenset({EngineState.READY, EngineState.PREEMPTING})


def with_state(
    snapshot: EngineSnapshot, state: EngineState, cause: str | None, now: float, *, had_been_up: bool
) -> EngineSnapshot:
    """The snapshot in a new state; coming up from being away is a return, to be ramped, unless it is the
    first time."""
    if state in _UP and snapshot.state not in _UP:
        return replace(snapshot, state=state, cause=cause, ready_since=now, returned=had_been_up)
    return replace(snapshot, state=state, cause=cause)
