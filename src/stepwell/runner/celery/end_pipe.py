"""Tells the processes of a worker that it ends, and lets them ask it to. Celery's own signal reaches only the parent."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress

_ENOUGH = 4_096
"""Bytes that the parent writes when it ends, one for each child. Later children find the pipe closed."""


class EndPipe:
    """A pipe from the parent to its processes: written to and closed when the worker ends, and closed if the parent dies. It is
    made before the first child is forked."""

    def __init__(self) -> None:
        self._parent = os.getpid()
        self._reading, self._writing = os.pipe()
        self._requests, self._requesting = os.pipe()
        os.set_blocking(self._requests, False)

    def watch(self, ends: Callable[[], None]) -> None:
        """Call `ends`, in a thread, when the worker ends. A child closes its copy of the other end."""
        if os.getpid() != self._parent:
            with suppress(OSError):
                os.close(self._writing)

        def wait() -> None:
            with suppress(OSError):
                os.read(self._reading, 1)
            ends()

        threading.Thread(target=wait, name="stepwell-end-pipe", daemon=True).start()

    def ask_to_end(self) -> None:
        """Ask the worker to end, because this process cannot go on; a supervisor starts it again."""
        os.write(self._requesting, b"!")
        os.kill(self._parent, signal.SIGTERM)

    @property
    def end_asked(self) -> bool:
        """Whether a process has asked for the end. True only once, in the parent."""
        with suppress(BlockingIOError):
            return bool(os.read(self._requests, 1))
        return False

    def end(self) -> None:
        """The worker ends. May be called from a signal handler."""
        if os.getpid() == self._parent and self._writing >= 0:
            writing, self._writing = self._writing, -1
            with suppress(OSError):
                os.set_blocking(writing, False)
                os.write(writing, b"." * _ENOUGH)
                os.close(writing)
