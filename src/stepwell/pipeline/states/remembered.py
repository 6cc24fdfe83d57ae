"""What the last scan knew of the files: their hashes by stamp, and whether anything has changed since."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from .cache import UNKNOWN, Cache, Cached, read_cache, write_cache
from .listing import MANIFEST_FILES, SLOW_TICK_NS, Folder, Stamp, hash_file, is_recent, stamp_of
from .logged import Logged
from .manifests import split_address
from .snapshot import Snapshot

HOME = ".stepwell"
NO_HASH = UNKNOWN.hex()


class RememberedFiles:
    """Files below a root, of which a cache remembers the hashes."""

    def __init__(self, root: str, pipeline: str) -> None:
        self.root = os.path.abspath(root)
        self.pipeline = pipeline
        self._home = os.path.join(self.root, HOME)
        self._failures = Logged(os.path.join(self._home, "failures"), "failures", pipeline)
        self._cache: Cache | None = None
        self._known: dict[str, dict[str, tuple[Stamp, str]]] = {}
        self._recent: set[str] = set()

    def failure_stamps(self) -> list[Stamp | None]:
        return [stamp_of(path) for path in (self._failures.json_path, self._failures.log_path)]

    def unchanged(self, folders: Sequence[Folder]) -> bool:
        """Whether everything is as it was when the cache was written."""
        cached = self.cached()
        if not cached.verdict or len(folders) != len(cached.folders):
            return False
        for folder in folders:
            known = cached.folders.get(folder.path)
            if known is None or folder.temporary or not known.same(folder):
                return False
            if known.manifest_hash and known.manifest_hash != self._manifest_hash(folder.path):
                return False
            for position in known.recent:
                path = f"{folder.path}/{known.names[position]}" if folder.path else known.names[position]
                if self.hash_of(path) != known.hashes[position * 32 : position * 32 + 32].hex():
                    return False
        stamps = [None if each is None else list(each) for each in self.failure_stamps()]
        return bool(stamps == cached.verdict.get("failureStamps"))

    def _manifest_hash(self, folder: str) -> str:
        return "".join(self.hash_of(f"{folder}/{name}" if folder else name) or "-" for name in MANIFEST_FILES)

    def _same_manifest(self, folder: Folder, cached: Cached) -> bool:
        if cached.manifest != [None if each is None else list(each) for each in folder.manifest]:
            return False
        return not cached.manifest_hash or cached.manifest_hash == self._manifest_hash(folder.path)

    def _changed(
        self, changed: list[str] | None, folder: Folder, cached: Cached, tree: Mapping[str, Stamp]
    ) -> list[str] | None:
        """And what changed in one directory; None if a file is gone."""
        if changed is None or not set(cached.names) <= tree.keys():
            return None
        known = self._known[folder.path]
        prefix = f"{folder.path}/" if folder.path else ""
        for name, stamp in tree.items():
            before = known.get(name)
            if before is None or before[0] != stamp:
                changed.append(prefix + name)
        return changed

    def save_cache(self, snapshot: Snapshot, verdict: dict[str, Any]) -> None:
        """Remember hashes and the verdict for the next scan."""
        os.makedirs(self._home, exist_ok=True)
        now = time.time_ns()
        soon = now - SLOW_TICK_NS
        told = {"failureStamps": [None if each is None else list(each) for each in self.failure_stamps()], **verdict}
        written = []
        with_records = {split_address(address)[0].removesuffix("/") for address in snapshot.records}
        for folder, tree in snapshot.tree.items():
            prefix = f"{folder}/" if folder else ""
            digests = snapshot.hashes
            hashes = [digests.get(prefix + name, NO_HASH) for name in tree]
            numbers = array("Q", chain.from_iterable(tree.values()))
            recent = [
                position
                for position, (name, stamp) in enumerate(tree.items())
                if (stamp[2] > soon or stamp[1] > soon or prefix + name in self._recent)
                and hashes[position] is not NO_HASH
                and (prefix + name in self._recent or is_recent(stamp, now))
            ]
            manifest: list[Stamp | None] = [None, None]
            if folder in with_records:
                manifest = [stamp_of(f"{self.root}/{prefix}{name}") for name in MANIFEST_FILES]
            doubtful = any(each is not None and is_recent(each, now) for each in manifest)
            written.append(
                (
                    folder,
                    Cached(
                        list(tree), numbers.tobytes(), bytes.fromhex("".join(hashes)), recent, list(manifest),
                        self._manifest_hash(folder) if doubtful else "",
                    ),
                )
            )  # fmt: skip
        write_cache(self._cache_path(), written, told)
        self._cache = None

    def hash_of(self, path: str) -> str | None:
        """The hash of what a file holds now."""
        try:
            return hash_file(f"{self.root}/{path}")
        except OSError:
            return None

    def _find_hash(self, path: str, stamp: Stamp) -> tuple[str, Stamp] | None:
        """The hash of a file: known for its stamp, or computed of what is read."""
        folder, _, name = path.rpartition("/")
        known = self._known.get(folder, {}).get(name)
        if known is not None and known[0] == stamp:
            return known[1], stamp
        # Before it is read: what changes meanwhile is recent, and is read again the next time.
        if is_recent(stamp, time.time_ns()):
            self._recent.add(path)
        digest = self.hash_of(path)
        return None if digest is None else (digest, stamp_of(f"{self.root}/{path}") or stamp)

    def cached(self) -> Cache:
        if self._cache is None:
            self._cache = read_cache(self._cache_path())
        return self._cache

    def _cache_path(self) -> str:
        return os.path.join(self._home, f"{self.pipeline or 'states'}.cache")
