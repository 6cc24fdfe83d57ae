"""What the last scan knew of the files: their hashes by stamp, and whether anything has changed since."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from ....errors import UnsafePath
from ..address import split_address
from ..cache import EMPTY, UNKNOWN, Cache, Cached, read_cache, written_cache
from ..listing import MANIFEST_FILES, Folder
from ..single import SLOW_TICK_NS, Stamp, is_recent, write_all
from ..snapshot import Snapshot
from .local import HOME, LocalFiles
from .manifests import FileNotes

NO_HASH = UNKNOWN.hex()


class HashCache:
    """Hashes of files, in `.stepwell/<pipeline>.cache`."""

    def __init__(self, files: LocalFiles, notes: FileNotes, pipeline: str) -> None:
        self._files = files
        self._notes = notes
        self._path = f"{HOME}/{pipeline or 'states'}.cache"
        self._cache: Cache | None = None
        self._known: dict[str, dict[str, tuple[Stamp, str]]] = {}
        self._recent: set[str] = set()
        self._looked_at = 0

    def read(self) -> Cache:
        if self._cache is None:
            try:
                self._cache = read_cache(self._files.root.read(self._path))
            except (OSError, UnsafePath):
                self._cache = EMPTY
        return self._cache

    def changed(self, folders: Sequence[Folder]) -> list[str] | None:
        cached = self.read()
        if (
            not cached.verdict
            or len(folders) != len(cached.folders)
            or self._failure_stamps() != cached.verdict.get("failureStamps")
        ):
            return None
        self._looked_at = time.time_ns()
        found: list[str] = []
        for folder in folders:
            known = cached.folders.get(folder.path)
            if known is None or folder.temporary or not self._same_manifest(folder, known):
                return None
            names = known.changed(folder)
            if names is None:
                return None
            prefix = f"{folder.path}/" if folder.path else ""
            found += [prefix + name for name in names]
            for position in known.recent:
                path = prefix + known.names[position]
                if self._files.hash_of(path) != known.hashes[position * 32 : position * 32 + 32].hex():
                    found.append(path)
        return found

    def _failure_stamps(self) -> list[list[int] | None]:
        return [None if each is None else list(each) for each in self._notes.stamps("failures")]

    def _manifest_hash(self, folder: str) -> str:
        return "".join(self._files.hash_of(f"{folder}/{name}" if folder else name) or "-" for name in MANIFEST_FILES)

    def _same_manifest(self, folder: Folder, cached: Cached) -> bool:
        if cached.manifest != [None if each is None else list(each) for each in folder.manifest]:
            return False
        return not cached.manifest_hash or cached.manifest_hash == self._manifest_hash(folder.path)

    def take_known(self, folder: Folder, cached: Cached, tree: Mapping[str, Stamp], hashes: dict[str, str]) -> None:
        """Add the hashes of the files of one directory that have not changed."""
        known = self._known[folder.path] = cached.known(tree)
        prefix = f"{folder.path}/" if folder.path else ""
        hashes.update({prefix + name: digest for name, (stamp, digest) in known.items() if tree.get(name) == stamp})

    def save(self, snapshot: Snapshot, verdict: dict[str, Any]) -> None:
        """Remember hashes and the verdict for the next scan."""
        now = time.time_ns()
        told = {"failureStamps": self._failure_stamps(), **verdict}
        with_records = {split_address(address)[0].removesuffix("/") for address in snapshot.records}
        if snapshot.is_partial:
            written = [(folder, self._with_part(snapshot, folder, now)) for folder in self.read().folders]
        else:
            written = [
                (folder, self._cached(snapshot, folder, tree, now, folder in with_records))
                for folder, tree in snapshot.tree.items()
            ]
        # A disk that is full must not stop a scan.
        with suppress(OSError, UnsafePath), self._files.root.replacing(self._path) as descriptor:
            write_all(descriptor, written_cache(written, told))
        self._cache = None

    def _with_part(self, snapshot: Snapshot, folder: str, now: int) -> Cached:
        """What is known of a directory of which the snapshot has a part, or nothing."""
        known = self.read().folders[folder]
        part = self._cached(snapshot, folder, snapshot.tree.get(folder, {}), now, known.manifest != [None, None])
        numbers = array("Q", known.stamps)
        # The others of these were hashed when it was looked for what changed.
        still = {
            at for at in known.recent if is_recent((0, numbers[at * 4 + 1], numbers[at * 4 + 2], 0), self._looked_at)
        }
        return known.with_part(part, still)

    def _cached(
        self, snapshot: Snapshot, folder: str, tree: Mapping[str, Stamp], now: int, has_records: bool
    ) -> Cached:
        prefix = f"{folder}/" if folder else ""
        soon = now - SLOW_TICK_NS
        digests = snapshot.hashes
        hashes = [digests.get(prefix + name, NO_HASH) for name in tree]
        recent = [
            position
            for position, (name, stamp) in enumerate(tree.items())
            if (stamp[2] > soon or stamp[1] > soon or prefix + name in self._recent)
            and hashes[position] is not NO_HASH
            and (prefix + name in self._recent or is_recent(stamp, now))
        ]
        manifest: list[Stamp | None] = [None, None]
        if has_records:
            manifest = self._files.stamps([prefix + name for name in MANIFEST_FILES])
        doubtful = any(each is not None and is_recent(each, now) for each in manifest)
        return Cached(
            list(tree),
            array("Q", chain.from_iterable(tree.values())).tobytes(),
            bytes.fromhex("".join(hashes)),
            recent,
            list(manifest),
            self._manifest_hash(folder) if doubtful else "",
        )

    def find_hash(self, path: str, stamp: Stamp) -> tuple[str, Stamp] | None:
        """The hash of a file: known for its stamp, or computed of what is read."""
        folder, _, name = path.rpartition("/")
        known = self._known.get(folder, {}).get(name)
        if known is not None and known[0] == stamp:
            return known[1], stamp
        # Before it is read: what changes meanwhile is recent, and is read again the next time.
        if is_recent(stamp, time.time_ns()):
            self._recent.add(path)
        digest = self._files.hash_of(path)
        return None if digest is None else (digest, self._files.stamp(path) or stamp)
