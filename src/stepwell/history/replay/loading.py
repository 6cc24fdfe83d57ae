"""Reads cassettes: checks everything, reports all problems at once, imports and executes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...base.codec import MAX_DEPTH, encode, encode_checked, json_path, sha256
from ...base.ids import RunId
from ...core.graph import Graph
from ...core.graph.check import GraphProblem
from ...core.graph.parse import parse
from ...core.model import RunStatus
from ...errors import BadCassette, GraphError, InputError, NotJson, StepwellError
from ..effects.exceptions import MAX_GROUPS, EffectError
from ..effects.record import CLOCK, Effect
from .cassette import FORMAT, joined
from .recorded import NOTHING, RecordedNode, RecordedRun

DEEPEST = MAX_DEPTH + 10
"""Levels: those of a stored value and of the cassette around it."""
_MISSING: Any = object()
_NAMES: Mapping[Any, str] = {
    str: "a string",
    int: "a whole number",
    dict: "an object",
    list: "a list",
    bool: "true or false",
}


def load_cassette(path: str | Path) -> RecordedRun:
    """The recorded run in a file that `run.export()` wrote; BadCassette says what is wrong with it."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: it cannot be read: {error.strerror or error}") from None
    return read_cassette(data, str(path))


def read_cassette(data: str | bytes, source: str = "this cassette") -> RecordedRun:
    repeated: list[GraphProblem] = []
    try:
        form = parse(data, repeated, DEEPEST)
    except GraphError as error:
        raise BadCassette(source, list(map(_told, error.problems))) from None
    problems = list(map(_told, repeated))
    recorded = _read(form, problems)
    if problems or recorded is None:
        raise BadCassette(source, problems)
    return recorded


def _told(problem: Any) -> str:
    return f"{problem.path}: {problem.message}"


class _Fields:
    """An object of a cassette and its path. Problems are reported, and a default is used instead."""

    def __init__(self, data: Mapping[str, Any], path: tuple[str | int, ...], problems: list[str]) -> None:
        self.data = data
        self.problems = problems
        self._path = path

    def report(self, message: str, *field: str) -> None:
        self.problems.append(f"{json_path((*self._path, *field))}: {message}")

    def take(self, field: str, kind: Any = None, other: Any = None, *, optional: bool = False) -> Any:
        """The value of a field, of any kind if none is given; `other` when something is wrong with it."""
        value = self.data.get(field, _MISSING)
        if value is _MISSING or (optional and value is None):
            if not optional:
                self.report("it is missing", field)
            return other
        if kind is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            self.report(f"expected {_NAMES.get(kind, 'a number')}, got {type(value).__name__}", field)
            return other
        return value

    def text(self, field: str, *, optional: bool = False) -> str:
        return str(self.take(field, str, "", optional=optional))

    def number(self, field: str, *, least: int = 0) -> int:
        number: int = self.take(field, int, least)
        if number < least:
            self.report(f"expected at least {least}", field)
        return max(number, least)

    def encoded(self, field: str, kind: Any = None) -> bytes:
        """The canonical JSON of a field."""
        try:
            return encode(self.take(field, kind, {}))
        except NotJson as error:
            self.report(error.message, field)
            return encode_checked(None)

    def form(self, field: str) -> _Fields:
        return _Fields(self.take(field, dict, {}), (*self._path, field), self.problems)

    def forms(self, field: str, *, optional: bool = False) -> list[_Fields]:
        """The objects of a list."""
        objects = []
        for place, value in enumerate(self.take(field, list, [], optional=optional)):
            form = _Fields(value, (*self._path, field, place), self.problems)
            if isinstance(value, dict):
                objects.append(form)
            else:
                form.report("expected an object")
        return objects


def _read(data: Any, problems: list[str]) -> RecordedRun | None:
    form = _Fields(data if isinstance(data, dict) else {}, (), problems)
    if "cassette" not in form.data:
        form.report("expected a cassette, an object with `cassette`, `run`, `graphs` and `nodes`")
        return None
    if form.data["cassette"] != FORMAT or type(form.data["cassette"]) is not int:
        form.report(f"it has form {form.data['cassette']!r}; this version of Stepwell reads {FORMAT}", "cassette")
        return None
    run, graphs = form.form("run"), _graphs(form.form("graphs"))
    run_id, status, seed = RunId(run.text("id")), run.text("status"), run.take("seed", str, "0")
    if status not in RunStatus.__members__:
        run.report(f"there is no status {status!r}", "status")
    # Check the length first: Python refuses to read too many digits.
    if not (seed.isascii() and seed.isdigit() and len(seed) <= 20 and int(seed) < 2**64):
        run.report("expected a whole number from 0 to 2**64 - 1, as a string", "seed")
    target, workflow = run.take("target", str, optional=True), run.text("workflow")
    input, graph = run.encoded("input", dict), graphs.get(run.text("graph"))
    if graph is None:
        run.report("this graph is not among the graphs", "graph")
    nodes = form.forms("nodes")
    if problems or graph is None:
        return None
    recorded = RecordedRun(run_id, workflow, target, RunStatus(status), graph, input, int(seed), ())
    recorded_nodes = [node for node in (_node(each, recorded, graphs) for each in nodes) if node is not None]
    if len({node.index for node in recorded_nodes}) != len(recorded_nodes):
        form.report("a node is there more than once", "nodes")
    recorded_nodes.sort(key=lambda node: (graph.ranks[node.index], node.index))
    return recorded._replace(nodes=tuple(recorded_nodes))


