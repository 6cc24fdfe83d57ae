"""Everything that can be wrong with a graph, found at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, get_args

from ...base.codec import check as check_json
from ...errors import NotJson
from .branching import condition_problem
from .order import topological
from .spec import NO_ARGS, NODE_OPTIONS, OPTIONS, PLAIN_OPTIONS, Body, Kind, NodeSpec, conflicts

MAX_NODES = 1_000_000
_NEEDS_AT_ONCE = 1_024
_CHECKS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    *((option.name, option.expected, option.fits) for option in NODE_OPTIONS if option.name in NodeSpec._fields),
    ("kind", "'step' or 'task'", get_args(Kind).__contains__),
    ("body", f"one of {', '.join(get_args(Body))}", get_args(Body).__contains__),
)


class GraphProblem(NamedTuple):
    """One thing that is wrong, and where: the id of a node, or "graph"."""

    where: str
    message: str
    field: str = ""
    """The part of the node that it is about, as the end of a JSON path: `.depends_on[1]`."""
    path: str | None = None
    """The JSON path, when the graph was read from JSON."""

    def __str__(self) -> str:
        return f"{self.path or self.where}: {self.message}"


class Inspection(NamedTuple):
    """The result of a check. Without problems, the rest describes the whole graph."""

    problems: list[GraphProblem]
    parents: list[tuple[int, ...]]
    """By position in the declaration: the positions of the parents."""
    sequence: list[int]
    """Positions, parents first."""
    levels: list[int]


def check(specs: Sequence[NodeSpec]) -> list[GraphProblem]:
    """All problems of a graph; an empty list means it can run.

    >>> a = NodeSpec("a", "a", depends_on=("b",))
    >>> [str(p) for p in check([a])]
    ["a: depends on 'b', which does not exist"]
    """
    return inspect(specs).problems


def inspect(specs: Sequence[NodeSpec]) -> Inspection:
    if not specs:
        return Inspection([GraphProblem("graph", "it has no nodes")], [], [], [])
    if len(specs) > MAX_NODES:
        return Inspection(
            [GraphProblem("graph", f"it has {len(specs)} nodes; at most {MAX_NODES} are allowed")], [], [], []
        )
    positions: dict[str, int] = {}
    problems: list[GraphProblem] = []
    for position, spec in enumerate(specs):
        if not spec.id:
            problems.append(GraphProblem(f"node {position + 1}", "its id is empty"))
        elif spec.id in positions:
            problems.append(GraphProblem(spec.id, "two nodes have this id"))
        positions.setdefault(spec.id, position)
        if spec[OPTIONS:] != PLAIN_OPTIONS:
            problems += _options(spec)
        if spec.args is not NO_ARGS:
            problems += _args(spec)
    problems += _former_names(specs, positions)
    parents = _parents(specs, positions, problems)
    sequence, levels = topological(parents)
    if len(sequence) != len(specs):
        cycle = _cycle(parents, set(range(len(specs))) - set(sequence))
        problems.append(GraphProblem("graph", "it contains a cycle: " + " -> ".join(specs[i].id for i in cycle)))
    else:
        problems += _needs(specs, positions, parents, sequence)
    return Inspection(problems, parents, sequence, levels)


def _parents(
    specs: Sequence[NodeSpec], positions: Mapping[str, int], problems: list[GraphProblem]
) -> list[tuple[int, ...]]:
    """The positions of each node's parents. Members of a fan-out share one tuple of names, which is looked up once."""
    found: list[tuple[int, ...]] = []
    names: tuple[str, ...] = ()
    known: tuple[int, ...] = ()
    for spec in specs:
        if spec.depends_on is not names:
            names = spec.depends_on
            known = tuple([positions[parent] for parent in names if parent in positions])
        if len(known) != len(names):
            problems += [
                GraphProblem(spec.id, f"depends on {parent!r}, which does not exist", f".depends_on[{place}]")
                for place, parent in enumerate(names)
                if parent not in positions
            ]
        if len(known) > 1 and len(set(known)) != len(known):
            problems.append(GraphProblem(spec.id, "names a dependency twice", ".depends_on"))
        found.append(known)
    return found


