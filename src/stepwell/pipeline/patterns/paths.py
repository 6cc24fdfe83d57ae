"""Paths below a root: which names are safe, and `safe_join`, the one way to get from a name to a file.

A path is relative, with `/` between its components, whatever the system. Its components are names that every file system
keeps apart and that no shell or URL takes for something else.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from time import monotonic

from ...errors import UnsafePath

MAX_NAME_BYTES = 200
"""Of one component. File systems allow 255; a temporary name adds some."""
MAX_PATH_BYTES = 1_000
LOOK_AGAIN_SECONDS = 0.01
TEMPORARY = ".stepwell-"
"""What the names of unfinished outputs begin with. What begins with a dot is never matched."""

_PLAIN_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9_.+@=-]*[A-Za-z0-9_+@=-])?"
_PLAIN = re.compile(rf"(?:{_PLAIN_NAME}/)*{_PLAIN_NAME}/?")
"""Paths that need no closer look, if they are short."""
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\u2028\u2029\ud800-\udfff]')


def name_problem(name: str) -> str | None:
    """What is wrong with a name of one component, or None.

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
    if not name.isascii():
        if unicodedata.normalize("NFC", name) != name:
            return "it is not in the composed form of Unicode (NFC), so other systems would take it for another name"
        if len(name.encode()) > MAX_NAME_BYTES:
            return f"it is longer than {MAX_NAME_BYTES} bytes"
    elif len(name) > MAX_NAME_BYTES:
        return f"it is longer than {MAX_NAME_BYTES} bytes"
    return None


def path_problem(path: str) -> str | None:
    """What is wrong with a relative path, or None. A directory may end with `/`."""
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
    """A path that is safe below any root, or UnsafePath."""
    problem = path_problem(path)
    if problem is not None:
        raise UnsafePath(path, problem)
    return path


def safe_join(root: str, path: str) -> str:
    """The file of a relative path below `root`, or UnsafePath: nothing that leads out of the root, by its name or by a link.

    Only the directories are looked at; what is at the path itself is replaced, or opened without following links.
    """
    checked_path(path)
    home = os.path.realpath(root)
    joined = os.path.join(home, *path.removesuffix("/").split("/"))
    folder = os.path.dirname(joined)
    if os.path.realpath(folder) != folder:
        raise UnsafePath(path, "a symbolic link on the way leads elsewhere")
    return joined


class SafeRoot:
    """`safe_join` for one root, which remembers the directories it has looked at: a directory that was replaced since, by a
    link or otherwise, is another one.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.home = os.path.realpath(root)
        self._known: dict[str, tuple[str, int, int]] = {}

    def knows(self, folder: str) -> bool:
        """Whether a directory was there when it was last looked at."""
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
        """`join` for many paths in a row: each directory is looked at once in a while. Between a look at a directory and its
        use a thread may have to wait for as long in any case.
        """
        known: dict[str, tuple[str, float]] = {}
        is_plain = _PLAIN.fullmatch

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
            if len(path) > MAX_NAME_BYTES or not is_plain(path):
                checked_path(path)
            return home + name

        return join


_NOT_KNOWN = ("", 0.0)


def folded(path: str) -> str:
    """What a file system that tells neither case nor forms of Unicode apart takes a path for."""
    return (
        path.casefold()
        if path.isascii()
        else unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())
    )
