"""The nodes of a run as a tree: each once, in its place, and never more than a page of them unasked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stepwell.base.clock import SECOND
from stepwell.core.graph import Graph, NodeSpec, Outline
from stepwell.core.model import AttemptRow, AttemptStatus, NodeRow, NodeStatus
from stepwell.engine.runs.overview import Overview, columns_of
from stepwell.engine.runs.views import AttemptView, NodeView
from stepwell.engine.show.timeline import ROWS_UP_TO, timeline
from stepwell.engine.show.tree import Gap, Row, page
from stepwell.engine.show.tree import tree as tree_of
from tests.core.graph.dags import dags

DONE, FAILED, RUNNING = NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.RUNNING
PENDING, WAITING = NodeStatus.PENDING, NodeStatus.WAITING


def graph_of(**parents: str) -> Graph:
    return Graph([NodeSpec(name, name, depends_on=tuple(after.split()), job="a:b") for name, after in parents.items()])


def attempt(index: int, start: float, end: float | None, status: AttemptStatus, number: int = 1) -> AttemptView:
    ended = None if end is None else int(end * SECOND)
    row = AttemptRow(f"c.{number}", index, number, status, "w", int(start * SECOND), ended, None, None, None)
    return AttemptView(row, lambda *_: None, lambda *_: None)


def nodes_of(
    graph: Graph, statuses: Mapping[str, NodeStatus] | None = None, ends: Mapping[str, float] | None = None
) -> list[NodeView]:
    """Nodes in the order of declaration, completed in this order unless it is said otherwise."""
    found = []
    for place, spec in enumerate(graph):
        status = (statuses or {}).get(spec.id, DONE)
        index = graph.index[spec.id]
        end = (ends or {}).get(spec.id, place + 1.0)
        attempts = (attempt(index, end - 1, end, AttemptStatus.COMPLETED),) if status in (DONE, FAILED) else ()
        row = NodeRow(index, spec.id, status, len(attempts), 0, 1, 0, 0, "default/thread", None, None)
        found.append(NodeView(row, spec.name, attempts))
    return found


def overview(nodes: Sequence[NodeView], graph: Graph, now: float = 0) -> Overview:
    return Overview(Outline(graph.document.decode()), *columns_of(nodes), int(now * SECOND))


def tree(nodes: Sequence[NodeView], graph: Graph, *, fold: bool) -> list[Row]:
    return tree_of(overview(nodes, graph), fold=fold)


def drawn(rows: Sequence[Row | Gap]) -> list[str]:
    return [
        f"{row.lead}({row.counts.total()} more)"
        if isinstance(row, Gap)
        else f"{row.lead}{row.name}{f' x{len(row.places)}' if len(row.places) > 1 else ''}"
        f"{f' [{row.note}]' if row.note else ''}"
        for row in rows
    ]


ORDERS = graph_of(
    validate="",
    enrich="validate",
    fraud="enrich",
    inventory="enrich",
    charge="fraud inventory",
    ship="charge inventory",
)


def test_a_node_stands_below_the_parent_that_ended_last() -> None:
    rows = tree(nodes_of(ORDERS, ends={"fraud": 9.0}), ORDERS, fold=False)
    assert drawn(rows) == [
        "validate",
        "enrich",
        "├─ inventory",
        "└─ fraud",
        "   charge [also after inventory]",
        "   ship [also after inventory]",
    ]


def test_before_its_parents_have_ended_it_stands_below_the_last_of_them() -> None:
    rows = tree(nodes_of(ORDERS, dict.fromkeys(("fraud", "inventory", "charge", "ship"), PENDING)), ORDERS, fold=False)
    assert drawn(rows)[2:] == [
        "├─ fraud",
        "└─ inventory",
        "   charge [also after fraud]",
        "   ship [also after inventory]",
    ]


def test_several_roots_are_branches() -> None:
    graph = graph_of(a="", b="", c="a b")
    assert drawn(tree(nodes_of(graph), graph, fold=False)) == ["├─ a", "└─ b", "   c [also after a]"]


def fan(width: int) -> Graph:
    parts = [f"part_{n}" for n in range(width)]
    return graph_of(start="", **dict.fromkeys(parts, "start"), total=" ".join(parts))


def test_siblings_that_are_alike_are_folded() -> None:
    graph = fan(200)
    assert drawn(tree(nodes_of(graph), graph, fold=True)) == [
        "start",
        "part_0 .. part_199 x200",
        "total [after all 200]",
    ]
    assert len(tree(nodes_of(graph), graph, fold=False)) == 202


def test_two_siblings_have_a_line_each() -> None:
    graph = graph_of(part_0="", part_1="")
    assert drawn(tree(nodes_of(graph), graph, fold=True)) == ["├─ part_0", "└─ part_1"]
    graph = graph_of(part_0="", part_1="", part_2="")
    assert len(tree(nodes_of(graph), graph, fold=True)) == 1


def test_each_status_is_folded_on_its_own_and_what_failed_never() -> None:
    graph = fan(100)
    statuses = {"part_7": FAILED, "part_8": FAILED, "part_9": FAILED, "total": PENDING}
    statuses |= {f"part_{n}": PENDING for n in range(50, 100)}
    statuses |= {f"part_{n}": RUNNING for n in range(40, 48)}
    assert drawn(tree(nodes_of(graph, statuses), graph, fold=True)) == [
        "start",
        "├─ part_0 .. part_49 x39",
        "├─ part_7",
        "├─ part_8",
        "├─ part_9",
        *(f"├─ part_{n}" for n in range(40, 48)),
        "└─ part_50 .. part_99 x50",
        "   total [also after part_0, part_1, part_2 and 47 more]",
    ]


def test_chains_beside_each_other_are_folded_step_by_step() -> None:
    graph = graph_of(
        **{f"fetch_{n}": "" for n in range(50)}, **{f"parse_{n}": f"fetch_{n}" for n in range(50)}, end="parse_3"
    )
    assert drawn(tree(nodes_of(graph), graph, fold=True)) == [
        "fetch_0 .. fetch_49 x50",
        "parse_0 .. parse_49 x50",
        "end",
    ]


def test_names_without_numbers_are_folded_by_their_job() -> None:
    names = [f"to-{chr(97 + n)}" for n in range(26)]
    graph = graph_of(start="", **dict.fromkeys(names, "start"))
    assert drawn(tree(nodes_of(graph), graph, fold=True)) == ["start", "to-a .. to-z x26"]


@given(dags(), st.booleans(), st.randoms())
def test_every_node_is_there_once(specs: list[NodeSpec], fold: bool, choose: object) -> None:
    graph = Graph(specs)
    nodes = overview(nodes_of(graph), graph)
    rows = tree_of(nodes, fold=fold)
    ids = [graph.order[index] for index in nodes.indexes]
    assert sorted(ids[place] for row in rows for place in row.places) == sorted(graph.nodes)
    first = {ids[place]: position for position, row in enumerate(rows) for place in row.places}
    for spec in graph:
        assert not spec.depends_on or any(first[parent] < first[spec.id] for parent in spec.depends_on)


@given(dags(), st.integers(1, 12))
def test_a_page_leaves_nothing_unmentioned(specs: list[NodeSpec], limit: int) -> None:
    graph = Graph(specs)
    shown = page(tree(nodes_of(graph), graph, fold=False), limit)
    assert sum(isinstance(row, Row) for row in shown) == min(limit, len(specs))
    assert sum(len(row.places) if isinstance(row, Row) else row.counts.total() for row in shown) == len(graph)


def test_a_page_shows_what_failed_or_is_at_work_before_anything_else() -> None:
    graph = graph_of(s0="", **{f"s{n}": f"s{n - 1}" for n in range(1, 100)})
    shown = page(tree(nodes_of(graph, {"s60": FAILED, "s80": WAITING}), graph, fold=True), 4)
    assert drawn(shown) == ["s0", "s1", "(58 more)", "s60", "(19 more)", "s80", "(19 more)"]


def test_a_very_long_chain_is_no_recursion() -> None:
    graph = Graph([NodeSpec(f"s{n}", f"s{n}", depends_on=(f"s{n - 1}",) if n else ()) for n in range(5_000)])
    assert len(tree(nodes_of(graph), graph, fold=True)) == 5_000


def bars(nodes: Overview, width: int) -> list[str]:
    made = timeline(tree_of(nodes, fold=False), nodes, width, whole=True)
    assert made is not None
    return [made.axis, *(f"{bar.name}  {''.join(text for text, _ in bar.pieces)}".rstrip() for bar in made.bars)]


def test_the_timeline_shows_when_attempts_were_at_work_and_which_were_bad() -> None:
    graph = graph_of(first="", second="first")
    first, second = nodes_of(graph)
    first = replace(first, attempts=(attempt(0, 0, 4, AttemptStatus.COMPLETED),))
    second = replace(
        second,
        attempts=(
            attempt(1, 4, 6, AttemptStatus.LOST),
            attempt(1, 8, 10, AttemptStatus.FAILED, 2),
            attempt(1, 12, None, AttemptStatus.RUNNING, 3),
        ),
    )
    assert bars(overview([first, second], graph, 20), 48) == [
        "        0 s              10.0 s           20.0 s",
        "first   ━━━━━━━━",
        "second          ╍╍╍╍····╍╍╍╍····╸╸╸╸╸╸╸╸╸╸╸╸╸╸╸╸",
    ]


def test_the_shortest_attempt_is_still_seen() -> None:
    graph = graph_of(a="", b="a")
    a, b = nodes_of(graph)
    a = replace(a, attempts=(attempt(0, 0, 1_000, AttemptStatus.COMPLETED),))
    b = replace(b, attempts=(attempt(1, 1_000, 1_000, AttemptStatus.COMPLETED),))
    assert bars(overview([a, b], graph), 43)[1:] == ["a  " + "━" * 40, "b  " + " " * 39 + "━"]


@given(st.integers(30, 300), st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=2, max_size=6))
def test_no_line_of_the_timeline_is_longer_than_the_terminal(width: int, spans: list[tuple[float, float]]) -> None:
    graph = graph_of(**{f"a_rather_long_name_for_a_node_{n}": "" for n in range(len(spans))})
    nodes = [
        replace(node, attempts=(attempt(node.row.index, start, start + length, AttemptStatus.FAILED),))
        for node, (start, length) in zip(nodes_of(graph), spans, strict=True)
    ]
    made = timeline(tree(nodes, graph, fold=False), overview(nodes, graph), width, whole=True)
    if made is not None:
        assert len(made.axis) == width
        assert all(len(bar.name) + 2 + sum(len(text) for text, _ in bar.pieces) == width for bar in made.bars)


def test_a_long_timeline_has_its_longest_rows_in_the_order_of_time() -> None:
    graph = fan(60)
    nodes = nodes_of(graph)
    rows = tree(nodes, graph, fold=False)
    made = timeline(rows, overview(nodes, graph), 80, whole=False)
    assert made is not None
    assert (len(made.bars), made.left_out) == (ROWS_UP_TO, 62 - ROWS_UP_TO)


def test_where_nothing_ran_there_is_no_timeline() -> None:
    graph = graph_of(a="", b="a")
    nodes = overview(nodes_of(graph, {"a": PENDING, "b": PENDING}), graph)
    assert timeline(tree_of(nodes, fold=False), nodes, 80, whole=True) is None
