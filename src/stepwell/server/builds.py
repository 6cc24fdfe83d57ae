"""Scans that were requested over HTTP: each in its own thread, one at a time for each pipeline."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import partial

from ..answers.pipelines import ScanRecord
from ..base.ids import new_run_id
from ..base.words import error_text
from ..engine import Engine
from ..errors import StepwellError
from ..pipeline import Pipeline
from ..pipeline.building.build_once import build_once
from ..pipeline.building.report import BuildReport, BuildTally
from .problems import public_text

log = logging.getLogger("stepwell")

KEPT = 20
"""Ended scans of a pipeline that are remembered."""


class Build:
    def __init__(
        self, pipeline: Pipeline, engine: Engine, targets: Sequence[str], *, force: bool, existing: bool
    ) -> None:
        self.id = new_run_id()
        self._pipeline = pipeline
        self._build = partial(
            build_once, pipeline, targets, engine=engine, force=force, existing=existing, progress=self._note
        )
        self.running = True
        self._progress: BuildTally | None = None
        self._report: BuildReport | None = None
        self._error: str | None = None

    def start(self) -> None:
        threading.Thread(target=self._run, name=f"stepwell-scan-{self._pipeline.name}", daemon=True).start()

    def _run(self) -> None:
        try:
            self._report = self._build()
        except Exception as error:  # reported to clients that ask for the scan
            self._error = public_text(error)
            trace = None if isinstance(error, StepwellError) else error
            log.error("the scan of %s failed: %s", self._pipeline.name, error_text(error), exc_info=trace)
        finally:
            self.running = False

    def _note(self, tally: BuildTally) -> None:
        self._progress = tally

    def to_dict(self) -> ScanRecord:
        running = self.running  # first: once it has ended, what came of it is there
        return {
            "id": self.id,
            "running": running,
            "progress": None if self._progress is None else self._progress.to_dict(),
            "report": None if self._report is None else self._report.to_dict(),
            "error": self._error,
        }


class Builds:
    """The scans of this server: for each pipeline the running one, and some that have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._builds: dict[str, list[Build]] = {}

    def begin(self, pipeline: Pipeline, build: Build) -> bool:
        """Start a scan; False if one of this pipeline is running already."""
        with self._lock:
            known = self._builds.setdefault(pipeline.name, [])
            if known and known[-1].running:
                return False
            known.append(build)
            del known[:-KEPT]
        build.start()
        return True

    def last(self, name: str) -> Build | None:
        with self._lock:
            known = self._builds.get(name)
            return known[-1] if known else None

    def get(self, name: str, build_id: str) -> Build | None:
        with self._lock:
            return next((each for each in self._builds.get(name, ()) if each.id == build_id), None)
