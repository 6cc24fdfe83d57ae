"""Watches the states of pipelines for all streams: reading them means scanning files, which is done once.

A thread for each followed pipeline reads the states after a change: of files, if the package watchfiles is installed, or of the
database. Without it, and for changes by time alone, it reads them every two seconds.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator
from math import inf
from typing import Any

from ...answers.pipelines import StateRecord
from ...errors import StepwellError
from ...pipeline import Pipeline
from .sse import Listener

log = logging.getLogger("stepwell")

LOOK_SECONDS = 2.0
"""Between two reads without a reported change."""
ASK_SECONDS = 0.2
"""Between two polls of a database for changes."""
SHARE_OF_TIME = 0.1
"""Reading must not slow down the work, so slow reads are done less often."""
_FAILURES = os.path.join(".stepwell", "failures.json")

States = dict[tuple[str, str], StateRecord]
"""By stage and entity."""


class StatesStream(Listener):
    """One stream of a pipeline, and the states as they were last read."""

    states: States | None = None
    """None: not read yet."""

    def tell(self, states: States) -> None:
        """Called by the thread that reads the states."""
        self.states = states
        self.wake()


class _Followed:
    """A pipeline with followers."""

    def __init__(self, pipeline: Pipeline, lock: threading.Lock) -> None:
        self._lock = lock
        self.followers: set[StatesStream] = set()
        self.states: States | None = None
        self.stop = threading.Event()
        self._pipeline = pipeline
        self.thread = threading.Thread(target=self._run, name=f"stepwell-look-{pipeline.name}", daemon=True)

    def _run(self) -> None:
        while not self.stop.is_set():
            try:
                for _ in changes(self._pipeline, self.stop):
                    began = time.monotonic()
                    found = read_states(self._pipeline)
                    if found != self.states:
                        with self._lock:  # so that a new follower gets these states, one way or the other
                            self.states = found
                            for follower in self.followers:
                                follower.tell(found)
                    self.stop.wait((time.monotonic() - began) / SHARE_OF_TIME)
            except (StepwellError, OSError) as error:
                log.warning("the states of %s cannot be looked at: %s; it is tried again", self._pipeline.name, error)
                self.stop.wait(LOOK_SECONDS)
            except Exception:
                log.exception("the states of %s cannot be looked at; it is tried again", self._pipeline.name)
                self.stop.wait(LOOK_SECONDS)


def read_states(pipeline: Pipeline) -> States:
    """The status of all states, including orphans."""
    view = pipeline.view()
    return {(each.stage, each.entity): each.to_dict() for each in (*view.states(), *view.orphans())}


def changes(pipeline: Pipeline, stop: threading.Event) -> Iterator[None]:
    """Yields now and whenever the states may have changed, until `stop` is set."""
    if pipeline.store.files.change_mark() is not None:
        return _changes_of_database(pipeline, stop)
    try:
        import watchfiles
    except ImportError:
        return _now_and_then(stop)
    return _changes_of_files(watchfiles, os.path.realpath(pipeline.root), stop)


def _changes_of_database(pipeline: Pipeline, stop: threading.Event) -> Iterator[None]:
    while not stop.is_set():
        mark, until = pipeline.store.files.change_mark(), time.monotonic() + LOOK_SECONDS
        yield
        while time.monotonic() < until and pipeline.store.files.change_mark() == mark:
            if stop.wait(ASK_SECONDS):
                return


def _now_and_then(stop: threading.Event) -> Iterator[None]:
    yield
    while not stop.wait(LOOK_SECONDS):
        yield


def _changes_of_files(watchfiles: Any, root: str, stop: threading.Event) -> Iterator[None]:
    os.makedirs(root, exist_ok=True)
    looked_at = -inf  # the first turn comes once everything is watched, so nothing is missed between it and the next
    options = {"debounce": 100, "step": 20, "rust_timeout": 100, "yield_on_timeout": True, "watch_filter": None}
    for found in watchfiles.watch(root, stop_event=stop, raise_interrupt=False, **options):
        own = f"{os.sep}.stepwell"  # what looking and scanning write for themselves
        told = any(own not in path or path.endswith(_FAILURES) for _, path in found)
        if told or time.monotonic() - looked_at >= LOOK_SECONDS:
            looked_at = time.monotonic()
            yield


class StateFeed:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followed: dict[str, _Followed] = {}

    @property
    def streams(self) -> int:
        with self._lock:
            return sum(len(each.followers) for each in self._followed.values())

    @contextlib.contextmanager
    def following(self, pipeline: Pipeline) -> Iterator[StatesStream]:
        """A stream of this pipeline. The first starts the thread, and the last stops it."""
        follower = StatesStream()
        with self._lock:
            followed = self._followed.get(pipeline.name)
            begins = followed is None
            if followed is None:
                followed = self._followed[pipeline.name] = _Followed(pipeline, self._lock)
            followed.followers.add(follower)
            if followed.states is not None:
                follower.tell(followed.states)
        if begins:
            followed.thread.start()
        try:
            yield follower
        finally:
            with self._lock:
                followed.followers.discard(follower)
                if not followed.followers:
                    followed.stop.set()
                    del self._followed[pipeline.name]
