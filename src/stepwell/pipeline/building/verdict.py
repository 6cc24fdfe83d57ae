"""The verdict of the last scan. While nothing has changed since, nothing else has to be read or loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from ...answers.staleness import STATUSES
from ..staleness.part import part_of
from ..states.listing import Folder
from .report import BuildReport

if TYPE_CHECKING:
    from ...answers.pipelines import PipelineStatusRecord
    from ..definition import PipelineDefinition
    from ..looking import View


class Listed(NamedTuple):
    """What was on disk, and the number of the latest lease at that moment."""

    lease_number: int
    folders: list[Folder]


def list_everything(pipeline: PipelineDefinition) -> Listed:
    number = pipeline.store.lease_number(pipeline.name)
    pipeline.look()
    return Listed(number, pipeline.store.files.walk(pipeline.wanted))


def nothing_to_do(pipeline: PipelineDefinition, listed: Listed) -> BuildReport | None:
    """Return the report of a build that, by the cache alone, has nothing to do; None if it may have something."""
    verdict = pipeline.store.cache.read().verdict
    if verdict.get("stale", True) or verdict.get("unfired") or not _holds(pipeline, listed.folders, verdict):
        return None
    left = {f"{state['stage']} {state['entity']}".rstrip(): state["status"] for state in verdict["status"]["states"]}
    return BuildReport(pipeline.name, (), (), {}, left, (), 0.0)


def known_status(pipeline: PipelineDefinition) -> PipelineStatusRecord | None:
    """Return the status that the last scan found, if nothing has changed since."""
    verdict = pipeline.store.cache.read().verdict
    pipeline.look()
    if not _holds(pipeline, pipeline.store.files.walk(pipeline.wanted), verdict):
        return None
    found: PipelineStatusRecord = verdict["status"]
    return {**found, "stages": {name: found["stages"].get(name, {}) for name in pipeline.stages}}


def _fingerprint(pipeline: PipelineDefinition) -> str:
    """A hash of everything that standings and triggers depend on, except the content of the store."""
    awaited = [pattern.text for patterns in pipeline.awaited().values() for pattern in patterns]
    return sha256("\0".join([pipeline.code.fingerprint(), *awaited]).encode()).hexdigest()


def _holds(pipeline: PipelineDefinition, folders: list[Folder], verdict: Mapping[str, Any]) -> bool:
    if not verdict or any(stage.entities is not None for stage in pipeline.stages.values()):
        return False
    due = verdict.get("due_at")
    if due is not None and pipeline.clock() >= due:
        return False
    return verdict.get("fingerprint") == _fingerprint(pipeline) and pipeline.store.cache.changed(folders) == []


def concerned(pipeline: PipelineDefinition, folders: list[Folder]) -> set[str] | None:
    """Return the paths of the entities that a few changed files concern, or None if other states may not be fresh."""
    verdict = pipeline.store.cache.read().verdict
    if (
        not verdict
        or verdict["status"]["states"]
        or verdict["status"]["problems"]
        or verdict.get("unfired")
        or pipeline.triggers
        or verdict.get("fingerprint") != _fingerprint(pipeline)
    ):
        return None
    changed = pipeline.store.cache.changed(folders)
    return None if changed is None else part_of(pipeline.connections, changed)


def save_verdict(
    pipeline: PipelineDefinition, view: View, paused: Mapping[str, str], unfired: Iterable[str] = ()
) -> None:
    """Write the cache: hashes, the status of everything, the runs in which units are `paused`, and triggers that are still
    to be fired.
    """
    status = view.status()
    record = status.to_dict()
    if view.snapshot.is_partial:
        record = _with_rest(pipeline.store.cache.read().verdict["status"], record)
    due = [each.standing.due_at for each in status.states if each.standing.due_at is not None]
    pipeline.store.cache.save(
        view.snapshot,
        {
            "fingerprint": _fingerprint(pipeline),
            "stale": status.counts.get("stale", 0),
            "due_at": min(due, default=None),
            "status": record,
            "code": pipeline.code.stamps(),
            "paused": sorted(set(paused.values())),
            "unfired": sorted(unfired),
        },
    )


def _with_rest(before: Mapping[str, Any], part: Mapping[str, Any]) -> Any:
    """Return the status of everything if only `part` was judged and the rest is as fresh as before."""

    def counts(former: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
        seen = sum(now.get(status, 0) for status in STATUSES)
        found: dict[str, int] = {each: now.get(each, 0) for each in STATUSES if each in former or each in now}
        return found | {"fresh": former.get("fresh", 0) - seen + now.get("fresh", 0)}

    stages = {name: counts(before["stages"].get(name, {}), now) for name, now in part["stages"].items()}
    return {**part, **counts(before, part), "entities": before["entities"], "stages": stages}
