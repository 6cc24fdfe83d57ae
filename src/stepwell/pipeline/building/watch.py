"""`Watcher`: keeps pipelines up to date until it is stopped, at once after file events, and by regular full scans."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ...errors import InputError, StepwellError, StoreReplaced
from ..states.address import members_base
from .build import Scanner
from .report import BuildReport, StateEvent

if TYPE_CHECKING:
    from ...engine import Engine
    from ..definition import PipelineDefinition
    from .reloading import Reloader

log = logging.getLogger("stepwell.pipeline")

DEBOUNCE_MS = 50
_LOOK_MS = 500
_STEP_MS = 100
"""How long after the start everything is certainly watched."""
AGAIN_SECONDS = 5.0
"""How long to wait after a scan that failed: a server was away, or the disk full."""


class Watcher:
    """Watches the roots of pipelines. A state that one of them writes is at once work for the others that read it.

    With a `reloader` it also goes on with new code as soon as it is written.
    """

    def __init__(
        self,
        pipelines: Sequence[PipelineDefinition],
        engine: Engine | str | None = None,
        *,
        interval: float | None = None,
        on_build: Callable[[BuildReport], None] | None = None,
        on_problem: Callable[[Exception], None] | None = None,
        reloader: Reloader | None = None,
        **options: Any,
    ) -> None:
        self._stack = ExitStack()
        self._engine = engine
        self._interval = interval
        self._on_build = on_build
        self._on_problem = on_problem
        self._reloader = reloader
        self._written: list[StateEvent] = []
        self._marks: dict[int, object] = {}
        """The change mark of each store at its last scan."""
        self._stop = threading.Event()
        self._scan_at = 0.0
        if not hasattr(engine, "start"):
            from ...engine import Engine

            self._engine = self._stack.enter_context(Engine(engine, **options))
        self.scanners = self._made(pipelines)

    def _made(self, pipelines: Sequence[PipelineDefinition]) -> list[Scanner]:
        from ..connected import check_together, share_types

        share_types(pipelines)
        check_together(pipelines)
        return [Scanner(pipeline, self._engine, on_state=self._written.append) for pipeline in pipelines]

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> None:
        """Work until `stop()` or Ctrl-C. What is wrong from the beginning is raised; what goes wrong later is told, and tried
        again. StoreReplaced is raised: the store of runs will not come back.
        """
        began = False
        while not self._stop.is_set():
            for paths in self._events(self._roots()):
                if self._stop.is_set():
                    return
                if not began:  # what changes from now on, while everything is looked at, is told
                    self._scan_all()
                    began = True
                    continue
                if self._reloader is not None and self._reloader.changed() and self._reload(self._reloader):
                    break  # other roots may have to be watched
                try:
                    self._turn(paths)
                except StoreReplaced:
                    raise
                except (StepwellError, OSError) as error:
                    self._problem(error)

    def _turn(self, paths: list[str]) -> None:
        if time.monotonic() >= self._scan_at:
            self._scan_all()
            return
        if paths:
            self.changed(paths)
        for scanner in self.scanners:
            due = scanner.due_at()
            is_due = due is not None and scanner.pipeline.clock() >= due
            if is_due or self._marks.get(id(scanner)) != scanner.pipeline.store.files.change_mark():
                self._scan(scanner)
        self.pass_on()

    def _scan_all(self) -> None:
        every = self._interval or min(scanner.pipeline.scan_interval for scanner in self.scanners)
        self._scan_at = time.monotonic() + every
        for scanner in self.scanners:
            self._scan(scanner)
        self.pass_on()

    def _scan(self, scanner: Scanner) -> None:
        mark = scanner.pipeline.store.files.change_mark()  # before: what others write meanwhile may not be in the scan
        self._tell(scanner.scan())
        self._marks[id(scanner)] = mark

    def _reload(self, reloader: Reloader) -> bool:
        try:
            scanners = self._made(reloader.reload())
        except Exception as error:  # whatever the module raises
            self._problem(error)
            return False
        self.scanners = scanners
        self._marks.clear()
        self._scan_at = 0.0
        return True

    def _problem(self, error: Exception) -> None:
        for scanner in self.scanners:
            scanner.view = None  # it may have been half changed
        self._scan_at = min(self._scan_at, time.monotonic() + AGAIN_SECONDS)
        if self._on_problem is not None:
            self._on_problem(error)
        else:
            log.error("%s", error)

    def changed(self, files: Iterable[str]) -> None:
        """Some files changed: look at those below the root of a pipeline."""
        given = list(files)
        for scanner in self.scanners:
            root = os.path.realpath(scanner.pipeline.root) + os.sep
            paths = [file[len(root) :].replace(os.sep, "/") for file in given if file.startswith(root)]
            if paths:
                self._tell(scanner.changed(paths))

    def pass_on(self) -> None:
        """Tell the other pipelines of the same root what was written, until nothing new is."""
        while self._written:
            events = list(self._written)
            self._written.clear()
            for scanner in self.scanners:
                here = [
                    path
                    for event in events
                    if event.pipeline != scanner.pipeline.name
                    for path in _paths_of(scanner.pipeline, event.address)
                    if scanner.pipeline.concerns(path)
                ]
                if here:
                    self._tell(scanner.changed(here))

    def _tell(self, report: BuildReport) -> None:
        if self._on_build is not None:
            self._on_build(report)

    def _roots(self) -> list[str]:
        """The directories that the system watches. Databases are polled."""
        pipelines = [scanner.pipeline for scanner in self.scanners]
        roots = [os.path.realpath(each.root) for each in pipelines if each.store.files.change_mark() is None]
        for root in roots:
            os.makedirs(root, exist_ok=True)
        return list(dict.fromkeys(roots))

    def _events(self, roots: Sequence[str]) -> Iterator[list[str]]:
        """Paths that changed, or nothing now and then. Once it has given something, even nothing, everything is watched."""
        if not roots:
            yield []
            while not self._stop.wait(_LOOK_MS / 1_000):
                yield []
            return
        try:
            import watchfiles
        except ImportError:
            raise InputError("watching files needs the package watchfiles: pip install 'stepwell[watch]'") from None
        quiet_until = 0.0
        for changes in watchfiles.watch(
            *roots,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=10,
            stop_event=self._stop,
            rust_timeout=_STEP_MS,
            yield_on_timeout=True,
            raise_interrupt=True,
        ):
            paths = sorted({path for _, path in changes if f"{os.sep}.stepwell" not in path})
            now = time.monotonic()
            if paths or now >= quiet_until:
                yield paths
                quiet_until = now + _LOOK_MS / 1_000


def _paths_of(pipeline: PipelineDefinition, address: str) -> list[str]:
    """The files that a state has, and those beside them if it has several."""
    if not address.endswith("/") and "{" not in address:
        return [address]
    files, base = pipeline.store.files, members_base(address)
    if base:
        return files.below(base.removesuffix("/")) or []
    return [f"{each.path}/{name}".removeprefix("/") for each in files.walk(pipeline.wanted) for name in each.names]
