"""vLLM's V1 scheduler in virtual time: who runs, who waits, who is preempted, and how long each step takes.

Knows no sockets, clock or text. What it copies from vLLM (`v1/core/sched/scheduler.py`, 0.33.0): running
requests are served before waiting ones; a prompt may be prefilled in chunks, so that one step never has more
tokens than `max_num_batched_tokens`; a request is admitted when the whole of what it must compute fits in
free blocks (0.19+), and afterwards takes blocks as its tokens come; when a running request needs a block and
none is free, the one that came last loses all its blocks, goes to the FRONT of the queue and is computed
again, the tokens made so far included. In a step that preempts nobody new is admitted. Against the real
0.32.0: 12 requests of 600 tokens on 64 blocks of 32 gave 16 preemptions there.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gateway.simulator.blocks import BlockKey, BlockPool, Hit, blocks_for
from gateway.simulator.engine_request import EngineRequest, StepPlan

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class EngineShape:
    """What decides how much an engine can hold at once; fields are vLLM's flags of the same names."""

    num_blocks: int
    block_size: int = 16
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    prefix_caching: bool = False
    # --scheduler-reserve-full-isl, on since 0.19. False: only the first chunk must fit, as before.
    reserve_full_isl: bool = True
    # --watermark (0.24+): share of blocks kept free at admission while something runs.
    watermark: float = 0.0

    @property
    def usable_blocks(self) -> int:
        """Blocks that can be given out: the null block is not among them."""
        return self.num_blocks - 1

    def fits(self, prompt_tokens: int, output_tokens: int) -> bool:
        """Whether such a request can ever run to its end here. The last token is never stored."""
        return blocks_for(prompt_tokens + output_tokens - 1, self.block_size) <= self.usable_blocks


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step: base + per_token x tokens scheduled + per_kv_token x tokens attended to."""

    base: float = 0.010
    per_token: float = 0.000_060
    per_kv_token: float = 0.0

    def seconds(self, scheduled_tokens: int, kv_tokens: int) -> float:
        """The length of a step with this much work."""
        return self.base + self.per_token * scheduled_tokens + self.per_kv_token * kv_tokens


class StepResult(NamedTuple):
    """What one step did.

    Its tokens exist at `ends_at`, not before. `scheduled_tokens` 0: there was nothing to do.
    """

    ends_at: float
    duration: float
    scheduled_tokens: int
    emitted: dict[str, int]
    finished: dict[str, FinishReason]
    preempted: tuple[str, ...]


class Stats(NamedTuple):
    """Gauges and counters as they stand. Counters start at 0 with the scheduler.

    `preemptions_reported` is what vLLM's own counter would say: a preemption is counted there only with the
    next token of the preempted request, seconds late (seen with 0.32.0), and never if that request is aborted
    first.
    """

    running: int
    waiting: int
    used_blocks: int
    kv_usage: float
    steps: int
    preemptions: int
    preemptions_reported: int
    prompt_tokens: int
    cached_prompt_tokens: int
    generation_tokens: int
    recomputed_tokens: int
    finished_stop: int
    finished_length: int


class BlockScheduler:
    """One engine rank.

    `add` and `abort` at any time; `step` does one step's work and says what came of it.
    """

    def __init__(self, shape: EngineShape, step_time: StepTime | None = None) -> None:
        self.shape = shape
        self.step_time = step_time or StepTime()
        self.pool = BlockPool(shape.num_blocks, caching=shape.prefix_caching)
        self._kept_free = int(shape.watermark * shape.usable_blocks)
        self._waiting: deque[EngineRequest] = deque()
        self._running: list[EngineRequest] = []
        self._sequences: dict[str, EngineRequest] = {}
        self._steps = self._preemptions = self._reported = 0
        self._prompt = self._cached = self._generation = self._recomputed = 0
        self._ended: dict[FinishReason, int] = {"stop": 0, "length": 0}

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._sequences)

    @property
    def running_ids(self) -> tuple[str, ...]:
        """Running requests in the order they were admitted; the last is the next to be preempted."""
        return tuple(sequence.id for sequence in self._running)

    @property
    def waiting_ids(self) -> tuple[str, ...]:
        """Waiting requests, the next to be admitted first."""
        return tuple(sequence.id for sequence in self._waiting)

    def add(
        self,
        request_id: str,
        prompt_tokens: int,
        max_tokens: int,
        output_tokens: int | None = None,
        prefix: tuple[Hashable, ...] = (),
    ) -> None:
        """Queue a request that will make `output_tokens` (None: max_tokens) tokens.

        `prefix` names the content of its leading prompt blocks, one key a block: equal keys are shared where
        prefix caching is on. Raises ValueError for an id in use, counts below 1, and a length that could
        never fit.
        """
        output = max_tokens if output_tokens is None else min(output_tokens, max_tokens)
        if request_id in self._sequences:
            raise ValueError(f"request id {request_id!r} is in use")
        if prompt_tokens < 1 or output < 1:
            raise ValueError("a request has at least one prompt token and one output token")
        if not self.shape.fits(prompt_tokens, output):
            raise ValueError(
                f"{prompt_tokens} + {output} tokens can never fit in {self.shape.usable_blocks} blocks"
            )
        sequence = EngineRequest(
            request_id, prompt_tokens, max_tokens, output, prefix[: prompt_tokens // self.shape.block_size]
        )
        self._sequences[request_id] = sequence
        self._waiting.append(sequence)

    def abort(self, request_id: str) -> bool:
        """Drop a request and free its blocks; False if it is not here (any more). Not counted as finished, as
        in vLLM.
        """
        sequence = self._sequences.pop(request_id, None)
        if sequence is None:
            return False
        if sequence in self._running:
            self._running.remove(sequence)
        else:
            self._waiting.remove(sequence)
        self.pool.release(sequence.holding)
        return True

    def step(self, now: float) -> StepResult:
        """Schedule and compute one step that begins at `now` (seconds)."""
        plan = StepPlan(self.shape.max_num_batched_tokens)
        self._schedule_running(plan)
        if not plan.preempted:
            self._schedule_waiting(plan)
        tokens = sum(chunk for _, chunk in plan.scheduled)
        if not tokens:
            return StepResult(now, 0.0, 0, {}, {}, tuple(plan.preempted))
        self._steps += 1
        seconds = self.step_time.seconds(tokens, sum(seq.computed + chunk for seq, chunk in plan.scheduled))
        emitted, finished = self._compute(plan.scheduled)
        return StepResult(now + seconds, seconds, tokens, emitted, finished, tuple(plan.preempted))

    def stats(self) -> Stats:
        """Gauges and counters now."""
        pool = self.pool
        return Stats(
            running=len(self._running),
            waiting=len(self._waiting),
            used_blocks=pool.used,
            kv_usage=pool.used / pool.usable,
            steps=self._steps,
            preemptions=self._preemptions,
            preemptions_reported=self._reported,
            prompt_tokens=self._prompt,
            cached_prompt_tokens=self._cached,
            generation_tokens=self._generation,
            recomputed_tokens=self._recomputed,
            finished_stop=self._ended["stop"],
            finished_length=self._ended["length"],
        )

    def _schedule_running(self, plan: StepPlan) -> None:
        index = 0
        while index < len(self._running) and plan.budget > 0:
            sequence = self._running[index]
            chunk = min(sequence.known - sequence.computed, plan.budget)
            if not self._make_room(sequence, chunk, plan):
                return
            plan.schedule(sequence, chunk)
            index += 1

    def _make_room(self, sequence: EngineRequest, chunk: int, plan: StepPlan) -> bool:
        """Take the blocks for this chunk, preempting from the end of the line; False if that reached
        `sequence` itself.
        """
        need = blocks_for(sequence.computed + chunk, self.shape.block_size) - sequence.holding.blocks
        while need > self.pool.free:
            victim = self._running.pop()
            self._preempt(victim)
            plan.preempted.append(victim.id)
            if victim is sequence:
                return False
        if need > 0:
            self.pool.take(sequence.holding, need)
        return True

    def _preempt(self, victim: EngineRequest) -> None:
        self.pool.release(victim.holding)
        victim.computed = 0
        victim.unreported += 1
        self._preemptions += 1
        self._waiting.appendleft(victim)

    def _schedule_waiting(self, plan: StepPlan) -> None:
        while self._waiting and plan.budget > 0 and len(self._running) < self.shape.max_num_seqs:
            sequence = self._waiting[0]
            # At least one token must be computed to get a next one, so the block with the last
            # token is never a hit.
            keys = (
                sequence.keys(0, (sequence.known - 1) // self.shape.block_size) if self.pool.caching else []
            )
            hit = self.pool.find(keys)
            chunk = min(sequence.known - hit.blocks * self.shape.block_size, plan.budget)
            if not self._may_admit(sequence, hit, chunk):
                return
            self._waiting.popleft()
            self._admit(sequence, keys[: hit.blocks], chunk)
            plan.schedule(sequence, chunk)

    def _may_admit(self, sequence: EngineRequest, hit: Hit, chunk: int) -> bool:
        size = self.shape.block_size
        must_fit = sequence.known if self.shape.reserve_full_isl else hit.blocks * size + chunk
        need = blocks_for(must_fit, size) - hit.blocks + hit.idle
        return need + (self._kept_free if self._running else 0) <= self.pool.free

    def _admit(self, sequence: EngineRequest, hit_keys: list[BlockKey], chunk: int) -> None:
        size = self.shape.block_size
        self.pool.share(sequence.holding, hit_keys)
        sequence.computed = len(hit_keys) * size
        if not sequence.furthest:
            self._cached += min(sequence.computed, sequence.prompt)
            sequence.furthest = sequence.computed
        self.pool.take(sequence.holding, blocks_for(sequence.computed + chunk, size) - len(hit_keys))
        self._running.append(sequence)

    def _compute(
        self, scheduled: list[tuple[EngineRequest, int]]
    ) -> tuple[dict[str, int], dict[str, FinishReason]]:
        emitted: dict[str, int] = {}
        finished: dict[str, FinishReason] = {}
        for sequence, chunk in scheduled:
            self._store(sequence, chunk)
            if sequence.computed < sequence.known:
                continue
            emitted[sequence.id] = 1
            if self._emit(sequence):
                finished[sequence.id] = "length" if sequence.output == sequence.max_tokens else "stop"
        for request_id, reason in finished.items():
            self.pool.release(self._sequences.pop(request_id).holding)
            self._ended[reason] += 1
        if finished:
            self._running = [sequence for sequence in self._running if sequence.id not in finished]
        return emitted, finished

    def _store(self, sequence: EngineRequest, chunk: int) -> None:
        """`chunk` more tokens of this request are in the cache."""
        if sequence.computed < sequence.furthest:
            self._recomputed += min(sequence.computed + chunk, sequence.furthest) - sequence.computed
        sequence.computed += chunk
        if sequence.computed > sequence.furthest:
            sequence.furthest = sequence.computed
        if self.pool.caching:
            sealed, full = len(sequence.holding.keys), sequence.computed // self.shape.block_size
            if full > sealed:
                self.pool.seal(sequence.holding, sequence.keys(sealed, full))

    def _emit(self, sequence: EngineRequest) -> bool:
        """One more token; True if it was the last."""
        if not sequence.generated:
            self._prompt += sequence.prompt
        sequence.generated += 1
        sequence.known += 1
        self._generation += 1
        self._reported += sequence.unreported
        sequence.unreported = 0
        return sequence.generated >= sequence.output
