"""A vLLM metrics page, read and written by the table in `series`.

Knows samples, labels and ranks; knows nothing of routing, scraping or time.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.vllm.series import SERIES, Series

Dialect = Literal["v0", "v1-old", "v1", "none"]


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """The labels of `cache_config_info` that routing needs; the set differs by version, absent is None.

    `num_gpu_blocks` includes the null block, which is never given out. `block_size` is in tokens.
    `kv_cache_size_tokens` (0.24+) counts all groups of a hybrid model; blocks x block_size does not.
    """

    num_gpu_blocks: int | None = None
    block_size: int | None = None
    kv_cache_size_tokens: int | None = None
    enable_prefix_caching: bool | None = None


_NO_CACHE = CacheFacts()


@dataclass(frozen=True, slots=True)
class RankMetrics:
    """One data-parallel rank (label `engine`) as its last scheduler step left it; None is unknown.

    `kv_usage` is 0..1 of what live requests hold: a warm prefix cache does not raise it. `waiting_capacity`
    is the part of `waiting` that waits for room, preempted requests among it (0.20+). Counts are since start.
    """

    rank: str = "0"
    kv_usage: float | None = None
    running: int | None = None
    waiting: int | None = None
    waiting_capacity: int | None = None
    preemptions: int | None = None
    prompt_tokens: int | None = None
    generation_tokens: int | None = None
    cached_prompt_tokens: int | None = None
    success: int | None = None
    awake: bool | None = None
    cache: CacheFacts = _NO_CACHE


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """One page. `ranks == ()` means that it has no vllm series: unknown, never idle (`--disable-log-stats`).

    `rejections` counts requests refused at admission (0.32+), over all ranks and reasons.
    """

    ranks: tuple[RankMetrics, ...] = ()
    model_name: str | None = None
    rejections: int | None = None
    dialect: Dialect = "none"


# V1 has no swap space.
_V0_ONLY = b"vllm:num_requests_swapped"
_KNOWN: Mapping[bytes, Series] = {series.name.encode(): series for series in SERIES}
# Label values hold braces, commas and escaped quotes: `kv_cache_dtype_skip_layers="[]"` is the mildest.
_SAMPLE = re.compile(rb'[^{ ]+(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*+")*+)\})?[ \t]+(\S+)')
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*+)"')
_ESCAPED = re.compile(r"\\(.)")
# What a float still counts exactly; beyond it, a sum of samples would drift.
_MOST = 2.0**53

Value = float | CacheFacts


class _Page:
    """The figures found so far, by rank and series: a fallback must not add to what it stands in for."""

    def __init__(self) -> None:
        self.figures: dict[str, dict[str, Value]] = {}
        self.rejections: float | None = None
        self.model_name: str | None = None
        self.is_v0 = False
        self.is_old = False

    def take(self, series: Series, labels: Mapping[str, str], value: float) -> None:
        if series.unit == "labels":
            self._rank(labels)[series.name] = _cache_facts(labels)
            return
        self.model_name = self.model_name or labels.get("model_name") or None
        if not series.per_rank:
            self.rejections = (self.rejections or 0) + value
            return
        self.is_v0 |= "engine" not in labels
        self.is_old |= series.name == "vllm:gpu_cache_usage_perc"
        figures = self._rank(labels)
        before = figures.get(series.name) if series.spread else None
        figures[series.name] = value + before if isinstance(before, float) else value

    def _rank(self, labels: Mapping[str, str]) -> dict[str, Value]:
        return self.figures.setdefault(labels.get("engine", "0"), {})

    @property
    def dialect(self) -> Dialect:
        if not self.figures:
            return "none"
        if self.is_v0:
            return "v0"
        return "v1-old" if self.is_old else "v1"


def parse(page: bytes) -> EngineMetrics:
    """What a metrics page says of the engine. Never raises: a page of something else has no ranks.

    Most of the 50 to 70 KB are histograms: a line is taken apart only if the table has its name.
    """
    found = _Page()
    # Not splitlines: a label value may hold a bare carriage return.
    for line in page.split(b"\n"):
        if not line.startswith(b"vllm:"):
            continue
        name = line.partition(b"{")[0].partition(b" ")[0]
        series = _KNOWN.get(name)
        if series is not None:
            _take_line(found, series, line)
        elif name == _V0_ONLY:
            found.is_v0 = True
    names = sorted(found.figures, key=_rank_order)
    ranks = tuple(_rank_metrics(name, found.figures[name]) for name in names)
    rejections = None if found.rejections is None else int(found.rejections)
    return EngineMetrics(ranks, found.model_name, rejections, found.dialect)


def _take_line(found: _Page, series: Series, line: bytes) -> None:
    sample = _SAMPLE.match(line)
    if sample is None:
        return
    labels = _labels((sample[1] or b"").decode("utf-8", "replace"))
    if series.only is not None and labels.get(series.only[0]) != series.only[1]:
        return
    value = _number(sample[2])
    if value is not None:
        found.take(series, labels, value)


def _labels(text: str) -> dict[str, str]:
    pairs = _LABEL.findall(text)
    return {key: _ESCAPED.sub(_unescaped, value) if "\\" in value else value for key, value in pairs}


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _number(text: bytes) -> float | None:
    """NaN, infinities and what no engine counts (below 0, beyond 2^53) are unknown."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= _MOST else None


