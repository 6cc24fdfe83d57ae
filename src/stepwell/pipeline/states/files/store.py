"""States as files below a root, with a `.manifest.json` beside them. Manifests are the truth: what else there is, in
`.stepwell/` at the root, may be deleted without making anything stale.

    .stepwell/root.json       what tells this root from others
    .stepwell/failures.json   what failed, and when it is tried again
    .stepwell/triggers.json   what triggers were fired for
    .stepwell/code.json       what stages were made of, so that `why` can name what changed
    .stepwell/aside/          files that were replaced although somebody had changed them
    .stepwell/*.cache, lock, *.lease      only of this machine
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager

from ....base.ids import time_ordered
from ....errors import PipelineError
from ...patterns.paths import TEMPORARY, checked_path
from ..address import draft_name
from ..listing import Folder
from ..notes import read_failures
from ..port import Draft, Publication, Published, Wanted
from ..single import Stamp
from ..snapshot import Snapshot
from .drafts import FileDrafts
from .hash_cache import HashCache
from .lease import hold_lease, lease_number, locked
from .local import HOME, LocalFiles
from .manifests import FileNotes, Manifests
from .publishing import FilePublisher
from .root import Root

_IGNORED = "*\n!.gitignore\n!root.json\n!failures.json\n!code.json\n!triggers.json\n"


class FileStates:
    """The states of pipelines as files below `root`."""

    def __init__(self, root: str, pipeline: str = "") -> None:
        self.pipeline = pipeline
        self.root = Root(root)
        self.files = LocalFiles(self.root)
        self.url = self.root.path
        self.records = Manifests(self.root, pipeline, self._lock)
        self.drafts = FileDrafts(self.root)
        self.notes = FileNotes(self.root, pipeline, self._lock)
        self.cache = HashCache(self.files, self.notes, pipeline)
        self._publisher = FilePublisher(self.root, self.files, self.drafts, self.records, self._lock)
        self._root_id: str | None = None

    def close(self) -> None:
        pass

    @property
    def root_id(self) -> str:
        if self._root_id is None:
            path = f"{HOME}/root.json"
            try:
                self._root_id = str(json.loads(self.root.read(path))["id"])
            except FileNotFoundError:
                with self._lock():
                    if self.root.stat(path) is None:
                        self.root.write_durably(path, b'{"id": "%s"}\n' % time_ordered().encode())
                return self.root_id
            except (ValueError, KeyError, TypeError, RecursionError):
                message = f"{self.root.place(path)} cannot be read; remove it, and it is made anew"
                raise PipelineError(message, pipeline=self.pipeline) from None
        return self._root_id

    def _make_home(self) -> None:
        ignore = f"{HOME}/.gitignore"
        if self.root.stat(ignore) is None:
            self.root.write_durably(ignore, _IGNORED.encode())

    def _lock(self) -> AbstractContextManager[None]:
        """The lock of the root: who has it may change manifests and notes."""
        self._make_home()
        return locked(self.root, f"{HOME}/lock")

    def lease(self, name: str, patience: float) -> AbstractContextManager[Callable[[], bool]]:
        self._make_home()
        return hold_lease(self.root, self._lease_path(name), name, patience)

    def lease_number(self, name: str) -> int:
        return lease_number(self.root, self._lease_path(name))

    def _lease_path(self, name: str) -> str:
        return f"{HOME}/{checked_path(name)}.lease"

    def snapshot(
        self, wanted: Wanted, folders: Sequence[Folder] | None = None, only: Collection[str] | None = None
    ) -> Snapshot:
        given = self.files.walk(wanted) if folders is None else folders
        if only is not None:
            return self._part(given, only)
        snapshot, cached = Snapshot(self.cache.find_hash), self.cache.read().folders
        for folder in given:
            numbers = folder.stamps
            tree: dict[str, Stamp] = {
                name: (numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3])
                for name, at in zip(folder.names, range(0, len(numbers), 4), strict=True)
            }
            if (known := cached.get(folder.path)) is not None:
                self.cache.take_known(folder, known, tree, snapshot.hashes)
            self._add_records(snapshot, folder)
            snapshot.tree[folder.path] = tree
        snapshot.failures = read_failures(self.notes, self.pipeline)
        return snapshot

    def _part(self, folders: Sequence[Folder], only: Collection[str]) -> Snapshot:
        snapshot = Snapshot(self.cache.find_hash)
        snapshot.is_partial = True
        for folder in folders:
            prefix = f"{folder.path}/" if folder.path else ""
            tree = {name: folder.stamp(position) for position, name in enumerate(folder.names) if prefix + name in only}
            if tree:
                snapshot.tree[folder.path] = tree
                self.cache.take_known(folder, self.cache.read().folders[folder.path], tree, snapshot.hashes)
        snapshot.records = self.records.find(only)
        return snapshot

    def _add_records(self, snapshot: Snapshot, folder: Folder) -> None:
        prefix = f"{folder.path}/" if folder.path else ""
        snapshot.problems += [(prefix + link, "it is a symbolic link, which is not followed") for link in folder.links]
        if folder.manifest == [None, None]:
            return
        records = self.records.read(folder.path)
        snapshot.records.update(records)
        if folder.temporary:
            drafts = {name[len(TEMPORARY) :].partition("-")[2] for name in folder.temporary}
            cut = len(prefix)
            snapshot.publishing |= {each for each in records if draft_name(each[cut:]) in drafts}

    def sync(self, drafts: Iterable[Draft]) -> None:
        self._publisher.sync(drafts)

    def publish(
        self, publications: Sequence[Publication], check: Callable[[], object] = lambda: None
    ) -> list[Published]:
        return self._publisher.publish(publications, check)

    def tidy(self) -> None:
        """Fold the logs of manifests that have grown: once, however many states were published."""
        if self.records.may_fold:
            with self._lock():
                self.records.fold()

    def finish(self, folders: Iterable[Folder]) -> list[str]:
        """Finish renames that were interrupted, and remove drafts that nobody will finish."""
        left = [folder for folder in folders if folder.temporary]
        return self._publisher.finish(left) if left else []

    def remove(self, addresses: Iterable[str]) -> list[str]:
        return self._publisher.remove(addresses)
