"""The outputs of a run: by name or id, by method or job, in the types that their nodes return.

An output is converted to the return type of its node if that code is imported; otherwise it is the stored JSON. Nothing is
imported for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ...base.codec import decode
from ...base.types.shapes import Shape
from ...base.words import shown
from ...core.graph import Graph, NodeSpec
from ...core.model import NodeStatus, queries
from ...define import Bodies
from ...define.classes.decorators import declared
from ...define.code.address import address_of
from ...define.types.signatures import received
from ...errors import DataMisfit, InputError, NodeNotFound, RunStillActive
from .stored import StoredRun, too_many


class NodeOutputs(dict[str, Any]):
    """Outputs by name, or by id where several nodes have one name, in the order of declaration. Every id works too.

    >>> outputs["ship"], outputs["n_8f3a2b11"], outputs.get("pack")                             # doctest: +SKIP
    """

    def __init__(self, run_id: str, graph: Graph, found: Mapping[int, Any]) -> None:
        self._run_id = run_id
        self._by_id: dict[str, Any] = {graph.order[index]: value for index, value in found.items()}
        self._repeated: dict[str, list[str]] = {}
        names = Counter(spec.name for index, spec in enumerate(graph.in_order) if index not in graph.removed)
        kept: dict[str, Any] = {}
        for index, value in found.items():
            spec = graph.in_order[index]
            if names[spec.name] > 1:
                self._repeated.setdefault(spec.name, []).append(spec.id)
                kept[spec.id] = value
            else:
                kept[spec.name] = value
        super().__init__(kept)

    def __missing__(self, key: str) -> Any:
        if key in self._by_id:
            return self._by_id[key]
        if key in self._repeated:
            raise NodeNotFound(too_many(self._run_id, key, self._repeated[key]), run_id=self._run_id, node=key)
        known = ", ".join(list(self)[:10]) + (" ..." if len(self) > 10 else "") or "none"
        message = f"no completed node of run {self._run_id} is {shown(key)}: there are {known}"
        raise NodeNotFound(message, run_id=self._run_id, node=key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._by_id

    def __eq__(self, other: object) -> bool:
        """The same outputs, by name or by id."""
        return super().__eq__(other) or self._by_id == other

    __hash__ = None

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401  # it is what `get` is


def typed(shape: Shape | None, run_id: str, spec: NodeSpec, stored: bytes) -> Any:
    """An output in the return type of its node; DataMisfit if the stored one no longer fits."""
    data = decode(stored)
    if shape is None or shape.codec is None:
        return data
    return received(shape, data, f"what node {spec.name!r} of run {run_id} returned: its annotation")


def no_output(run: StoredRun, spec: NodeSpec, index: int) -> KeyError:
    """What is raised for the output of a node that has none."""
    (rows,) = run.read(queries.ListNodes(run.row.id, indexes=(index,)))
    skipped = next((f"was skipped ({row.reason})" for row in rows if row.status is NodeStatus.SKIPPED), None)
    return KeyError(f"node {spec.name!r} of run {run.row.id} {skipped or 'has not completed'}")


def all_outputs(bodies: Bodies, run_id: str, graph: Graph, found: Mapping[int, bytes]) -> NodeOutputs:
    """Every output. One that no longer fits its annotation is given as the stored JSON."""
    values: dict[int, Any] = {}
    numbers = graph.index
    for spec in graph:
        index = numbers[spec.id]
        if index in found:
            try:
                values[index] = typed(bodies.returns_of(spec), run_id, spec, found[index])
            except DataMisfit:
                values[index] = decode(found[index])
    return NodeOutputs(run_id, graph, values)


def result_of(run: StoredRun, bodies: Bodies) -> Any:
    """What the run is for: the output of its last node, or a mapping of the outputs of its last nodes."""
    if not run.row.status.completed:
        raise RunStillActive(
            f"run {run.row.id} is {run.row.status} and has no result yet: `run.wait()` waits, `run.outputs` has what is there",
            run_id=run.row.id,
        )
    return run.result(lambda spec, stored: typed(bodies.returns_of(spec), run.row.id, spec, stored))


def index_of_node(run: StoredRun, node: str | Callable[..., Any], cls: type | None) -> int:
    """The node with this name or id, or whose method or job this is."""
    if isinstance(node, str):
        return run.index_of(node)
    function = node
    if not callable(function):
        raise InputError(f"expected the name or id of a node, or its method or job, got {shown(function)}")
    name = getattr(function, "__name__", "")
    if declared(function) is not None:
        if cls is not None and all(vars(owner).get(name) is not function for owner in cls.__mro__):
            raise InputError(
                f"{function.__qualname__} is not a node of run {run.row.id} of {run.row.workflow}; give its name instead"
            )
        return run.index_of(name)
    graph = run.graph
    address = address_of(function)
    found = [index for index, spec in enumerate(graph.in_order) if spec.job == address and index not in graph.removed]
    if len(found) == 1:
        return found[0]
    if found:
        told = too_many(run.row.id, address, [graph.order[index] for index in found], "with the job")
        raise NodeNotFound(told, run_id=run.row.id, node=address)
    raise NodeNotFound(f"run {run.row.id} has no node with the job {address}", run_id=run.row.id, node=address)
