"""The body of every node of a pipeline's runs: `produce` makes the outputs of one stage for one entity, as drafts.

Nobody sees a draft. What is returned says what it holds, and is settled under the fence of the attempt; only then does the
scanner record and rename it. So a worker that lost its lease has renamed nothing and never will.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ...base.clock import utc_text
from ...base.importable import exception_name
from ...base.words import message_of
from ...define.code.address import address_of
from ...errors import DefinitionError, OtherRoot, RetryLater
from ..entity import Entity
from ..stage import Stage
from ..staleness.units import filled_inputs, input_formats, split_entity, unit_id
from ..states.port import Draft
from ..states.records import EXISTS
from ..states.single import Stamp
from .arguments import BodyParameters, converted, entities_of
from .found import GivenPipelines
from .made import FilesMade, Source, UnitMade, files_settled, many_settled, one_settled
from .outputs import checked_hash, described, file_content, store_result

if TYPE_CHECKING:
    from ...engine import Context
    from ..definition import PipelineDefinition

log = logging.getLogger("stepwell.pipeline")

CHANGED_WHILE_READ = 10
"""How often a body runs again because an input changed meanwhile, before it fails."""
FIRST_PART, LARGEST_PART, PART_SECONDS = 32, 256, 0.1
"""Of how many files the contents are in memory at once: as many as are read, made and written in this time."""


def produce(
    home: str, pipeline: str, root: str, stage: str, key: list[str], inputs: dict[str, list[str]], ctx: Context
) -> Any:
    """Make the outputs of one stage for one entity."""
    job = _Job(ctx.own_jobs.find(home, pipeline, root, stage), stage, ctx)
    work = _Work(job, key, inputs)
    if not work.begin():
        return {"gone": True}
    try:
        return one_settled(job.source(), work.end(work.call()))
    except BaseException:
        work.discard()
        raise


def produce_many(
    home: str,
    pipeline: str,
    root: str,
    stage: str,
    entities: list[str],
    inputs: list[dict[str, list[str]]] | None,
    ctx: Context,
) -> Any:
    """The same for several entities of a stage that is done with each in no time: a node for each would take longer.

    Without `inputs`, what each reads follows from the patterns.
    """
    job = _Job(ctx.own_jobs.find(home, pipeline, root, stage), stage, ctx)
    if inputs is None and job.is_plain:
        return _produce_plain(job, entities)
    made: list[UnitMade] = []
    failed: Failed = {}
    for position, entity in enumerate(entities):
        ctx.check()
        key = split_entity(entity)
        work = _Work(job, key, filled_inputs(job.formats, key) if inputs is None else inputs[position])
        try:
            if work.begin():
                made.append(work.end(work.call()))
        except Exception as error:
            work.discard()
            _note_problem(failed, job.stage, entity, error)
    return many_settled(job.source(), made, failed, *(job.plain_paths() if inputs is None else ()))


def _produce_plain(job: _Job, entities: Sequence[str]) -> Any:
    """Do what `_Work` does for units that read one file and return another: there may be very many, so many files are read
    and written at once.
    """
    made = FilesMade()
    failed: Failed = {}
    start, size = 0, FIRST_PART
    while start < len(entities):
        began = time.monotonic()
        _produce_part(job, entities[start : start + size], made, failed)
        start += size
        # What is read ahead of slow bodies may change meanwhile, and the contents of large files take memory.
        size = max(1, min(LARGEST_PART, int(size * PART_SECONDS / max(time.monotonic() - began, 0.000_1)), size * 4))
    return files_settled(job.source(), made, failed, [job.reads], [job.writes])


def _produce_part(job: _Job, entities: Sequence[str], made: FilesMade, failed: Failed) -> None:
    stage, check, files, drafts = job.stage, job.ctx.check, job.store.files, job.store.drafts
    ((parameter, taken),) = job.signature.inputs.items()
    function, form = stage.function, taken.form
    assert function is not None
    keys = [split_entity(entity) for entity in entities]
    paths = [job.reads.format(*key) for key in keys]
    addresses = [job.writes.format(*key) for key in keys]
    token = job.next_token()
    units: list[str] = []
    written: list[tuple[Draft, bytes]] = []
    reads: list[tuple[str, Stamp, str]] = []
    for entity, path, address, read in zip(entities, paths, addresses, files.read_many(paths), strict=True):
        check()
        try:
            if isinstance(read, Exception):
                if isinstance(read, FileNotFoundError | NotADirectoryError):
                    continue  # there is nothing to do any more
                raise read
            content, stamp, digest = read
            given = content if form is bytes else files.local(path) if form is Path else converted(content, form, path)
            draft = drafts.open(address, token)
            written.append((draft, file_content(stage, draft, function(**{parameter: given}))))
            reads.append((path, stamp, digest))
            units.append(entity)
        except Exception as error:
            _note_problem(failed, stage, entity, error)
    problems = drafts.write_many(written)
    same = files.still_are(reads)
    for entity, (draft, content), (path, _, digest), problem, is_same in zip(
        units, written, reads, problems, same, strict=True
    ):
        try:
            if problem is not None:
                raise problem
            made_hash = checked_hash(stage, draft, content)
            if not is_same:
                raise _changed_while_read(path, stage)
            made.add_file(entity, digest, drafts.keep(draft), made_hash)
        except Exception as error:
            drafts.discard(draft)
            _note_problem(failed, stage, entity, error)


Failed: TypeAlias = dict[str, list[str]]
"""The type of the error and its message, by unit."""


def _note_problem(failed: Failed, stage: Stage, entity: str, error: Exception) -> None:
    """Note that a unit failed, unless its input changes just now: then the next scan finds it stale."""
    if not isinstance(error, RetryLater):
        unit = unit_id(stage.name, split_entity(entity))
        log.exception("%s failed", unit)
        failed[unit] = [exception_name(type(error)), message_of(error)]


def _changed_while_read(path: str, stage: Stage) -> RetryLater:
    told = f"{path} changed while {stage.name} was reading it; it runs again"
    return RetryLater(0.2, told, limit=CHANGED_WHILE_READ)


async def produce_async(
    home: str, pipeline: str, root: str, stage: str, key: list[str], inputs: dict[str, list[str]], ctx: Context
) -> Any:
    """The same for a stage that is an `async def`."""
    job = _Job(ctx.own_jobs.find(home, pipeline, root, stage), stage, ctx)
    work = _Work(job, key, inputs)
    if not work.begin():
        return {"gone": True}
    try:
        return one_settled(job.source(), work.end(await work.call()))
    except BaseException:
        work.discard()
        raise


class PipelineJobs(GivenPipelines):
    """What an engine runs for the nodes of pipelines: these jobs, for the pipelines that it was given."""

    def job(self, address: str, args: Mapping[str, Any]) -> Callable[..., Any]:
        """The job at this address; a DefinitionError if the pipeline that a node names was not given."""
        jobs: dict[str, Callable[..., Any]] = {
            address_of(each): each for each in (produce, produce_many, produce_async)
        }
        if address not in jobs:
            raise DefinitionError(f"{address} is not a job of a pipeline")
        with suppress(OtherRoot):  # the body says so: the run was planned elsewhere
            self.find(*(str(args.get(name)) for name in ("home", "pipeline", "root", "stage")))
        return jobs[address]


class _Job:
    """What all units of one node have in common."""

    def __init__(self, pipeline: PipelineDefinition, stage: str, ctx: Context) -> None:
        self.pipeline = pipeline
        self.store = pipeline.store
        self.stage: Stage = pipeline.stages[stage]
        self.signature: BodyParameters = pipeline.signatures[stage]
        self.ctx = ctx
        self.excluded = {each.name: each.excluded for each in pipeline.connections.readings[stage]}
        self.formats = input_formats(self.stage)
        self.outputs = {
            name: output.pattern.format_for(self.stage.variables) for name, output in self.stage.outputs.items()
        }
        self._began = time.monotonic()
        self._token = f"{ctx.run_id}.{os.urandom(4).hex()}"
        self._units = 0

    def next_token(self) -> str:
        """A token that distinguishes the drafts of some units from all others."""
        self._units += 1
        return f"{self._token}{self._units:x}"

    def plain_paths(self) -> tuple[list[str], list[str]] | tuple[()]:
        """What units read and write, for `str.format`, if all of it are files that the key names, and no two the same."""
        reads = list(self.formats.values())
        files = all(output.kind == "file" for output in self.stage.outputs.values()) and not any(
            path[-1] == "/" for path in reads
        )
        return (reads, list(self.outputs.values())) if files and len(set(reads)) == len(reads) > 0 else ()

    @property
    def reads(self) -> str:
        """Of a plain unit: the path of the file that it reads, for `str.format`."""
        (path,) = self.formats.values()
        return path

    @property
    def writes(self) -> str:
        (address,) = self.outputs.values()
        return address

    @property
    def is_plain(self) -> bool:
        """Whether each unit reads one file, returns the content of another, and wants nothing else."""
        return bool(
            len(self.formats) == len(self.outputs) == len(self.signature.inputs) == 1
            and self.plain_paths()
            and not self.stage.gates
            and not self.signature.special
        )

    def source(self) -> Source:
        current, by = self.pipeline.code.current(self.stage.name), f"{self.pipeline.name}#{self.stage.name}"
        return Source(self.stage.name, current, utc_text(time.time()), by, time.monotonic() - self._began)


class _Work:
    """One attempt at one unit."""

    def __init__(self, job: _Job, key: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> None:
        self.job = job
        self.store = job.store
        self.stage = job.stage
        self.key = key
        self.inputs = inputs
        self.hashes: dict[str, str] = {}
        self.stamps: dict[str, Any] = {}
        self.arguments: dict[str, Any] = {}
        self.drafts: dict[str, Draft] = {}

    def begin(self) -> bool:
        """Read the inputs and prepare the drafts. Return False if an input is gone: then there is nothing to do."""
        contents: dict[str, bytes] = {}
        files = self.store.files
        for name, paths in self.inputs.items():
            for path in paths:
                if name in self.stage.gates:
                    if not files.exists(path):
                        return False
                    self.hashes[path] = EXISTS
                elif path[-1] == "/":
                    digest = files.directory_hash(path, self.job.excluded[name])
                    if digest is None:
                        return False
                    self.hashes[path] = digest
                else:
                    read = files.read_many([path])[0]
                    if isinstance(read, FileNotFoundError | NotADirectoryError):
                        return False
                    if isinstance(read, Exception):
                        raise read
                    contents[path], self.stamps[path], self.hashes[path] = read
        for parameter, taken in self.job.signature.inputs.items():
            given = [
                files.local(path)
                if path[-1] == "/" or taken.form is Path
                else converted(contents[path], taken.form, path)
                for path in self.inputs.get(taken.input, ())
            ]
            self.arguments[parameter] = given if taken.many else given[0]
        self._add_special()
        return True

    def _add_special(self) -> None:
        token = self.job.next_token()
        for name, text in self.job.outputs.items():
            self.drafts[name] = self.store.drafts.open(text.format(*self.key), token)
        special = self.job.signature.special
        if not special:
            return
        if "entity" in special:
            path = next((paths[0] for paths in self.inputs.values() if paths), "")
            self.arguments["entity"] = Entity(self.stage.values(self.key), path)
        if "entities" in special:
            self.arguments["entities"] = entities_of(self.stage, self.inputs)
        if "ctx" in special:
            self.arguments["ctx"] = self.job.ctx
        if "config" in special:
            self.arguments["config"] = dict(self.stage.config)
        if "out" in special:
            places = {name: Path(draft.place) for name, draft in self.drafts.items()}
            self.arguments["out"] = places.get("", places)

    def call(self) -> Any:
        assert self.stage.function is not None
        return self.stage.function(**self.arguments)

    def end(self, result: Any) -> UnitMade:
        """Check the outputs, and that the inputs have not changed. Return what to settle."""
        contents = store_result(self.stage, result, self.drafts, self.store.drafts)
        outputs = []
        for name, draft in self.drafts.items():
            content = contents.get(draft.address)
            digest, members = described(self.stage, self.stage.outputs[name], draft, self.store.drafts, content)
            outputs.append((draft.address, self.store.drafts.keep(draft), digest, members))
        self._check_inputs()
        return UnitMade("/".join(self.key), self.hashes, outputs)

    def _check_inputs(self) -> None:
        for name, paths in self.inputs.items():
            for path in paths if name not in self.stage.gates else ():
                if path[-1] == "/":
                    same = self.store.files.directory_hash(path, self.job.excluded[name]) == self.hashes[path]
                else:
                    same = self.store.files.still_are([(path, self.stamps[path], self.hashes[path])])[0]
                if not same:
                    raise _changed_while_read(path, self.stage)

    def discard(self) -> None:
        for draft in self.drafts.values():
            self.store.drafts.discard(draft)
