"""`stepwell show`: what there is to say about a run, its nodes as a tree, and when they were at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..clock import SECOND
from ..graph import Graph
from ..model import FAILED_NODES, AttemptStatus, NodeStatus, RunRow, RunStatus
from .opening import Place
from .screen import ENDLESS, STYLES, coloured, console, counted, glyph, in_ascii, shortened
from .stored import StoredNode, StoredRun, anybody_works
from .timeline import timeline
from .tree import Gap, Row, page, tree
from .words import ago, count, duration, local, one_line

PAGE = 40
"""Nodes that are shown one by one; of a larger run what is alike is folded, and so many lines are shown."""

PIPED_WIDTH = 100
"""Columns of a timeline where there is no terminal."""

_LABEL = 8
_BAD_ATTEMPTS = (AttemptStatus.FAILED, AttemptStatus.TIMED_OUT, AttemptStatus.LOST, AttemptStatus.CANCELLED)
_BAR_STYLES = {"good": "green", "running": "blue", "bad": "red", "between": "dim"}


def print_run(place: Place, run: StoredRun, *, tracebacks: bool, whole: bool) -> None:
    """The head at once; reading the nodes of a large run takes a moment."""
    screen, now = Screen(console()), run.store.now()
    _print_head(screen, run, now)
    nodes = run.nodes()
    _print_standing(screen, place, run, nodes)
    rows = tree(nodes, run.graph, fold=len(nodes) > PAGE and not whole)
    shown = page(rows, len(rows) if whole else PAGE)
    screen.print()
    _print_tree(screen, shown, run.graph, now)
    _print_timeline(screen, rows, now, whole=whole)
    if len(rows) < len(nodes) or len(shown) < len(rows):
        screen.print(Text(f"\n--all shows all {count(len(nodes), 'node')} one by one", style="dim"))
    if tracebacks:
        _print_tracebacks(screen, shown)


class Screen:
    """A console that draws with what its encoding has."""

    def __init__(self, to: Console) -> None:
        self._to = to
        self._plain = not to.encoding.lower().startswith("utf")
        self.width = to.width
        self.endless = to.width >= ENDLESS

    def print(self, line: Text | None = None) -> None:
        """One line, whatever its length: it is cut before, not wrapped."""
        if line is None:
            self._to.print()
            return
        line.rstrip()
        if self._plain:
            line.plain = in_ascii(line.plain)
        self._to.print(line, soft_wrap=True)

    def facts(self, facts: Iterable[tuple[str, Text | str]]) -> None:
        if self.endless:
            for name, value in facts:
                self.print(Text(f"{name:<{_LABEL}}  {value}"))
            return
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", min_width=_LABEL)
        grid.add_column(overflow="fold")
        for name, value in facts:
            grid.add_row(name, Text(value) if isinstance(value, str) else value)
        if grid.row_count:
            self._to.print(grid)


def _print_head(screen: Screen, run: StoredRun, now: int) -> None:
    row = run.row
    taken = run.seconds
    if taken is None and row.started_at is not None:
        taken = (now - row.started_at) / SECOND
    word = "in" if row.status.terminal else "for"
    screen.print(
        Text.assemble((row.workflow, "bold"), "  ", coloured(row.status), f" {word} {duration(taken)}" if taken else "")
    )
    screen.facts(_facts(row, now))


def _facts(row: RunRow, now: int) -> list[tuple[str, str]]:
    """What there is to say about a run, by name."""
    given = row.input.decode()
    said = [
        ("run", row.id),
        ("target", row.target),
        ("input", None if given == "{}" else given),
        ("key", row.idempotency_key),
        ("reason", row.reason),
    ]
    waited = row.started_at is None or row.started_at - row.created_at >= SECOND
    times = [
        ("created", row.created_at if waited else None),
        ("started", row.started_at),
        ("ended", row.ended_at),
        ("deadline", None if row.status.terminal else row.deadline_at),
    ]
    return [(name, value) for name, value in said if value] + [
        (name, _time(time, now)) for name, time in times if time is not None
    ]


def _time(time: int, now: int) -> str:
    told = ago(time, now)
    return f"{local(time)}, {told}" if told.endswith("ago") and time <= now else local(time)


def _print_standing(screen: Screen, place: Place, run: StoredRun, nodes: Sequence[StoredNode]) -> None:
    attempts = Counter(attempt.status for node in nodes for attempt in node.attempts)
    facts: list[tuple[str, Text | str]] = [("nodes", counted(Counter(node.row.status for node in nodes)))]
    bad = ", ".join(f"{attempts[each]:,} {each.lower().replace('_', ' ')}" for each in _BAD_ATTEMPTS if attempts[each])
    facts.append(("attempts", f"{attempts.total():,}{f' ({bad})' if bad else ''}"))
    row = run.row
    if row.status in (RunStatus.FAILED, RunStatus.PAUSED) and not row.reason:
        failed = [node for node in nodes if node.row.status in FAILED_NODES]
        more = f" and {count(len(failed) - 1, 'more node')}" if len(failed) > 1 else ""
        if failed:
            facts.append(("reason", Text(f"{failed[0].name} failed{more}", style="red")))
    if not row.status.terminal and not anybody_works(run.store):
        told = f"none: `{place.command(f'resume {row.id}')}` goes on with it"
        facts.append(("worker", Text(told, style="yellow")))
    screen.facts(facts)


def _print_tree(screen: Screen, shown: Sequence[Row | Gap], graph: Graph, now: int) -> None:
    rows = [row for row in shown if isinstance(row, Row)]
    deepest = max(12, screen.width // 3)
    named = [cell_len(_lead(row.lead, deepest)) + 2 + cell_len(row.name) for row in rows]
    widest = min(max(named, default=0), max(20, screen.width // 2))
    states = [_state(row) for row in rows]
    state_width = max(map(cell_len, (state.plain for state in states)), default=0)
    times = [_took(row, now) for row in rows]
    time_width = max(map(len, times), default=0)
    columns = dict(zip(map(id, rows), zip(states, times, strict=True), strict=True))
    for row in shown:
        if isinstance(row, Gap):
            screen.print(Text(f"{_lead(row.lead, deepest)}⋮ {_more(row)}", style="dim"))
            continue
        state, took = columns[id(row)]
        state.pad_right(state_width - cell_len(state.plain))
        lead = _lead(row.lead, deepest)
        name = shortened(row.name, widest - len(lead) - 2)
        line = Text.assemble((lead, "dim"), glyph(row.status), f" {name}  ", state, "  ", f"{took:>{time_width}}")
        note = Text(", ".join(_notes(row, graph, now)), style="dim")
        _print_with_notes(screen, line, note, f"{_lead(row.rail, deepest)}  ", row)


def _print_with_notes(screen: Screen, line: Text, note: Text, rail: str, row: Row) -> None:
    """Notes stand behind a node where there is room, else below it; errors always below."""
    beside = line.cell_len + 2 + note.cell_len <= screen.width
    screen.print(Text.assemble(line, "  ", note) if beside and note else line)
    below = [] if beside or not note else [note]
    below += [Text(one_line(str(node.error)), style="red") for node in row.nodes if node.error and len(row.nodes) == 1]
    for each in below:
        told = Text.assemble((rail, "dim"), each)
        told.truncate(screen.width, overflow="ellipsis")
        screen.print(told)


def _lead(lead: str, deepest: int) -> str:
    """Very deep branches are not indented any further."""
    return lead if len(lead) <= deepest else f"… {lead[-(deepest - 2) :]}"


def _state(row: Row) -> Text:
    number = f"{len(row.nodes):,} × " if len(row.nodes) > 1 else ""
    return Text.assemble(number, coloured(row.status))


def _took(row: Row, now: int) -> str:
    """How long a node took, all attempts together; of several, the shortest and the longest."""
    times = [
        sum((attempt.ended_at or now) - attempt.started_at for attempt in node.attempts) / SECOND
        for node in row.nodes
        if node.attempts
    ]
    if not times:
        return ""
    shortest, longest = duration(min(times)), duration(max(times))
    return shortest if shortest == longest else f"{shortest} .. {longest}"


def _notes(row: Row, graph: Graph, now: int) -> list[str]:
    most = max(len(node.attempts) for node in row.nodes)
    notes = []
    if most > 1:
        notes.append(f"{most} attempts" if len(row.nodes) == 1 else f"up to {most} attempts")
    node = row.nodes[0].row
    if node.status is NodeStatus.WAITING and node.due_at is not None and len(row.nodes) == 1:
        notes.append(f"again in {duration(max(0, node.due_at - now) / SECOND)}")
    reasons = {each.row.reason for each in row.nodes}
    if len(reasons) == 1 and node.reason and not (len(row.nodes) == 1 and row.nodes[0].error):
        notes.append(_reason(node.reason, graph))
    return [*notes, row.note] if row.note else notes


def _reason(reason: str, graph: Graph) -> str:
    """Reasons name nodes by id; people know them by name."""
    why, separator, node = reason.partition(": ")
    return f"{why}{separator}{graph.nodes[node].name}" if node in graph.nodes else reason


def _more(gap: Gap) -> str:
    counts = Counter(node.row.status for node in gap.nodes)
    told = ", ".join(f"{counts[status]:,} {status}" for status in NodeStatus if counts[status])
    return f"{count(len(gap.nodes), 'more node')}: {told}"


def _print_timeline(screen: Screen, rows: Sequence[Row], now: int, *, whole: bool) -> None:
    drawn = timeline(rows, now, PIPED_WIDTH if screen.endless else screen.width, whole=whole or len(rows) <= PAGE)
    if drawn is None:
        return
    screen.print()
    screen.print(Text(drawn.axis, style="dim"))
    for bar in drawn.bars:
        screen.print(Text.assemble(f"{bar.name}  ", *((text, _BAR_STYLES.get(kind, "")) for text, kind in bar.pieces)))
    if drawn.left_out:
        screen.print(Text(f"the longest; {count(drawn.left_out, 'more line')} with --all", style="dim"))


def _print_tracebacks(screen: Screen, shown: Sequence[Row | Gap]) -> None:
    for row in shown:
        node = row.nodes[0]
        if isinstance(row, Row) and node.error is not None:
            screen.print(Text(f"\n{node.name}", style=f"bold {STYLES[node.row.status]}"))
            screen.print(Text((node.error.traceback or str(node.error)).rstrip()))
