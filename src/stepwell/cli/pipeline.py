"""`stepwell pipeline ...`: the commands and their options. What they do is imported when they do it."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import declare
from .options import AsJson, argument, flag, option

pipelines = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Keep states up to date: what is stale, why, and build it."
)

NAMED_HELP = (
    "module:name, a JSON or YAML file, or a saved one by name; may be repeated. Also STEPWELL_PIPELINES, or "
    "`pipelines` in stepwell.toml."
)
Named = Annotated[list[str] | None, option("PIPELINE", NAMED_HELP, "--pipeline", "-p", show_default=False)]
TARGETS_HELP = "States by path (globs work), a stage, an entity, or 'stage entity'."
Targets = Annotated[list[str] | None, argument("[TARGET]...", TARGETS_HELP)]
Wanted = Annotated[list[str], argument("TARGET...", TARGETS_HELP)]
Existing = Annotated[
    bool, flag("--existing", "Fire triggers also for states that were there before them, once for each.")
]
DryRun = Annotated[bool, flag("--dry-run", "Only list what will run, and what may.")]


@declare(pipelines, "pipeline", jobs=True)
def status(
    named: Named = None,
    entity: Annotated[str | None, option("ID", "Only this entity, stage by stage.")] = None,
    matrix: Annotated[bool, flag("--matrix", "A table of entities and stages.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is fresh, stale, failed or blocked, with the causes."""


@declare(pipelines, "pipeline", jobs=True)
def why(
    state: Annotated[str, argument("STATE", "A state by path, or 'stage entity'.")],
    named: Named = None,
    as_json: AsJson = False,
) -> None:
    """Say why a state is stale, failed or blocked, and what it was made from."""


@declare(pipelines, "pipeline", jobs=True, changes=True)
def build(
    targets: Targets = None,
    named: Named = None,
    force: Annotated[bool, flag("--force", "Also what is fresh, and what nobody recorded.")] = False,
    dry_run: DryRun = False,
    existing: Existing = False,
    as_json: AsJson = False,
) -> None:
    """Produce what is missing or stale: everything, or what the targets need. Exit code 1 if something failed."""


@declare(pipelines, "pipeline", jobs=True, changes=True)
def scan(
    named: Named = None,
    dry_run: DryRun = False,
    existing: Existing = False,
    as_json: AsJson = False,
) -> None:
    """Look once for what is stale, in all pipelines, and produce it."""


@declare(pipelines, "pipeline", jobs=True, place="store")
def watch(
    named: Named = None,
    interval: Annotated[float | None, option("SECONDS", "Between full scans; by default the pipeline's.")] = None,
) -> None:
    """Keep everything up to date until Ctrl-C: at once after a file changes, and by full scans as a safety net."""


@declare(pipelines, "pipeline", jobs=True, changes=True)
def invalidate(
    targets: Wanted,
    named: Named = None,
    stage: Annotated[str | None, option("STAGE", "Only states of this stage.")] = None,
    as_json: AsJson = False,
) -> None:
    """Have states made again by the next scan."""


@declare(pipelines, "pipeline", jobs=True, changes=True)
def accept(targets: Wanted, named: Named = None, as_json: AsJson = False) -> None:
    """Take states as they are: recorded as made by the present code from the present inputs."""


@declare(pipelines, "pipeline", jobs=True)
def failures(named: Named = None, as_json: AsJson = False) -> None:
    """List what failed, why, and when it is tried again."""


@declare(pipelines, "pipeline", jobs=True, changes=True)
def retry(targets: Targets = None, named: Named = None, as_json: AsJson = False) -> None:
    """End the back-off of what failed: the next scan tries it again."""


@declare(pipelines, "pipeline", jobs=True, changes=True)
def clean(
    named: Named = None,
    dry_run: Annotated[bool, flag("--dry-run", "Only say what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove states whose source is gone."""


@declare(pipelines, "pipeline", jobs=True, place="store", changes=True)
def put(
    path: Annotated[str, argument("PATH", "Where the source goes, relative to the root.")],
    file: Annotated[str, argument("FILE", "What it holds; - reads stdin.")],
    named: Named = None,
) -> None:
    """Write a source into the store of states."""


@declare(pipelines, "pipeline", jobs=True)
def graph(named: Named = None, as_json: AsJson = False) -> None:
    """Draw the stages of the pipelines and the patterns that connect them, as a Mermaid flowchart."""
