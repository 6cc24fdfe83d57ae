"""From a draft to a state that is seen: synced, recorded, renamed, in this order and for a whole batch at once.

What is recorded and not yet renamed is finished by whoever scans next: the draft is there, its name says what it is, and its
content is what the record says. So a crash between any two steps loses nothing and shows nothing that is half written.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple

from ...patterns.paths import TEMPORARY, path_problem
from ..address import draft_name, members_base, split_address
from ..listing import MANIFEST_FILES, Folder
from ..port import Draft, Publication, Published
from ..records import Record, members_hash
from ..single import Stamp
from .drafts import discard
from .local import LocalFiles
from .manifests import Manifests
from .second_process import system_error
from .syncing import ONE_BY_ONE, remove_if_there, sync_file_system, sync_files

PART = 1000
"""So many files are renamed at once by the second process."""


class Home(NamedTuple):
    """What publishing needs of the store of files."""

    files: LocalFiles
    manifests: Manifests
    lock: Callable[[], AbstractContextManager[int]]


def sync_drafts(drafts: Iterable[Draft]) -> None:
    """The first step, which waits for the disk: it needs no lock, so that others are published meanwhile."""
    given = list(drafts)
    # Of so many it does not matter which files they are.
    if len(given) > ONE_BY_ONE and sync_file_system(os.path.dirname(given[0].place)):
        return
    files = [file for each in given for file in _files_of(each)]
    if files:
        sync_files(files)


def publish(home: Home, publications: Sequence[Publication]) -> list[Published]:
    """Publish a batch that is synced. Repeating it is harmless; what somebody else published before is left alone."""
    with home.lock() as lock:
        reasons, accepted = _examined(home, publications)
        stamps = _record_and_reveal(home, accepted, lock) if accepted else {}
    lost = [address for address, stamp in stamps.items() if stamp is None]
    reasons |= dict.fromkeys(lost, "lost")
    for each in publications if reasons else ():
        if reasons.get(each.draft.address):
            discard(each.draft)
    return [
        Published(address, not (reason := reasons.get(address, "")), reason, stamps.get(address))
        for address in [each.draft.address for each in publications]
    ]


def _examined(
    home: Home, publications: Sequence[Publication]
) -> tuple[dict[str, str], list[tuple[Publication, str | None]]]:
    """Why some cannot be published, or "" if they are already; and the others, each with the hash of what is there now."""
    join, second = home.files.safe.joiner(), home.files.second_process
    single = [(join(each.draft.address),) for each in publications if each.record.members is None]
    stamps = iter(second.call_each("stamp", single))
    reasons: dict[str, str] = {}
    accepted: list[tuple[Publication, str | None]] = []
    for each in publications:
        if each.record.members is None and next(stamps) is None:  # the most common case, without a look at more
            accepted.append((each, None))
            continue
        address = each.draft.address
        there = _content_at(home, address, each.record)
        if not os.access(each.draft.place, os.F_OK):
            reasons[address] = "" if there == each.record.content_hash else "lost"
        elif there in (None, each.record.content_hash) or each.replace or each.expected is not None:
            accepted.append((each, there))
        else:
            reasons[address] = "unrecorded"
    return reasons, accepted


def _record_and_reveal(
    home: Home, accepted: Sequence[tuple[Publication, str | None]], lock: int
) -> dict[str, Stamp | None]:
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
            _reveal(home, each.draft.address, each.draft.place, each.record, each.expected, there)
    join, second = home.files.safe.joiner(), home.files.second_process
    stamps: dict[str, Stamp | None] = {}
    for start in range(0, len(new), PART):  # the place of each is checked shortly before it is renamed
        drafts = [(each.draft, each.record.content_hash) for each in new[start : start + PART]]
        asked = [(draft.place, join(draft.address), digest) for draft, digest in drafts]
        for (draft, _), stamp in zip(drafts, second.call_each("reveal", asked, lock), strict=True):
            if isinstance(stamp, int):
                raise system_error(stamp, draft.place)
            stamps[draft.address] = stamp
    if lost := [address for address, stamp in stamps.items() if stamp is None]:  # nothing was there before either
        home.manifests.store(dict.fromkeys(lost))
    return stamps


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
        base = os.path.join(home.files.root, address)
        return members_hash(home.files.members(address)) if os.path.isdir(base) else None
    folder = split_address(address)[0]
    found = {member: home.files.hash_of(folder + member) for member in record.members}
    return None if None in found.values() else members_hash({name: each or "" for name, each in found.items()})


def _reveal(home: Home, address: str, place: str, record: Record, expected: str | None, there: str | None) -> None:
    """Rename a draft to its final place. A file that somebody had changed there is kept aside."""
    folder, _ = split_address(address)
    if record.members is None:
        if there is not None and there not in (expected, record.content_hash):
            home.files.keep_aside(address)
        os.replace(place, home.files.file(address))
    elif address.endswith("/"):
        final = home.files.file(address)
        if os.path.lexists(final):
            if there is not None and there == expected:
                old = f"{place}-old"
                os.rename(final, old)
                shutil.rmtree(old, ignore_errors=True)
            else:
                home.files.keep_aside(address)
        os.rename(place, final)
    else:
        for member in record.members:
            drafted = os.path.join(place, *member.split("/"))
            if os.path.lexists(drafted):
                final = home.files.file(folder + member)
                os.makedirs(os.path.dirname(final), exist_ok=True)
                os.replace(drafted, final)
        shutil.rmtree(place, ignore_errors=True)


def _files_of(draft: Draft) -> list[str]:
    if draft.address[-1] != "/" and "{" not in draft.address:
        return [draft.place]
    return [os.path.join(folder, name) for folder, _, names in os.walk(draft.place) for name in names]


def finish(home: Home, folders: Iterable[Folder], forgotten: float) -> list[str]:
    """Rename what was recorded but not renamed, and remove drafts older than `forgotten` seconds."""
    finished = []
    with home.lock():
        for folder in folders:
            prefix = f"{folder.path}/" if folder.path else ""
            records = home.manifests.read(folder.path)
            drafts = {draft_name(address[len(prefix) :]): address for address in records}
            for name in folder.temporary:
                place = os.path.join(home.files.root, folder.path, name)
                ending = name[len(TEMPORARY) :].partition("-")[2]
                address = drafts.get(ending)
                if address is not None and _is_draft_of(home, place, prefix + name, records[address]):
                    there = _content_at(home, address, records[address])
                    _reveal(home, address, place, records[address], None, there)
                    finished.append(address)
                elif ending in MANIFEST_FILES or _age(place) > forgotten:  # who writes manifests has the lock
                    discard(Draft(address or "", place))
    return finished


def _is_draft_of(home: Home, place: str, path: str, record: Record) -> bool:
    """Whether a draft holds what a record says; of several files some may be renamed already."""
    if record.members is None:
        return home.files.hash_of(path) == record.content_hash
    if not os.path.isdir(place):
        return False
    there = home.files.members(f"{path}/")
    return bool(there) and all(record.members.get(member) == digest for member, digest in there.items())


def _age(place: str) -> float:
    try:
        return time.time() - os.lstat(place).st_mtime
    except OSError:
        return 0.0


def remove_states(home: Home, addresses: Iterable[str]) -> list[str]:
    """Delete states and their records; what somebody changed is kept aside. The records go last: a crash leaves no file
    that nobody recorded.
    """
    wanted = list(addresses)
    with home.lock():
        records = home.manifests.find(wanted)
        for address, record in records.items():
            _remove_content(home, address, record)
        folders = {os.path.dirname(home.files.file(split_address(address)[0] + "x")) for address in records}
        for folder in folders:
            with suppress(OSError):
                sync_file_system(folder)
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
            remove_if_there(home.files.file(path))
        elif there is not None:
            home.files.keep_aside(path)
    if record.members is not None:
        for inner, _, _ in os.walk(os.path.join(home.files.root, base), topdown=False):
            with suppress(OSError):
                os.rmdir(inner)
