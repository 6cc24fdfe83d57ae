"""The rule by which drafts become states that people see, for files and databases alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from .port import Publication, Published
from .single import Stamp


class Present(NamedTuple):
    """What is there when a draft is to be published."""

    content: str | None
    """The content hash of what is at the final place; None if there is nothing."""
    has_draft: bool = True


class Batch(Protocol):
    """A store while it publishes: nobody else can, under the lock of a root or in a transaction."""

    def present(self, publications: Sequence[Publication]) -> list[Present]: ...
    def reveal(self, accepted: Sequence[tuple[Publication, str | None]]) -> Mapping[str, Stamp | None]:
        """Record drafts, then put them where this content is now. Return the addresses of all of which the draft was there,
        and the stamp of each file that was renamed.
        """
        ...


def publish_batch(batch: Batch, publications: Sequence[Publication]) -> list[Published]:
    """Publish what is synced. Repeating it changes nothing; what somebody else published before is left alone."""
    reasons: dict[str, str] = {}
    accepted: list[tuple[Publication, str | None]] = []
    for publication, (content, has_draft) in zip(publications, batch.present(publications), strict=True):
        address = publication.draft.address
        if not has_draft:
            reasons[address] = "" if content == publication.record.content_hash else "lost"
        elif content is None or not is_foreign(publication, content) or may_replace(publication):
            accepted.append((publication, content))
        else:
            reasons[address] = "unrecorded"
    stamps = batch.reveal(accepted)
    reasons |= {each.draft.address: "lost" for each, _ in accepted if each.draft.address not in stamps}
    return [
        Published(address, not (reason := reasons.get(address, "")), reason, stamps.get(address))
        for address in (each.draft.address for each in publications)
    ]


def may_replace(publication: Publication) -> bool:
    """Whether what somebody changed or put there may be replaced; it is kept aside."""
    return publication.replace or publication.expected is not None


def is_foreign(publication: Publication, content: str) -> bool:
    """Whether what is at the final place was neither recorded before nor is it what will be there."""
    return content not in (publication.expected, publication.record.content_hash)
