"""Python programs, each in a process of its own that need not import Stepwell anew.

Half a second of a command passes while Python starts and imports. Tests run about a thousand commands, and nearly all of these
tests are about what comes after that. So one process, the template, imports what commands use, and is forked for each command.
The fork has its own arguments, folder, environment, streams, signals and exit, as any process has.

What a fork cannot show is how a command starts: what it imports, and what Python itself reads from the environment.
Tests of that start Python, as do those of terminals, of stdin and of commands that are interrupted or killed.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

READ_BY_PYTHON = ("PYTHON", "LANG", "LC_", "LD_")
"""The beginnings of variables that matter when a process starts. A fork notices a change of PYTHONPATH, and of no other."""


class Template:
    """The process that is forked, as tests see it. Several threads may use it."""

    def __init__(self, **changes: str) -> None:
        environment = os.environ | changes
        self._variables = _read_by_python(environment)
        self._asking = threading.Lock()
        self._socket, theirs = socket.socketpair()
        command = [sys.executable, str(Path(__file__).with_name("forked.py")), str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def can_run(self, environment: Mapping[str, str]) -> bool:
        """Say whether a fork cannot be told from a new process with this environment."""
        return _read_by_python(environment) == self._variables

    def run(
        self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run `python WORDS`, where the first is `-m` or a file. Return when that has ended and nobody can write to its streams
        any more, as `subprocess.run` does."""
        readers, writers = zip(*(os.pipe() for _ in ("stdout", "stderr", "status")), strict=True)
        try:
            with self._asking:
                asked = json.dumps({"words": list(words), "folder": str(cwd), "environment": dict(env)})
                socket.send_fds(self._socket, [asked.encode() + b"\n"], [0, *writers])
        finally:
            for fd in writers:
                os.close(fd)
        deadline = time.monotonic() + timeout
        out, err, status = (data.decode() for data in _read_to_the_end(readers, deadline))
        pid, _, code = status.partition("\n")
        if time.monotonic() > deadline:
            if pid and not code:
                os.kill(int(pid), signal.SIGKILL)
            raise subprocess.TimeoutExpired(list(words), timeout, out, err)
        assert code, f"the template has ended: {self._process.communicate()}"
        return subprocess.CompletedProcess(list(words), int(code), out, err)

    def stop(self) -> None:
        self._socket.close()
        self._process.communicate(timeout=10)


def _read_by_python(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environment.items() if name.startswith(READ_BY_PYTHON) and name != "PYTHONPATH"
    }


def _read_to_the_end(fds: Sequence[int], deadline: float) -> list[bytes]:
    """Return what can be read from each until nobody can write to any of them, or until the deadline."""
    read = dict.fromkeys(fds, b"")
    with selectors.DefaultSelector() as selector:
        for fd in fds:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() <= deadline:
            for key, _ in selector.select(deadline - time.monotonic()):
                data = os.read(key.fd, 1 << 16)
                read[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
    for fd in fds:
        os.close(fd)
    return list(read.values())
