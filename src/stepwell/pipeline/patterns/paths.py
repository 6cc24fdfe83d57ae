"""Paths below a root: which names are safe, and `safe_join`, the only way from a name to a file.

A path is relative, with `/` between its components on every system. Every file system can distinguish its components, and
they have no special meaning in a shell or URL.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from time import monotonic

from ...errors import UnsafePath

MAX_NAME_BYTES = 200
"""For one component. File systems allow 255 bytes, and temporary names are longer."""
MAX_PATH_BYTES = 1_000
LOOK_AGAIN_SECONDS = 0.01
TEMPORARY = ".stepwell-"
"""The prefix of the names of unfinished outputs. Patterns match nothing that begins with a dot."""

_PLAIN_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9_.+@=-]*[A-Za-z0-9_+@=-])?"
_PLAIN_FILE = re.compile(_PLAIN_NAME)
_PLAIN = re.compile(rf"(?:{_PLAIN_NAME}/)*{_PLAIN_NAME}/?")
"""Paths that are safe if they are short."""
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\u2028\u2029\ud800-\udfff]')


def name_problem(name: str) -> str | None:
    """Return what is wrong with the name of one component, or None.

    >>> name_problem("2026-01-15"), name_problem(".."), name_problem("a/b")
    (None, 'it begins with a dot', "it contains '/'")
    """
    if name.isascii() and name.isalnum() and len(name) <= MAX_NAME_BYTES:
        return None
    if not name:
        return "it is empty"
    if name[0] == ".":
        return "it begins with a dot"
    if name[-1] in " ." or name[0] == " ":
        return "it begins or ends with a space, or ends with a dot"
    found = _FORBIDDEN.search(name)
    if found:
        return f"it contains {found[0]!r}"
    if not name.isascii() and unicodedata.normalize("NFC", name) != name:
        return "it is not in the composed form of Unicode (NFC), so other systems would take it for another name"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"it is longer than {MAX_NAME_BYTES} bytes"
    return None


def path_problem(path: str) -> str | None:
    """Return what is wrong with a relative path, or None. A directory may end with `/`."""
    if len(path) <= MAX_NAME_BYTES and _PLAIN.fullmatch(path):
        return None
    if not path or path == "/":
        return "it is empty"
    if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    for component in path.removesuffix("/").split("/"):
        problem = name_problem(component)
        if problem is not None:
            return problem if component == path else f"{component!r}: {problem}"
    return None


def checked_path(path: str) -> str:
    """Return the path if it is safe below any root, else raise UnsafePath."""
    problem = path_problem(path)
    if problem is not None:
        raise UnsafePath(path, problem)
    return path


def safe_join(root: str, path: str) -> str:
    """Join a relative path to `root`. UnsafePath if its name, or a symbolic link, leads out of the root.

    Checks only the directories: a file at the path itself is replaced, or opened without following links.
    """
    checked_path(path)
    home = os.path.realpath(root)
    joined = os.path.join(home, *path.removesuffix("/").split("/"))
    folder = os.path.dirname(joined)
    if os.path.realpath(folder) != folder:
        raise UnsafePath(path, "a symbolic link on the way leads elsewhere")
    return joined


class SafeRoot:
    """`safe_join` for one root. Remembers the directories it has checked, and checks those again that were replaced."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.home = os.path.realpath(root)
        self._known: dict[str, tuple[str, int, int]] = {}

    def knows(self, folder: str) -> bool:
        """Whether a directory existed when it was last checked."""
        return folder in self._known

    def join(self, path: str) -> str:
        checked_path(path)
        folder, _, name = path.removesuffix("/").rpartition("/")
        known = self._known.get(folder)
        if known is not None:
            try:
                found = os.stat(known[0])
                if found.st_ino == known[1] and found.st_dev == known[2]:
                    return f"{known[0]}{os.sep}{name}"
            except OSError:
                pass
            del self._known[folder]
        joined = safe_join(self.root, path)
        home = os.path.dirname(joined)
        try:
            found = os.stat(home)
        except OSError:
            return joined
        if len(self._known) > 10_000:
            self._known.clear()
        self._known[folder] = (home, found.st_ino, found.st_dev)
        return joined

    def joiner(self) -> Callable[[str], str]:
        """`join` for many paths in a row, which checks each directory only every LOOK_AGAIN_SECONDS: a thread may be
        interrupted for as long between a check and the use of its result anyway.
        """
        known: dict[str, tuple[str, float]] = {}
        is_plain = _PLAIN_FILE.fullmatch

        def join(path: str) -> str:
            folder, _, name = path.rpartition("/")
            home, until = known.get(folder, _NOT_KNOWN)
            if until < monotonic() or not name:
                joined = self.join(path)
                if name and self.knows(folder):
                    if len(known) > 1_000:
                        known.clear()
                    known[folder] = joined[: -len(name)], monotonic() + LOOK_AGAIN_SECONDS
                return joined
            if len(path) > MAX_NAME_BYTES or not is_plain(name):  # the directory was checked when it was looked at
                checked_path(path)
            return home + name

        return join


_NOT_KNOWN = ("", 0.0)


def folded(path: str) -> str:
    """Return a text that is the same for paths which differ only in case or form of Unicode."""
    if path.isascii():
        return path.casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())
