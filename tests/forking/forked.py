"""The process that is forked for each program: `forked.py FD`, a socket on which `template.py` asks.

A fork leaves the loop, becomes the program, and ends as `python -m stepwell` does: by way of all that Python does at an exit.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

PRELOADED = (
    "asyncio",
    "cattrs",
    "importlib.metadata",
    "importlib.readers",
    "jinja2",
    "pydantic.fields",
    "pydantic.main",
    "pydantic.plugin._loader",
    "pydantic.types",
    "rich.live",
    "rich.progress",
    "stepwell.define",
    "stepwell.engine.engine",
    "stepwell.stores.sqlite",
    "typer._click.decorators",
    "yaml",
    "zipfile",
    "zoneinfo",
)
PRELOADED_WHOLE = ("stepwell.cli.commands", "stepwell.cli.show", "stepwell.handlers")


def preload() -> None:
    """Import what many commands import, but no pipelines: a command asks whether its user has imported these."""
    for name in PRELOADED:
        importlib.import_module(name)
    for name in PRELOADED_WHOLE:
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".pipeline"):
                importlib.import_module(module.name)
    assert "stepwell.pipeline" not in sys.modules


def wait_for_a_program(connection: socket.socket) -> dict[str, Any] | None:
    """Return in each fork, with what it was asked for; in the template itself when nobody can ask any more."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    running: dict[int, int] = {}
    """By the id of a fork, the file that this id is written to, and its exit code when it has ended."""
    while True:
        ready, _, _ = select.select([connection, woken], [], [])
        if woken in ready:
            os.read(woken, 1 << 16)
            report_the_ended(running)
        if connection in ready:
            text, fds, _, _ = socket.recv_fds(connection, 1 << 20, 4)
            if not text:
                return None
            while not text.endswith(b"\n"):
                text += connection.recv(1 << 20)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                for fd in (woken, wake, connection.detach(), fds.pop(), *running.values()):
                    os.close(fd)
                asked: dict[str, Any] = json.loads(text)
                become(asked, fds)
                return asked
            running[pid] = fds.pop()
            with contextlib.suppress(BrokenPipeError):
                os.write(running[pid], f"{pid}\n".encode())
            for fd in fds:
                os.close(fd)


def report_the_ended(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        file = running.pop(pid)
        with contextlib.suppress(BrokenPipeError):  # who asked has lost patience
            os.write(file, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(file)


def become(asked: dict[str, Any], streams: list[int]) -> None:
    """Let this process be as one that a test has started."""
    for target, fd in enumerate(streams):
        os.dup2(fd, target)
        os.close(fd)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked["folder"])
    own = _folders(os.environ)
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    sys.path[1 : 1 + len(own)] = _folders(os.environ)
    if asked["words"][0] == "-m":
        sys.argv = asked["words"][1:]
        sys.path[0] = asked["folder"]
    else:
        sys.argv = asked["words"]
        sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))


def _folders(environment: Mapping[str, str]) -> list[str]:
    """Those that Python adds to its path."""
    text = environment.get("PYTHONPATH")
    return [os.path.abspath(folder) for folder in text.split(os.pathsep)] if text else []


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        preload()
        gc.freeze()  # so that a fork need not copy what it does not change
        found = wait_for_a_program(listening)
    if found is not None and found["words"][0] == "-m":
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif found is not None:
        runpy.run_path(sys.argv[0], run_name="__main__")
