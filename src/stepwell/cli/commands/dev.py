"""`stepwell dev`: a server, and a worker that is restarted whenever the code changes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from ...core.store import reader
from ...engine import Engine
from ...errors import StepwellError, StoreError, StoreReplaced
from ..connect import Connection
from ..documents import is_file, load_file
from ..exits import complain
from ..web import about, announce, load_serving

LOOK_EVERY = 0.5
"""Seconds between two looks at the files."""
END_SECONDS = 15.0
"""How long a worker may take to stop; it waits a little less for its bodies."""
MAX_FILES = 20_000
_LEFT_OUT = {"node_modules", "__pycache__", "site-packages", "venv", "build", "dist"}


def dev(connection: Connection, what: Sequence[str] | None, *, port: int) -> None:
    Serving = load_serving()
    documents = [each for each in what or () if is_file(each)]
    modules = [each for each in what or () if not is_file(each)]
    with connection.store(make=True) as store:
        serving = Serving(
            store,
            port=port,
            handlers=connection.handlers(),
            jobs=(*connection.settings.jobs, *modules),
            about=about(connection.settings),
        )
        worker = WorkerProcess(modules, connection.settings.store, connection.settings.jobs)
        watching = Watching(connection, serving.service.engine, documents, worker)
        for file in watching.documents:
            watching.save(file)

        def started() -> None:
            announce(serving)
            watching.start()

        try:
            serving.run(started)
        finally:
            watching.stop()
            worker.stop()


class WorkerProcess:
    """`stepwell work` in a process of its own: changed code is loaded by a new process, never reloaded."""

    def __init__(self, modules: Sequence[str], store: str, jobs: Sequence[str] = ()) -> None:
        allowed = [word for module in jobs for word in ("--jobs", module)]
        self._command = [sys.executable, "-m", "stepwell", "work", *modules, "--store", store, *allowed]
        self._process: subprocess.Popen[bytes] | None = None
        self._told = True

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        self._told = False

    def stop(self) -> None:
        """Let running bodies end. What takes too long is killed and run again."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def has_ended(self) -> bool:
        """Whether it has ended on its own since this was asked last, as it does when the code cannot be imported."""
        if self._told or self._process is None or self._process.poll() is None:
            return False
        self._told = True
        return True


class Watching:
    """Watches files for changes, in a thread: a document is saved, and for code the worker begins anew."""

    def __init__(self, connection: Connection, engine: Engine, documents: Sequence[str], worker: WorkerProcess) -> None:
        self._connection, self._engine, self._worker = connection, engine, worker
        self.documents = [Path(file) for file in documents]
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stepwell-dev", daemon=True)

    def start(self) -> None:
        self._worker.start()
        self._thread.start()

    def stop(self) -> None:
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join(END_SECONDS + 5)

    def save(self, file: Path) -> None:
        """Save a document. If it has problems, print them and keep the version before."""
        try:
            saved = self._engine.save(load_file(self._connection, str(file)))
        except StepwellError as error:
            complain(str(error))
        else:
            typer.echo(f"{file}: {saved} {'saved' if saved.is_new else 'as it was'}", err=True)

    def _watch(self) -> None:
        code, documents = _seen(_sources(Path.cwd())), _seen(self.documents)
        while not self._ends.wait(LOOK_EVERY):
            now, data = _seen(_sources(Path.cwd())), _seen(self.documents)
            for file in self.documents:
                if data.get(file) != documents.get(file) and file in data:
                    self.save(file)
            if now != code:
                changed = sorted(str(file) for file, _ in now.items() ^ code.items())
                typer.echo(f"{changed[0]} has changed: the worker ends", err=True)
                self._worker.stop()
                typer.echo("the worker begins anew", err=True)
                self._worker.start()
            if self._worker.has_ended():
                self._look_at_store()
            code, documents = now, data

    def _look_at_store(self) -> None:
        """Go on without the worker, unless it ended because the store was exchanged: when it sees that, the server ends too."""
        try:
            reader.list_workers(self._engine.store)
        except StoreReplaced:
            return
        except StoreError as error:
            complain(str(error))
        typer.echo("the worker has ended; it is started again when a file changes", err=True)


def _sources(folder: Path) -> Iterator[Path]:
    """The Python files below a folder, except in hidden, installed and build folders."""
    count = 0
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _LEFT_OUT)
        for name in files:
            if name.endswith(".py"):
                count += 1
                if count > MAX_FILES:
                    return
                yield Path(path, name)


def _seen(files: Sequence[Path] | Iterator[Path]) -> dict[Path, tuple[int, int]]:
    """The modification time and size of each file."""
    stamps: dict[Path, tuple[int, int]] = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        stamps[file] = (status.st_mtime_ns, status.st_size)
    return stamps
