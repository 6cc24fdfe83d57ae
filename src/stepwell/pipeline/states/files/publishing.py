"""From a draft to a state that is seen: synced, recorded, renamed, in this order and for a whole batch at once.

What is recorded and not yet renamed is finished by whoever scans next: the draft is there, its name says what it is, and its
content is what the record says. So a crash between any two steps loses nothing and shows nothing that is half written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress

from ....errors import UnsafePath
from ...patterns.paths import TEMPORARY, checked_path, path_problem
from ..address import draft_name, members_base, probe_path, split_address
from ..listing import MANIFEST_FILES, Folder
from ..port import Draft, Publication, Published
from ..publishing import Present, is_foreign, publish_batch
from ..records import Record, members_hash
from ..single import Stamp, hash_file, stamp_of
from .drafts import FileDrafts
from .local import LocalFiles
from .manifests import Manifests
from .root import Folders, Root
from .syncing import ONE_BY_ONE, sync_file_system, sync_files

FORGOTTEN_SECONDS = 86_400.0
"""Drafts that are older belong to nobody any more."""


class FilePublisher:
    """Publishes, finishes and removes states of files, under the lock of their root."""

    def __init__(
        self,
        root: Root,
        files: LocalFiles,
        drafts: FileDrafts,
        manifests: Manifests,
        lock: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._root = root
        self._files = files
        self._drafts = drafts
        self._manifests = manifests
        self._lock = lock

    def sync(self, drafts: Iterable[Draft]) -> None:
        """The first step, which waits for the disk: it needs no lock, so that others are published meanwhile."""
        listed = list(drafts)
        # Of so many it does not matter which files they are.
        if len(listed) > ONE_BY_ONE and sync_file_system(self._root):
            return
        if files := [file for each in listed for file in self._files_of(each)]:
            sync_files(self._root, files)

    def publish(self, publications: Sequence[Publication], check: Callable[[], object]) -> list[Published]:
        """Publish a batch that is synced. `check` raises an error if another process has taken over: it is asked under the
        lock, which that process needs, too.
        """
        with self._lock():
            check()
            published = publish_batch(self, publications)
        for publication, answer in zip(publications, published, strict=True):
            if answer.reason:
                self._drafts.discard(publication.draft)
        return published

    def present(self, publications: Sequence[Publication]) -> list[Present]:
        single = [checked_path(each.draft.address) for each in publications if each.record.members is None]
        stamps = iter(self._files.stamps(single))
        return [
            Present(
                None
            )  # the most common case, without a look at more: a draft that is gone is noticed when it is renamed
            if each.record.members is None and next(stamps) is None
            else Present(self._content_at(each.draft.address, each.record), self._drafts.exists(each.draft))
            for each in publications
        ]

    def reveal(self, accepted: Sequence[tuple[Publication, str | None]]) -> dict[str, Stamp | None]:
        if not accepted:
            return {}
        self._remove_former_members([each for each, _ in accepted])
        self._manifests.store({each.draft.address: each.record for each, _ in accepted})
        stamps: dict[str, Stamp | None] = {}
        with self._root.folders() as folders:
            for each, content in accepted:
                address = each.draft.address
                if content is not None or each.record.members is not None:
                    self._replace(each, content)
                    stamps[address] = None
                elif stamp := self._rename_new(folders, each):
                    stamps[address] = stamp
        if lost := [each.draft.address for each, _ in accepted if each.draft.address not in stamps]:
            self._manifests.store(dict.fromkeys(lost))  # nothing was there before either
        return stamps

    def _rename_new(self, folders: Folders, publication: Publication) -> Stamp | None:
        """Rename the draft of a file to where nothing is. Return its stamp, or None if the draft is gone and was not renamed
        before.
        """
        above, name = folders(self._drafts.path_of(publication.draft))
        folder, final = folders(publication.draft.address)
        try:
            os.replace(name, final, src_dir_fd=above, dst_dir_fd=folder)
        except FileNotFoundError:
            try:
                if hash_file(final, folder) != publication.record.content_hash:
                    return None
            except OSError:
                return None
        return stamp_of(final, folder)

    def _remove_former_members(self, publications: Sequence[Publication]) -> None:
        """Members that are not made again, before the record forgets them: a crash in between leaves no file without a
        record.
        """
        of_members = [each for each in publications if "{" in each.draft.address]
        records = self._manifests.find(each.draft.address for each in of_members) if of_members else {}
        for each in of_members:
            record = records.get(each.draft.address)
            if record is not None and record.members is not None and each.record.members is not None:
                gone = {name: digest for name, digest in record.members.items() if name not in each.record.members}
                self._remove_content(each.draft.address, record._replace(members=gone))

    def _content_at(self, address: str, record: Record) -> str | None:
        """The content hash of what is at the final place now; None if there is nothing."""
        if record.members is None:
            return self._files.hash_of(address)
        if address.endswith("/"):
            return members_hash(self._files.members(address)) if self._files.is_directory(address) else None
        folder = split_address(address)[0]
        hashes = {member: self._files.hash_of(folder + member) for member in record.members}
        return None if None in hashes.values() else members_hash({name: each or "" for name, each in hashes.items()})

    def _replace(self, publication: Publication, content: str | None) -> None:
        """Rename a draft to its final place. What somebody had changed there is kept aside."""
        root, place, record = self._root, self._drafts.path_of(publication.draft), publication.record
        address = publication.draft.address
        checked_path(probe_path(address))
        if record.members is not None and not address.endswith("/"):
            folder, _ = split_address(address)
            for member in record.members:
                if root.stat(f"{place}/{member}") is not None:
                    root.rename(f"{place}/{member}", checked_path(folder + member), make=True)
            root.remove(place)
            return
        if record.members is None:
            if content is not None and is_foreign(publication, content):
                self._files.keep_aside(address)
        elif root.stat(address) is not None:
            if content is not None and content == publication.expected:
                root.rename(address, f"{place}-old")
                root.remove(f"{place}-old")
            else:
                self._files.keep_aside(address)
        root.rename(place, address)

    def _files_of(self, draft: Draft) -> list[str]:
        if draft.address[-1] != "/" and "{" not in draft.address:
            return [self._drafts.path_of(draft)]
        return [self._drafts.path_of(draft, member) for member in self._drafts.members(draft)]

    def finish(self, folders: Iterable[Folder]) -> list[str]:
        """Rename what was recorded but not renamed, and remove drafts that nobody will finish."""
        finished = []
        with self._lock():
            for folder in folders:
                prefix = f"{folder.path}/" if folder.path else ""
                records = self._manifests.read(folder.path)
                drafts = {draft_name(address[len(prefix) :]): address for address in records}
                for name in folder.temporary:
                    draft = self._drafts.named("", prefix + name)
                    ending = name[len(TEMPORARY) :].partition("-")[2]
                    address = drafts.get(ending)
                    if address is not None and self._is_draft_of(prefix + name, address, records[address]):
                        record = records[address]
                        publication = Publication(draft._replace(address=address), record, None)
                        self._replace(publication, self._content_at(address, record))
                        finished.append(address)
                    elif ending in MANIFEST_FILES or self._age(prefix + name) > FORGOTTEN_SECONDS:
                        self._drafts.discard(draft)  # who writes manifests has the lock
        return finished

    def _is_draft_of(self, path: str, address: str, record: Record) -> bool:
        """Whether a draft holds what a record says. Of files that are renamed one by one some may be renamed already."""
        if record.members is None:
            return self._files.hash_of(path) == record.content_hash
        if not self._files.is_directory(path):
            return False
        members = self._files.members(f"{path}/")
        if address.endswith("/"):
            return members == record.members
        return bool(members) and all(record.members.get(member) == digest for member, digest in members.items())

    def _age(self, path: str) -> float:
        status = self._root.stat(path)
        return 0.0 if status is None else time.time() - status.st_mtime

    def remove(self, addresses: Iterable[str]) -> list[str]:
        """Delete states and their records; what somebody changed is kept aside. The records go last: a crash leaves no file
        that nobody recorded.
        """
        wanted = list(addresses)
        with self._lock():
            records = self._manifests.find(wanted)
            for address, record in records.items():
                self._remove_content(address, record)
            with suppress(OSError):
                sync_file_system(self._root)
            self._manifests.store(dict.fromkeys(records))
            self._manifests.fold()
        return list(records)

    def _remove_content(self, address: str, record: Record) -> None:
        members: Mapping[str, str] = record.members if record.members is not None else {"": record.content_hash}
        base = address if record.members is None else members_base(address)
        for member, digest in members.items():
            path = base + member
            if path_problem(path) is not None:
                continue
            content = self._files.hash_of(path)
            if content == digest:
                self._root.remove(path)
            elif content is not None:
                self._files.keep_aside(path)
        if record.members is not None:
            with suppress(OSError, UnsafePath):
                self._root.remove_empty(base.removesuffix("/"))
