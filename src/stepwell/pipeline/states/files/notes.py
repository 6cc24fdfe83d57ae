"""Notes in `.stepwell/` at the root: `failures.json`, `triggers.json`, `code.json`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from ....codec import encode_checked
from ..listing import Stamp, stamp_of
from ..port import NoteKind
from .logged import Logged, store_changes


class FileNotes:
    def __init__(self, home: str, pipeline: str, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self._home = home
        self._pipeline = pipeline
        self._lock = lock

    def read(self, kind: NoteKind) -> dict[str, Any]:
        return self._logged(kind).read()

    def change(self, kind: NoteKind, changes: Mapping[str, Any]) -> None:
        logged = self._logged(kind)
        with self._lock():
            known = logged.read()
            needed = {
                key: None if value is None else encode_checked(value)
                for key, value in changes.items()
                if value != known.get(key)
            }
            if needed:
                store_changes([(logged, needed)])
                logged.fold()

    def stamps(self, kind: NoteKind) -> list[Stamp | None]:
        """What tells whether they have changed."""
        logged = self._logged(kind)
        return [stamp_of(path) for path in (logged.json_path, logged.log_path)]

    def _logged(self, kind: NoteKind) -> Logged:
        return Logged(os.path.join(self._home, kind), kind, self._pipeline)
