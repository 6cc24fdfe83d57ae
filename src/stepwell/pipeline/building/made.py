"""The outputs of nodes in a pipeline's runs: what they made, as drafts, so that whoever has the run can publish it."""

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
from ..states.records import MANY_INPUTS, Record, inputs_hash, record_from

if TYPE_CHECKING:
    from ...engine import Run


class Made(NamedTuple):
    """One output of one unit."""

    unit: str
    draft: Draft
    record: Record


class Source(NamedTuple):
    """The fields that all records of one stage and one moment share."""

    stage: str
    current: Current
    produced_at: str
    produced_by: str
    seconds: float = 0.0
    """How long it took."""

    def record(
        self, entity: str, inputs: Mapping[str, str], digest: str, members: Mapping[str, str] | None, common: str
    ) -> Record:
        code_hash, config_hash, check_hash, _ = self.current
        return Record(
            code_hash, config_hash, digest, common, self.produced_at, self.produced_by, entity, inputs, members, check_hash
        )  # fmt: skip


class UnitMade(NamedTuple):
    """What was made for one entity."""

    entity: str
    inputs: Mapping[str, str]
    """The hash of each input as the body got it."""
    outputs: Sequence[tuple[str, str, str, Mapping[str, str] | None]]
    """The address, the name of the draft, the content hash, and the hash of each file if it is of several."""

    def kept(self) -> tuple[str, Mapping[str, str]]:
        """The hash of all inputs, and that of each, unless there are very many."""
        return inputs_hash(self.inputs), self.inputs if len(self.inputs) <= MANY_INPUTS else {}


def one_settled(source: Source, unit: UnitMade) -> dict[str, Any]:
    """The output of a node that made one unit."""
    common, listed = unit.kept()
    made = {
        address: {"place": place, "record": source.record(unit.entity, listed, digest, members, common).to_json()}
        for address, place, digest, members in unit.outputs
    }
    return {"made": made, "seconds": source.seconds}


class FilesMade:
    """What was made of units whose key tells what each reads and writes, each a file: then only hashes and drafts are left to
    say. Each list is written as one text, a line for each, which takes a fraction of the time of as many texts.
    """

    def __init__(self) -> None:
        self.entities: list[str] = []
        self.inputs: list[str] = []
        """The hash of each file that was read, one unit after the other."""
        self.places: list[str] = []
        """The name of each draft."""
        self.hashes: list[str] = []
        """The hash of its content."""

    def add_file(self, entity: str, read: str, place: str, digest: str) -> None:
        """Add a unit that reads one file and writes one."""
        self.entities.append(entity)
        self.inputs.append(read)
        self.places.append(place)
        self.hashes.append(digest)

    def add(self, unit: UnitMade) -> None:
        self.entities.append(unit.entity)
        self.inputs += unit.inputs.values()
        self.places += [output[1] for output in unit.outputs]
        self.hashes += [output[2] for output in unit.outputs]


def many_settled(
    source: Source,
    units: Sequence[UnitMade],
    failed: Mapping[str, Sequence[str]],
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
) -> dict[str, Any]:
    """The output of a node that made many: what their records have in common is there once.

    `reads` and `writes` are given if the key of a unit tells what it reads and writes, each a file.
    """
    if not reads or any(len(unit.inputs) != len(reads) for unit in units):
        listed = [[unit.entity, *unit.kept(), unit.outputs] for unit in units]
        return _in_common(source, failed) | {"units": listed}
    made = FilesMade()
    for unit in units:
        made.add(unit)
    return files_settled(source, made, failed, reads, writes)


def files_settled(
    source: Source,
    made: FilesMade,
    failed: Mapping[str, Sequence[str]],
    reads: Sequence[str],
    writes: Sequence[str],
) -> dict[str, Any]:
    """The same for units whose keys tell what they read and write."""
    columns = {name: "\n".join(column) for name, column in vars(made).items()}
    return _in_common(source, failed) | {"reads": reads, "writes": writes, **columns}


