"""The demo's live table: engines, routes and money as they stand. For terminals only."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from gateway.demo.scene import Scene
from gateway.demo.traffic import Sent
from gateway.routing.view import EngineSnapshot, EngineState

_STYLES = {
    EngineState.READY: "green",
    EngineState.PREEMPTING: "bold red",
    EngineState.UNREACHABLE: "red",
    EngineState.UNBOOTABLE: "magenta",
}
_BAR = 24
_COLUMNS = (
    ("engine", 8), ("state", 12), ("KV held (full), promised (light)", 34),
    ("running", 7), ("waiting", 7), ("preempted", 9),
)  # fmt: skip


def live_view(scene: Scene, sent: Sent, elapsed: float, seconds: float) -> Group:
    """Everything at once, for rich's Live."""
    return Group(_title(sent, elapsed, seconds), _engines(scene), _routes(scene))


def _title(sent: Sent, elapsed: float, seconds: float) -> Text:
    return Text(
        f"spillgate demo  {min(elapsed, seconds):4.0f}/{seconds:.0f} s   sent {sent.total}"
        f"   in flight {sent.open}   failed {sent.failed}",
        style="bold",
    )


def _engines(scene: Scene) -> Table:
    table = Table(box=None, pad_edge=False, expand=False)
    for column, width in _COLUMNS:
        table.add_column(column, no_wrap=True, width=width)
    view = scene.gateway.parts.view
    for name, snapshot in view.snapshots.items():
        table.add_row(
            name,
            Text(snapshot.state, style=_STYLES.get(snapshot.state, "yellow")),
            _bar(snapshot, view.books[name].promised_blocks),
            _figure(snapshot.running),
            _figure(snapshot.waiting),
            str(snapshot.preemptions_total),
        )
    return table


def _bar(snapshot: EngineSnapshot, promised: int) -> Text:
    usable = snapshot.usable_blocks
    if not usable or snapshot.state not in (EngineState.READY, EngineState.PREEMPTING):
        return Text(snapshot.cause or "", style="dim", overflow="ellipsis")
    held = min(_BAR, round(_BAR * (snapshot.used_blocks or 0) / usable))
    more = min(_BAR - held, max(0, round(_BAR * promised / usable) - held))
    bar = Text("█" * held, style="cyan")
    bar.append("▒" * more, style="cyan").append("·" * (_BAR - held - more), style="dim")
    return bar.append(f" {promised:>3}/{usable}")


def _figure(value: int | None) -> str:
    return "?" if value is None else str(value)


def _routes(scene: Scene) -> Table:
    table = Table(box=None, pad_edge=False, expand=False)
    for column in ("route", "reason", "requests"):
        table.add_column(column, justify="right" if column == "requests" else "left")
    counts: dict[tuple[str, str], int] = {}
    for (_, route, reason, _), count in scene.gateway.parts.counters.requests.items():
        counts[route, reason] = counts.get((route, reason), 0) + count
    for (route, reason), count in sorted(counts.items()):
        table.add_row(route, reason, str(count))
    return table
