"""Reads cassettes: everything is checked, all problems are told at once, and nothing is imported or executed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from ...codec import MAX_DEPTH, encode, encode_checked, json_path, sha256
from ...errors import BadCassette, GraphError, InputError, NotJson, StepwellError
from ...graph import Graph
from ...graph.check import Problem
from ...graph.parse import parse
from ...ids import RunId
from ...model import RunStatus
from ..effects.exceptions import MAX_GROUPS, EffectError
from ..effects.record import CLOCK, Effect
from .cassette import FORMAT, joined
from .recorded import RecordedNode, RecordedRun

DEEPEST = MAX_DEPTH + 10
"""Levels: a value that was stored, inside of a cassette."""
T = TypeVar("T")
_NEEDED: Any = object()
_JSON: Any = object()


def load_cassette(path: str | Path) -> RecordedRun:
    """The recorded run in a file that `run.export()` wrote; BadCassette says what is wrong with it."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: it cannot be read: {error.strerror or error}") from None
    return read_cassette(data, str(path))


def read_cassette(data: str | bytes, source: str = "this cassette") -> RecordedRun:
    found: list[Problem] = []
    try:
        form = parse(data, found, DEEPEST)
    except GraphError as error:
        raise BadCassette(source, [_said(problem) for problem in error.problems]) from None
    reading = _Reading([_said(problem) for problem in found])
    recorded = reading.cassette(form)
    if reading.problems or recorded is None:
        raise BadCassette(source, reading.problems)
    return recorded


def _said(problem: Any) -> str:
    return f"{problem.path}: {problem.message}"


