"""A scan that somebody asked for over HTTP: in a thread of its own, one at a time for each pipeline."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from ..errors import StepwellError
from ..pipeline import Pipeline
from ..runner import Engine
from ..words import message_of, short_name

log = logging.getLogger("stepwell")


class Build:
    def __init__(self, pipeline: Pipeline, engine: Engine, targets: Sequence[str], *, force: bool) -> None:
        self._pipeline, self._engine, self._targets, self._force = pipeline, engine, tuple(targets), force
        self.running = True
        self._report: dict[str, Any] | None = None
        self._error: str | None = None

    def start(self) -> None:
        threading.Thread(target=self._build, name=f"stepwell-scan-{self._pipeline.name}", daemon=True).start()

    def _build(self) -> None:
        try:
            report = self._pipeline.build(self._targets, engine=self._engine, force=self._force)
            self._report = report.to_json()
        except Exception as error:  # it is told to who asks for the status
            self._error = f"{short_name(type(error))}: {message_of(error)}"
            if not isinstance(error, StepwellError):
                log.exception("the scan of %s failed", self._pipeline.name)
        finally:
            self.running = False

    def to_json(self) -> dict[str, Any]:
        return {"running": self.running, "report": self._report, "error": self._error}
