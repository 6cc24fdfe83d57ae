"""The manifests of a root, `.manifest.json` in each directory that has states, and its notes in `.stepwell/`: `failures.json`,
`triggers.json` and `code.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from ....errors import ManifestError
from ..address import split_address
from ..port import NoteKind
from ..records import Record, record_from
from ..single import Stamp
from .local import HOME, LocalFiles
from .logged import LoggedMapping, store_changes
from .root import Root


class Manifests:
    """Records of states, by address."""

    def __init__(self, root: Root, pipeline: str, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self._root = root
        self._pipeline = pipeline
        self._lock = lock
        self._changed: dict[str, LoggedMapping] = {}
        """Directories whose log may have grown."""

    def read(self, folder: str) -> dict[str, Record]:
        """The records of one directory."""
        prefix = f"{folder}/" if folder else ""
        return {prefix + key: self._record(prefix, key, value) for key, value in self._logged(prefix).read().items()}

    def _record(self, prefix: str, key: str, value: Any) -> Record:
        try:
            return record_from(value)
        except (KeyError, TypeError, AttributeError):
            path = self._root.place(self._logged(prefix).json_path)
            raise ManifestError(
                f"{path}: the record of {key!r} is incomplete; remove it there, and `stepwell pipeline accept` takes the state "
                f"over as it is",
                pipeline=self._pipeline,
                path=path,
            ) from None

    def find(self, addresses: Iterable[str]) -> dict[str, Record]:
        folders: dict[str, list[str]] = {}
        for address in addresses:
            folder, key = split_address(address)
            folders.setdefault(folder, []).append(key)
        return {
            folder + key: self._record(folder, key, value)
            for folder, keys in folders.items()
            for values in [self._logged(folder).read()]
            for key in keys
            if (value := values.get(key)) is not None
        }

    def change(self, changes: Mapping[str, Record | None]) -> None:
        with self._lock():
            self.store(changes)

    def store(self, changes: Mapping[str, Record | None]) -> None:
        """Store changes durably. The caller holds the lock of the root."""
        folders: dict[str, dict[str, Any]] = {}
        for address, record in changes.items():
            folder, key = split_address(address)
            if folder not in folders:
                folders[folder] = {}
            folders[folder][key] = None if record is None else record.to_json()
        for folder in folders.keys() - self._changed.keys():
            self._changed[folder] = self._logged(folder)
        store_changes([(self._changed[folder], changed) for folder, changed in folders.items()])

    @property
    def may_fold(self) -> bool:
        return bool(self._changed)

    def fold(self) -> None:
        """Rewrite manifests whose log has grown. The caller holds the lock of the root."""
        while self._changed:
            self._changed.popitem()[1].fold()

    def _logged(self, folder: str) -> LoggedMapping:
        return LoggedMapping(self._root, f"{folder}.manifest", "states", self._pipeline)


class FileNotes:
    def __init__(self, root: Root, pipeline: str, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self._root = root
        self._pipeline = pipeline
        self._lock = lock

    def read(self, kind: NoteKind) -> dict[str, Any]:
        return self._logged(kind).read()

    def change(self, kind: NoteKind, changes: Mapping[str, Any]) -> None:
        logged = self._logged(kind)
        with self._lock():
            known = logged.read()
            needed = {key: value for key, value in changes.items() if value != known.get(key)}
            if needed:
                store_changes([(logged, needed)])
                logged.fold()

    def stamps(self, kind: NoteKind) -> list[Stamp | None]:
        """What tells whether they have changed."""
        logged = self._logged(kind)
        return LocalFiles(self._root).stamps([logged.json_path, logged.log_path])

    def _logged(self, kind: NoteKind) -> LoggedMapping:
        return LoggedMapping(self._root, f"{HOME}/{kind}", kind, self._pipeline)
