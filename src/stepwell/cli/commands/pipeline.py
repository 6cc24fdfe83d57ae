"""What `stepwell pipeline ...` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from ...clock import utc_text
from ...errors import InputError
from ...pipeline.finding import find_target, is_stored_name
from ..connect import Connection
from ..exits import ExitCode
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...pipeline import Pipeline


def find_pipelines(place: Connection, named: Sequence[str] | None) -> list[Pipeline]:
    place.need_store("pipeline")
    names = tuple(named or ()) or place.settings.pipelines
    if not names:
        raise InputError("which pipeline? name it: -p module:name, STEPWELL_PIPELINES, or `pipelines` in stepwell.toml")
    from ...pipeline.connected import check_together

    found = [_pipeline(place, name) for name in names]
    check_together(found)
    return found


def _pipeline(place: Connection, name: str) -> Pipeline:
    if not is_stored_name(name):
        return find_target(name, handlers=place.handlers, jobs=place.settings.jobs)
    from ...pipeline.finding import stored_pipeline

    with place.store() as store:
        return stored_pipeline(store, name, handlers=place.handlers(), jobs=place.settings.jobs)


def _tell(results: list[dict[str, Any]]) -> None:
    """One pipeline is told as an object, several as a list of them."""
    say(json_text(results[0] if len(results) == 1 else results))


def status(place: Connection, *, named: Sequence[str] | None, entity: str | None, matrix: bool, as_json: bool) -> None:
    from ...pipeline.building.verdict import known_status

    found = []
    for pipeline in find_pipelines(place, named):
        if matrix:
            from ..show.pipeline import show_matrix

            show_matrix(pipeline.view())
            continue
        told = known_status(pipeline) if entity is None else None
        found.append(told or pipeline.view().status(entity).to_json())
    if as_json:
        _tell(found)
    elif found:
        from ..show.pipeline import show_status

        for each in found:
            show_status(each)


def why(place: Connection, state: str, *, named: Sequence[str] | None, as_json: bool) -> None:
    problem: InputError | None = None
    for pipeline in find_pipelines(place, named):
        try:
            answer = pipeline.why(state)
        except InputError as error:
            problem = error
            continue
        if as_json:
            say(json_text(answer.to_json()))
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
    pipelines = find_pipelines(place, named)
    targets = targets or ()
    if dry_run:
        from ..show.pipeline import plan_text

        plans = [pipeline.plan(targets, force=force) for pipeline in pipelines]
        if as_json:
            _tell([plan.to_json() for plan in plans])
        else:
            say("\n".join(plan_text(plan) for plan in plans))
        return
    from ...pipeline.building.verdict import list_everything, nothing_to_do
    from ..show.pipeline import BuildProgress, report_text

    reports = []
    for pipeline in pipelines:
        listed = list_everything(pipeline)
        if not targets and not force and not existing and (done := nothing_to_do(pipeline, listed)) is not None:
            reports.append(done)
            continue
        from ...pipeline.building.build import build as build_one

        with BuildProgress(pipeline.name, quiet=as_json or not sys.stderr.isatty()) as progress:
            engine = place.settings.store
            reports.append(
                build_one(
                    pipeline,
                    targets,
                    engine=engine,
                    force=force,
                    progress=progress,
                    options=place.settings.for_workers,
                    existing=existing,
                )
            )
    if as_json:
        _tell([report.to_json() for report in reports])
    else:
        say("\n".join(map(report_text, reports)))
    if any(not report.ok for report in reports):
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
            typer.echo(report_text(report), err=True)

    def went_wrong(error: Exception) -> None:
        typer.echo(f"{type(error).__name__}: {error}", err=True)

    with Watcher(
        pipelines,
        place.settings.store,
        interval=interval,
        on_build=told,
        on_problem=went_wrong,
        reloader=reloader,
        **place.settings.for_workers,
    ) as watcher:
        typer.echo(f"watching {', '.join(str(pipeline.store.url) for pipeline in pipelines)}; Ctrl-C ends it", err=True)
        watcher.run()


def invalidate(
    place: Connection, targets: Sequence[str], *, named: Sequence[str] | None, stage: str | None, as_json: bool
) -> None:
    _changed(
        [each for pipeline in find_pipelines(place, named) for each in pipeline.invalidate(*targets, stage=stage)],
        "invalidated",
        as_json,
    )


def accept(place: Connection, targets: Sequence[str], *, named: Sequence[str] | None, as_json: bool) -> None:
    _changed(
        [each for pipeline in find_pipelines(place, named) for each in pipeline.accept(*targets)], "accepted", as_json
    )


def retry(place: Connection, targets: Sequence[str] | None, *, named: Sequence[str] | None, as_json: bool) -> None:
    changed = [each for pipeline in find_pipelines(place, named) for each in pipeline.retry(*targets or ())]
    _changed(changed, "to be tried again", as_json)


def clean(place: Connection, *, named: Sequence[str] | None, dry_run: bool, as_json: bool) -> None:
    removed = [each for pipeline in find_pipelines(place, named) for each in pipeline.clean(dry_run=dry_run)]
    _changed(removed, "would be removed" if dry_run else "removed", as_json)


def _changed(changed: Sequence[str], what: str, as_json: bool) -> None:
    if as_json:
        say(json_text(list(changed)))
    else:
        say("\n".join([f"{each}: {what}" for each in changed] or ["nothing to do"]))


def failures(place: Connection, *, named: Sequence[str] | None, as_json: bool) -> None:
    from ...pipeline.states.notes import read_failures

    found = {
        f"{pipeline.name}: {unit}": failure
        for pipeline in find_pipelines(place, named)
        for unit, failure in sorted(read_failures(pipeline.store.notes).items())
    }
    if as_json:
        say(json_text({unit: failure.to_json() for unit, failure in found.items()}))
        return
    for unit, failure in found.items():
        again = (
            "stays failed until `retry`"
            if failure.next_retry_at is None
            else f"again at {utc_text(failure.next_retry_at)}"
        )
        say(
            f"{unit}  {failure.error_type}: {failure.error}  ({failure.attempts} in a row; {again}; run {failure.run_id})"
        )
    if not found:
        say("nothing failed")


def put(place: Connection, path: str, file: str, *, named: Sequence[str] | None) -> None:
    (pipeline, *others) = find_pipelines(place, named)
    if others:
        raise InputError("name one pipeline: -p module:name")
    if file == "-":
        content = sys.stdin.buffer.read()
    else:
        try:
            with open(file, "rb") as source:
                content = source.read()
        except OSError as error:
            raise InputError(f"{file}: {error.strerror}") from None
    pipeline.put(path, content)
    say(f"{path}: {len(content):,} bytes")


def graph(place: Connection, *, named: Sequence[str] | None, as_json: bool) -> None:
    from ...pipeline.connected import drawing, links

    pipelines = find_pipelines(place, named)
    say(json_text([link._asdict() for link in links(pipelines)]) if as_json else drawing(pipelines))
