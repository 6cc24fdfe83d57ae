"""`stepwell pipeline ...`: the commands and their options. What they do is imported when they do it."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import declare
from .options import AsJson

pipelines = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Keep states up to date: what is stale, why, and build it."
)

Named = Annotated[
    list[str] | None,
    typer.Option(
        "--pipeline",
        "-p",
        metavar="PIPELINE",
        help="module:name, a JSON or YAML file, or a saved one by name; may be repeated. Also STEPWELL_PIPELINES, or "
        "`pipelines` in stepwell.toml.",
        show_default=False,
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TARGET]...", help="States by path (globs work), a stage, an entity, or 'stage entity'."),
]
Existing = Annotated[
    bool, typer.Option("--existing", help="Fire triggers also for states that were there before them, once for each.")
]
Wanted = Annotated[
    list[str],
    typer.Argument(metavar="TARGET...", help="States by path (globs work), a stage, an entity, or 'stage entity'."),
]


@declare(pipelines, "pipeline")
def status(
    named: Named = None,
    entity: Annotated[
        str | None, typer.Option("--entity", metavar="ID", help="Only this entity, stage by stage.")
    ] = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="A table of entities and stages.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is fresh, stale, failed or blocked, with the causes."""


@declare(pipelines, "pipeline")
def why(
    state: Annotated[str, typer.Argument(metavar="STATE", help="A state by path, or 'stage entity'.")],
    named: Named = None,
    as_json: AsJson = False,
) -> None:
    """Say why a state is stale, failed or blocked, and what it was made from."""


@declare(pipelines, "pipeline")
def build(
    targets: Targets = None,
    named: Named = None,
    force: Annotated[bool, typer.Option("--force", help="Also what is fresh, and what nobody recorded.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what will run, and what may.")] = False,
    existing: Existing = False,
    as_json: AsJson = False,
) -> None:
    """Produce what is missing or stale: everything, or what the targets need. Exit code 1 if something failed."""


@declare(pipelines, "pipeline")
def scan(
    named: Named = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what will run, and what may.")] = False,
    existing: Existing = False,
    as_json: AsJson = False,
) -> None:
    """Look once for what is stale, in all pipelines, and produce it."""


@declare(pipelines, "pipeline")
def watch(
    named: Named = None,
    interval: Annotated[
        float | None,
        typer.Option("--interval", metavar="SECONDS", help="Between full scans; by default the pipeline's."),
    ] = None,
) -> None:
    """Keep everything up to date until Ctrl-C: at once after a file changes, and by full scans as a safety net."""


@declare(pipelines, "pipeline")
def invalidate(
    targets: Wanted,
    named: Named = None,
    stage: Annotated[str | None, typer.Option("--stage", metavar="STAGE", help="Only states of this stage.")] = None,
    as_json: AsJson = False,
) -> None:
    """Have states made again by the next scan."""


@declare(pipelines, "pipeline")
def accept(targets: Wanted, named: Named = None, as_json: AsJson = False) -> None:
    """Take states as they are: recorded as made by the present code from the present inputs."""


@declare(pipelines, "pipeline")
def failures(named: Named = None, as_json: AsJson = False) -> None:
    """List what failed, why, and when it is tried again."""


@declare(pipelines, "pipeline")
def retry(targets: Targets = None, named: Named = None, as_json: AsJson = False) -> None:
    """End the back-off of what failed: the next scan tries it again."""


@declare(pipelines, "pipeline")
def clean(
    named: Named = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove states whose source is gone."""


@declare(pipelines, "pipeline")
def put(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Where the source goes, relative to the root.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="What it holds; - reads stdin.")],
    named: Named = None,
) -> None:
    """Write a source into the store of states."""


@declare(pipelines, "pipeline")
def graph(
    named: Named = None,
    as_json: AsJson = False,
) -> None:
    """Draw the stages of the pipelines and the patterns that connect them, as a Mermaid flowchart."""
