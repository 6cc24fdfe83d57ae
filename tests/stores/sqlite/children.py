"""Real processes for tests of what happens between processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PRELUDE = """
import os, sys
import apsw
from stepwell.core.model import *
from stepwell.core.store import reader
from stepwell.stores.sqlite import SqliteStore
from tests.conformance.ops import *

def say(*words):
    print(*words, flush=True)

def hear():
    return sys.stdin.readline().strip()

path = sys.argv[1]
"""


class Child:
    """A process that runs some lines of Python: `say(...)` there is `hear()` here, and the other way round."""

    def __init__(self, code: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def say(self, words: str = "go") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(30)

    def end(self) -> None:
        """Kill it, and whatever it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@contextmanager
def child(code: str, *arguments: object) -> Iterator[Child]:
    started = Child(code, *arguments)
    try:
        yield started
    finally:
        started.end()
