"""The rule by which drafts become states that people see, for files and databases alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from .address import member_paths
from .port import Publication, Published
from .records import Record
from .single import Stamp


class Present(NamedTuple):
    """What is there when a draft is to be published."""

    contents: Mapping[str, str]
    """The content hash of what is at each final place that is taken: of a file, a whole directory, or each of several files.
    It is empty for what is no file.
    """
    has_draft: bool = True


class Accepted(NamedTuple):
    """A draft that is to be seen."""

    publication: Publication
    contents: Mapping[str, str]
    """As in `Present`."""
    foreign: Sequence[str]
    """The places of these that have something which nobody recorded: it is kept aside."""


class Batch(Protocol):
    """A store while it publishes: nobody else can, under the lock of a root or in a transaction."""

    def present(self, publications: Sequence[Publication]) -> list[Present]: ...
    def reveal(self, accepted: Sequence[Accepted]) -> Mapping[str, Stamp | None]:
        """Record drafts, then put them where they belong. Return the addresses of all of which the draft was there, and the
        stamp of each file that was renamed.
        """
        ...


def publish_batch(batch: Batch, publications: Sequence[Publication]) -> list[Published]:
    """Publish what is synced. Repeating it changes nothing; what somebody else published before is left alone."""
    reasons: dict[str, str] = {}
    accepted: list[Accepted] = []
    for publication, (contents, has_draft) in zip(publications, batch.present(publications), strict=True):
        address = publication.draft.address
        foreign = foreign_places(publication, contents) if contents else ()
        if not has_draft:
            reasons[address] = "" if contents == contents_of(address, publication.record) else "lost"
        elif foreign and not (publication.replace or publication.former is not None):
            reasons[address] = "unrecorded"
        else:
            accepted.append(Accepted(publication, contents, foreign))
    stamps = batch.reveal(accepted)
    addresses = [each.draft.address for each in publications]
    reasons |= {address: "lost" for address in addresses if address not in reasons and address not in stamps}
    return [
        Published(address, not (reason := reasons.get(address, "")), reason, stamps.get(address))
        for address in addresses
    ]


def foreign_places(publication: Publication, contents: Mapping[str, str]) -> list[str]:
    """The places at which there is neither what was recorded before nor what will be there."""
    address, former = publication.draft.address, publication.former
    after, before = contents_of(address, publication.record), {} if former is None else contents_of(address, former)
    return [path for path, content in contents.items() if content not in (after.get(path), before.get(path))]


def contents_of(address: str, record: Record) -> dict[str, str]:
    """The content hash for each final place of a state: a file, a directory as a whole, or several files."""
    return {address: record.content_hash} if address.endswith("/") else files_of(address, record)


def files_of(address: str, record: Record | None) -> dict[str, str]:
    """The files that a state has, and their content hashes."""
    if record is None:
        return {}
    if record.members is None:
        return {address: record.content_hash}
    return dict(zip(member_paths(address, record.members), record.members.values(), strict=True))