class _Reading:
    """Looks at one cassette and gathers what is wrong with it."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems

    def cassette(self, form: Any) -> RecordedRun | None:
        if not isinstance(form, dict) or "cassette" not in form:
            self._report((), "it is no cassette: an object with `cassette`, `run`, `graphs` and `nodes` is needed")
            return None
        if form["cassette"] != FORMAT or type(form["cassette"]) is not int:
            self._report(("cassette",), f"it has form {form['cassette']!r}; this version of Stepwell reads {FORMAT}")
            return None
        run: dict[str, Any] = self._take(form, (), "run", dict, {})
        graphs = self._graphs(self._take(form, (), "graphs", dict, {}))
        at = ("run",)
        run_id = RunId(self._take(run, at, "id", str, ""))
        status = self._take(run, at, "status", str, "")
        if status not in RunStatus.__members__:
            self._report((*at, "status"), f"there is no status {status!r}")
        seed = self._take(run, at, "seed", str, "0")
        # Its length first: a number of too many digits cannot even be read.
        if not (seed.isascii() and seed.isdigit() and len(seed) <= 20 and int(seed) < 2**64):
            self._report((*at, "seed"), "a whole number from 0 to 2**64 - 1 is needed, as a string")
        target = self._take(run, at, "target", str, None, optional=True)
        workflow = self._take(run, at, "workflow", str, "")
        input = self._encoded(self._take(run, at, "input", dict, {}), (*at, "input"))
        graph = graphs.get(self._take(run, at, "graph", str, ""))
        if graph is None:
            self._report((*at, "graph"), "this graph is not among the graphs")
        nodes: list[Any] = self._take(form, (), "nodes", list, [])
        if self.problems or graph is None:
            return None
        recorded = RecordedRun(run_id, workflow, target, RunStatus(status), graph, input, int(seed), ())
        read = [self._node(node, ("nodes", place), recorded, graphs) for place, node in enumerate(nodes)]
        found = [node for node in read if node is not None]
        if len({node.index for node in found}) != len(found):
            self._report(("nodes",), "a node is there more than once")
        found.sort(key=lambda node: (graph.ranks[node.index], node.index))
        return recorded._replace(nodes=tuple(found))

    def _graphs(self, documents: Mapping[str, Any]) -> dict[str, Graph]:
        found: dict[str, Graph] = {}
        for digest, document in documents.items():
            path = ("graphs", digest)
            data = self._encoded(document, path)
            if sha256(data) != digest:
                self._report(path, "it was changed: its SHA-256 is not the name it stands under")
                continue
            try:
                found[digest] = Graph.load(data)
            except (StepwellError, LookupError, TypeError, ValueError, AttributeError) as error:
                self._report(path, f"it is no graph: {type(error).__name__}: {error}")
        return found

    def _node(
        self, node: Any, path: tuple[str | int, ...], recorded: RecordedRun, graphs: Mapping[str, Graph]
    ) -> RecordedNode | None:
        if not isinstance(node, dict):
            self._report(path, "an object is needed")
            return None
        before = len(self.problems)
        index = self._number(node, path, "index")
        if index >= len(recorded.graph.order):
            self._report((*path, "index"), "the graph has no node with this number")
        elif node.get("id") != recorded.graph.order[index]:
            self._report((*path, "id"), f"in the graph number {index} is {recorded.graph.order[index]!r}")
        name = node.get("graph", recorded.graph.digest)
        graph = graphs.get(name) if isinstance(name, str) else None
        if graph is None or index >= len(graph.order):
            self._report((*path, "graph"), "this graph is not among the graphs, or has no such node")
        elif len(graph.order) > len(recorded.graph.order):  # a run keeps every node that it ever had
            self._report((*path, "graph"), "this graph has nodes that the graph of the run has not")
        done_in: dict[str, Any] = self._take(node, path, "run", dict, None, optional=True) or {}
        run_id, input = recorded.run_id, recorded.input
        if done_in:
            run_id = RunId(self._take(done_in, (*path, "run"), "id", str, ""))
            input = self._encoded(self._take(done_in, (*path, "run"), "input", dict, {}), (*path, "run", "input"))
        stored = self._output(node, path)
        given = [
            self._given(each, (*path, "given", place), recorded.graph)
            for place, each in enumerate(self._take(node, path, "given", list, None, optional=True) or [])
        ]
        stub = self._take(node, path, "stub", str, None, optional=True)
        numbers = self._number(node, path, "attempt", least=1), self._number(node, path, "generation")
        effects = [
            self._effect(effect, (*path, "effects", place), str(node.get("id")), numbers[0])
            for place, effect in enumerate(self._take(node, path, "effects", list, []))
        ]
        if graph is None or len(self.problems) > before:
            return None
        kept = tuple(effect for effect in effects if effect is not None)
        return RecordedNode(index, run_id, input, graph, *numbers, stored, kept, stub, tuple(given))

    def _given(self, given: Any, path: tuple[str | int, ...], graph: Graph) -> tuple[int, bytes]:
        """What a node was given of one above it."""
        if not isinstance(given, dict):
            self._report(path, "an object is needed")
            return 0, b"null"
        index = self._number(given, path, "index")
        if index >= len(graph.order):
            self._report((*path, "index"), "the graph has no node with this number")
        return index, self._output(given, path)

    def _output(self, form: Mapping[str, Any], path: tuple[str | int, ...]) -> bytes:
        output = self._encoded(self._take(form, path, "output", _JSON, None), (*path, "output"))
        delta = self._encoded(form["delta"], (*path, "delta")) if "delta" in form else None
        stored = joined(output, delta)
        if sha256(stored) != self._take(form, path, "sha256", str, ""):
            self._report((*path, "output"), "it was changed: its SHA-256 is not the one that was recorded")
        return stored

    def _effect(self, effect: Any, path: tuple[str | int, ...], node: str, attempt: int) -> Effect | None:
        """Whether it is what was recorded is looked at when it is served, where the node and the effect are told."""
        if not isinstance(effect, dict):
            self._report(path, "an object is needed")
            return None
        raised: dict[str, Any] | None = self._take(effect, path, "raised", dict, None, optional=True)
        is_open = self._take(effect, path, "open", bool, False, optional=True)
        if (raised is not None) + ("response" in effect) + is_open != 1:
            self._report(path, "either a response, raised or open is needed")
        if effect.get("name") == CLOCK and not _times(effect.get("response")):
            self._report((*path, "response"), "a list of whole numbers is needed: microseconds")
        from_attempt = None if "from_attempt" not in effect else self._number(effect, path, "from_attempt", least=1)
        return Effect(
            node,
            attempt,
            self._number(effect, path, "index", least=-1),
            self._take(effect, path, "name", str, ""),
            self._take(effect, path, "request", _JSON, None),
            effect.get("response"),
            None if raised is None else self._error(raised, (*path, "raised")),
            self._take(effect, path, "request_sha256", str, ""),
            self._take(effect, path, "response_sha256", str, "", optional=is_open),
            self._number(effect, path, "occurrence"),
            self._take(effect, path, "time", (int, float), 0.0),
            self._take(effect, path, "seconds", (int, float), 0.0),
            self._take(effect, path, "durable", bool, False, optional=True),
            self._take(effect, path, "awaited", bool, False, optional=True),
            from_attempt,
            open=is_open,
        )

    def _error(self, raised: Any, path: tuple[str | int, ...], groups: int = MAX_GROUPS) -> EffectError:
        if not isinstance(raised, dict) or groups < 0:
            self._report(path, "an object is needed" if groups >= 0 else "there are too many groups within groups")
            return EffectError("", "", None, [])
        bases: list[Any] = self._take(raised, path, "bases", list, [])
        if not all(isinstance(each, str) for each in bases):
            self._report((*path, "bases"), "a list of strings is needed")
        return EffectError(
            self._take(raised, path, "type", str, ""),
            self._take(raised, path, "message", str, ""),
            self._take(raised, path, "args", list, None, optional=True),
            bases,
            self._take(raised, path, "attributes", dict, {}, optional=True),
            tuple(
                self._error(each, (*path, "exceptions", place), groups - 1)
                for place, each in enumerate(self._take(raised, path, "exceptions", list, [], optional=True))
            ),
        )

    # What may stand in a field

    def _take(
        self,
        form: Mapping[str, Any],
        path: tuple[str | int, ...],
        field: str,
        kind: Any,
        other: T,
        *,
        optional: bool = False,
    ) -> Any:
        """The value of a field, or `other` when something is wrong with it, which is reported."""
        value = form.get(field, _NEEDED)
        if value is _NEEDED or (optional and value is None):
            if not optional:
                self._report((*path, field), "it is missing")
            return other
        if kind is not _JSON and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            self._report((*path, field), f"{_NAMES.get(kind, 'a number')} is needed, got {type(value).__name__}")
            return other
        return value

    def _number(self, form: Mapping[str, Any], path: tuple[str | int, ...], field: str, *, least: int = 0) -> int:
        number: int = self._take(form, path, field, int, least)
        if number < least:
            self._report((*path, field), f"at least {least} is needed")
            return least
        return number

    def _encoded(self, value: Any, path: tuple[str | int, ...]) -> bytes:
        try:
            return encode(value)
        except NotJson as error:
            self._report(path, error.message)
            return encode_checked(None)

    def _report(self, path: tuple[str | int, ...], message: str) -> None:
        self.problems.append(f"{json_path(path)}: {message}")


def _times(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int for each in value)


_NAMES: Mapping[Any, str] = {
    str: "a string",
    int: "a whole number",
    dict: "an object",
    list: "a list",
    bool: "true or false",
}
