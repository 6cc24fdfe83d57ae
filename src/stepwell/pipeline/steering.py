"""What people can do to the states of a pipeline: accept, invalidate, retry, clean, put."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..clock import utc_text
from ..errors import InputError
from .looking import View
from .patterns.paths import checked_path
from .staleness.units import Unit
from .states.notes import change_failures, read_failures
from .states.records import MANY_INPUTS, Failure, Record, inputs_hash

if TYPE_CHECKING:
    from .definition import PipelineDefinition


def accept(pipeline: PipelineDefinition, targets: Iterable[str]) -> list[str]:
    """Record states as made by the present code from the present inputs."""
    view = View(pipeline)
    changes: dict[str, Record | None] = {}
    for unit in _found(view, targets):
        for name, address in unit.outputs.items():
            record = _as_it_is(pipeline, view, unit, name, address)
            if record is not None and view.model.standing(unit).status != "fresh":
                changes[address] = record
    if changes:
        pipeline.store.records.change(changes)
        change_failures(pipeline.store.notes, {unit.id: None for unit in _found(view, targets)})
    return list(changes)


def _as_it_is(pipeline: PipelineDefinition, view: View, unit: Unit, name: str, address: str) -> Record | None:
    kind = unit.stage.outputs[name].kind
    digest = view.model.content_of(address) if kind != "members" else None
    if digest is None:
        return None
    members = None
    if kind == "directory":
        members = {each: view.snapshot.content_hash(address + each) or "" for each in view.model.files_below(address)}
    current = pipeline.code.current(unit.stage.name)
    inputs = {path: each or "" for path, each in view.model.input_hashes(unit).items()}
    return Record(
        current.code_hash, current.config_hash, digest, inputs_hash(inputs), utc_text(time.time()),
        f"{pipeline.name}#{unit.stage.name}", unit.entity, inputs if len(inputs) <= MANY_INPUTS else {}, members,
        current.check_hash,
    )  # fmt: skip


def invalidate(pipeline: PipelineDefinition, targets: Iterable[str], *, stage: str | None = None) -> list[str]:
    """Mark states as stale. Those that nobody recorded may then be replaced, too."""
    view = View(pipeline)
    if stage is not None and stage not in pipeline.stages:
        raise InputError(f"pipeline {pipeline.name!r} has no stage {stage!r}; it has {', '.join(pipeline.stages)}")
    changes: dict[str, Record | None] = {}
    reason = f"somebody invalidated it at {utc_text(time.time())}"
    for unit in _found(view, targets):
        for name, address in unit.outputs.items() if stage in (None, unit.stage.name) else ():
            record = view.snapshot.records.get(address) or _as_it_is(pipeline, view, unit, name, address)
            if record is not None:
                changes[address] = record._replace(stale=reason)
    if changes:
        pipeline.store.records.change(changes)
    return list(changes)


def retry(pipeline: PipelineDefinition, targets: Iterable[str] = ()) -> list[str]:
    """Let the next scan try failed states again, whatever their back-off."""
    given = list(targets)
    failures = read_failures(pipeline.store.notes)
    wanted = {unit.id for unit in _found(View(pipeline), given)} if given else set(failures)
    changed: dict[str, Failure | None] = {name: None for name in failures if name in wanted}
    if changed:
        change_failures(pipeline.store.notes, changed)
    return list(changed)


def clean(pipeline: PipelineDefinition, *, dry_run: bool = False) -> list[str]:
    """Remove states whose source is gone."""
    removed = list(View(pipeline).model.orphans)
    if removed and not dry_run:
        pipeline.store.remove(removed)
    return removed


def put(pipeline: PipelineDefinition, path: str, content: bytes) -> None:
    """Write a source into the store of states."""
    checked_path(path)
    for stage in pipeline.stages.values():
        if any(pattern.covers(path) for pattern in stage.written):
            raise InputError(f"{path} is made by stage {stage.name!r}; put sources, and let the stages make the rest")
    pipeline.store.files.put(path, content)


def _found(view: View, targets: Iterable[str]) -> list[Unit]:
    found = {unit.id: unit for target in targets for unit in view.find(target)}
    return list(found.values())
