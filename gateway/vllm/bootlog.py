"""Reads a vLLM log as it grows: starting, failed and why, or serving.

Knows the order of lines and which error is the cause; the texts are in `bootlog_patterns` and
`bootlog_causes`. Reads no files.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

from gateway.vllm import bootlog_patterns as known
from gateway.vllm.bootlog_causes import CAUSES, OOM_FIGURES, OOM_OUTCOMES, Cause

_ANSI = re.compile(r"\x1b?\[[0-9;]*m")
# Time stamps and streams of container runtimes, pods and services of compose.
_CONTAINER = re.compile(
    r"^(?:\[?pod/\S+\]? |[\w.-]+ +\| )?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S* )?(?:std(?:out|err) [FP] )?"
)
_PROCESS = re.compile(r"^\([^()]{1,80}? pid=\d+[^()]{0,80}\) ?")
# 0.6 has no opening bracket. What stands before the level is VLLM_LOGGING_PREFIX.
_LEVEL = re.compile(
    r"^.{0,80}?\b(DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[?[\w./-]+:\d+\] ?"
)
_LONGEST = 600


@dataclass(frozen=True, slots=True)
class BootFailure:
    """Why an engine does not boot.

    `outcome`: one of startup_free_memory_low, startup_oom_weights, startup_oom_profile,
    startup_oom_no_kv_blocks, startup_oom_context_too_long, startup_oom_cuda_graph; "config" for what vLLM
    refuses by itself; "other". `text` is one sentence: what, with figures, and the first knob. Sizes in
    `facts` are GiB per GPU. `evidence`: number (from 1) and text of the lines it rests on.
    """

    outcome: str
    stage: str
    memory: bool
    text: str
    facts: tuple[tuple[str, float | str], ...] = ()
    evidence: tuple[tuple[int, str], ...] = ()


class _Line(NamedTuple):
    number: int
    text: str
    level: str | None


class BootLogReader:
    """Fed line by line. The failure is the first root cause of the newest start; a new start forgets it."""

    def __init__(self) -> None:
        self.failure: BootFailure | None = None
        self.serving = False
        self.started = False
        self._read = 0
        self._forget()

    def feed(self, lines: Iterable[str]) -> Self:
        """Take the next lines, with or without their line ends."""
        for raw in lines:
            self._read += 1
            self._take(_stripped(self._read, raw))
        return self

    def _forget(self) -> None:
        """A new start: nothing of the one before counts."""
        self.failure, self.serving = None, False
        self._by_api = False
        self._stage = known.STAGES[0]
        self._facts: dict[str, float | str] = {}
        self._milestones: dict[str, tuple[int, str]] = {}
        self._weight = -1
        self._unknown: _Line | None = None
        self._dying = False
        self._previous = ""

    def _take(self, line: _Line) -> None:
        if known.API_START.search(line.text):
            self._start(is_new=self.serving or self._dying or self.failure is not None, by_api=True)
        elif known.CORE_START.search(line.text):
            failed = self.failure is not None and not self._by_api
            self._start(is_new=self.serving or failed, by_api=self._by_api and not self.serving)
        if self.serving:
            return
        if known.SERVING.search(line.text):
            self.serving, self.failure = True, None
            return
        if line.level in (None, "ERROR", "CRITICAL"):
            self._take_error(line)
        self._pass_milestone(line)
        self._previous = line.text

    def _start(self, *, is_new: bool, by_api: bool) -> None:
        if is_new:
            self._forget()
        self.started = True
        self._by_api = by_api

    def _pass_milestone(self, line: _Line) -> None:
        for stage, pattern in known.MILESTONES:
            found = pattern.search(line.text)
            if found is None:
                continue
            too_early = stage == "warmup" and known.STAGES.index(self._stage) < known.STAGES.index("kv_cache")
            if not too_early and known.STAGES.index(stage) > known.STAGES.index(self._stage):
                self._stage = stage
            for name, figure in _figures(found).items():
                self._note(name, figure, line)

    def _note(self, name: str, figure: float | str, line: _Line) -> None:
        """Every rank may write its own line: the smallest figure is the one that binds."""
        before = self._facts.get(name)
        if isinstance(before, float) and isinstance(figure, float) and before <= figure:
            return
        self._facts[name] = figure
        if isinstance(figure, float):
            self._milestones[name] = (line.number, line.text[:_LONGEST])

    def _take_error(self, line: _Line) -> None:
        for cause in CAUSES:
            found = cause.pattern.search(line.text)
            if found is not None:
                if cause.weight > self._weight:
                    self._blame(cause, found, line)
                return
        self._look_for_unknown(line)
        self._add_detail(line)
        if known.LAST_WORDS.search(line.text) and self._weight < 0:
            self._fail(0, "other", self._stage, "the start failed, and the log does not say why", line)

    def _look_for_unknown(self, line: _Line) -> None:
        """An error that no cause fits counts only once its process ends: many are caught and reported."""
        if known.DYING.search(line.text):
            self._dying, self._unknown = True, None
        elif known.WRAPPER.search(line.text):
            self._dying = True
        elif known.ERROR_LINE.match(line.text) and not (self._dying and self._unknown):
            self._unknown = line
        if self._dying and self._unknown is not None and self._weight < 0:
            self._blame_unknown(self._unknown)

    def _blame(self, cause: Cause, found: re.Match[str], line: _Line) -> None:
        stage = cause.stage or self._stage
        outcome = OOM_OUTCOMES[stage] if cause.outcome == "by_stage" else cause.outcome
        figures = OOM_FIGURES.search(line.text)
        facts = {**self._facts, **(_figures(figures) if figures else {}), **_figures(found)}
        # A line that names an earlier out-of-memory keeps the figures of that one.
        if self.failure is not None and self.failure.memory:
            facts = {**dict(self.failure.facts), **facts}
        text = cause.sentence({**facts, "outcome": outcome})
        self._fail(
            cause.weight, outcome, stage, text, line, memory=cause.memory, facts={**facts, "cause": cause.id}
        )

    def _blame_unknown(self, line: _Line) -> None:
        """Weighs less than everything known."""
        found = known.ERROR_LINE.match(line.text)
        said = f"{found[1]}: {found[2]}" if found else line.text
        outcome = "config" if "validation error" in said else "other"
        self._fail(0, outcome, self._stage, f"the start failed with {said[:300]}", line)

    def _add_detail(self, line: _Line) -> None:
        """The lines below a pydantic error say what it is about."""
        found = known.DETAIL.match(line.text)
        is_about = self._unknown is not None and "validation error" in self._unknown.text
        if found is None or not is_about or self._weight > 0:
            return
        said = found[1] or f"{self._previous.strip()}: {found[2]}"
        given = f" (given: {found[3]})" if found[2] and found[3] else ""
        text = f"vLLM refuses its configuration: {said[:300].rstrip('.')}{given}"
        self._fail(1, "config", "config", text, line)

    def _fail(
        self,
        weight: int,
        outcome: str,
        stage: str,
        text: str,
        line: _Line,
        *,
        memory: bool = False,
        facts: dict[str, float | str] | None = None,
    ) -> None:
        self._weight = weight
        evidence = (*sorted(self._milestones.values()), (line.number, line.text[:_LONGEST]))
        self.failure = BootFailure(outcome, stage, memory, text, tuple((facts or {}).items()), evidence)


def read(lines: Iterable[str]) -> BootLogReader:
    """A whole log at once."""
    return BootLogReader().feed(lines)


def _stripped(number: int, raw: str) -> _Line:
    """Without colours, container, process and logger prefixes; the level is None for what no logger wrote."""
    text = _CONTAINER.sub("", _ANSI.sub("", raw.rstrip("\r\n")), count=1)
    text = _PROCESS.sub("", text, count=1)
    level = _LEVEL.match(text)
    if level is None:
        return _Line(number, text, None)
    return _Line(number, text[level.end() :], level[1])


def _figures(found: re.Match[str]) -> dict[str, float | str]:
    return {name: _figure(text) for name, text in found.groupdict().items() if text is not None}


def _figure(text: str) -> float | str:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return text
    return value if math.isfinite(value) else text
