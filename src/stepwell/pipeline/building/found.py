"""The pipelines that an engine was given. The bodies of its runs find these, and no others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

from ...base.importable import loaded_module
from ...errors import DefinitionError, OtherRoot
from ..definition import PipelineDefinition
from ..document.names import STORED


class GivenPipelines:
    """Pipelines that were given as objects, and those of allowed modules, which are imported at their first use."""

    def __init__(self, pipelines: Iterable[PipelineDefinition], allows_module: Callable[[str], bool]) -> None:
        self._pipelines = list(pipelines)
        self._allows_module = allows_module

    def add(self, pipeline: PipelineDefinition) -> None:
        """Nodes that name this pipeline and its root now find this object, not an older one with other code."""
        others = [each for each in self._pipelines if _place_of(each) != _place_of(pipeline)]
        self._pipelines = [pipeline, *others]

    def find(self, home: str, name: str, root_id: str, stage: str) -> PipelineDefinition:
        """Return the pipeline with this home, name, stage and root."""
        alike = [each for each in self._pipelines if (each.home, each.name) == (home, name)]
        alike += [each for each in self._of_module(home) if each.name == name]
        if not alike:
            raise DefinitionError(
                f"pipeline {name!r} of {home} was not given to this process: allow its module (`stepwell work {home}`, "
                f"`jobs`), or give the pipeline itself (`pipelines` in the settings, Engine(pipelines=[...]))"
            )
        whole = [each for each in alike if stage in each.stages]
        if not whole:
            raise DefinitionError(f"pipeline {name!r} in {home} has no stage {stage!r} any more")
        for pipeline in whole:
            if pipeline.store.root_id == root_id:
                return pipeline
        raise OtherRoot(
            f"pipeline {name!r}: the root here, {whole[0].store.url}, is not the one that the work was planned for; mount the "
            f"same folder at the root, or plan the work here",
            pipeline=name,
        )

    def _of_module(self, home: str) -> list[PipelineDefinition]:
        """The pipelines at the top level of a module, if it is allowed."""
        if not self._allows_module(home):
            return []
        module = loaded_module(home)
        if module is None or module.__name__ == home:
            module = importlib.import_module(home)  # waits if another thread is importing it
        return [each for each in vars(module).values() if isinstance(each, PipelineDefinition) and each.home == home]

    def __reduce__(self) -> tuple[Any, ...]:
        """For a child process, which makes the same pipelines from their modules and documents."""
        return _of_homes, (type(self), list(dict.fromkeys(each.home for each in self._pipelines)))


def _of_homes(kind: type[GivenPipelines], homes: list[str]) -> GivenPipelines:
    modules = [home for home in homes if not _is_document(home)]
    return kind((_read(home) for home in homes if _is_document(home)), modules.__contains__)


def _is_document(home: str) -> bool:
    return home.startswith(STORED) or home.endswith((".json", ".yaml", ".yml"))


def _read(home: str) -> PipelineDefinition:
    if home.startswith(STORED):
        from ..document.stored import read_home

        return read_home(PipelineDefinition, home)
    from ..document.load import read_pipeline

    return read_pipeline(PipelineDefinition, home)


def _place_of(pipeline: PipelineDefinition) -> tuple[str, str, str]:
    return pipeline.home, pipeline.name, pipeline.root