def _in_common(source: Source, failed: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {
        "stage": source.stage,
        "current": list(source.current),
        "producedAt": source.produced_at,
        "producedBy": source.produced_by,
        "seconds": source.seconds,
        "units": [],
        "failed": failed,
    }


def read_many(output: Mapping[str, Any], drafts: Drafts) -> list[Made]:
    """What a node with many units made."""
    stage = output["stage"]
    source = Source(stage, Current(*output["current"]), output["producedAt"], output["producedBy"])
    if "reads" in output:
        return _read_files(source, output, drafts)
    return [
        Made(
            unit_id(stage, split_entity(entity)),
            drafts.named(address, place),
            source.record(entity, inputs, digest, members, common),
        )
        for entity, common, inputs, outputs in output["units"]
        for address, place, digest, members in outputs
    ]


def _read_files(source: Source, output: Mapping[str, Any], drafts: Drafts) -> list[Made]:
    """The same for units whose keys tell what they read and write."""
    reads, writes = output["reads"], output["writes"]
    if not output["hashes"]:
        return []
    entities, read, places, hashes = (output[name].split("\n") for name in ("entities", "inputs", "places", "hashes"))
    digests, made = iter(read), zip(places, hashes, strict=True)
    (code_hash, config_hash, check_hash, _), named = source.current, drafts.named
    at, by = source.produced_at, source.produced_by
    found: list[Made] = []
    for entity in entities:
        key = split_entity(entity)
        inputs = {each.format(*key): next(digests) for each in reads}
        common = inputs_hash(inputs)
        unit = unit_id(source.stage, key)
        for each, (place, digest) in zip(writes, made, strict=False):
            record = Record(code_hash, config_hash, digest, common, at, by, entity, inputs, None, check_hash)
            found.append(Made(unit, named(each.format(*key), place), record))
    return found


def node_units(node: NodeSpec) -> list[str]:
    """The units that a node of a pipeline's run makes. Its name may be another one than theirs (`node_name`)."""
    args: dict[str, Any] = dict(node.args)
    keys = [args["key"]] if "key" in args else map(split_entity, args.get("entities", ()))
    return [unit_id(args["stage"], key) for key in keys]


def node_name(unit: str) -> str:
    """The name of the node for a unit: what is not printable is escaped, and what is too long is cut and told apart by a hash.

    >>> node_name("summary a\u00a0b")
    'summary a\\xa0b'
    """
    name = unit if unit.isprintable() else "".join(each if each.isprintable() else _escaped(each) for each in unit)
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 20]}... {sha256(unit.encode()).hexdigest()[:16]}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _unit_of(record: Record) -> str:
    return unit_id(record.produced_by.partition("#")[2], split_entity(record.entity))


class Results(NamedTuple):
    made: list[Made]
    failed: dict[str, tuple[str, str]]
    """The type of the error, and its message, by unit."""
    seconds: float
    """How long all bodies took together."""
    not_begun: frozenset[str] = frozenset()
    """The units that only waited for one that failed, as the nodes of a stage with a limit do."""


def is_own_run(run: Run) -> bool:
    """Whether a scanner planned every node of a run. Who may post or edit graphs chooses names, tags, arguments and outputs."""
    return run.graph.trusted and all(is_own(spec.job or "") for spec in run.graph.nodes.values())


def results_of(run: Run, drafts: Drafts) -> Results:
    """What the nodes of a run made, and what failed; nothing if not all of them are a scanner's."""
    if not is_own_run(run):
        return Results([], {}, 0.0)
    outputs = run.outputs
    made: list[Made] = []
    failed: dict[str, tuple[str, str]] = {}
    seconds = 0.0
    not_begun: list[str] = []
    for output in outputs.values():
        if not isinstance(output, dict):
            continue
        seconds += output.get("seconds", 0.0)
        if "made" in output:
            made += [
                Made(_unit_of(record), drafts.named(address, each["place"]), record)
                for address, each in output["made"].items()
                for record in [record_from(each["record"])]
            ]
        elif "units" in output:
            made += read_many(output, drafts)
            failed |= {unit: (kind, told) for unit, (kind, told) in output["failed"].items()}
    if len(outputs) < len(run.graph):
        for view in run.nodes():
            if view.status in (NodeStatus.FAILED, NodeStatus.INTERRUPTED):
                error = view.error
                told = ("Interrupted", "its worker was lost") if error is None else (error.type, error.message)
                failed |= dict.fromkeys(node_units(run.graph.nodes[view.id]), told)
            elif view.status == NodeStatus.UPSTREAM_FAILED:
                not_begun += node_units(run.graph.nodes[view.id])
    return Results(made, failed, seconds, frozenset(not_begun))
