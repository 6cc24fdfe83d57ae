"""What `stepwell pipeline ...` does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from ...errors import DocumentError, InputError
from ...pipeline.finding import find_target, is_stored_name, load_together
from ...pipeline.noting import note_request
from ..connect import Connection
from ..documents import read_bytes
from ..exits import ExitCode
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...client.pipelines import RemotePipeline
    from ...pipeline import Pipeline


class LocalPipeline:
    """A pipeline of this machine, with the methods and JSON answers of one of a server (`client/pipelines.py`)."""

    def __init__(self, pipeline: Pipeline, place: Connection) -> None:
        self.pipeline = pipeline
        self.name = pipeline.name
        self.stages = tuple(pipeline.stages)
        self._place = place

    def status(self, entity: str | None = None) -> Mapping[str, Any]:
        from ...pipeline.building.verdict import known_status

        known = known_status(self.pipeline) if entity is None else None
        return known or self.pipeline.view().status(entity).to_dict()

    def states(self) -> Iterator[Mapping[str, Any]]:
        view = self.pipeline.view()
        return (state.to_dict() for state in (*view.states(), *view.orphans()))

    def why(self, state: str) -> Mapping[str, Any]:
        return self.pipeline.why(state).to_dict()

    def failures(self) -> Mapping[str, Mapping[str, Any]]:
        from ...pipeline.states.notes import read_failures

        failures = read_failures(self.pipeline.store.notes, self.pipeline.name)
        return {unit: failure.to_dict() for unit, failure in sorted(failures.items())}

    def plan(self, *targets: str, force: bool = False, after: Sequence[LocalPipeline] = ()) -> Mapping[str, Any]:
        return self.pipeline.plan(*targets, force=force, after=[each.pipeline for each in after]).to_dict()

    def build(
        self,
        *targets: str,
        force: bool = False,
        existing: bool = False,
        progress: Callable[[Mapping[str, int]], None] | None = None,
    ) -> Mapping[str, Any]:
        from ...pipeline.building.build_once import build_once

        with self._place.store(make=True) as store:
            note_request(store, self.name, "scan", targets, force=force, existing=existing)
        tell = None if progress is None else lambda tally: progress(tally.to_dict())
        settings = self._place.settings
        own = {"engine": settings.store, "options": settings.for_workers}
        return build_once(self.pipeline, targets, force=force, existing=existing, progress=tell, **own).to_dict()

    def change(self, verb: str, *, targets: Sequence[str] = (), **options: Any) -> list[str]:
        with self._place.store(make=True) as store:  # before anything changes, as the audit log is there
            changed: list[str] = getattr(self.pipeline, verb)(*targets, **options)
            if changed and not options.get("dry_run"):
                note_request(store, self.name, verb, targets, changed=len(changed), **options)
        return changed


def _asked(place: Connection, named: Sequence[str] | None) -> Sequence[LocalPipeline | RemotePipeline]:
    """The pipelines a command is about: local ones, or those of the server (all if none is named)."""
    if (transport := place.transport) is not None:
        from ...client.pipelines import remote_pipelines

        return remote_pipelines(transport, named or ())
    return [LocalPipeline(each, place) for each in find_pipelines(place, named)]


def _in_order(place: Connection, pipelines: Sequence[Any]) -> Sequence[Any]:
    """The pipelines, each after those whose states it reads."""
    from ...pipeline.connected import in_order, links

    if len(pipelines) < 2:
        return pipelines
    if (transport := place.transport) is not None:
        from ...client.pipelines import remote_links

        connections = [(each["writer"], each["reader"]) for each in remote_links(transport, pipelines)[0]]
    else:
        connections = [(link.writer, link.reader) for link in links([each.pipeline for each in pipelines])]
    names = in_order([each.name for each in pipelines], connections)
    return sorted(pipelines, key=lambda each: names.index(each.name))


def find_pipelines(place: Connection, named: Sequence[str] | None) -> list[Pipeline]:
    """Pipelines of this machine."""
    names = tuple(named or ()) or place.settings.pipelines
    if not names:
        raise InputError("which pipeline? name it: -p module:name, STEPWELL_PIPELINES, or `pipelines` in stepwell.toml")
    from ...pipeline.connected import check_together, share_types

    pipelines: list[Pipeline] = []
    for each in load_together([partial(_pipeline, place, name) for name in names]):
        if isinstance(each, DocumentError):
            raise each
        pipelines.append(each)
    share_types(pipelines)
    check_together(pipelines)
    return pipelines


def _pipeline(place: Connection, name: str, beside: Sequence[Pipeline]) -> Pipeline:
    if not is_stored_name(name):
        return find_target(name, handlers=place.handlers, jobs=place.settings.jobs, beside=beside)
    from ...pipeline.finding import stored_pipeline

    with place.store() as store:
        return stored_pipeline(store, name, handlers=place.handlers(), jobs=place.settings.jobs, beside=beside)


def _tell(results: Sequence[Mapping[str, Any]]) -> None:
    """Print one result as an object, several as a list."""
    say(json_text(results[0] if len(results) == 1 else results))


def status(place: Connection, *, named: Sequence[str] | None, entity: str | None, matrix: bool, as_json: bool) -> None:
    statuses = []
    for pipeline in _asked(place, named):
        if matrix:
            from ..show.pipeline import show_matrix

            show_matrix(pipeline.stages, pipeline.states())
            continue
        statuses.append(pipeline.status(entity))
    if as_json:
        _tell(statuses)
    elif statuses:
        from ..show.pipeline import show_status

        for each in statuses:
            show_status(each)


def why(place: Connection, state: str, *, named: Sequence[str] | None, as_json: bool) -> None:
    problem: InputError | None = None
    for pipeline in _asked(place, named):
        try:
            answer = pipeline.why(state)
        except InputError as error:
            problem = error
            continue
        if as_json:
            say(json_text(answer))
        else:
            from ..show.pipeline import explanation

            say(explanation(answer))
        return
    assert problem is not None
    raise problem


def build(
    place: Connection,
    targets: Sequence[str] | None,
    *,
    named: Sequence[str] | None,
    force: bool,
    dry_run: bool,
    existing: bool,
    as_json: bool,
) -> None:
    from ..show.pipeline import BuildProgress, plan_text, report_text

    pipelines: Sequence[Any] = _in_order(place, _asked(place, named))
    targets = targets or ()
    if dry_run:
        plans = [each.plan(*targets, force=force, after=pipelines[:place]) for place, each in enumerate(pipelines)]
        if as_json:
            _tell(plans)
        else:
            say("\n".join(map(plan_text, plans)))
        return
    reports = []
    for pipeline in pipelines:
        with BuildProgress(pipeline.name, quiet=as_json or not sys.stderr.isatty()) as progress:
            reports.append(pipeline.build(*targets, force=force, existing=existing, progress=progress))
    if as_json:
        _tell(reports)
    else:
        say("\n".join(map(report_text, reports)))
    if any(report["failed"] for report in reports):
        raise typer.Exit(ExitCode.RUN_FAILED)


def scan(place: Connection, *, named: Sequence[str] | None, dry_run: bool, existing: bool, as_json: bool) -> None:
    build(place, (), named=named, force=False, dry_run=dry_run, existing=existing, as_json=as_json)


def watch(place: Connection, *, named: Sequence[str] | None, interval: float | None) -> None:
    from ...pipeline.building.reloading import Reloader
    from ...pipeline.building.watch import Watcher
    from ..show.pipeline import report_text

    reloader = Reloader(lambda: find_pipelines(place, named))
    pipelines = reloader.found()

    def told(report: Any) -> None:
        if report.produced or report.failed:
            typer.echo(report_text(report.to_dict()), err=True)

    with Watcher(
        pipelines,
        place.settings.store,
        interval=interval,
        on_build=told,
        on_problem=lambda error: typer.echo(f"{type(error).__name__}: {error}", err=True),
        reloader=reloader,
        **place.settings.for_workers,
    ) as watcher:
        typer.echo(f"watching {', '.join(str(pipeline.store.url) for pipeline in pipelines)}; Ctrl-C ends it", err=True)
        watcher.run()


def invalidate(
    place: Connection, targets: Sequence[str], *, named: Sequence[str] | None, stage: str | None, as_json: bool
) -> None:
    _change(place, named, "invalidate", "invalidated", as_json, targets=targets, stage=stage)


def accept(place: Connection, targets: Sequence[str], *, named: Sequence[str] | None, as_json: bool) -> None:
    _change(place, named, "accept", "accepted", as_json, targets=targets)


def retry(place: Connection, targets: Sequence[str] | None, *, named: Sequence[str] | None, as_json: bool) -> None:
    _change(place, named, "retry", "to be tried again", as_json, targets=targets or ())


def clean(place: Connection, *, named: Sequence[str] | None, dry_run: bool, as_json: bool) -> None:
    _change(place, named, "clean", "would be removed" if dry_run else "removed", as_json, dry_run=dry_run)


def _change(place: Connection, named: Sequence[str] | None, verb: str, done: str, as_json: bool, **asked: Any) -> None:
    """Ask the pipelines to change states, and print which they changed."""
    changed = [each for pipeline in _asked(place, named) for each in pipeline.change(verb, **asked)]
    if as_json:
        say(json_text(changed))
    else:
        say("\n".join([f"{each}: {done}" for each in changed] or ["nothing to do"]))


def failures(place: Connection, *, named: Sequence[str] | None, as_json: bool) -> None:
    by_unit = {
        f"{pipeline.name}: {unit}": failure
        for pipeline in _asked(place, named)
        for unit, failure in pipeline.failures().items()
    }
    if as_json:
        say(json_text(by_unit))
        return
    from ..show.pipeline import failure_text

    say("\n".join([failure_text(unit, failure) for unit, failure in by_unit.items()] or ["nothing failed"]))


def put(place: Connection, path: str, file: str, *, named: Sequence[str] | None) -> None:
    (pipeline, *others) = find_pipelines(place, named)
    if others:
        raise InputError("name one pipeline: -p module:name")
    content = read_bytes(file)
    with place.store(make=True) as store:
        pipeline.put(path, content)
        note_request(store, pipeline.name, "put", [path])
    say(f"{path}: {len(content):,} bytes")


def graph(place: Connection, *, named: Sequence[str] | None, as_json: bool) -> None:
    if (transport := place.transport) is not None:
        from ...client.pipelines import remote_links, remote_pipelines

        connections, drawn = remote_links(transport, remote_pipelines(transport, named or ()))
        say(json_text(connections) if as_json else drawn)
        return
    from ...pipeline.connected import drawing, links

    pipelines = find_pipelines(place, named)
    say(json_text([link.to_dict() for link in links(pipelines)]) if as_json else drawing(pipelines))
