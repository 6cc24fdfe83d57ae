"""From a draft to a state that is seen: synced, recorded, renamed, in this order and for a whole batch at once.

What is recorded and not yet renamed is finished by whoever scans next: the draft is there, its name says what it is, and its
content is what the record says. So a crash between any two steps loses nothing and shows nothing that is half written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple

from ....errors import UnsafePath
from ...patterns.paths import TEMPORARY, checked_path, path_problem
from ..address import draft_name, members_base, probe_path, split_address
from ..listing import MANIFEST_FILES, Folder
from ..port import Draft, Publication, Published
from ..records import Record, members_hash
from ..single import Stamp, hash_file, stamp_of
from .drafts import FileDrafts
from .local import LocalFiles
from .manifests import Manifests
from .root import Folders, Root
from .syncing import ONE_BY_ONE, sync_file_system, sync_files


class Home(NamedTuple):
    """What publishing needs of the store of files."""

    root: Root
    files: LocalFiles
    drafts: FileDrafts
    manifests: Manifests
    lock: Callable[[], AbstractContextManager[None]]


def sync_drafts(home: Home, drafts: Iterable[Draft]) -> None:
    """The first step, which waits for the disk: it needs no lock, so that others are published meanwhile."""
    given = list(drafts)
    # Of so many it does not matter which files they are.
    if len(given) > ONE_BY_ONE and sync_file_system(home.root):
        return
    files = [file for each in given for file in _files_of(home, each)]
    if files:
        sync_files(home.root, files)


def publish(home: Home, publications: Sequence[Publication], check: Callable[[], object]) -> list[Published]:
    """Publish a batch that is synced. Repeating it is harmless; what somebody else published before is left alone.

    `check` raises an error if another process has taken over: it is asked under the lock, which that process needs, too.
    """
    with home.lock():
        check()
        reasons, accepted = _examined(home, publications)
        stamps = _record_and_reveal(home, accepted) if accepted else {}
    lost = [address for address, stamp in stamps.items() if stamp is None]
    reasons |= dict.fromkeys(lost, "lost")
    for each in publications if reasons else ():
        if reasons.get(each.draft.address):
            home.drafts.discard(each.draft)
    return [
        Published(address, not (reason := reasons.get(address, "")), reason, stamps.get(address))
        for address in [each.draft.address for each in publications]
    ]


def _examined(
    home: Home, publications: Sequence[Publication]
) -> tuple[dict[str, str], list[tuple[Publication, str | None]]]:
    """Why some cannot be published, or "" if they are already; and the others, each with the hash of what is there now."""
    single = [checked_path(each.draft.address) for each in publications if each.record.members is None]
    stamps = iter(home.files.stamps(single))
    reasons: dict[str, str] = {}
    accepted: list[tuple[Publication, str | None]] = []
    for each in publications:
        if each.record.members is None and next(stamps) is None:  # the most common case, without a look at more
            accepted.append((each, None))
            continue
        address = each.draft.address
        there = _content_at(home, address, each.record)
        if not home.drafts.exists(each.draft):
            reasons[address] = "" if there == each.record.content_hash else "lost"
        elif there in (None, each.record.content_hash) or each.replace or each.expected is not None:
            accepted.append((each, there))
        else:
            reasons[address] = "unrecorded"
    return reasons, accepted


def _record_and_reveal(home: Home, accepted: Sequence[tuple[Publication, str | None]]) -> dict[str, Stamp | None]:
    """Record drafts and rename them to where this content is now. Return the stamps of those that went where nothing was; None
    if the draft is gone.
    """
    _remove_former_members(home, [each for each, _ in accepted])
    home.manifests.store({each.draft.address: each.record for each, _ in accepted})
    new = []
    for each, there in accepted:
        if there is None and each.record.members is None:
            new.append(each)
        else:
            _reveal(home, each.draft, each.record, each.expected, there)
    stamps: dict[str, Stamp | None] = {}
    with home.root.folders() as folders:
        for each in new:
            address = each.draft.address
            stamps[address] = _reveal_new(folders, home.drafts.path_of(each.draft), address, each.record.content_hash)
    if lost := [address for address, stamp in stamps.items() if stamp is None]:  # nothing was there before either
        home.manifests.store(dict.fromkeys(lost))
    return stamps


def _reveal_new(folders: Folders, draft: str, path: str, digest: str) -> Stamp | None:
    """Rename the draft of a file. Return the stamp it has then, or None if it is gone and was not renamed before."""
    above, name = folders(draft)
    folder, final = folders(path)
    try:
        os.replace(name, final, src_dir_fd=above, dst_dir_fd=folder)
    except FileNotFoundError:
        try:
            if hash_file(final, folder) != digest:
                return None
        except OSError:
            return None
    return stamp_of(final, folder)


def _remove_former_members(home: Home, publications: Sequence[Publication]) -> None:
    """Members that are not made again, before the record forgets them: a crash in between leaves no file without a record."""
    of_members = [each for each in publications if "{" in each.draft.address]
    if not of_members:
        return
    before = home.manifests.find(each.draft.address for each in of_members)
    for each in of_members:
        record = before.get(each.draft.address)
        if record is not None and record.members is not None and each.record.members is not None:
            gone = {name: digest for name, digest in record.members.items() if name not in each.record.members}
            _remove_content(home, each.draft.address, record._replace(members=gone))


def _content_at(home: Home, address: str, record: Record) -> str | None:
    """The content hash of what is at the final place now; None if there is nothing."""
    if record.members is None:
        return home.files.hash_of(address)
    if address.endswith("/"):
        return members_hash(home.files.members(address)) if home.files.is_directory(address) else None
    folder = split_address(address)[0]
    found = {member: home.files.hash_of(folder + member) for member in record.members}
    return None if None in found.values() else members_hash({name: each or "" for name, each in found.items()})


def _reveal(home: Home, draft: Draft, record: Record, expected: str | None, there: str | None) -> None:
    """Rename a draft to its final place. A file that somebody had changed there is kept aside."""
    root, address, place = home.root, checked_address(draft.address), home.drafts.path_of(draft)
    if record.members is None:
        if there is not None and there not in (expected, record.content_hash):
            home.files.keep_aside(address)
        root.rename(place, address)
    elif address.endswith("/"):
        if root.stat(address) is not None:
            if there is not None and there == expected:
                root.rename(address, f"{place}-old")
                root.remove(f"{place}-old")
            else:
                home.files.keep_aside(address)
        root.rename(place, address)
    else:
        folder, _ = split_address(address)
        for member in record.members:
            if root.stat(f"{place}/{member}") is not None:
                root.rename(f"{place}/{member}", checked_path(folder + member), make=True)
        root.remove(place)


def checked_address(address: str) -> str:
    checked_path(probe_path(address))
    return address


def _files_of(home: Home, draft: Draft) -> list[str]:
    if draft.address[-1] != "/" and "{" not in draft.address:
        return [home.drafts.path_of(draft)]
    return [home.drafts.path_of(draft, member) for member in home.drafts.members(draft)]


def finish(home: Home, folders: Iterable[Folder], forgotten: float) -> list[str]:
    """Rename what was recorded but not renamed, and remove drafts older than `forgotten` seconds."""
    finished = []
    with home.lock():
        for folder in folders:
            prefix = f"{folder.path}/" if folder.path else ""
            records = home.manifests.read(folder.path)
            drafts = {draft_name(address[len(prefix) :]): address for address in records}
            for name in folder.temporary:
                draft = home.drafts.named("", prefix + name)
                ending = name[len(TEMPORARY) :].partition("-")[2]
                address = drafts.get(ending)
                if address is not None and _is_draft_of(home, prefix + name, address, records[address]):
                    there = _content_at(home, address, records[address])
                    _reveal(home, draft._replace(address=address), records[address], None, there)
                    finished.append(address)
                elif (
                    ending in MANIFEST_FILES or _age(home, prefix + name) > forgotten
                ):  # who writes manifests has the lock
                    home.drafts.discard(draft)
    return finished


def _is_draft_of(home: Home, path: str, address: str, record: Record) -> bool:
    """Whether a draft holds what a record says. Of files that are renamed one by one some may be renamed already."""
    if record.members is None:
        return home.files.hash_of(path) == record.content_hash
    if not home.files.is_directory(path):
        return False
    there = home.files.members(f"{path}/")
    if address.endswith("/"):
        return there == record.members
    return bool(there) and all(record.members.get(member) == digest for member, digest in there.items())


def _age(home: Home, path: str) -> float:
    found = home.root.stat(path)
    return 0.0 if found is None else time.time() - found.st_mtime


def remove_states(home: Home, addresses: Iterable[str]) -> list[str]:
    """Delete states and their records; what somebody changed is kept aside. The records go last: a crash leaves no file
    that nobody recorded.
    """
    wanted = list(addresses)
    with home.lock():
        records = home.manifests.find(wanted)
        for address, record in records.items():
            _remove_content(home, address, record)
        with suppress(OSError):
            sync_file_system(home.root)
        home.manifests.store(dict.fromkeys(records))
        home.manifests.fold()
    return list(records)


def _remove_content(home: Home, address: str, record: Record) -> None:
    members: Mapping[str, str] = record.members if record.members is not None else {"": record.content_hash}
    base = address if record.members is None else members_base(address)
    for member, digest in members.items():
        path = base + member
        if path_problem(path) is not None:
            continue
        there = home.files.hash_of(path)
        if there == digest:
            home.root.remove(path)
        elif there is not None:
            home.files.keep_aside(path)
    if record.members is not None:
        with suppress(OSError, UnsafePath):
            home.root.remove_empty(base.removesuffix("/"))
