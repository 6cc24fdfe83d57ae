"""Paths below a root: which names are safe. `states/files/root.py` is the only way from a path to a file.

A path is relative, with `/` between its components on every system. Every file system can distinguish its components, and
they have no special meaning in a shell or URL.
"""

from __future__ import annotations

import re
import unicodedata

from ...errors import UnsafePath

MAX_NAME_BYTES = 200
"""For one component. File systems allow 255 bytes, and temporary names are longer."""
MAX_PATH_BYTES = 1_000
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
    match = _FORBIDDEN.search(name)
    if match:
        return f"it contains {match[0]!r}"
    if not name.isascii() and unicodedata.normalize("NFC", name) != name:
        return "it is not in the composed form of Unicode (NFC), so other systems would take it for another name"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"it is longer than {MAX_NAME_BYTES} bytes"
    return None


def value_problem(value: str) -> str | None:
    """Return what is wrong with the value of a variable, or None. In an address, braces stand for a variable without one."""
    brace = next((each for each in "{}" if each in value), None)
    return name_problem(value) if brace is None else f"it contains {brace!r}"


def path_problem(path: str) -> str | None:
    """Return what is wrong with a relative path, or None. A directory may end with `/`."""
    if len(path) <= MAX_NAME_BYTES and _PLAIN.fullmatch(path):
        return None
    if not path or path == "/":
        return "it is empty"
    if path[0] == "/":
        return "it begins with /, but paths are relative to the root"
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


def folded(path: str) -> str:
    """Return a text that is the same for paths which differ only in case or form of Unicode."""
    if path.isascii():
        return path.casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())
