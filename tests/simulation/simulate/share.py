"""Share tasks out over processes, tell how far they are, and stop when enough has gone wrong."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

LINE_EVERY = 30.0
"""Seconds between two lines of progress where nobody watches, as in the log of a build."""


class Progress:
    """One line: what is being done, how much of it is done, and how long the rest will take."""

    def __init__(self, *, live: bool, write: Callable[[str], object] = sys.stderr.write) -> None:
        self._live = live
        self._write = write
        self._width = 0
        self._told_at = time.monotonic()

    def tell(self, what: str, part: float, seconds: float) -> None:
        """A part of the whole, more than 0 and at most 1, has taken so many seconds."""
        line = f"{what}: {part:.0%}, {minutes(seconds / part - seconds)} left"
        if self._live:
            self._write("\r" + line.ljust(self._width))
            self._width = len(line)
        elif time.monotonic() - self._told_at >= LINE_EVERY:
            self._told_at = time.monotonic()
            self._write(line + "\n")

    def clear(self) -> None:
        if self._live:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0


def minutes(seconds: float) -> str:
    whole, rest = divmod(round(seconds), 60)
    return f"{whole} min {rest:02d} s" if whole else f"{rest} s"


def make_pool(processes: int) -> ProcessPoolExecutor:
    """Processes that are forked from one without threads and connections: a fork of a test's process may hang in them."""
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("forkserver"))


def share(
    pool: ProcessPoolExecutor,
    what: str,
    work: Callable[[Task], Result],
    tasks: Iterable[tuple[Task, float]],
    progress: Progress,
    enough: Callable[[Result], bool] = lambda _: False,
) -> list[Result]:
    """The results of all tasks, each given with its weight, or of some of them if one says that it is enough.

    The heaviest are begun first, so that no process is idle at the end; the results are in the order of the tasks.
    """
    start = time.monotonic()
    weighed = sorted(enumerate(tasks), key=lambda entry: -entry[1][1])
    whole = sum(weight for _, (_, weight) in weighed)
    futures = {pool.submit(work, task): (place, weight) for place, (task, weight) in weighed}
    results: dict[int, Result] = {}
    done = 0.0
    try:
        for future in as_completed(futures):
            place, weight = futures[future]
            results[place] = future.result()
            done += weight
            progress.tell(what, done / whole, time.monotonic() - start)
            if enough(results[place]):
                break
    finally:
        for future in futures:
            future.cancel()
        progress.clear()
    return [results[place] for place in sorted(results)]
