"""The body of every node of a pipeline's runs: `produce` makes the outputs of one stage for one entity, as drafts.

A draft is not a state yet. The output of the node says what the draft holds and is settled under the fence of the attempt;
only then does the scanner record and rename it. So a worker that lost its lease has renamed nothing and never will.
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
from ..staleness.units import unit_id
from ..states.port import Draft
from ..states.records import EXISTS
from .arguments import BodyParameters, converted, entities_of
from .found import GivenPipelines
from .outputs import described, store_result
from .results import OutputOfUnit, node_output

if TYPE_CHECKING:
    from ...engine import Context
    from ..definition import PipelineDefinition

log = logging.getLogger("stepwell.pipeline")

CHANGED_WHILE_READ = 10
"""How often a body runs again because an input changed meanwhile, before it fails."""

UnitArguments: TypeAlias = Sequence[Any]
"""The key of a unit, and the paths of its inputs by their names."""


def produce(home: str, pipeline: str, root: str, stage: str, units: list[UnitArguments], ctx: Context) -> Any:
    """Make the outputs of one stage for one entity, or for several entities if the stage takes almost no time for each.

    Of several, one that fails does not stop the others.
    """
    work = _Work(ctx._own_jobs.find(home, pipeline, root, stage), stage, ctx)
    for key, inputs in units:
        ctx.check()
        unit = _UnitAttempt(work, key, inputs)
        try:
            if unit.prepare():
                work.units.append(unit.finish(unit.call()))
        except BaseException as error:
            unit.discard()
            if len(units) == 1 or not isinstance(error, Exception):
                raise
            work.note_failure(key, error)
    return work.output()


async def produce_async(
    home: str, pipeline: str, root: str, stage: str, units: list[UnitArguments], ctx: Context
) -> Any:
    """The same for one entity of a stage that is an `async def`."""
    work = _Work(ctx._own_jobs.find(home, pipeline, root, stage), stage, ctx)
    ((key, inputs),) = units
    unit = _UnitAttempt(work, key, inputs)
    try:
        if unit.prepare():
            work.units.append(unit.finish(await unit.call()))
    except BaseException:
        unit.discard()
        raise
    return work.output()


class PipelineJobs(GivenPipelines):
    """What an engine runs for the nodes of pipelines: these jobs, for the pipelines that it was given."""

    def job(self, address: str, args: Mapping[str, Any]) -> Callable[..., Any]:
        """The job at this address; a DefinitionError if the pipeline that a node names was not given."""
        jobs: dict[str, Callable[..., Any]] = {address_of(each): each for each in (produce, produce_async)}
        if address not in jobs:
            raise DefinitionError(f"{address} is not a job of a pipeline")
        with suppress(OtherRoot):  # the body says so: the run was planned elsewhere
            self.find(*(str(args.get(name)) for name in ("home", "pipeline", "root", "stage")))
        return jobs[address]


class _Work:
    """What all units of one node have in common."""

    def __init__(self, pipeline: PipelineDefinition, stage: str, ctx: Context) -> None:
        if pipeline.read_again is not None:
            pipeline.look_for_types()  # it may have been read before the pipelines whose states it names
        self.pipeline = pipeline
        self.store = pipeline.store
        self.stage: Stage = pipeline.stages[stage]
        self.signature: BodyParameters = pipeline.signatures[stage]
        self.ctx = ctx
        self.excluded = {each.name: each.excluded for each in pipeline.connections.readings[stage]}
        self.addresses = {
            name: output.pattern.format_for(self.stage.variables) for name, output in self.stage.outputs.items()
        }
        self.units: list[OutputOfUnit] = []
        self._failed: dict[str, Sequence[str]] = {}
        self._started = time.monotonic()
        self._token = f"{ctx.run_id}.{os.urandom(4).hex()}"
        self._tokens = 0

    def next_token(self) -> str:
        """A token that distinguishes the drafts of one unit from all others."""
        self._tokens += 1
        return f"{self._token}{self._tokens:x}"

    def note_failure(self, key: Sequence[str], error: Exception) -> None:
        """Note that a unit failed, unless its input changes just now: then the next scan finds it stale."""
        if not isinstance(error, RetryLater):
            unit = unit_id(self.stage.name, key)
            log.exception("%s failed", unit)
            self._failed[unit] = [exception_name(type(error)), message_of(error)]

    def output(self) -> dict[str, Any]:
        name = self.stage.name
        produced = (utc_text(time.time()), f"{self.pipeline.name}#{name}")
        seconds = time.monotonic() - self._started
        return node_output(name, self.pipeline.code.current(name), produced, seconds, self.units, self._failed)


class _UnitAttempt:
    """One attempt at one unit."""

    def __init__(self, work: _Work, key: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> None:
        self.work = work
        self.store = work.store
        self.stage = work.stage
        self.key = key
        self.inputs = inputs
        self.hashes: dict[str, str] = {}
        self.stamps: dict[str, Any] = {}
        self.arguments: dict[str, Any] = {}
        self.drafts: dict[str, Draft] = {}

    def prepare(self) -> bool:
        """Read the inputs and open the drafts. Return False if an input is gone: then there is nothing to do."""
        contents: dict[str, bytes] = {}
        files = self.store.files
        for name, paths in self.inputs.items():
            for path in paths:
                if name in self.stage.gates:
                    if not files.exists(path):
                        return False
                    self.hashes[path] = EXISTS
                elif path[-1] == "/":
                    digest = files.directory_hash(path, self.work.excluded[name])
                    if digest is None:
                        return False
                    self.hashes[path] = digest
                else:
                    try:
                        contents[path], self.stamps[path], self.hashes[path] = files.read_stamped(path)
                    except (FileNotFoundError, NotADirectoryError):
                        return False
        for parameter, source in self.work.signature.inputs.items():
            values = [
                files.local(path)
                if path[-1] == "/" or source.form is Path
                else converted(contents[path], source.form, path)
                for path in self.inputs.get(source.input, ())
            ]
            self.arguments[parameter] = values if source.many else values[0]
        token = self.work.next_token()
        for name, address in self.work.addresses.items():
            self.drafts[name] = self.store.drafts.open(address.format(*self.key), token)
        self.arguments |= {name: self._reserved(name) for name in self.work.signature.special}
        return True

    def _reserved(self, parameter: str) -> Any:
        """The argument for one of the parameters that are no input."""
        match parameter:
            case "entity":
                path = next((paths[0] for paths in self.inputs.values() if paths), "")
                return Entity(self.stage.values(self.key), path)
            case "entities":
                return entities_of(self.stage, self.inputs)
            case "ctx":
                return self.work.ctx
            case "config":
                return dict(self.stage.config)
            case _:
                places = {name: Path(draft.place) for name, draft in self.drafts.items()}
                return places.get("", places)

    def call(self) -> Any:
        assert self.stage.function is not None
        return self.stage.function(**self.arguments)

    def finish(self, result: Any) -> OutputOfUnit:
        """Check the outputs, and that the inputs have not changed."""
        drafts = self.store.drafts
        contents = store_result(self.stage, result, self.drafts, drafts)
        outputs = []
        for name, draft in self.drafts.items():
            content = contents.get(draft.address)
            digest, members = described(self.stage, self.stage.outputs[name], draft, drafts, content)
            outputs.append((draft.address, drafts.keep(draft), digest, members))
        self._check_inputs()
        return OutputOfUnit("/".join(self.key), self.hashes, outputs)

    def _check_inputs(self) -> None:
        files = self.store.files
        for name, paths in self.inputs.items():
            for path in paths if name not in self.stage.gates else ():
                if path[-1] == "/":
                    same = files.directory_hash(path, self.work.excluded[name]) == self.hashes[path]
                else:
                    same = files.still_is(path, self.stamps[path], self.hashes[path])
                if not same:
                    message = f"{path} changed while {self.stage.name} was reading it; it runs again"
                    raise RetryLater(0.2, message, limit=CHANGED_WHILE_READ)

    def discard(self) -> None:
        for draft in self.drafts.values():
            self.store.drafts.discard(draft)
