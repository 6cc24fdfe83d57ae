"""`Reloader`: loads pipelines again, in the same process, when one of their files has changed."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ..codehash.loaded import loaded
from ..states.single import Stamp, stamp_of

if TYPE_CHECKING:
    from ..definition import PipelineDefinition


class Reloader:
    """Imports every module of the project again, because one may hold what it imported from another."""

    def __init__(self, find: Callable[[], Sequence[PipelineDefinition]]) -> None:
        self._find = find
        self._documents: dict[str, Stamp | None] = {}
        self._tried: dict[str, Stamp | None] = {}
        """Files that could not be loaded. They are not tried again before they change."""

    def found(self) -> Sequence[PipelineDefinition]:
        """Load the pipelines for the first time."""
        pipelines = self._load()
        self._note(pipelines)
        return pipelines

    def _load(self) -> Sequence[PipelineDefinition]:
        """Find the pipelines, and import the code of all stages: that of a handler is otherwise imported at its first use, and
        a change of a file that was not imported is not noticed.
        """
        pipelines = self._find()
        for pipeline in pipelines:
            for stage in pipeline.stages:
                pipeline.code.of(stage)
        return pipelines

    def _note(self, pipelines: Sequence[PipelineDefinition]) -> None:
        loaded.look()
        self._documents = {p.home: stamp_of(p.home) for p in pipelines if os.path.isfile(p.home)}

    def changed(self) -> list[str]:
        """The files that changed since they were loaded, and have not been tried since."""
        documents = [file for file, stamp in self._documents.items() if stamp_of(file) != stamp]
        return [
            file
            for file in (*loaded.changed(), *documents)
            if file not in self._tried or self._tried[file] != stamp_of(file)
        ]

    def reload(self) -> Sequence[PipelineDefinition]:
        """Load the pipelines as they are written now. If that raises, nothing has changed."""
        changed = self.changed()
        self._tried = {file: stamp_of(file) for file in changed}
        before = {name: sys.modules[name] for name in loaded.modules()}
        for file in changed:  # its compiled form may have the same size and second
            with suppress(OSError, NotImplementedError, ValueError):
                os.unlink(importlib.util.cache_from_source(file))
        for name in before:
            del sys.modules[name]
        importlib.invalidate_caches()
        try:
            pipelines = self._load()
        except BaseException:
            for name in loaded.modules():
                del sys.modules[name]
            sys.modules.update(before)
            raise
        self._tried = {}
        self._note(pipelines)
        return pipelines
