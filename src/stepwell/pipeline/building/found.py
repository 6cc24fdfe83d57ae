"""Finding the pipeline that a node names. A worker that does not have it imports its module, or reads its document."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable

from ...errors import DefinitionError, OtherRoot
from ...importable import loaded_module
from ..definition import PipelineDefinition
from ..document.names import STORED
from ..registry import homes, living

HOMES = "STEPWELL_PIPELINE_HOMES"
"""A variable of a worker and the processes it starts: the only modules that a node may have imported."""
JOBS = "stepwell.pipeline.building.jobs"
"""The module with the jobs of nodes."""
_loaded: dict[str, PipelineDefinition] = {}
"""Pipelines that were read from files for a node, which nobody else holds."""


def find_pipeline(home: str, name: str, root_id: str, stage: str) -> PipelineDefinition:
    """Return the pipeline with this home, name, stage and root."""
    alike = _with_stage(home, name, stage)
    if not alike:
        _load(home)
        alike = _with_stage(home, name, stage)
    if not alike:
        raise DefinitionError(
            f"pipeline {name!r} in {home} has no stage {stage!r} any more"
            if _alive(home, name)
            else f"there is no pipeline {name!r} in {home}; was it renamed, or is it made only when {home} is run as a program?"
        )
    for pipeline in alike:
        if pipeline.store.root_id == root_id:
            return pipeline
    raise OtherRoot(
        f"pipeline {name!r}: the root here, {alike[0].store.url}, is not the one that the work was planned for; mount the same "
        f"folder at the root, or plan the work here",
        pipeline=name,
    )


def jobs_of(modules: Iterable[str]) -> tuple[str, ...]:
    """Return the modules that a worker has to allow if one of the modules it serves contains pipelines.

    From then on nodes can only have these modules, and those below them, imported: whoever can write to the store chooses
    the names.
    """
    given = tuple(modules)
    if not any(_is_below(home, given) for home in homes()):
        return ()
    os.environ[HOMES] = ",".join(given)
    return (JOBS,)


def _is_below(home: str, modules: Iterable[str]) -> bool:
    return any(home == module or home.startswith(f"{module}.") for module in modules)


def _with_stage(home: str, name: str, stage: str) -> list[PipelineDefinition]:
    """Another thread may just be making the newest one, which has no stages yet."""
    return [each for each in _alive(home, name) if stage in each.stages]


def _alive(home: str, name: str) -> list[PipelineDefinition]:
    return [each for each in living(home, name) if isinstance(each, PipelineDefinition)]


def _load(home: str) -> None:
    """Make the pipelines of a module or document, which enter themselves in the registry."""
    if home.endswith((".json", ".yaml", ".yml")):
        from ..document.load import read_pipeline

        _loaded[home] = read_pipeline(PipelineDefinition, home)
    elif home.startswith(STORED):
        from ..document.stored import read_home

        _loaded[home] = read_home(PipelineDefinition, home)
    else:
        there = loaded_module(home)
        allowed = os.environ.get(HOMES)
        if there is None and allowed is not None and not _is_below(home, allowed.split(",")):
            raise DefinitionError(f"the pipelines of {home} are not served here; name it when you start the worker")
        if there is None or there.__name__ == home:
            importlib.import_module(home)  # waits if another thread is importing it
