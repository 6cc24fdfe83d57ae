"""The body of every node of a pipeline's runs: `produce` makes the outputs of one stage for one entity, as drafts.

Nobody sees a draft. What is returned says what it holds, and is settled under the fence of the attempt; only then does the
scanner record and rename it. So a worker that lost its lease has renamed nothing and never will.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...clock import utc_text
from ...errors import RetryLater
from ...importable import exception_name
from ...words import message_of
from ..entity import Entity
from ..registry import find_pipeline
from ..stage import Stage
from ..staleness.units import unit_id
from ..states.port import Draft
from ..states.records import EXISTS, MANY_INPUTS, Record, content_hash, inputs_hash
from .arguments import Signature, converted, entities_of
from .outputs import described, store_result

if TYPE_CHECKING:
    from ...runner import Context
    from ..pipeline import Pipeline

log = logging.getLogger("stepwell.pipeline")

CHANGED_WHILE_READ = 10
"""So often a body runs again because an input changed meanwhile; then it has failed."""


def produce(
    home: str, pipeline: str, root: str, stage: str, key: list[str], inputs: dict[str, list[str]], ctx: Context
) -> Any:
    """Make the outputs of one stage for one entity."""
    work = _Work(find_pipeline(home, pipeline, root), stage, key, inputs, ctx)
    if not work.begin():
        return {"gone": True}
    try:
        return work.end(work.call())
    except BaseException:
        work.discard()
        raise


def produce_many(
    home: str, pipeline: str, root: str, stage: str, units: list[tuple[list[str], dict[str, list[str]]]], ctx: Context
) -> Any:
    """The same for several entities of a stage that is done with each in no time: a node for each would take longer."""
    found = find_pipeline(home, pipeline, root)
    made: dict[str, Any] = {}
    failed: dict[str, list[str]] = {}
    for key, inputs in units:
        ctx.check()
        work = _Work(found, stage, key, inputs, ctx)
        name = unit_id(stage, key)
        try:
            if work.begin():
                made[name] = work.end(work.call())["made"]
        except RetryLater:
            work.discard()  # its input changes just now: the next scan finds it stale
        except Exception as error:
            work.discard()
            log.exception("%s failed", name)
            failed[name] = [exception_name(type(error)), message_of(error)]
    return {"many": made, "failed": failed}


async def produce_async(
    home: str, pipeline: str, root: str, stage: str, key: list[str], inputs: dict[str, list[str]], ctx: Context
) -> Any:
    """The same for a stage that is an `async def`."""
    work = _Work(find_pipeline(home, pipeline, root), stage, key, inputs, ctx)
    if not work.begin():
        return {"gone": True}
    try:
        return work.end(await work.call())
    except BaseException:
        work.discard()
        raise


class _Work:
    """One attempt at one unit."""

    def __init__(
        self, pipeline: Pipeline, stage: str, key: Sequence[str], inputs: Mapping[str, Sequence[str]], ctx: Context
    ) -> None:
        self.pipeline = pipeline
        self.store = pipeline.store
        self.stage: Stage = pipeline.stages[stage]
        self.signature: Signature = pipeline.signatures[stage]
        self.values = self.stage.values(key)
        self.inputs = inputs
        self.ctx = ctx
        self.hashes: dict[str, str] = {}
        self.stamps: dict[str, Any] = {}
        self.arguments: dict[str, Any] = {}
        self.drafts: dict[str, Draft] = {}

    def begin(self) -> bool:
        """Read the inputs and prepare the drafts; False if an input is gone: there is nothing to do any more."""
        contents: dict[str, bytes] = {}
        for name, paths in self.inputs.items():
            excluded = self.pipeline.connections.excluded(self.stage.name, name)
            for path in paths:
                if name in self.stage.gates:
                    if not self.store.files.exists(path):
                        return False
                    self.hashes[path] = EXISTS
                elif path[-1] == "/":
                    digest = self.store.files.directory_hash(path, excluded)
                    if digest is None:
                        return False
                    self.hashes[path] = digest
                else:
                    try:
                        content, self.stamps[path] = self.store.files.read_with_stamp(path)
                    except (FileNotFoundError, NotADirectoryError):
                        return False
                    self.hashes[path] = content_hash(content)
                    contents[path] = content
        for parameter, taken in self.signature.inputs.items():
            given = [
                self.store.files.local(path)
                if path[-1] == "/" or taken.form is Path
                else converted(contents[path], taken.form, path)
                for path in self.inputs.get(taken.input, ())
            ]
            self.arguments[parameter] = given if taken.many else given[0]
        self._add_special()
        return True

    def _add_special(self) -> None:
        special = self.signature.special
        token = f"{self.ctx.run_id}.{os.urandom(4).hex()}"
        for name, output in self.stage.outputs.items():
            address = output.pattern.partly_filled(self.values) if output.extra else output.pattern.fill(self.values)
            self.drafts[name] = self.store.drafts.open(address, token)
        if "entity" in special:
            path = next((paths[0] for paths in self.inputs.values() if paths), "")
            self.arguments["entity"] = Entity(self.values, path)
        if "entities" in special:
            self.arguments["entities"] = entities_of(self.stage, self.inputs)
        if "ctx" in special:
            self.arguments["ctx"] = self.ctx
        if "config" in special:
            self.arguments["config"] = dict(self.stage.config)
        if "out" in special:
            places = {name: Path(draft.place) for name, draft in self.drafts.items()}
            self.arguments["out"] = places.get("", places)

    def call(self) -> Any:
        assert self.stage.function is not None
        return self.stage.function(**self.arguments)

    def end(self, result: Any) -> dict[str, Any]:
        """Check what was made, and that the inputs are what they were; what is returned is settled."""
        contents = store_result(self.stage, result, self.drafts)
        current = self.pipeline.code.current(self.stage.name)
        made = {}
        common = inputs_hash(self.hashes)
        listed = self.hashes if len(self.hashes) <= MANY_INPUTS else {}
        now = utc_text(time.time())
        for name, draft in self.drafts.items():
            digest, members = described(self.stage, self.stage.outputs[name], draft, contents.get(draft.address))
            record = Record(
                current.code_hash, current.config_hash, digest, common, now, f"{self.pipeline.name}#{self.stage.name}",
                "/".join(self.values.values()), listed, members, current.check_hash,
            )  # fmt: skip
            made[draft.address] = {
                "place": self.store.drafts.keep(draft),
                "token": draft.token,
                "record": record.to_json(),
            }
        self._check_inputs()
        return {"made": made}

    def _check_inputs(self) -> None:
        for name, paths in self.inputs.items():
            excluded = self.pipeline.connections.excluded(self.stage.name, name)
            for path in paths if name not in self.stage.gates else ():
                if path[-1] == "/":
                    same = self.store.files.directory_hash(path, excluded) == self.hashes[path]
                else:
                    same = self.store.files.still_is(path, self.stamps[path], self.hashes[path])
                if not same:
                    raise RetryLater(
                        0.2,
                        f"{path} changed while {self.stage.name} was reading it; it runs again",
                        limit=CHANGED_WHILE_READ,
                    )

    def discard(self) -> None:
        for draft in self.drafts.values():
            self.store.drafts.discard(draft)
