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
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ...errors import PipelineError
from ...ids import time_ordered
from ..patterns.paths import TEMPORARY, SafeRoot, checked_path
from ..patterns.pattern import Pattern
from .lease import hold_lease, lease_number
from .listing import (
    MANIFEST_FILES,
    Folder,
    Stamp,
    is_folder,
    is_recent,
    read_file,
    stamp_of,
    walk,
)
from .locking import locked
from .logged import Logged, store_changes
from .manifests import Manifests, draft_name, split_address
from .port import Draft, Publication, Published
from .publishing import all_members, discard, finish, publish, remove_states
from .records import Failure, Record, failure_from, members_hash
from .remembered import NO_HASH, RememberedFiles
from .snapshot import Snapshot
from .syncing import write_durably

_IGNORED = "*\n!.gitignore\n!root.json\n!failures.json\n!code.json\n!triggers.json\n"
FORGOTTEN_SECONDS = 86_400.0
"""Drafts that are older belong to nobody any more."""


class FileStates(RememberedFiles):
    """The states of pipelines as files below `root`."""

    def __init__(self, root: str, pipeline: str = "") -> None:
        super().__init__(root, pipeline)
        self.url = self.root
        self._safe = SafeRoot(self.root)
        self.manifests = Manifests(self.root, pipeline)
        self._code = Logged(os.path.join(self._home, "code"), "code", pipeline)
        self._triggers = Logged(os.path.join(self._home, "triggers"), "triggers", pipeline)
        self._known_code: set[str] = set()
        self._root_id: str | None = None

    def close(self) -> None:
        pass

    @property
    def root_id(self) -> str:
        if self._root_id is None:
            path = os.path.join(self._home, "root.json")
            try:
                with open(path, "rb") as file:
                    self._root_id = str(json.loads(file.read())["id"])
            except FileNotFoundError:
                self._make_home()
                with locked(os.path.join(self._home, "lock")):
                    if not os.path.exists(path):
                        write_durably(path, b'{"id": "%s"}\n' % time_ordered().encode())
                return self.root_id
            except (ValueError, KeyError, TypeError):
                raise PipelineError(
                    f"{path} cannot be read; remove it, and it is made anew", pipeline=self.pipeline
                ) from None
        return self._root_id

    def _make_home(self) -> None:
        os.makedirs(self._home, exist_ok=True)
        ignore = os.path.join(self._home, ".gitignore")
        if not os.path.exists(ignore):
            write_durably(ignore, _IGNORED.encode())

    def _lock(self) -> AbstractContextManager[None]:
        os.makedirs(self._home, exist_ok=True)
        return locked(os.path.join(self._home, "lock"))

    def lease(self, name: str, patience: float) -> AbstractContextManager[Callable[[], bool]]:
        self._make_home()
        return hold_lease(self._lease_path(name), name, patience)

    def lease_number(self, name: str) -> int:
        """How often the lease has been taken and given back: odd while somebody has it."""
        return lease_number(self._lease_path(name))

    def _lease_path(self, name: str) -> str:
        return os.path.join(self._home, f"{checked_path(name)}.lease")

    # Looking

    def exists(self, path: str) -> bool:
        return os.path.isdir(self.file(path)) if path.endswith("/") else stamp_of(self.file(path)) is not None

    def read(self, path: str) -> bytes:
        return read_file(self.file(path))[0]

    def read_with_stamp(self, path: str) -> tuple[bytes, Stamp]:
        """What is in a file, and the stamp it had when it was read."""
        return read_file(self.file(path))

    def still_is(self, path: str, stamp: Stamp, digest: str) -> bool:
        """Whether a file holds what it held: told by its stamp, unless it is so new that it could change and keep it."""
        if stamp_of(f"{self.root}/{path}") == stamp and not is_recent(stamp, time.time_ns()):
            return True
        return self.hash_of(path) == digest

    def local(self, path: str) -> Path:
        return Path(self.file(path))

    def file(self, path: str) -> str:
        """The file of a path, which is below the root whatever it says."""
        return self._safe.join(path)

    def walk(self, wanted: Callable[[Sequence[str]], bool]) -> list[Folder]:
        return list(walk(self.root, wanted))

    def snapshot(self, wanted: Callable[[Sequence[str]], bool], folders: Sequence[Folder] | None = None) -> Snapshot:
        given = self.walk(wanted) if folders is None else folders
        cached = self.cached()
        snapshot = Snapshot(self._find_hash)
        changed: list[str] | None = [] if len(given) >= len(cached.folders) else None
        for folder in given:
            known = cached.folders.get(folder.path)
            names = folder.names
            numbers = folder.stamps
            tree: dict[str, Stamp] = {
                name: (numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3])
                for name, at in zip(names, range(0, len(numbers), 4), strict=True)
            }
            prefix = f"{folder.path}/" if folder.path else ""
            if known is not None and not self._same_manifest(folder, known):
                changed = None  # somebody else has recorded, accepted or invalidated something
            if known is not None:
                if not known.recent and known.names == names and known.stamps == numbers.tobytes():
                    digests = known.hashes.hex()
                    snapshot.hashes.update(
                        {
                            prefix + name: digest
                            for name, at in zip(names, range(0, len(digests), 64), strict=True)
                            if (digest := digests[at : at + 64]) != NO_HASH
                        }
                    )
                else:
                    self._known[folder.path] = known.known()
                    changed = self._changed(changed, folder, known, tree)
            elif changed is not None:
                changed += [prefix + name for name in names]
            if folder.manifest != [None, None]:
                records = self.manifests.read(folder.path)
                snapshot.records.update(records)
                if folder.temporary:
                    drafts = {name[len(TEMPORARY) :].partition("-")[2] for name in folder.temporary}
                    cut = len(prefix)
                    snapshot.publishing |= {each for each in records if draft_name(each[cut:]) in drafts}
            snapshot.tree[folder.path] = tree
            snapshot.problems += [
                (prefix + link, "it is a symbolic link, which is not followed") for link in folder.links
            ]
        snapshot.changed_paths = changed
        snapshot.failures = self.failures()
        return snapshot

    # Changing

    def put(self, path: str, content: bytes) -> None:
        file = self.file(checked_path(path))
        os.makedirs(os.path.dirname(file), exist_ok=True)
        self.file(path)  # again: what was made may be a link by now
        write_durably(file, content)

    def records(self, addresses: Iterable[str]) -> dict[str, Record]:
        return self.manifests.find(addresses)

    def read_records(self, folder: str) -> dict[str, Record]:
        """The records of the states that one directory has."""
        return self.manifests.read(folder)

    def draft(self, address: str, token: str) -> Draft:
        """A place beside the final one, so that renaming it is one step. It keeps the name, because suffixes say what it is."""
        folder, key = split_address(address)
        probe = folder + (key.removesuffix("/") if "{" not in key else "x")
        home = os.path.dirname(self.file(probe))
        if not self._safe.knows(folder.removesuffix("/")):
            os.makedirs(home, exist_ok=True)
            self.file(probe)
        place = os.path.join(home, f"{TEMPORARY}{token}-{draft_name(key)}")
        if address.endswith("/") or "{" in key:
            os.mkdir(place)
        return Draft(address, place, token)

    def draft_name(self, draft: Draft) -> str:
        """Where a draft is, for whoever sees the same root elsewhere."""
        return draft.place[len(self._safe.home) + 1 :].replace(os.sep, "/")

    def drafted(self, address: str, name: str, token: str) -> Draft:
        """The draft that `draft_name` named."""
        return Draft(address, os.path.join(self._safe.home, *name.split("/")), token)

    def discard(self, draft: Draft) -> None:
        discard(draft)

    def files_below(self, path: str) -> list[str] | None:
        """The files of a directory and below it; None if it is none."""
        base = f"{self.root}/{path}"
        if not is_folder(base):
            return None
        found = []
        for folder, folders, names in os.walk(base):
            folders[:] = [name for name in folders if name[0] != "."]
            relative = os.path.relpath(folder, self.root).replace(os.sep, "/")
            found += [f"{relative}/{name}" for name in names if name[0] != "." or name in MANIFEST_FILES]
        return found

    def stamp(self, path: str) -> Stamp | None:
        return stamp_of(f"{self.root}/{path}")

    def directory_hash(self, path: str, excluded: Sequence[Pattern]) -> str | None:
        """The content hash of a directory, without the files that are excluded; None if it is not there."""
        if not os.path.isdir(self.file(path)):
            return None
        members = all_members(self, path)
        return members_hash(
            {name: digest for name, digest in members.items() if not any(each.covers(path + name) for each in excluded)}
        )

    def publish(self, publications: Sequence[Publication]) -> list[Published]:
        return publish(self, publications, self._lock)

    def finish(self, folders: Iterable[Folder]) -> list[str]:
        """Finish renames that were interrupted, and remove drafts that nobody will finish; addresses of what was finished."""
        left = [folder for folder in folders if folder.temporary]
        return finish(self, left, self._lock, FORGOTTEN_SECONDS) if left else []

    def change_records(self, changes: Mapping[str, Record | None]) -> None:
        with self._lock():
            self.manifests.change(changes)

    def remove(self, addresses: Iterable[str]) -> list[str]:
        return remove_states(self, addresses, self._lock)

    def keep_aside(self, path: str) -> str:
        """Where a file that is about to be replaced is kept."""
        aside = os.path.join(self._home, "aside", f"{time.strftime('%Y%m%dT%H%M%S')}-{time_ordered()[-6:]}")
        target = os.path.join(aside, *path.removesuffix("/").split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(self.file(path), target)
        return os.path.relpath(target, self.root)

    def failures(self) -> dict[str, Failure]:
        return {key: failure_from(value) for key, value in self._failures.read().items()}

    def change_failures(self, changes: Mapping[str, Failure | None]) -> None:
        self._make_home()
        with self._lock():
            known = self._failures.read()
            needed = {
                key: None if failure is None else failure.to_json()
                for key, failure in changes.items()
                if failure is not None or key in known
            }
            if needed:
                store_changes([(self._failures, needed)])
                self._failures.fold()

    def trigger_marks(self) -> dict[str, str]:
        """The content that each trigger was last fired for, by trigger and state."""
        return self._triggers.read()

    def mark_triggers(self, marks: Mapping[str, str]) -> None:
        self._make_home()
        with self._lock():
            store_changes([(self._triggers, marks)])
            self._triggers.fold()

    def keep_code(self, code_hash: str, parts: Mapping[str, str]) -> None:
        if code_hash in self._known_code:
            return
        self._make_home()
        with self._lock():
            if code_hash not in self._code.read():
                store_changes([(self._code, {code_hash: dict(parts)})])
        self._known_code.add(code_hash)

    def known_code(self, code_hash: str) -> Mapping[str, Any] | None:
        found = self._code.read().get(code_hash)
        return found if isinstance(found, dict) else None
