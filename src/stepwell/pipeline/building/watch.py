"""`Watcher`: keeps pipelines up to date until it is stopped. File events make it immediate; full scans are the safety net."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from .build import Scanner
from .report import BuildReport, StateEvent

if TYPE_CHECKING:
    from ...runner import Engine
    from ..pipeline import Pipeline

DEBOUNCE_MS = 50
_LOOK_MS = 500


class Watcher:
    """Watches the roots of pipelines. A state that one of them writes is at once work for the others that read it."""

    def __init__(
        self,
        pipelines: Sequence[Pipeline],
        engine: Engine | str | None = None,
        *,
        interval: float | None = None,
        on_build: Callable[[BuildReport], None] | None = None,
        **options: Any,
    ) -> None:
        from ..connected import check_together

        check_together(pipelines)
        self._stack = ExitStack()
        if not hasattr(engine, "start"):
            from ...runner import Engine

            engine = self._stack.enter_context(Engine(engine, **options))
        self.scanners = [
            self._stack.enter_context(Scanner(pipeline, engine, on_state=self._heard)) for pipeline in pipelines
        ]
        self._interval = interval
        self._on_build = on_build
        self._written: list[StateEvent] = []
        self._stop = threading.Event()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> None:
        """Work until `stop()` or Ctrl-C."""
        for scanner in self.scanners:
            self._tell(scanner.scan())
        self.pass_on()
        scanned = time.monotonic()
        every = self._interval or min(scanner.pipeline.scan_interval for scanner in self.scanners)
        for paths in self._events():
            if self._stop.is_set():
                return
            if time.monotonic() - scanned >= every:
                scanned = time.monotonic()
                for scanner in self.scanners:
                    self._tell(scanner.scan())
            elif paths:
                self.changed(paths)
            self._tell_due()
            self.pass_on()

    def changed(self, files: Iterable[str]) -> None:
        """Some files changed: those below the root of a pipeline are looked at."""
        given = list(files)
        for scanner in self.scanners:
            root = os.path.realpath(scanner.pipeline.store.url) + os.sep
            paths = [file[len(root) :].replace(os.sep, "/") for file in given if file.startswith(root)]
            if paths:
                self._tell(scanner.changed(paths))

    def _tell_due(self) -> None:
        """What time has made stale."""
        for scanner in self.scanners:
            due = scanner.due_at()
            if due is not None and scanner.pipeline.clock() >= due:
                self._tell(scanner.scan())

    def _heard(self, event: StateEvent) -> None:
        self._written.append(event)

    def pass_on(self) -> None:
        """Let the other pipelines of the same root know what was written, until nothing new is."""
        while self._written:
            events, self._written = self._written, []
            for scanner in self.scanners:
                here = [
                    event.address
                    for event in events
                    if event.pipeline != scanner.pipeline.name and scanner.pipeline.concerns(event.address.rstrip("/"))
                ]
                if here:
                    self._tell(scanner.changed(here))

    def _tell(self, report: BuildReport) -> None:
        if self._on_build is not None:
            self._on_build(report)

    def _events(self) -> Iterator[list[str]]:
        """Paths that changed, or nothing now and then."""
        roots = list(dict.fromkeys(os.path.realpath(scanner.pipeline.store.url) for scanner in self.scanners))
        for root in roots:
            os.makedirs(root, exist_ok=True)
        try:
            import watchfiles
        except ImportError:
            raise InputError("watching files needs the package watchfiles: pip install 'stepwell[watch]'") from None
        for changes in watchfiles.watch(
            *roots,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=10,
            stop_event=self._stop,
            rust_timeout=_LOOK_MS,
            yield_on_timeout=True,
            raise_interrupt=True,
        ):
            yield sorted({path for _, path in changes if f"{os.sep}.stepwell" not in path})
