"""A mapping in two files: `<name>.json`, sorted, for people and repositories, and `<name>.log`, to which changes are appended.

A small one is written anew with each change. In a directory of 10,000 states a change costs one line of the log, and when
that has grown to a quarter of the rest both are folded into a new `.json`. A line that a crash left half written is ignored.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ....base.codec import encode_checked
from ....base.words import shown
from ....errors import ManifestError
from ...patterns.paths import TEMPORARY
from ..single import write_all
from .root import Root
from .syncing import sync_files, sync_folders

FOLD_BYTES = 64 * 1024
SMALL_BYTES = 16 * 1024
"""Up to here a change writes the whole `.json` anew."""
FEW = 100
VERSION = 1
_TAIL = b"\n}}\n"
_LINE = re.compile(rb'\{"key":"([^"\\]*(?:\\.[^"\\]*)*)","value":(.*)\}')
_NULL = b"null"
"""Of a key that was removed."""
_NO_LOG = (0, 0)

Changes: TypeAlias = dict[str, bytes | None]
"""New values by key, as canonical JSON; None removes a key."""


class UnsyncedFile(NamedTuple):
    """A file that is to be synced."""

    logged: Logged
    path: str
    final: str | None
    """Where it is to be renamed to, and None if it stays."""
    is_known: bool = False
    """Its directory was synced when the file was made."""


class Logged:
    """Values by key below one path, `.../.manifest`. Who changes it holds the lock of the root."""

    def __init__(self, root: Root, base: str, member: str, pipeline: str = "") -> None:
        self.root = root
        self.json_path = f"{base}.json"
        self.log_path = f"{base}.log"
        self._member = member
        self._pipeline = pipeline
        self._own_log: tuple[int, int] | None = _NO_LOG
        """The log as this object left it, if it has written all of it."""

    def read(self) -> dict[str, Any]:
        """The values by key."""
        return self._with_log(self._base())

    def find(self, keys: Collection[str]) -> dict[str, Any]:
        """The values of some keys. Of a few, without reading what others have."""
        if len(keys) > FEW or (written := self._written_lines()) is None:
            return {key: value for key, value in self.read().items() if key in keys}
        values = {}
        for key in keys:
            mark = b"\n%s: " % encode_checked(key)
            start = written.rfind(mark)
            if start >= 0:
                start += len(mark)
                try:
                    values[key] = json.loads(written[start : written.index(b"\n", start)].removesuffix(b","))
                except (ValueError, RecursionError) as error:
                    raise self._unreadable(self.json_path, f"{key!r}: {error}") from None
        return {key: value for key, value in self._with_log(values).items() if key in keys}

    def _written_lines(self) -> bytes | None:
        """The `.json`, if it is as we write it, and nobody has edited or merged it."""
        try:
            written = self.root.read(self.json_path)
        except FileNotFoundError:
            return b""
        return written if written.startswith(self._head) and written.endswith(_TAIL) else None

    def _with_log(self, values: dict[str, Any]) -> dict[str, Any]:
        for line in self._lines():
            if line.get("value") is None:
                values.pop(line["key"], None)
            else:
                values[line["key"]] = line["value"]
        return values

    def write(self, changes: Changes) -> UnsyncedFile:
        """Write changes, which are durable when the caller has done the rest."""
        changed = {_inside(key): text or _NULL for key, text in changes.items()}
        log = self.root.stat(self.log_path)
        if self._size(self.json_path) + self._size(self.log_path) <= SMALL_BYTES or (log and log.st_nlink > 1):
            written = self._joined(_texts(self.read()) | changed)
            folder, slash, name = self.json_path.rpartition("/")
            temporary = f"{folder}{slash}{TEMPORARY}{os.urandom(6).hex()}-{name}"
            self._put(temporary, os.O_EXCL, written)
            return UnsyncedFile(self, temporary, self.json_path)
        lines = [b'{"key":"%s","value":%s}' % each for each in changed.items()]
        is_own = self._log_now() == self._own_log
        # The first newline ends a line that a crash left half written.
        self._put(self.log_path, os.O_APPEND, b"\n" + b"\n".join(lines) + b"\n")
        is_known = is_own and self._own_log != _NO_LOG
        self._own_log = self._log_now() if is_own else None
        return UnsyncedFile(self, self.log_path, None, is_known)

    def written(self) -> None:
        """After what `write` wrote has been renamed: the log is part of it."""
        self.root.remove(self.log_path)
        self._own_log = _NO_LOG

    def _put(self, path: str, flags: int, content: bytes) -> None:
        descriptor = self.root.open(path, os.O_WRONLY | os.O_CREAT | flags, make=True)
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)

    def _size(self, path: str) -> int:
        found = self.root.stat(path)
        return 0 if found is None else found.st_size

    def _log_now(self) -> tuple[int, int]:
        """What tells a log from one that somebody else has written to."""
        found = self.root.stat(self.log_path)
        return _NO_LOG if found is None else (found.st_ino, found.st_size)

    def fold(self) -> None:
        """Merge the log into the `.json` if it has grown."""
        log = self._size(self.log_path)
        if not log or log <= max(FOLD_BYTES, self._size(self.json_path) // 4):
            return
        texts = _texts(self._base())
        if self._log_now() == self._own_log:  # then every line is whole, and need not be understood
            texts |= dict(_LINE.findall(self.root.read(self.log_path)))
        else:
            texts |= _texts({line["key"]: line.get("value") for line in self._lines()})
        if any(text != _NULL for text in texts.values()):
            self.root.write_durably(self.json_path, self._joined(texts))
        else:
            self.root.remove(self.json_path)
        self.root.remove(self.log_path)

    def _joined(self, texts: Mapping[bytes, bytes]) -> bytes:
        """One line for each value: people and repositories see what changed."""
        lines = [b'"%s": %s' % (key, text) for key in sorted(texts) if (text := texts[key]) != _NULL]
        return self._head + b",\n".join(lines) + _TAIL

    @property
    def _head(self) -> bytes:
        return b'{"version": %d, %s: {\n' % (VERSION, encode_checked(self._member))

    def _base(self) -> dict[str, Any]:
        try:
            found = json.loads(self.root.read(self.json_path))
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError) as error:
            raise self._unreadable(self.json_path, str(error)) from None
        values = found.get(self._member) if isinstance(found, dict) else None
        if not isinstance(values, dict):
            raise self._unreadable(self.json_path, f"it has no {self._member!r}")
        version = found.get("version", VERSION)
        if version != VERSION:
            problem = (
                "which a newer Stepwell wrote" if isinstance(version, int) and version > VERSION else "not a number"
            )
            raise self._unreadable(self.json_path, f"its version is {shown(version)}, {problem}")
        return values

    def _lines(self) -> list[dict[str, Any]]:
        """What the log has."""
        try:
            texts = [text for text in self.root.read(self.log_path).split(b"\n") if text]
        except FileNotFoundError:
            return []
        return [line for line in _parsed(texts) if isinstance(line, dict) and isinstance(line.get("key"), str)]

    def _unreadable(self, path: str, problem: str) -> ManifestError:
        path = self.root.place(path)
        return ManifestError(
            f"{path} cannot be read: {problem}\n  restore it, or remove it: what it recorded is then shown as unrecorded, and "
            f"`stepwell pipeline accept` takes it over",
            pipeline=self._pipeline,
            path=path,
        )


def _texts(values: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Keys, without their quotes, and values as canonical JSON."""
    return {_inside(key): encode_checked(value) for key, value in values.items()}


def _inside(key: str) -> bytes:
    return encode_checked(key)[1:-1]


def _parsed(texts: Sequence[bytes]) -> list[Any]:
    """Decode the lines: all at once, which takes half the time, unless a crash has torn one."""
    try:
        found = json.loads(b"[%s]" % b",".join(texts))
        if len(found) == len(texts):
            return found  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        pass
    return [_parsed_line(text) for text in texts]


def _parsed_line(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None  # what it would have said was never acknowledged


def store_changes(changes: Sequence[tuple[Logged, Changes]]) -> None:
    """Change several mappings durably, syncing all of them at once. The caller holds the lock."""
    if not changes:
        return
    root = changes[0][0].root
    written = [logged.write(changed) for logged, changed in changes]
    sync_files(root, [each.path for each in written])
    for each in written:
        if each.final is not None:
            root.rename(each.path, each.final)
    for each in written:
        if each.final is not None:
            each.logged.written()
    sync_folders(root, {each.path.rpartition("/")[0] for each in written if not each.is_known})
