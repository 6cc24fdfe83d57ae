"""`Root`: the directory that has the states, and the only way to anything below it.

Each directory is opened by its name in the one above, without following a link, and a file only below an open directory. So
neither a link nor a directory that is swapped for one meanwhile leads out of the root, and a pipe keeps nobody waiting.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from stat import S_ISLNK
from time import monotonic
from typing import TypeVar

from ....errors import UnsafePath
from ..single import open_file, read_file, write_all

LOOK_AGAIN_SECONDS = 0.01
"""How long an open directory is used before it is looked for again, where many files are read or written in a row."""
MOST_OPEN = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS = (errno.ELOOP, errno.EMLINK, errno.ENXIO)
"""What the system says of a link, and of a pipe or socket that nobody reads."""
Result = TypeVar("Result")


class Folders:
    """The directories that are open for a moment: calling it gives the directory and the name of a path.

    What two calls gave can be used together: a directory that is opened again is closed only later.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._open: dict[str, tuple[int, float]] = {}
        self._outdated: list[int] = []

    def __enter__(self) -> Folders:
        return self

    def __exit__(self, *error: object) -> None:
        for descriptor in (*self._outdated, *(each for each, _ in self._open.values())):
            os.close(descriptor)
        self._outdated, self._open = [], {}

    def __call__(self, path: str, *, make: bool = False) -> tuple[int, str]:
        folder, _, name = path.removesuffix("/").rpartition("/")
        if name in (".", ".."):
            raise UnsafePath(path, f"{name!r} names nothing below a directory")
        now = monotonic()
        descriptor, until = self._open.get(folder, (-1, 0.0))
        if now < until:
            return descriptor, name
        opened = self._root.open_folder(folder, make=make)
        if descriptor >= 0 or len(self._open) >= MOST_OPEN:
            self._outdated.append(self._open.pop(folder if descriptor >= 0 else next(iter(self._open)))[0])
        self._open[folder] = opened, now + LOOK_AGAIN_SECONDS
        if len(self._outdated) > 2:
            os.close(self._outdated.pop(0))
        return opened, name


class Root:
    """A directory. Paths are relative to it, with `/` between their components."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.home = os.path.realpath(path)
        """The same without links on the way to it."""

    def place(self, path: str) -> str:
        """The absolute path, to be shown or given to a body: whoever opens it follows links."""
        return f"{self.home}/{path}"

    def path_of(self, place: str) -> str:
        return place[len(self.home) + 1 :]

    def folders(self) -> Folders:
        return Folders(self)

    def open_folder(self, folder: str, *, make: bool = False) -> int:
        """Open a directory. UnsafePath if a link is on the way to it."""
        if make:
            os.makedirs(self.path, exist_ok=True)
        descriptor = os.open(self.path, _FOLDER & ~os.O_NOFOLLOW)
        for part in folder.split("/") if folder else ():
            above = descriptor
            try:
                descriptor = self._open_below(part, above, folder, make)
            finally:
                os.close(above)
        return descriptor

    def _open_below(self, part: str, above: int, folder: str, make: bool) -> int:
        if part in ("", ".", ".."):
            raise UnsafePath(folder, f"{part!r} names no directory below another")
        if make:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=above)
        try:
            return os.open(part, _FOLDER, dir_fd=above)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR) and _is_link(part, above):
                raise UnsafePath(folder, f"{part!r} is a symbolic link, which is not followed") from None
            raise

    def at(self, path: str, call: Callable[[str, int], Result], *, make: bool = False) -> Result:
        """Call a function with the name of a path and the open directory that it is in. UnsafePath if it is no file."""
        with self.folders() as folders:
            folder, name = folders(path, make=make)
            try:
                return call(name, folder)
            except OSError as error:
                raise refusal(path, error) or error from None

    def open(self, path: str, flags: int = os.O_RDONLY, *, make: bool = False) -> int:
        return self.at(path, lambda name, folder: open_file(name, flags, folder), make=make)

    def read(self, path: str) -> bytes:
        return self.at(path, read_file)[0]

    def stat(self, path: str) -> os.stat_result | None:
        """What is at a path, be it a link; None if there is nothing."""
        try:
            return self.at(path, lambda name, folder: os.lstat(name or ".", dir_fd=folder))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def rename(self, path: str, target: str, *, make: bool = False) -> None:
        with self.folders() as folders:
            folder, name = folders(path)
            above, new = folders(target, make=make)
            os.replace(name, new, src_dir_fd=folder, dst_dir_fd=above)

    def remove(self, path: str) -> None:
        """Remove a file, a link or a whole directory, if it is there."""
        with suppress(FileNotFoundError, NotADirectoryError), self.folders() as folders:
            folder, name = folders(path)
            try:
                os.unlink(name, dir_fd=folder)
            except (IsADirectoryError, PermissionError):
                shutil.rmtree(name, ignore_errors=True, dir_fd=folder)

    def remove_empty(self, path: str) -> None:
        """Remove a directory and those below it, as far as they are empty."""
        for below in sorted((below for below, _, _ in self.walk(path)), key=len, reverse=True):
            with suppress(OSError):
                self.at(f"{path}/{below}".removesuffix("/"), lambda name, folder: os.rmdir(name, dir_fd=folder))

    def walk(self, path: str) -> Iterator[tuple[str, list[str], int]]:
        """The directories below a path: its own path relative to that (empty, or with a final `/`), what is in it besides
        directories whose name begins with no dot, and its descriptor. Nothing if it is not there.
        """
        with suppress(FileNotFoundError, NotADirectoryError), self.folders() as folders:
            above, name = folders(path)
            for folder, below, names, descriptor in os.fwalk(name or ".", dir_fd=above):
                links = [each for each in below if _is_link(each, descriptor)]
                below[:] = [each for each in below if each[0] != "." and each not in links]
                relative = os.path.relpath(folder, name or ".")
                yield "" if relative == "." else f"{relative}/", names + links, descriptor

    @contextmanager
    def replacing(self, path: str, flags: int = 0) -> Iterator[int]:
        """Write a new file that takes the place of another as a whole when this ends without an error."""
        folder, _, name = path.rpartition("/")
        temporary = f"{folder}/" * bool(folder) + f".stepwell-{os.getpid()}-{os.urandom(4).hex()}-{name.lstrip('.')}"
        try:
            descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags, make=True)
            try:
                yield descriptor
            finally:
                os.close(descriptor)
            self.rename(temporary, path)
        except BaseException:
            self.remove(temporary)
            raise

    def write_durably(self, path: str, content: bytes) -> None:
        """Replace a file as a whole: a reader, also one after a crash, sees what was there before or what is there now."""
        with self.replacing(path) as descriptor:
            write_all(descriptor, content)
            os.fsync(descriptor)
        descriptor = self.open_folder(path.rpartition("/")[0])
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def refusal(path: str, error: OSError) -> UnsafePath | None:
    """The error for what is there and is no file; None if the system refused something else."""
    if error.errno in _LINKS:
        return UnsafePath(path, "it is a link or a pipe, not a file of its own; nothing is read or written through it")
    return None


def _is_link(name: str, folder: int) -> bool:
    try:
        return S_ISLNK(os.lstat(name, dir_fd=folder).st_mode)
    except OSError:
        return False
