"""The outputs of nodes in a pipeline's runs: new states, as drafts, for the process that publishes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.graph import MAX_NAME, NodeSpec
from ...core.model import NodeStatus
from ...define.code.registry import is_own
from ..staleness.judge import Current
from ..staleness.units import split_entity, unit_id
from ..states.port import Draft, Drafts
from ..states.records import MANY_INPUTS, Record, inputs_hash

if TYPE_CHECKING:
    from ...engine import Run


class NewState(NamedTuple):
    """One output of one unit: a draft, and the record of the state that it becomes."""

    unit: str
    draft: Draft
    record: Record


class Results(NamedTuple):
    """What became of the units of a run."""

    states: list[NewState]
    failed: dict[str, tuple[str, str]]
    """The type of the error, and its message, by unit."""
    seconds: float
    """How long all bodies took together."""
    not_started: frozenset[str] = frozenset()
    """The units that only waited for one that failed, as the nodes of a stage with a limit do."""


class OutputOfUnit(NamedTuple):
    """What a body made for one entity."""

    entity: str
    inputs: Mapping[str, str]
    """The hash of each input as the body got it."""
    outputs: Sequence[tuple[str, str, str, Mapping[str, str] | None]]
    """The address, the name of the draft, the content hash, and the hash of each file if there are several."""


def node_output(
    stage: str,
    current: Current,
    produced: tuple[str, str],
    seconds: float,
    units: Sequence[OutputOfUnit],
    failed: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """The output of a node: what the records of its units have in common is there once. `produced`: when, and by what."""
    listed = [
        [unit.entity, inputs_hash(unit.inputs), unit.inputs if len(unit.inputs) <= MANY_INPUTS else {}, unit.outputs]
        for unit in units
    ]
    code_hash, config_hash, check_hash, _ = current
    common = [code_hash, config_hash, check_hash, *produced]
    return {"stage": stage, "common": common, "seconds": seconds, "units": listed, "failed": failed}


def new_states(output: Mapping[str, Any], drafts: Drafts) -> list[NewState]:
    """Read the output of a node."""
    stage = output["stage"]
    code, config, check, at, by = output["common"]
    states: list[NewState] = []
    for entity, inputs_digest, inputs, outputs in output["units"]:
        unit = unit_id(stage, split_entity(entity))
        for address, name, digest, members in outputs:
            record = Record(code, config, digest, inputs_digest, at, by, entity, inputs, members, check)
            states.append(NewState(unit, drafts.named(address, name), record))
    return states


def node_units(node: NodeSpec) -> list[str]:
    """The units that a node of a pipeline's run makes. Its name may differ from theirs (`node_name`)."""
    args: dict[str, Any] = dict(node.args)
    return [unit_id(args["stage"], key) for key, _ in args["units"]]


def node_name(unit: str) -> str:
    """The name of the node for a unit: what is not printable is escaped, and what is too long is cut and gets a hash.

    >>> node_name("summary a\u00a0b")
    'summary a\\xa0b'
    """
    name = unit if unit.isprintable() else "".join(each if each.isprintable() else _escaped(each) for each in unit)
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 20]}... {sha256(unit.encode()).hexdigest()[:16]}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def is_own_run(run: Run) -> bool:
    """Whether a scanner planned every node of a run. Who may post or edit graphs chooses names, tags, arguments and outputs."""
    return run.graph.trusted and all(is_own(spec.job or "") for spec in run.graph.nodes.values())


def results_of(run: Run, drafts: Drafts) -> Results:
    """What the nodes of a run made, and what failed; nothing if not all of them are a scanner's."""
    if not is_own_run(run):
        return Results([], {}, 0.0)
    outputs = run.outputs
    states: list[NewState] = []
    failed: dict[str, tuple[str, str]] = {}
    seconds = 0.0
    not_started: list[str] = []
    for output in outputs.values():
        states += new_states(output, drafts)
        failed |= {unit: (kind, message) for unit, (kind, message) in output["failed"].items()}
        seconds += output["seconds"]
    if len(outputs) < len(run.graph):
        for view in run.nodes():
            units = node_units(run.graph.nodes[view.id])
            if view.status in (NodeStatus.FAILED, NodeStatus.INTERRUPTED):
                error = view.error
                reason = ("Interrupted", "its worker was lost") if error is None else (error.type, error.message)
                failed |= dict.fromkeys(units, reason)
            elif view.status == NodeStatus.UPSTREAM_FAILED:
                not_started += units
    return Results(states, failed, seconds, frozenset(not_started))
