"""A mapping in two files: `<name>.json`, sorted, for people and repositories, and `<name>.log`, to which changes are appended.

A small one is written anew with each change. In a directory of 10,000 states a change costs one line of the log, and when
that has grown to a quarter of the rest both are folded into a new `.json`. A line that a crash left half written is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
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
VERSION = 1

Changes: TypeAlias = Mapping[str, Any]
"""New values by key, as JSON; None removes a key."""


class UnsyncedFile(NamedTuple):
    """A file that is to be synced."""

    mapping: LoggedMapping
    path: str
    final: str | None
    """The path to which it is renamed then; None if it stays."""


class LoggedMapping:
    """Values by key below one path, `.../.manifest`. Who changes it holds the lock of the root."""

    def __init__(self, root: Root, base: str, member: str, pipeline: str = "") -> None:
        self.root = root
        self.json_path = f"{base}.json"
        self.log_path = f"{base}.log"
        self._member = member
        self._pipeline = pipeline

    def read(self) -> dict[str, Any]:
        """The values by key."""
        values = self._base()
        for line in self._lines():
            if (value := line.get("value")) is None:
                values.pop(line["key"], None)
            else:
                values[line["key"]] = value
        return values

    def write(self, changes: Changes) -> UnsyncedFile:
        """Write changes, which are durable when the caller has done the rest."""
        log = self.root.stat(self.log_path)
        if self._size(self.json_path) + self._size(self.log_path) <= SMALL_BYTES or (log and log.st_nlink > 1):
            folder, slash, name = self.json_path.rpartition("/")
            temporary = f"{folder}{slash}{TEMPORARY}{os.urandom(6).hex()}-{name}"
            self._put(temporary, os.O_EXCL, self._encoded({**self.read(), **changes}))
            return UnsyncedFile(self, temporary, self.json_path)
        lines = [encode_checked({"key": key, "value": value}) for key, value in changes.items()]
        # The first newline ends a line that a crash left half written.
        self._put(self.log_path, os.O_APPEND, b"\n" + b"\n".join(lines) + b"\n")
        return UnsyncedFile(self, self.log_path, None)

    def _put(self, path: str, flags: int, content: bytes) -> None:
        descriptor = self.root.open(path, os.O_WRONLY | os.O_CREAT | flags, make=True)
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)

    def _size(self, path: str) -> int:
        status = self.root.stat(path)
        return 0 if status is None else status.st_size

    def fold(self) -> None:
        """Merge the log into the `.json` if it has grown."""
        log = self._size(self.log_path)
        if not log or log <= max(FOLD_BYTES, self._size(self.json_path) // 4):
            return
        if values := self.read():
            self.root.write_durably(self.json_path, self._encoded(values))
        else:
            self.root.remove(self.json_path)
        self.root.remove(self.log_path)

    def _encoded(self, values: Mapping[str, Any]) -> bytes:
        """One line for each value: people and repositories see what changed."""
        lines = [
            b"%s: %s" % (encode_checked(key), encode_checked(values[key]))
            for key in sorted(values)
            if values[key] is not None
        ]
        return b'{"version": %d, %s: {\n%s\n}}\n' % (VERSION, encode_checked(self._member), b",\n".join(lines))

    def _base(self) -> dict[str, Any]:
        try:
            document = json.loads(self.root.read(self.json_path))
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError) as error:
            raise self._unreadable(self.json_path, str(error)) from None
        values = document.get(self._member) if isinstance(document, dict) else None
        if not isinstance(values, dict):
            raise self._unreadable(self.json_path, f"it has no {self._member!r}")
        version = document.get("version", VERSION)
        if version != VERSION:
            problem = (
                "which a newer Stepwell wrote" if isinstance(version, int) and version > VERSION else "not a number"
            )
            raise self._unreadable(self.json_path, f"its version is {shown(version)}, {problem}")
        return values

    def _lines(self) -> list[dict[str, Any]]:
        """What the log has."""
        try:
            lines = [_parsed(text) for text in self.root.read(self.log_path).split(b"\n") if text]
        except FileNotFoundError:
            return []
        return [line for line in lines if isinstance(line, dict) and isinstance(line.get("key"), str)]

    def _unreadable(self, path: str, problem: str) -> ManifestError:
        path = self.root.place(path)
        return ManifestError(
            f"{path} cannot be read: {problem}\n  restore it, or remove it: what it recorded is then shown as unrecorded, and "
            f"`stepwell pipeline accept` takes it over",
            pipeline=self._pipeline,
            path=path,
        )


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None  # a crash has torn it: what it would have said was never acknowledged


def store_changes(changes: Sequence[tuple[LoggedMapping, Changes]]) -> None:
    """Change several mappings durably, syncing all of them at once. The caller holds the lock."""
    if not changes:
        return
    root = changes[0][0].root
    written = [mapping.write(changed) for mapping, changed in changes]
    sync_files(root, [each.path for each in written])
    for each in written:
        if each.final is not None:
            root.rename(each.path, each.final)
    for each in written:
        if each.final is not None:
            root.remove(each.mapping.log_path)  # what it had is in the new file
    sync_folders(root, {each.path.rpartition("/")[0] for each in written})