def _cache_facts(labels: Mapping[str, str]) -> CacheFacts:
    return CacheFacts(
        num_gpu_blocks=_label_int(labels.get("num_gpu_blocks")),
        block_size=_label_int(labels.get("block_size")),
        kv_cache_size_tokens=_label_int(labels.get("kv_cache_size_tokens")),
        enable_prefix_caching={"True": True, "False": False}.get(labels.get("enable_prefix_caching", "")),
    )


def _label_int(text: str | None) -> int | None:
    """Labels are texts; what is not set is the text `None`."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None


def _rank_order(rank: str) -> tuple[int, str]:
    """Ranks as numbers, so that "10" follows "9"; what is no number comes last."""
    return (len(rank) if rank.isdecimal() else 1_000_000, rank)


def _rank_metrics(rank: str, figures: Mapping[str, Value]) -> RankMetrics:
    fields: dict[str, Value] = {}
    for series in SERIES:
        if series.name in figures:
            fields.setdefault(series.field, _read(series, figures[series.name]))
    return RankMetrics(rank, **fields)  # type: ignore[arg-type]  # the table's unit is the field's type, by test


def _read(series: Series, value: Value) -> Value:
    if series.unit == "count" and isinstance(value, float):
        return int(value)
    return bool(value) if series.unit == "flag" else value


def expose(ranks: Sequence[RankMetrics], model_name: str | None, rejections: int | None = None) -> str:
    """A page from which `parse` reads the same figures; what is None is left out, as an old engine would."""
    lines: list[str] = []
    for series in SERIES:
        if series.fallback:
            continue
        samples = list(_samples(series, ranks, model_name, rejections))
        if samples:
            lines += [f"# HELP {series.name} {series.help}", f"# TYPE {series.name} {series.type}", *samples]
    return "".join(line + "\n" for line in lines)


def _samples(
    series: Series, ranks: Sequence[RankMetrics], model_name: str | None, rejections: int | None
) -> Iterator[str]:
    named = {} if model_name is None else {"model_name": model_name}
    if not series.per_rank:
        if rejections is not None:
            yield _sample(series, named, float(rejections))
        return
    for rank in ranks:
        value = getattr(rank, series.field)
        if isinstance(value, CacheFacts):
            if value != _NO_CACHE:
                yield _sample(series, {**_cache_labels(value), "engine": rank.rank}, 1.0)
        elif value is not None:
            yield _sample(series, {"engine": rank.rank, **named}, float(value))


def _sample(series: Series, labels: dict[str, str], value: float) -> str:
    extra = [pair for pair in (series.only, series.spread) if pair is not None]
    pairs = [f'{key}="{_escaped(text)}"' for key, text in sorted([*labels.items(), *extra])]
    return f"{series.name}{{{','.join(pairs)}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _cache_labels(facts: CacheFacts) -> dict[str, str]:
    return {name: str(getattr(facts, name)) for name in CacheFacts.__dataclass_fields__}