def _options(spec: NodeSpec) -> list[GraphProblem]:
    problems = [
        GraphProblem(spec.id, f"{name}={getattr(spec, name)!r}: expected {expected}", f".{name}")
        for name, expected, fits in _CHECKS
        if not fits(getattr(spec, name))
    ]
    problems += [GraphProblem(spec.id, why, f".{option}") for option, why in conflicts(partial(getattr, spec))]
    if (problem := condition_problem(spec)) is not None:
        problems.append(GraphProblem(spec.id, problem, ".when"))
    if spec.transaction:
        problems += [GraphProblem(spec.id, message, ".transaction") for message in _transaction(spec)]
    return problems


def _transaction(spec: NodeSpec) -> Iterator[str]:
    if spec.body == "process":
        yield "transaction=True: a process of its own has no part in the transaction; leave isolation='process' out"
    if spec.body == "loop":
        yield "transaction=True: ctx.db blocks: expected a `def` body, got `async def`"


def _args(spec: NodeSpec) -> Sequence[GraphProblem]:
    try:
        check_json(spec.args if type(spec.args) is dict else dict(spec.args))
    except NotJson as error:
        return (GraphProblem(spec.id, f"args: {error}", ".args"),)
    return ()


def _former_names(specs: Sequence[NodeSpec], positions: Mapping[str, int]) -> list[GraphProblem]:
    """A former name must belong to exactly one node, or its earlier work could not be assigned."""
    found = []
    owners: dict[str, str] = {}
    for spec in specs:
        for name in spec.was:
            if name == spec.id:
                found.append(
                    GraphProblem(spec.id, f"was={name!r}: that is its name now; was= takes names it had before")
                )
            elif name in positions:
                found.append(
                    GraphProblem(spec.id, f"was={name!r}: a node has this name now, so it is not a former one")
                )
            elif owners.setdefault(name, spec.id) != spec.id:
                found.append(
                    GraphProblem(spec.id, f"was={name!r}: {owners[name]!r} says this too; only one can be right")
                )
    return found


def _needs(
    specs: Sequence[NodeSpec],
    positions: Mapping[str, int],
    parents: Sequence[Sequence[int]],
    sequence: Sequence[int],
) -> list[GraphProblem]:
    asked = [
        (position, name)
        for position, spec in enumerate(specs)
        if spec.needs
        for name in spec.needs
        if name not in spec.depends_on
    ]
    granted = above_all({(below, positions[name]) for below, name in asked if name in positions}, parents, sequence)
    return [
        GraphProblem(specs[position].id, f"takes the output of {name!r}, which is not one of its ancestors")
        for position, name in asked
        if (position, positions.get(name, -1)) not in granted
    ]


def above_all(
    pairs: Collection[tuple[int, int]], parents: Sequence[Sequence[int]], sequence: Sequence[int]
) -> set[tuple[int, int]]:
    """Those of the pairs of positions whose second is an ancestor of the first."""
    wanted = list(dict.fromkeys(above for _, above in pairs))
    found: set[tuple[int, int]] = set()
    for start in range(0, len(wanted), _NEEDS_AT_ONCE):
        some = {position: 1 << place for place, position in enumerate(wanted[start : start + _NEEDS_AT_ONCE])}
        above = _above(some, parents, sequence)
        found.update(pair for pair in pairs if above[pair[0]] & some.get(pair[1], 0))
    return found


def _above(bits: Mapping[int, int], parents: Sequence[Sequence[int]], sequence: Sequence[int]) -> list[int]:
    """By position: the bits of those nodes of `bits` that are its ancestors. One walk serves all of them: a long chain whose
    nodes all need the first would otherwise be walked once for each."""
    above = [0] * len(parents)
    for position in sequence:
        found = 0
        for parent in parents[position]:
            found |= above[parent] | bits.get(parent, 0)
        above[position] = found
    return above


def _cycle(parents: Sequence[Sequence[int]], stuck: set[int]) -> list[int]:
    """One cycle among the positions that no order could reach, in the direction work flows, its first node repeated."""
    at = min(stuck)
    trail: dict[int, None] = {}  # in the order of walking; a list would make a long cycle slow to find
    while at not in trail:
        trail[at] = None
        at = min(parent for parent in parents[at] if parent in stuck)
    walked = list(trail)
    cycle = walked[walked.index(at) :]
    cycle.reverse()
    return [*cycle, cycle[0]]
