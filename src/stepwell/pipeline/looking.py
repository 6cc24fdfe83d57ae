"""`View`: the statuses, causes, plans and explanations of a pipeline, as data."""

from __future__ import annotations

import fnmatch
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..answers.staleness import Status
from ..base.words import shown
from ..errors import InputError
from .codehash.code import changed_parts
from .foreseen import Foreseen
from .staleness.model import Model
from .staleness.standing import FRESH, Cause, Standing
from .staleness.units import Unit
from .states.address import split_address
from .states.listing import Folder
from .states.notes import known_code
from .states.records import Record
from .states.snapshot import Snapshot

if TYPE_CHECKING:
    from ..answers import pipelines
    from .definition import PipelineDefinition

MAX_GLOBS, MAX_GLOB = 100, 1_000
"""Each glob is compared with all paths, in time that grows with the square of its length."""
_GLOB = frozenset("*?[")


class StateView(NamedTuple):
    """The states that one stage makes for one entity."""

    stage: str
    entity: str
    outputs: tuple[str, ...]
    standing: Standing

    def to_dict(self) -> pipelines.StateRecord:
        return {
            "stage": self.stage,
            "entity": self.entity,
            "outputs": list(self.outputs),
            "status": self.standing.status,
            "causes": [cause.to_dict() for cause in self.standing.causes],
            "due_at": self.standing.due,
        }


class PipelineStatus(NamedTuple):
    pipeline: str
    entities: int
    counts: Mapping[Status, int]
    """How many units have each status."""
    states: tuple[StateView, ...]
    """All that are not fresh."""
    stages: Mapping[str, Mapping[Status, int]]
    problems: tuple[tuple[str, str], ...]

    def to_dict(self) -> pipelines.PipelineStatusRecord:
        return {
            "pipeline": self.pipeline,
            "entities": self.entities,
            "fresh": self.counts.get("fresh", 0),
            "stale": self.counts.get("stale", 0),
            "failed": self.counts.get("failed", 0),
            "blocked": self.counts.get("blocked", 0),
            "waiting": self.counts.get("waiting", 0),
            "unrecorded": self.counts.get("unrecorded", 0),
            "orphan": self.counts.get("orphan", 0),
            "stages": {name: dict(of_stage) for name, of_stage in self.stages.items()},
            "states": [each.to_dict() for each in self.states],
            "problems": [{"path": path, "problem": problem} for path, problem in self.problems],
        }


class BuildPlan(NamedTuple):
    will_run: tuple[StateView, ...]
    """Stale, with all inputs up to date."""
    may_run: tuple[StateView, ...]
    """Below what will run: they run if their inputs come out different."""
    may_appear: tuple[str, ...]
    """Stages that may get new entities, because a stage above makes several files of one."""

    def to_dict(self) -> pipelines.PlanRecord:
        return {
            "will_run": [each.to_dict() for each in self.will_run],
            "may_run": [each.to_dict() for each in self.may_run],
            "may_appear": list(self.may_appear),
        }


class Explanation(NamedTuple):
    """Why a state has its status."""

    address: str
    stage: str | None
    entity: str
    standing: Standing
    record: Record | None
    changed_code: tuple[str, ...]
    unknown_code: Mapping[str, str]
    upstream: tuple[StateView, ...]

    def to_dict(self) -> pipelines.StateExplanation:
        return {
            "state": self.address,
            "stage": self.stage,
            "entity": self.entity,
            "status": self.standing.status,
            "causes": [cause.to_dict() for cause in self.standing.causes],
            "due_at": self.standing.due,
            "record": None if self.record is None else self.record.to_dict(),
            "changed_code": list(self.changed_code),
            "not_followed": dict(self.unknown_code),
            "upstream": [each.to_dict() for each in self.upstream],
        }


