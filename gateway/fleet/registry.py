"""What is known of every engine, and the one place where a snapshot is swapped. Asks nobody; is told.

`snapshots()` is the live mapping that decisions read: a new page replaces one reference in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.fleet.health import (
    FAILURES_UNTIL_AWAY,
    HUNG_AFTER,
    BootSign,
    Observation,
    OwnTraffic,
    is_preempting,
    is_restart,
    made_progress,
    next_state,
    preempted_since,
    stands_still,
    total,
    with_page,
    with_state,
)
from gateway.routing.view import EngineSnapshot, EngineState
from gateway.vllm.metrics import EngineMetrics

_NO_TRAFFIC = OwnTraffic(0, 0, 0)


@dataclass(slots=True)
class _Memory:
    """What a snapshot does not show but the next one is made from."""

    page: EngineMetrics | None = None
    own: OwnTraffic = _NO_TRAFFIC
    progressed_at: float = 0.0
    failures: int = 0
    # Preemptions that the gauges showed and the counter has not confirmed yet: it would count them again.
    unconfirmed: int = 0
    boot: BootSign = BootSign.NONE
    boot_text: str | None = None
    draining: bool = False
    has_been_up: bool = False
    needs_facts: bool = True


class Registry:
    """All engines of a gateway."""

    def __init__(
        self,
        names: Sequence[str],
        clock: Callable[[], float],
        own_blocks: Callable[[str], int] = lambda _: 0,
        own_counts: Callable[[str], tuple[int, int]] = lambda _: (0, 0),
    ) -> None:
        """`own_blocks`: blocks that our requests hold on an engine now; `own_counts`: requests sent and
        finished."""
        self._clock, self._own_blocks, self._own_counts = clock, own_blocks, own_counts
        self._snapshots = {name: EngineSnapshot(name) for name in names}
        self._memories = {name: _Memory() for name in names}

    def snapshots(self) -> Mapping[str, EngineSnapshot]:
        """The live mapping."""
        return self._snapshots

    def names(self) -> tuple[str, ...]:
        """Every engine."""
        return tuple(self._snapshots)

    def needs_facts(self, name: str) -> bool:
        """Are the engine's models and version still to be asked for (first contact, or it restarted)?"""
        return self._memories[name].needs_facts

    def on_page(self, name: str, metrics: EngineMetrics) -> None:
        """A metrics page was read, just now."""
        now, memory = self._clock(), self._memories[name]
        own = OwnTraffic(self._own_blocks(name), *self._own_counts(name))
        snapshot = self._snapshots[name]
        preempted = 0
        if memory.page is None or is_restart(memory.page, metrics):
            memory.needs_facts = memory.needs_facts or memory.page is not None
            memory.progressed_at, memory.unconfirmed = now, 0
            snapshot = replace(snapshot, preemptions=())
        else:
            preempted = self._newly_preempted(memory, metrics, own)
            if made_progress(memory.page, metrics):
                memory.progressed_at = now
        counted = self._counted(memory, metrics)
        memory.page, memory.own, memory.failures = metrics, own, 0
        memory.boot, memory.boot_text = BootSign.NONE, None
        snapshot = with_page(snapshot, metrics, own, preempted, now)
        snapshot = replace(snapshot, preemptions_total=snapshot.preemptions_total + counted)
        self._settle(name, snapshot, answered=True)

    def _newly_preempted(self, memory: _Memory, metrics: EngineMetrics, own: OwnTraffic) -> int:
        """Each preemption once, though gauges and counter both tell of it."""
        if memory.page is None:
            return 0
        counted, shown = preempted_since(memory.page, metrics, memory.own, own)
        confirmed = min(counted, memory.unconfirmed)
        memory.unconfirmed += shown - confirmed
        return counted - confirmed + shown

    def _counted(self, memory: _Memory, metrics: EngineMetrics) -> int:
        """What the preemption counter says since the last page; after a restart, all that it says."""
        new = total(metrics, "preemptions") or 0
        if memory.page is None:
            return 0
        old = total(memory.page, "preemptions") or 0
        return new - old if new >= old else new

    def stands_still(self, name: str, metrics: EngineMetrics) -> bool:
        """Is this page the same as the last one? Then the engine's health is worth a question."""
        return stands_still(self._memories[name].page, metrics)

    def is_up(self, name: str) -> bool:
        """Did the last scrape end in a page?"""
        memory = self._memories[name]
        return memory.page is not None and memory.failures == 0

    def on_failure(self, name: str, why: str, *, is_sure: bool = False) -> None:
        """A scrape failed: the old figures stay and age. `is_sure`: the engine says that it is dead."""
        memory = self._memories[name]
        memory.failures += FAILURES_UNTIL_AWAY if is_sure else 1
        self._settle(name, replace(self._snapshots[name], cause=why), answered=False)

    def on_boot_sign(self, name: str, sign: BootSign, cause: str | None = None) -> None:
        """The engine's boot log shows a start, its failure (`cause` says which), or that it serves."""
        memory = self._memories[name]
        memory.boot, memory.boot_text = sign, cause
        if memory.failures or memory.page is None:
            self._settle(name, self._snapshots[name], answered=None if not memory.failures else False)

    def on_facts(
        self, name: str, models: tuple[str, ...], max_model_len: int | None, version: str | None
    ) -> None:
        """What /v1/models and /version said."""
        self._memories[name].needs_facts = False
        self._snapshots[name] = replace(
            self._snapshots[name], served_models=models, max_model_len=max_model_len, vllm_version=version
        )

    def set_draining(self, name: str, draining: bool) -> None:
        """Take an engine out of service, or back."""
        self._memories[name].draining = draining
        self._settle(name, self._snapshots[name], answered=self._memories[name].failures == 0)

    def _settle(self, name: str, snapshot: EngineSnapshot, *, answered: bool | None) -> None:
        memory, now = self._memories[name], self._clock()
        seen = self._observation(memory, snapshot, answered, now)
        state = next_state(snapshot.state, seen)
        if answered is False and state is EngineState.UNREACHABLE:
            memory.needs_facts = True
        cause = self._cause(memory, snapshot, state)
        self._snapshots[name] = with_state(snapshot, state, cause, now, had_been_up=memory.has_been_up)
        memory.has_been_up = memory.has_been_up or state in (EngineState.READY, EngineState.PREEMPTING)

    def _observation(
        self, memory: _Memory, snapshot: EngineSnapshot, answered: bool | None, now: float
    ) -> Observation:
        ranks = memory.page.ranks if memory.page else ()
        return Observation(
            answered=answered,
            has_series=bool(ranks),
            asleep=any(rank.awake is False for rank in ranks),
            stuck=now - memory.progressed_at > HUNG_AFTER,
            preempting=is_preempting(snapshot, now),
            failures=memory.failures,
            boot=memory.boot,
            draining=memory.draining,
        )

    def _cause(self, memory: _Memory, snapshot: EngineSnapshot, state: EngineState) -> str | None:
        match state:
            case EngineState.UNBOOTABLE:
                return memory.boot_text
            case EngineState.UNREACHABLE:
                return snapshot.cause
            case EngineState.HUNG:
                return f"requests are running and no token came for {HUNG_AFTER:g} s"
            case EngineState.UNKNOWN if memory.page is not None:
                return "its metrics page has no vllm series (--disable-log-stats?)"
            case _:
                return None
