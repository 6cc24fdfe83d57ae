"""How a pipeline stands: statuses, causes, plans and explanations, as data."""

from __future__ import annotations

import fnmatch
import gc
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError
from .staleness.model import Model
from .staleness.standing import FRESH, STATUSES, Cause, Standing
from .staleness.units import Unit
from .states.address import split_address
from .states.listing import Folder
from .states.notes import known_code
from .states.records import Record
from .states.snapshot import Snapshot

if TYPE_CHECKING:
    from .definition import PipelineDefinition


TRUSTED_CHANGES = 5_000
"""Beyond so many changes everything is judged anew, which takes no longer."""


@contextmanager
def no_collections() -> Iterator[None]:
    """Without looking for garbage, of which there is none while a hundred thousand objects are made."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class StateView(NamedTuple):
    """One state, or several that are made together: a stage of an entity."""

    stage: str
    entity: str
    outputs: tuple[str, ...]
    standing: Standing

    def to_json(self) -> dict[str, Any]:
        return {"stage": self.stage, "entity": self.entity, "outputs": list(self.outputs), **self.standing.to_json()}


class PipelineStatus(NamedTuple):
    pipeline: str
    entities: int
    counts: Mapping[str, int]
    """How many units have each status."""
    states: tuple[StateView, ...]
    """All that are not fresh."""
    stages: Mapping[str, Mapping[str, int]]
    problems: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "entities": self.entities,
            **{status: self.counts.get(status, 0) for status in STATUSES},
            "stages": {name: dict(counts) for name, counts in self.stages.items()},
            "states": [each.to_json() for each in self.states],
            "problems": [{"path": path, "problem": problem} for path, problem in self.problems],
        }


class Plan(NamedTuple):
    will_run: tuple[StateView, ...]
    """Stale, with every input at hand."""
    may_run: tuple[StateView, ...]
    """Below what will run: they run if what is above comes out different."""
    may_appear: tuple[str, ...]
    """Stages that may get entities nobody knows yet, because a stage above makes several files of one."""

    def to_json(self) -> dict[str, Any]:
        return {
            "willRun": [each.to_json() for each in self.will_run],
            "mayRun": [each.to_json() for each in self.may_run],
            "mayAppear": list(self.may_appear),
        }


class Explanation(NamedTuple):
    """Why a state stands as it does."""

    address: str
    stage: str | None
    entity: str
    standing: Standing
    record: Record | None
    changed_code: tuple[str, ...]
    unknown_code: Mapping[str, str]
    upstream: tuple[StateView, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "state": self.address,
            "stage": self.stage,
            "entity": self.entity,
            **self.standing.to_json(),
            "record": None if self.record is None else self.record.to_json(),
            "changedCode": list(self.changed_code),
            "notFollowed": dict(self.unknown_code),
            "upstream": [each.to_json() for each in self.upstream],
        }


class View:
    """A pipeline at one moment."""

    def __init__(
        self,
        pipeline: PipelineDefinition,
        *,
        folders: Sequence[Folder] | None = None,
        only: Collection[str] | None = None,
    ) -> None:
        self.pipeline = pipeline
        pipeline.code.refresh()
        with no_collections():
            self.snapshot: Snapshot = pipeline.store.snapshot(pipeline.connections.wanted, folders, only)
            self.model = self.make_model()
            self._trust()

    def _trust(self) -> None:
        """Take over what the last scan found, where nothing has changed since."""
        pipeline, changed = self.pipeline, self.snapshot.changed_paths
        verdict = pipeline.store.cache.read().verdict
        if (
            changed is None
            or len(changed) > TRUSTED_CHANGES
            or not verdict
            or verdict.get("fingerprint") != pipeline.code.fingerprint()
            or any(stage.entities is not None for stage in pipeline.stages.values())
        ):
            return
        self.model.trust(
            changed, {f"{each['stage']} {each['entity']}".rstrip() for each in verdict["status"]["states"]}
        )

    def make_model(self) -> Model:
        """The model of what the snapshot holds; again after something appeared that nobody had foreseen."""
        pipeline = self.pipeline
        return Model(
            pipeline.name, pipeline.connections, self.snapshot, pipeline.code.current, pipeline.clock, self._is_valid
        )

    def reload_records(self, folder: str) -> bool:
        """Read the manifest of a directory again; whether anything in it is new to this view."""
        prefix = f"{folder}/" if folder else ""
        now = self.pipeline.store.records.read(folder)
        before = {
            address: record for address, record in self.snapshot.records.items() if split_address(address)[0] == prefix
        }
        if now == before:
            return False
        for address in before:
            del self.snapshot.records[address]
        self.snapshot.records.update(now)
        return True

    def _is_valid(self, unit: Unit, address: str, record: Record) -> bool:
        """Whether a state that another validation found valid is so by the present one."""
        from .building.outputs import run_validation

        validate = unit.stage.validate
        if validate is None or record.members is not None:
            return True
        content = self.pipeline.store.files.read(address)
        return run_validation(validate, Path(self.pipeline.store.files.local(address)), content) is None

    def states(self) -> Iterator[StateView]:
        for unit in self.model.all_units():
            yield self.view_of(unit)

    def view_of(self, unit: Unit) -> StateView:
        return StateView(unit.stage.name, unit.entity, tuple(unit.outputs.values()), self.model.standing(unit))

    def orphans(self) -> list[StateView]:
        return [
            StateView(
                record.produced_by.partition("#")[2], record.entity, (address,), self.model.orphan_standing(address)
            )
            for address, record in self.model.orphans.items()
        ]

    def status(self, entity: str | None = None) -> PipelineStatus:
        counts: Counter[str] = Counter()
        stages: dict[str, Counter[str]] = {name: Counter() for name in self.pipeline.stages}
        shown: list[StateView] = []
        entities: set[str] = set()
        for unit in self.model.all_units():
            if entity is not None and unit.entity != entity:
                continue
            standing = self.model.standing(unit)
            counts[standing.status] += 1
            stages[unit.stage.name][standing.status] += 1
            if unit.key:
                entities.add(unit.entity)
            if standing is not FRESH or entity is not None:
                shown.append(self.view_of(unit))
        for each in self.orphans():
            if entity is None or each.entity == entity:
                counts["orphan"] += 1
                stages[each.stage]["orphan"] += 1
                shown.append(each)
        return PipelineStatus(
            self.pipeline.name,
            len(entities),
            dict(counts),
            self._in_order(shown),
            {name: dict(each) for name, each in stages.items()},
            (
                *self.snapshot.problems,
                *((path, f"it matches {text} in more than one way") for path, text in self.model.ambiguous),
            ),
        )

    # Plans

    def chosen(self, targets: Iterable[str]) -> set[int] | None:
        """The units that targets name, and everything above them, by identity; None stands for all."""
        given = list(targets)
        if not given:
            return None
        waiting = [unit for target in given for unit in self.find(target)]
        found: set[int] = set()
        while waiting:
            unit = waiting.pop()
            if id(unit) not in found:
                found.add(id(unit))
                for path in unit.input_paths():
                    maker = self.model.producer.get(path)
                    if maker is not None:
                        waiting.append(maker)
        return found

    def find(self, target: str) -> list[Unit]:
        """The units that a stage, an entity, `stage entity`, or a path (with globs) names."""
        units = list(self.model.all_units())
        for test in (
            lambda unit: unit.id == target,
            lambda unit: unit.stage.name == target,
            lambda unit: unit.entity == target and unit.key,
            lambda unit: target in unit.outputs.values() or f"{target}/" in unit.outputs.values(),
            lambda unit: any(fnmatch.fnmatchcase(address, target) for address in unit.outputs.values()),
        ):
            if found := [unit for unit in units if test(unit)]:
                return found
        raise InputError(
            f"{target!r} is no stage, entity or state of pipeline {self.pipeline.name!r}; its stages are "
            f"{', '.join(self.pipeline.stages)}"
        )

    def plan(self, targets: Iterable[str] = (), *, force: bool = False) -> Plan:
        given = list(targets)
        chosen = self.chosen(given)
        forced = {id(unit) for target in given for unit in self.find(target)} if force else set()
        will, may = [], []
        below: set[int] = set()
        members = False
        for unit in self.model.all_units():
            if chosen is not None and id(unit) not in chosen:
                continue
            standing = self.model.standing(unit)
            runs = id(unit) in forced or (force and not given) or standing.status == "stale"
            above = [maker for path in unit.input_paths() if (maker := self.model.producer.get(path)) is not None]
            if any(id(maker) in below for maker in above):
                if standing.status not in ("failed", "unrecorded", "blocked") or force:
                    below.add(id(unit))
                    may.append(self.view_of(unit))
            elif runs and standing.status not in ("unrecorded", "blocked", "waiting"):
                below.add(id(unit))
                will.append(self.view_of(unit))
                members = (
                    members or unit.stage.has_members or any(o.kind == "directory" for o in unit.stage.outputs.values())
                )
        appear = self._below_members({each.stage for each in (*will, *may)}) if members or may else []
        return Plan(self._in_order(will), self._in_order(may), tuple(appear))

    def _in_order(self, states: Iterable[StateView]) -> tuple[StateView, ...]:
        """By stage, as they follow each other, and entity: directories are listed in no order."""
        place = {stage.name: position for position, stage in enumerate(self.model.connections.order)}
        return tuple(sorted(states, key=lambda each: (place[each.stage], each.entity)))

    def _below_members(self, running: set[str]) -> list[str]:
        """Stages below one that runs and makes what nobody can foresee."""
        found: list[str] = []
        for stage in self.model.connections.order:
            for reading in self.model.connections.readings[stage.name]:
                for writer in reading.writers:
                    loose = any(output.kind != "file" for output in self.pipeline.stages[writer].outputs.values())
                    if (loose and writer in running) or writer in found:
                        found.append(stage.name)
        return list(dict.fromkeys(found))

    # Explaining

    def why(self, state: str) -> Explanation:
        address = state
        unit = self.model.producer.get(state) or self.model.producer.get(f"{state}/")
        if unit is None:
            if state in self.model.orphans:
                gone = self.model.orphans[state]
                by = gone.produced_by.partition("#")[2]
                return Explanation(
                    state,
                    by,
                    gone.entity,
                    self.model.orphan_standing(state),
                    gone,
                    (),
                    {},
                    (),
                )
            found = next((each for each in self.model.all_units() if state in each.outputs.values()), None)
            if found is None and self.snapshot.content_hash(state) is not None:
                source = Standing("fresh", (Cause("missing", "no stage makes it: it is a source", state),))
                return Explanation(state, None, "", source._replace(causes=()), None, (), {}, ())
            unit = found or self.find(state)[0]
        if address not in unit.outputs.values():
            address = next(iter(unit.outputs.values()))
        record = self.snapshot.records.get(address)
        standing = self.model.standing(unit)
        changed: tuple[str, ...] = ()
        if record is not None and any(cause.code == "code_changed" for cause in standing.causes):
            changed = self._changed_code(unit, record)
        above = dict.fromkeys(
            maker for path in unit.input_paths() if (maker := self.model.producer.get(path)) is not None
        )
        return Explanation(
            address,
            unit.stage.name,
            unit.entity,
            standing,
            record,
            changed,
            self.pipeline.code.of(unit.stage.name).unknown,
            tuple(self.view_of(maker) for maker in above if self.model.standing(maker) is not FRESH),
        )

    def _changed_code(self, unit: Unit, record: Record) -> tuple[str, ...]:
        from .codehash.code import changed_parts

        before = known_code(self.pipeline.store.notes, record.code_hash)
        now = self.pipeline.code.of(unit.stage.name)
        return () if before is None else tuple(changed_parts(before, now.parts))
