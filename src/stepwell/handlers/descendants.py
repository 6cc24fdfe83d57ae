"""Ends all that a program has started, also what left its process group and session.

Processes inherit the environment. So each program is given a mark there, by which its descendants are found; those that hide
it are found as children of the others while these live. Where there is no /proc, only the process group is known.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

MARK = "STEPWELL_PROGRAM"
"""A variable of every program that is started, with a random value."""
_ROUNDS = 50
"""How often to look again for what was started meanwhile."""


def kill_descendants(mark: str, root: int | None) -> None:
    """Kill every process with this mark, and what was started by it or by process `root`, until there is none."""
    own = os.getpid()
    for _ in range(_ROUNDS):
        processes = _descendants(f"{MARK}={mark}".encode(), root) - {own}
        if not processes:
            return
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)


def _descendants(mark: bytes, root: int | None) -> set[int]:
    parents: dict[int, int] = {}
    marked: set[int] = set()
    for process in _processes():
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has just ended
            with open(f"/proc/{process}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state in (b"Z", b"X"):
                continue
            parents[process] = int(parent)
            with open(f"/proc/{process}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    marked.add(process)
    while below := {each for each, parent in parents.items() if parent in marked or parent == root} - marked:
        marked |= below
    return marked


def _processes() -> Iterator[int]:
    """The processes of this user."""
    user = os.geteuid()
    with contextlib.suppress(OSError), os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if entry.stat().st_uid == user:
                        yield int(entry.name)
