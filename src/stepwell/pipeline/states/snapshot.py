"""`Snapshot`: what a store found, as the model of a pipeline needs it."""

from __future__ import annotations

from collections.abc import Callable

from .records import Record, StageFailure
from .single import Stamp, is_recent


class Snapshot:
    """Files, records and failures at one moment. Paths are relative to the root. Content hashes are found when asked for."""

    def __init__(self, find_hash: Callable[[str, Stamp], tuple[str, Stamp] | None]) -> None:
        self.tree: dict[str, dict[str, Stamp]] = {}
        """Stamps by directory and name."""
        self.records: dict[str, Record] = {}
        self.publishing: set[str] = set()
        """Addresses of states that are recorded and may not be renamed yet."""
        self.failures: dict[str, StageFailure] = {}
        self.hashes: dict[str, str] = {}
        self.problems: list[tuple[str, str]] = []
        """Paths that are left out, and why."""
        self.is_partial = False
        """It holds some paths only."""
        self._find_hash = find_hash

    def content_hash(self, path: str) -> str | None:
        """Of a file; None if it is not there."""
        known = self.hashes.get(path)
        if known is not None:
            return known
        folder, _, name = path.rpartition("/")
        names = self.tree.get(folder)
        stamp = None if names is None else names.get(name)
        if names is None or stamp is None:
            return None
        found = self._find_hash(path, stamp)
        if found is None:
            del names[name]
            return None
        self.hashes[path], names[name] = found
        return found[0]

    def changed(self, path: str, stamp: Stamp | None, digest: str | None = None) -> None:
        """A file is there, is gone, or has other content."""
        folder, _, name = path.rpartition("/")
        if stamp is None:
            self.tree.get(folder, {}).pop(name, None)
        else:
            self.tree.setdefault(folder, {})[name] = stamp
        if stamp is None or digest is None:
            self.hashes.pop(path, None)
        else:
            self.hashes[path] = digest

    def was_read(self, path: str, digest: str, stamp: Stamp | None, since_ns: int) -> None:
        """This is what somebody read of a file since then: its content, if its stamp has been the same all the time."""
        folder, _, name = path.rpartition("/")
        if stamp is not None and self.tree.get(folder, {}).get(name) == stamp and not is_recent(stamp, since_ns):
            self.hashes[path] = digest