class View:
    """A pipeline at one moment."""

    def __init__(
        self,
        pipeline: PipelineDefinition,
        *,
        folders: Sequence[Folder] | None = None,
        only: Collection[str] | None = None,
        foreseen: Foreseen | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.foreseen = foreseen or Foreseen()
        types = pipeline.other_types
        pipeline.look()
        self.types = pipeline.other_types
        """What other pipelines of the root made at that moment."""
        if self.types is not types:  # other directories may be wanted now
            folders = only = None
        self.snapshot: Snapshot = pipeline.store.snapshot(pipeline.wanted, folders, only)
        self.foreseen.enter(self.snapshot)
        self.model = self.make_model()

    def make_model(self) -> Model:
        """Make a model of the snapshot; called again after outputs appeared that nobody could foresee."""
        own = self.pipeline
        return Model(own.name, own.connections, self.snapshot, own.code.current, own.clock, self._is_valid)

    def reload_records(self, folder: str) -> bool:
        """Read the manifest of a directory again. Return whether anything in it is new to this view."""
        prefix, records = f"{folder}/" if folder else "", self.snapshot.records
        now = self.pipeline.store.records.read(folder)
        before = {address: record for address, record in records.items() if split_address(address)[0] == prefix}
        if now == before:
            return False
        for address in before:
            del records[address]
        records.update(now)
        return True

    def _is_valid(self, unit: Unit, address: str, record: Record) -> bool:
        """Whether a state that passed an earlier validation passes the present one."""
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
        found = []
        for address, record in self.model.orphans.items():
            stage = record.produced_by.partition("#")[2]
            cause = Cause("orphan", f"what {stage} made it from is gone; `clean` removes it", address)
            found.append(StateView(stage, record.entity, (address,), Standing("orphan", (cause,))))
        return found

    def status(self, entity: str | None = None) -> PipelineStatus:
        counts: Counter[Status] = Counter()
        stages: dict[str, Counter[Status]] = {name: Counter() for name in self.pipeline.stages}
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
        ambiguous = [(path, f"it matches {text} in more than one way") for path, text in self.model.ambiguous]
        awaited = [
            (
                f"{'trigger' if name in self.pipeline.triggers else 'node'} {name}",
                f"no stage of a pipeline in this root is known to make {state!r}",
            )
            for name, state in self.pipeline.unknown_states().items()
        ]
        return PipelineStatus(
            self.pipeline.name,
            len(entities),
            dict(counts),
            self._in_order(shown),
            {name: dict(each) for name, each in stages.items()},
            (*self.snapshot.problems, *ambiguous, *awaited),
        )

    def chosen(self, targets: Iterable[str]) -> set[int] | None:
        """Return the ids (`id()`) of the units that targets name and of all units above them, or None for all."""
        given = list(targets)
        if not given:
            return None
        waiting = self.find_all(given)
        found: set[int] = set()
        while waiting:
            unit = waiting.pop()
            if id(unit) not in found:
                found.add(id(unit))
                waiting += self._makers(unit)
        return found

    def _makers(self, unit: Unit) -> list[Unit]:
        """The units that make its inputs."""
        return [maker for path in unit.input_paths() if (maker := self.model.producer.get(path)) is not None]

    def find_all(self, targets: Iterable[str]) -> list[Unit]:
        """Return the units that any of the targets names, each once.

        A target is a stage, an entity, `stage entity`, or a path, which may have globs.
        """
        wanted = list(targets)
        if not wanted:
            return []
        for target in wanted:
            if not isinstance(target, str):
                raise InputError(f"expected a stage, an entity or the path of a state, got {shown(target)}")
        names, globs = self._units_by_name(), 0
        found: dict[Unit, None] = {}
        for target in dict.fromkeys(wanted):
            units = next((of[target] for of in names if target in of), None)
            if units is None and not _GLOB.isdisjoint(target):
                globs += 1
                if globs > MAX_GLOBS or len(target) > MAX_GLOB:
                    raise InputError(
                        f"at most {MAX_GLOBS} targets may have globs, of at most {MAX_GLOB:,} characters each: name stages, "
                        f"entities or paths instead"
                    )
                units = [
                    unit for address, of in names[-1].items() if fnmatch.fnmatchcase(address, target) for unit in of
                ]
            if not units:
                raise InputError(
                    f"{shown(target)} is no stage, entity or state of pipeline {self.pipeline.name!r}; its stages are "
                    f"{', '.join(self.pipeline.stages)}"
                )
            found.update(dict.fromkeys(units))
        return list(found)

    def _units_by_name(self) -> tuple[dict[str, list[Unit]], ...]:
        """The units by id, by stage, by entity, and by the paths of their outputs: in this order a target is looked for."""
        names: tuple[dict[str, list[Unit]], ...] = tuple(defaultdict(list) for _ in range(4))
        by_id, by_stage, by_entity, by_path = names
        for unit in self.model.all_units():
            by_id[unit.id].append(unit)
            by_stage[unit.stage.name].append(unit)
            if unit.key:
                by_entity[unit.entity].append(unit)
            for address in unit.outputs.values():
                for name in {address, address.removesuffix("/")}:
                    by_path[name].append(unit)
        return names

    def plan(self, targets: Iterable[str] = (), *, force: bool = False) -> BuildPlan:
        given = list(targets)
        chosen = self.chosen(given)
        forced = {id(unit) for unit in self.find_all(given)} if force else set()
        will, may = [], []
        below: set[int] = set()
        members = False
        for unit in self.model.all_units():
            if chosen is not None and id(unit) not in chosen:
                continue
            standing = self.model.standing(unit)
            if awaited := self.foreseen.input_of(unit.input_paths()):
                if standing.status not in ("unrecorded", "blocked"):
                    below.add(id(unit))
                    text = f"{awaited} is to be written first ({self.foreseen.makers[awaited]})"
                    cause = Cause("upstream_stale", text, awaited)
                    foreseen = Standing("stale", (cause, *standing.causes))
                    may.append(self.view_of(unit)._replace(standing=foreseen))
                continue
            runs = id(unit) in forced or (force and not given) or standing.status == "stale"
            if any(id(maker) in below for maker in self._makers(unit)):
                if standing.status not in ("failed", "unrecorded", "blocked") or force:
                    below.add(id(unit))
                    may.append(self.view_of(unit))
            elif runs and standing.status not in ("unrecorded", "blocked", "waiting"):
                below.add(id(unit))
                will.append(self.view_of(unit))
                members = members or any(output.kind != "file" for output in unit.stage.outputs.values())
        loose = members or may or self.foreseen.patterns
        appear = self._below_members({each.stage for each in (*will, *may)}) if loose else []
        return BuildPlan(self._in_order(will), self._in_order(may), tuple(appear))

    def _in_order(self, states: Iterable[StateView]) -> tuple[StateView, ...]:
        """Sort by the order of the stages, then by entity."""
        place = {stage.name: position for position, stage in enumerate(self.model.connections.order)}
        return tuple(sorted(states, key=lambda each: (place[each.stage], each.entity)))

    def _below_members(self, running: set[str]) -> list[str]:
        """Stages below one that runs and makes files whose names nobody can foresee."""
        found: list[str] = []
        made = {name: self.pipeline.stages[name].outputs.values() for name in running}
        loose = {name for name, outputs in made.items() if any(output.kind != "file" for output in outputs)}
        for stage in self.model.connections.order:
            readings = self.model.connections.readings[stage.name]
            if any(writer in loose or writer in found for reading in readings for writer in reading.writers) or any(
                each.overlaps(reading.pattern) for each in self.foreseen.patterns for reading in readings
            ):
                found.append(stage.name)
        return found

    def why(self, state: str) -> Explanation:
        unit = self.model.producer.get(state) or self.model.producer.get(f"{state}/")
        if unit is None and state in self.model.orphans:
            (orphan,) = (each for each in self.orphans() if each.outputs == (state,))
            record = self.model.orphans[state]
            return Explanation(state, orphan.stage, orphan.entity, orphan.standing, record, (), {}, ())
        unit = unit or next((each for each in self.model.all_units() if state in each.outputs.values()), None)
        if unit is None and self.snapshot.content_hash(state) is not None:  # a source
            return Explanation(state, None, "", FRESH, None, (), {}, ())
        unit = unit or self.find_all([state])[0]
        address = state if state in unit.outputs.values() else next(iter(unit.outputs.values()))
        found = self.snapshot.records.get(address)
        standing = self.model.standing(unit)
        code = self.pipeline.code.of(unit.stage.name)
        changed: list[str] = []
        if found is not None and any(cause.code == "code_changed" for cause in standing.causes):
            before = known_code(self.pipeline.store.notes, found.code_hash)
            changed = [] if before is None else changed_parts(before, code.parts)
        above = [
            self.view_of(each) for each in dict.fromkeys(self._makers(unit)) if self.model.standing(each) is not FRESH
        ]
        return Explanation(
            address, unit.stage.name, unit.entity, standing, found, tuple(changed), code.unknown, tuple(above)
        )
