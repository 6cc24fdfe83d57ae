"""From a draft to a state that is seen: synced, recorded, renamed, in this order and for a whole batch at once.

What is recorded and not yet renamed is finished by whoever scans next: the draft is there, its name says what it is, and its
content is what the record says. So a crash between any two steps loses nothing and shows nothing that is half written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from stat import S_ISDIR, S_ISREG

from ....errors import UnsafePath
from ...patterns.paths import TEMPORARY, checked_path, path_problem
from ..address import draft_name, members_base, probe_path, split_address
from ..listing import MANIFEST_FILES, Folder
from ..port import Draft, Publication, Published
from ..publishing import Accepted, Present, contents_of, files_of, foreign_places, publish_batch
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
        with self._root.folders() as folders:
            return [self._present(folders, each) for each in publications]

    def _present(self, folders: Folders, publication: Publication) -> Present:
        address, record = publication.draft.address, publication.record
        contents = {
            path: content
            for path in contents_of(address, record)
            if (content := self._content_at(folders, checked_path(path))) is not None
        }
        if not contents and record.members is None:
            return Present({})  # the most common case: a draft that is gone is noticed when it is renamed
        return Present(contents, self._drafts.exists(publication.draft))

    def _content_at(self, folders: Folders, path: str) -> str | None:
        """The content hash of what is at a path; empty if it is something else; None if there is nothing."""
        try:
            folder, name = folders(path)
            mode = os.lstat(name, dir_fd=folder).st_mode
            if path.endswith("/"):
                return members_hash(self._files.members(path)) if S_ISDIR(mode) else ""
            return hash_file(name, folder) if S_ISREG(mode) else ""
        except (FileNotFoundError, NotADirectoryError):
            return None

    def reveal(self, accepted: Sequence[Accepted]) -> dict[str, Stamp | None]:
        if not accepted:
            return {}
        self._remove_former_members(each.publication for each in accepted)
        self._manifests.store({each.publication.draft.address: each.publication.record for each in accepted})
        stamps: dict[str, Stamp | None] = {}
        with self._root.folders() as folders:
            for each in accepted:
                publication = each.publication
                address = publication.draft.address
                if each.contents or publication.record.members is not None:
                    self._replace(each)
                    stamps[address] = None
                elif stamp := self._rename_new(folders, publication):
                    stamps[address] = stamp
        addresses = [each.publication.draft.address for each in accepted]
        if lost := [address for address in addresses if address not in stamps]:
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

    def _remove_former_members(self, publications: Iterable[Publication]) -> None:
        """Members that are not made again, before the record forgets them: a crash in between leaves no file without a
        record.
        """
        for draft, record, former, _ in publications:
            if "{" in draft.address and former is not None and former.members is not None:
                gone = {name: former.members[name] for name in former.members.keys() - (record.members or {}).keys()}
                self._remove_content(draft.address, former._replace(members=gone))

    def _replace(self, accepted: Accepted) -> None:
        """Rename a draft to its final place. What nobody recorded there is kept aside."""
        root, (draft, record, *_) = self._root, accepted.publication
        address, place = draft.address, self._drafts.path_of(draft)
        checked_path(probe_path(address))
        for path in accepted.foreign:
            self._files.keep_aside(path)
        if record.members is not None and not address.endswith("/"):
            folder, _ = split_address(address)
            for member in record.members:
                if root.stat(f"{place}/{member}") is not None:
                    root.rename(f"{place}/{member}", checked_path(folder + member), make=True)
            root.remove(place)
            return
        if record.members is not None and accepted.contents and not accepted.foreign:
            root.rename(address, f"{place}-old")
            root.remove(f"{place}-old")
        root.rename(place, address)

    def _files_of(self, draft: Draft) -> list[str]:
        if draft.address[-1] != "/" and "{" not in draft.address:
            return [self._drafts.path_of(draft)]
        return [self._drafts.path_of(draft, member) for member in self._drafts.members(draft)]

    def finish(self, folders: Iterable[Folder]) -> list[str]:
        """Rename what was recorded but not renamed, and remove drafts that nobody will finish."""
        finished = []
        with self._lock(), self._root.folders() as opened:
            for folder in folders:
                prefix = f"{folder.path}/" if folder.path else ""
                records = self._manifests.read(folder.path)
                drafts = {draft_name(address[len(prefix) :]): address for address in records}
                for name in folder.temporary:
                    draft = self._drafts.named("", prefix + name)
                    ending = name[len(TEMPORARY) :].partition("-")[2]
                    address = drafts.get(ending)
                    if address is not None and self._is_draft_of(prefix + name, address, records[address]):
                        publication = Publication(draft._replace(address=address), records[address], None)
                        contents = self._present(opened, publication).contents
                        self._replace(Accepted(publication, contents, foreign_places(publication, contents)))
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
        for path, digest in files_of(address, record).items():
            if path_problem(path) is not None:
                continue
            content = self._files.hash_of(path)
            if content == digest:
                self._root.remove(path)
            elif content is not None:
                self._files.keep_aside(path)
        if record.members is not None:
            with suppress(OSError, UnsafePath):
                self._root.remove_empty(members_base(address).removesuffix("/"))