def _graphs(form: _Fields) -> dict[str, Graph]:
    by_digest: dict[str, Graph] = {}
    for digest in form.data:
        data = form.encoded(digest)
        if sha256(data) != digest:
            form.report("it was changed: its SHA-256 is not the name it stands under", digest)
            continue
        try:
            by_digest[digest] = Graph.load(data)
        except (StepwellError, LookupError, TypeError, ValueError, AttributeError) as error:
            form.report(f"it is no graph: {type(error).__name__}: {error}", digest)
    return by_digest


def _node(form: _Fields, recorded: RecordedRun, graphs: Mapping[str, Graph]) -> RecordedNode | None:
    before, node, order = len(form.problems), form.data, recorded.graph.order
    index = _index(form, recorded.graph)
    if index < len(order) and node.get("id") != order[index]:
        form.report(f"in the graph number {index} is {order[index]!r}", "id")
    name = node.get("graph", recorded.graph.digest)
    graph = graphs.get(name) if isinstance(name, str) else None
    if graph is None or index >= len(graph.order):
        form.report("this graph is not among the graphs, or has no such node", "graph")
    elif len(graph.order) > len(order):  # a run keeps every node that it ever had
        form.report("this graph has nodes that the graph of the run has not", "graph")
    run_id, input = recorded.run_id, recorded.input
    if form.take("run", dict, optional=True):
        done_in = form.form("run")
        run_id, input = RunId(done_in.text("id")), done_in.encoded("input", dict)
    skipped = form.take("skipped", bool, False, optional=True)
    stored = NOTHING if skipped else _output(form)
    given = tuple((_index(each, recorded.graph), _output(each)) for each in form.forms("given", optional=True))
    stub = form.take("stub", str, optional=True)
    attempt, generation = form.number("attempt", least=1), form.number("generation")
    effects = tuple(_effect(each, str(node.get("id")), attempt) for each in form.forms("effects"))
    if graph is None or len(form.problems) > before:
        return None
    return RecordedNode(index, run_id, input, graph, attempt, generation, stored, effects, stub, given, skipped)


def _index(form: _Fields, graph: Graph) -> int:
    index = form.number("index")
    if index >= len(graph.order):
        form.report("the graph has no node with this number", "index")
    return index


def _output(form: _Fields) -> bytes:
    stored = joined(form.encoded("output"), form.encoded("delta") if "delta" in form.data else None)
    if sha256(stored) != form.text("sha256"):
        form.report("it was changed: its SHA-256 is not the one that was recorded", "output")
    return stored


def _effect(form: _Fields, node: str, attempt: int) -> Effect:
    """Its hashes are checked when it is served, because that error can name the node and the effect."""
    effect = form.data
    raised = form.take("raised", dict, optional=True)
    is_open = form.take("open", bool, False, optional=True)
    if (raised is not None) + ("response" in effect) + is_open != 1:
        form.report("expected a response, raised or open")
    times = effect.get("response")
    if effect.get("name") == CLOCK and not (isinstance(times, list) and all(type(each) is int for each in times)):
        form.report("expected a list of whole numbers: microseconds", "response")
    return Effect(
        node,
        attempt,
        form.number("index", least=-1),
        form.text("name"),
        form.take("request"),
        effect.get("response"),
        None if raised is None else _error(form.form("raised")),
        form.text("request_sha256"),
        form.text("response_sha256", optional=is_open),
        form.number("occurrence"),
        form.take("time", (int, float), 0.0),
        form.take("seconds", (int, float), 0.0),
        form.take("durable", bool, False, optional=True),
        form.take("awaited", bool, False, optional=True),
        None if "from_attempt" not in effect else form.number("from_attempt", least=1),
        open=is_open,
    )


def _error(form: _Fields, groups: int = MAX_GROUPS) -> EffectError:
    bases = form.take("bases", list, [])
    if not all(isinstance(each, str) for each in bases):
        form.report("expected a list of strings", "bases")
    members = form.forms("exceptions", optional=True)
    if members and not groups:
        form.report("there are too many groups within groups", "exceptions")
        members = []
    return EffectError(
        form.text("type"),
        form.text("message"),
        form.take("args", list, optional=True),
        bases,
        form.take("attributes", dict, {}, optional=True),
        tuple(_error(each, groups - 1) for each in members),
    )
