"""What the block scheduler keeps of one request, and of one step while it is put together.

Knows no queue and no pool: the scheduler moves requests between those.
"""

from collections.abc import Hashable

from gateway.simulator.blocks import BlockKey, Holding


class EngineRequest:
    """One request: `known` tokens (prompt and generated), of which `computed` are in the cache."""

    __slots__ = (
        "computed",
        "furthest",
        "generated",
        "holding",
        "id",
        "known",
        "max_tokens",
        "output",
        "prefix",
        "prompt",
        "unreported",
    )

    def __init__(
        self, request_id: str, prompt: int, max_tokens: int, output: int, prefix: tuple[Hashable, ...]
    ) -> None:
        self.id = request_id
        self.prompt = prompt
        self.max_tokens = max_tokens
        self.output = output
        self.prefix = prefix
        self.known = prompt
        self.computed = 0
        self.generated = 0
        # Highest `computed` so far: below it, computing is computing again.
        self.furthest = 0
        self.unreported = 0
        self.holding = Holding()

    def keys(self, start: int, stop: int) -> list[BlockKey]:
        """Content keys of blocks start..stop: the caller's for a shared prefix, its own after that."""
        shared = self.prefix[start:stop]
        return [*shared, *((self.id, index) for index in range(start + len(shared), stop))]


class StepPlan:
    """One step being put together."""

    __slots__ = ("budget", "preempted", "scheduled")

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.scheduled: list[tuple[EngineRequest, int]] = []
        self.preempted: list[str] = []

    def schedule(self, sequence: EngineRequest, tokens: int) -> None:
        self.scheduled.append((sequence, tokens))
        self.budget -= tokens
