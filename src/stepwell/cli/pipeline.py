"""`stepwell pipeline ...`: the commands and their options. What they do is imported when they do it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .options import AsJson, Store

pipelines = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Keep states up to date: what is stale, why, and build it.")

Named = Annotated[
    list[str] | None,
    typer.Option(
        "--pipeline",
        "-p",
        metavar="PIPELINE",
        help="module:name, or a JSON or YAML file; may be repeated. Also STEPWELL_PIPELINES, or `pipelines` in stepwell.toml.",
        show_default=False,
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TARGET]...", help="States by path (globs work), a stage, an entity, or 'stage entity'."),
]
Wanted = Annotated[
    list[str], typer.Argument(metavar="TARGET...", help="States by path (globs work), a stage, an entity, or 'stage entity'.")
]


def _place(context: typer.Context, store: str | None, named: list[str] | None) -> Any:
    from .connect import Connection
    from .streams import keep_stdout

    keep_stdout()
    place = Connection(store or context.obj)
    return place, tuple(named or ()) or place.settings.pipelines


@pipelines.command()
def status(
    context: typer.Context,
    named: Named = None,
    entity: Annotated[str | None, typer.Option("--entity", metavar="ID", help="Only this entity, stage by stage.")] = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="A table of entities and stages.")] = False,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Show what is fresh, stale, failed or blocked, with the causes."""
    from .commands import pipeline

    pipeline.status(*_place(context, store, named), entity=entity, matrix=matrix, as_json=as_json)


@pipelines.command()
def why(
    context: typer.Context,
    state: Annotated[str, typer.Argument(metavar="STATE", help="A state by path, or 'stage entity'.")],
    named: Named = None,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Say why a state is stale, failed or blocked, and what it was made from."""
    from .commands import pipeline

    pipeline.why(*_place(context, store, named), state, as_json=as_json)


@pipelines.command()
def build(
    context: typer.Context,
    targets: Targets = None,
    named: Named = None,
    force: Annotated[bool, typer.Option("--force", help="Also what is fresh, and what nobody recorded.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what will run, and what may.")] = False,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Produce what is missing or stale: everything, or what the targets need. Exit code 1 if something failed."""
    from .commands import pipeline

    pipeline.build(*_place(context, store, named), targets or [], force=force, dry_run=dry_run, as_json=as_json)


@pipelines.command()
def scan(
    context: typer.Context,
    named: Named = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what will run, and what may.")] = False,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Look once for what is stale, in all pipelines, and produce it."""
    from .commands import pipeline

    pipeline.build(*_place(context, store, named), [], force=False, dry_run=dry_run, as_json=as_json)


@pipelines.command()
def watch(
    context: typer.Context,
    named: Named = None,
    interval: Annotated[
        float | None, typer.Option("--interval", metavar="SECONDS", help="Between full scans; by default the pipeline's.")
    ] = None,
    store: Store = None,
) -> None:
    """Keep everything up to date until Ctrl-C: at once after a file changes, and by full scans as a safety net."""
    from .commands import pipeline

    pipeline.watch(*_place(context, store, named), interval=interval)


@pipelines.command()
def invalidate(
    context: typer.Context,
    targets: Wanted,
    named: Named = None,
    stage: Annotated[str | None, typer.Option("--stage", metavar="STAGE", help="Only states of this stage.")] = None,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Have states made again by the next scan."""
    from .commands import pipeline

    pipeline.invalidate(*_place(context, store, named), targets, stage=stage, as_json=as_json)


@pipelines.command()
def accept(context: typer.Context, targets: Wanted, named: Named = None, as_json: AsJson = False, store: Store = None) -> None:
    """Take states as they are: recorded as made by the present code from the present inputs."""
    from .commands import pipeline

    pipeline.change(*_place(context, store, named), "accept", targets, as_json=as_json)


@pipelines.command()
def failures(context: typer.Context, named: Named = None, as_json: AsJson = False, store: Store = None) -> None:
    """List what failed, why, and when it is tried again."""
    from .commands import pipeline

    pipeline.failures(*_place(context, store, named), as_json=as_json)


@pipelines.command()
def retry(
    context: typer.Context, targets: Targets = None, named: Named = None, as_json: AsJson = False, store: Store = None
) -> None:
    """End the back-off of what failed: the next scan tries it again."""
    from .commands import pipeline

    pipeline.change(*_place(context, store, named), "retry", targets or [], as_json=as_json)


@pipelines.command()
def clean(
    context: typer.Context,
    named: Named = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Remove states whose source is gone."""
    from .commands import pipeline

    pipeline.clean(*_place(context, store, named), dry_run=dry_run, as_json=as_json)


@pipelines.command()
def put(
    context: typer.Context,
    path: Annotated[str, typer.Argument(metavar="PATH", help="Where the source goes, relative to the root.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="What it holds; - reads stdin.")],
    named: Named = None,
    store: Store = None,
) -> None:
    """Write a source into the store of states."""
    from .commands import pipeline

    pipeline.put(*_place(context, store, named), path, file)


@pipelines.command()
def graph(
    context: typer.Context,
    named: Named = None,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Draw the stages of the pipelines and the patterns that connect them, as a Mermaid flowchart."""
    from .commands import pipeline

    pipeline.graph(*_place(context, store, named), as_json=as_json)
