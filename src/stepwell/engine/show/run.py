"""`stepwell show` and `run.show()`: facts about a run, its nodes as a tree, and a timeline; in notebooks also a picture."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import TypeAlias

from rich.console import Console
from rich.text import Text

from ...base.clock import SECOND
from ...base.words import count, duration
from ...core.model import FAILED_NODES, NODE_FAILED, SATISFIED_NODES, AttemptStatus, NodeStatus, RunRow
from ...core.model.origin import origin_of
from ...core.store import reader
from ...core.store.living import living
from ...history.measuring import Latency, RunMetrics
from ..runs.overview import Overview
from ..runs.stored import StoredRun
from ..runs.views import NodeView
from .drawing import Screen, print_tree
from .next_steps import next_steps
from .styles import coloured, counted, style_of
from .timeline import timeline
from .tree import Gap, Row, page, tree
from .words import ago, local

PAGE = 40
"""Nodes that are shown one by one; in a larger run similar nodes are folded, and this many lines are shown."""

REMOVED_SHOWN = 10
"""How many nodes to name that only earlier versions of the workflow had."""

PIPED_WIDTH = 100
"""The width of a timeline without a terminal."""

DRAWN_UP_TO = 200
"""Nodes; a larger picture shows nothing any more."""
JOURNAL_READ = 20_000
"""Entries. The journal of a larger run takes longer to read than all that is shown of it; only `run.metrics` does."""
_WIDTH = 110
_FORMAT = (
    '<pre style="line-height: 1.3; font-size: 0.85em; white-space: pre; overflow-x: auto"><code>{code}</code></pre>'
)

_NAMES = 5
_BAD_ATTEMPTS = (AttemptStatus.FAILED, AttemptStatus.TIMED_OUT, AttemptStatus.LOST, AttemptStatus.CANCELLED)
_EXECUTED = (AttemptStatus.COMPLETED, AttemptStatus.FAILED, AttemptStatus.TIMED_OUT)
_BAR_STYLES = {"good": "green", "running": "blue", "bad": "red", "between": "dim"}


Command: TypeAlias = Callable[[str], str]
"""Turns the words of a command into what to type."""


def print_run(
    to: Console, run: StoredRun, command: Command, *, tracebacks: bool, whole: bool, all_of_it: str = "--all"
) -> None:
    """Print a run. The head comes first, since reading the nodes of a large run takes a moment. `all_of_it`: how to see all."""
    screen, now = Screen(to), run.store.now()
    _print_head(screen, run, now)
    nodes = run.overview()
    _print_standing(screen, command, run, nodes)
    rows = tree(nodes, fold=len(nodes) > PAGE and not whole)
    shown = page(rows, len(rows) if whole else PAGE)
    details = details_of(run, nodes, shown)
    screen.print()
    print_tree(screen, shown, nodes, details)
    _print_removed(screen, nodes.removed, whole=whole)
    _print_timeline(screen, rows, nodes, whole=whole, all_of_it=all_of_it)
    if len(rows) < len(nodes) or len(shown) < len(rows):
        screen.print(Text(f"\n{all_of_it} shows all {count(len(nodes), 'node')} one by one", style="dim"))
    if tracebacks:
        _print_tracebacks(screen, shown, details)


def details_of(run: StoredRun, nodes: Overview, shown: Sequence[Row | Gap]) -> dict[int, NodeView]:
    """By place: the nodes with a row of their own of which more is said, because they are at work, did not complete or were
    performed by a run."""
    rows = [row for row in shown if isinstance(row, Row) and len(row.places) == 1]
    handed = {row.places[0] for row in rows if _was_handed_over(nodes, row.places[0])}
    told = (row.places[0] for row in rows if row.status not in SATISFIED_NODES or row.places[0] in handed)
    places = {nodes.indexes[place]: place for place in told}
    tried = [index for index, place in places.items() if nodes.tries[place]]
    return {places[view.row.index]: view for view in run.some_nodes(tried)}


def _was_handed_over(nodes: Overview, place: int) -> bool:
    return any(nodes.attempt_statuses[row] is AttemptStatus.PARKED for row in nodes.attempts_of((place,)))


def _print_head(screen: Screen, run: StoredRun, now: int) -> None:
    row = run.row
    taken = run.seconds
    if taken is None and row.started_at is not None:
        taken = (now - row.started_at) / SECOND
    word = "in" if row.status.terminal else "for"
    version = run.document_version
    named = row.workflow if version is None else f"{row.workflow}@{version}"
    screen.print(
        Text.assemble((named, "bold"), "  ", coloured(row.status), f" {word} {duration(taken)}" if taken else "")
    )
    screen.facts(_facts(run, now))
    forks = list(islice(reader.forks(run.store, row), _NAMES + 1))
    if forks:
        named = ", ".join(fork.id for fork in forks[:_NAMES])
        screen.facts([("forks", f"{named}{' ...' if len(forks) > _NAMES else ''}")])


def _facts(run: StoredRun, now: int) -> list[tuple[str, str]]:
    """Facts about a run, by name."""
    row = run.row
    given, origin = row.input.decode(), origin_of(row)
    said = [
        ("run", row.id),
        ("path", None if row.parent is None else run.path),
        ("parent", row.parent),
        ("target", row.target),
        ("input", None if given == "{}" else given),
        ("key", row.idempotency_key),
        ("forked", None if origin is None else f"from {origin}"),
        ("reason", _reason(row)),
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


def _reason(row: RunRow) -> str | None:
    """The reason of the run; the nodes that failed are named once they are read."""
    if row.status.paused and row.reason == "paused":
        return "paused on request"
    return None if row.reason == NODE_FAILED else row.reason


def _time(time: int, now: int) -> str:
    told = ago(time, now)
    return f"{local(time)}, {told}" if told.endswith("ago") and time <= now else local(time)


def _print_standing(screen: Screen, command: Command, run: StoredRun, nodes: Overview) -> None:
    attempts = Counter(nodes.attempt_statuses)
    facts: list[tuple[str, Text | str]] = [("nodes", counted(Counter(nodes.statuses)))]
    bad = ", ".join(f"{attempts[each]:,} {each.lower().replace('_', ' ')}" for each in _BAD_ATTEMPTS if attempts[each])
    facts.append(("attempts", f"{attempts.total():,}{f' ({bad})' if bad else ''}"))
    row = run.row
    if attempts:
        facts.append(("took", _took(run.metrics()) if row.seq <= JOURNAL_READ else _took_of(nodes)))
    if row.failed and row.reason in (None, NODE_FAILED):
        failed = [place for place, status in enumerate(nodes.statuses) if status in FAILED_NODES]
        more = f" and {count(len(failed) - 1, 'more node')}" if len(failed) > 1 else ""
        if failed:
            facts.append(("reason", Text(f"{nodes.names[failed[0]]} failed{more}", style="red")))
    if row.status.paused:
        steps = ", ".join(f"`{command(words)}` {purpose}" for words, purpose in next_steps(row).items())
        facts.append(("next", Text(steps, style="yellow")))
    elif not row.status.terminal and not living(run.store):
        message = f"none: `{command(f'resume {row.id}')}` goes on with it"
        facts.append(("worker", Text(message, style="yellow")))
    screen.facts(facts)


def _print_removed(screen: Screen, nodes: Sequence[tuple[str, NodeStatus]], *, whole: bool) -> None:
    if nodes:
        shown = nodes if whole else nodes[:REMOVED_SHOWN]
        named = ", ".join(f"{name} {status}" for name, status in shown)
        more = f" and {count(len(nodes) - len(shown), 'more node')}" if len(nodes) > len(shown) else ""
        screen.print(Text(f"\nno longer in the workflow: {named}{more}", style="dim"))


def _took(metrics: RunMetrics) -> str:
    """How long attempts took, and how long nodes waited for a worker, in one line."""
    step, queue = metrics.step_latency, metrics.queue_latency
    step_times = f"{duration(step.p50)} a step, 95 % within {duration(step.p95)}; " if step.samples else ""
    retried = f"; {metrics.retries:,} tried again" if metrics.retries else ""
    return f"{step_times}{duration(queue.p95)} for a worker; {metrics.average_active:.1f} claimed at a time{retried}"


def _took_of(nodes: Overview) -> str:
    """How long attempts took whose body ran to an end, as `_took` says it."""
    rows = zip(nodes.attempt_statuses, nodes.attempts_began, nodes.attempts_ended, strict=True)
    step = Latency.of(end - start for status, start, end in rows if status in _EXECUTED)
    return f"{duration(step.p50)} a step, 95 % within {duration(step.p95)}" if step.samples else "nothing so far"


def _print_timeline(screen: Screen, rows: Sequence[Row], nodes: Overview, *, whole: bool, all_of_it: str) -> None:
    drawn = timeline(rows, nodes, PIPED_WIDTH if screen.endless else screen.width, whole=whole or len(rows) <= PAGE)
    if drawn is None:
        return
    screen.print()
    screen.print(Text(drawn.axis, style="dim"))
    for bar in drawn.bars:
        screen.print(Text.assemble(f"{bar.name}  ", *((text, _BAR_STYLES.get(kind, "")) for text, kind in bar.pieces)))
    if drawn.left_out:
        screen.print(Text(f"the longest; {count(drawn.left_out, 'more line')} with {all_of_it}", style="dim"))


def _print_tracebacks(screen: Screen, shown: Sequence[Row | Gap], details: Mapping[int, NodeView]) -> None:
    for row in shown:
        node = details.get(row.places[0]) if isinstance(row, Row) and len(row.places) == 1 else None
        if node is not None and node.error is not None:
            screen.print(Text(f"\n{node.name}", style=f"bold {style_of(node.status)}"))
            screen.print(Text((node.error.traceback or str(node.error)).rstrip()))


def run_html(run: StoredRun, command: Command) -> str:
    """The picture and the tree, in one piece of HTML."""
    from ...core.graph.svg import to_svg

    screen = Console(file=io.StringIO(), record=True, width=_WIDTH, force_jupyter=False, highlight=False, emoji=False)
    print_run(screen, run, command, tracebacks=False, whole=False, all_of_it="run.show(whole=True)")
    told = screen.export_html(inline_styles=True, code_format=_FORMAT)
    graph = run.graph
    if len(graph) > DRAWN_UP_TO:
        return f"<p>{escape(repr(graph))}</p>{told}"
    statuses: dict[str, str] = {node.id: node.status for node in run.nodes()}
    return f'<div style="overflow-x: auto">{to_svg(graph, statuses)}</div>{told}'
