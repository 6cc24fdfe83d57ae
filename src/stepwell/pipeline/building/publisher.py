"""`Publisher`: makes what runs made into states that people see, and enters it in the view of the scan."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ...errors import PipelineBusy
from ..staleness.units import Unit
from ..states.address import member_paths, members_base
from ..states.port import Publication, StateStore
from ..states.records import EXISTS, Record
from ..states.single import Stamp
from ..states.snapshot import Snapshot
from .results import NewState


class PublishedStates(NamedTuple):
    """What became of the new states of a run."""

    states: Mapping[str, tuple[Record, Stamp | None]]
    """What was published, by address: its record, and the stamp of a single file."""
    refused: Sequence[str] = ()
    """The addresses at which there is something that nobody recorded."""


class _Pass(NamedTuple):
    """What publishing needs to know of the scan that is under way."""

    records: Mapping[str, Record]
    forced: Collection[str]
    """The units whose outputs replace whatever is there."""


class Publisher:
    """Publishes new states: syncs their drafts, then has the store record and rename them under the lease of the scan.

    The threads that wait for runs publish, one after the other, as soon as their run has ended: bodies run, and another run is
    settled, while the disk works. Nothing is published outside of a pass of a scan. What ends later stays a draft, which the
    next scan publishes.
    """

    def __init__(self, store: StateStore, pipeline: str) -> None:
        self.holds_lease: Callable[[], bool] = lambda: True
        """Whether this process still has the lease under which it scans."""
        self._store = store
        self._pipeline = pipeline
        self._lock = threading.Lock()
        self._pass: _Pass | None = None

    @contextmanager
    def during(self, records: Mapping[str, Record], forced: Collection[str]) -> Iterator[None]:
        """Allow publishing in the place of what has these `records`. When this ends, nothing is being published."""
        self._pass = _Pass(records, forced)
        try:
            yield
        finally:
            with self._lock:
                self._pass = None

    def publish(self, states: Sequence[NewState]) -> PublishedStates | None:
        """Publish what a run made, in any thread. Return what was published; None if there is no pass of a scan."""
        self._sync(states)
        with self._lock:
            return None if self._pass is None else self._publish(states, self._pass)

    def recover(self, states: Sequence[NewState], records: Mapping[str, Record]) -> PublishedStates:
        """Publish, before a pass, what an earlier scan has left, in the place of what has these `records`."""
        self._sync(states)
        with self._lock:
            return self._publish(states, _Pass(records, ()))

    def _sync(self, states: Sequence[NewState]) -> None:
        """Without the lock: others are published meanwhile."""
        self._store.sync([each.draft for each in states])

    def _publish(self, states: Sequence[NewState], scan: _Pass) -> PublishedStates:
        publications = [
            Publication(draft, record, scan.records.get(draft.address), unit in scan.forced)
            for unit, draft, record in states
        ]
        answers = self._store.publish(publications, self.check_lease)
        stamp = self._store.files.stamp
        published = {
            answer.address: (record, answer.stamp or stamp(answer.address) if record.members is None else None)
            for answer, (_, _, record) in zip(answers, states, strict=True)
            if answer.done
        }
        return PublishedStates(published, [each.address for each in answers if each.reason == "unrecorded"])

    def check_lease(self) -> None:
        """Only the holder of the lease may publish and settle what a run made."""
        if not self.holds_lease():
            raise PipelineBusy(
                f"pipeline {self._pipeline!r}: another process has taken over the scan, because this one was silent",
                pipeline=self._pipeline,
            )

    def enter(
        self, units: Sequence[Unit], published: PublishedStates, snapshot: Snapshot, started_ns: int
    ) -> Sequence[Unit]:
        """Enter what was published, and its inputs, into the snapshot. Return the units of which all outputs were."""
        files, hashes = self._store.files, snapshot.hashes
        inputs = {
            path: digest
            for record, _ in published.states.values()
            for path, digest in record.inputs.items()
            if path not in hashes and digest != EXISTS
        }
        for (path, digest), now in zip(inputs.items(), files.stamps(list(inputs)), strict=True):
            snapshot.was_read(path, digest, now, started_ns)
        for address, (record, stamp) in published.states.items():
            if record.members is None:
                snapshot.changed(address, stamp, record.content_hash)
            else:
                self._enter_members(address, record.members, snapshot)
            snapshot.records[address] = record
        refused = [address for unit in units for address in unit.outputs.values() if address not in published.states]
        for address in refused:
            if address[-1] != "/" and "{" not in address:
                snapshot.changed(address, files.stamp(address))
        if not refused:
            return units
        return [unit for unit in units if all(address in published.states for address in unit.outputs.values())]

    def _enter_members(self, address: str, members: Mapping[str, str], snapshot: Snapshot) -> None:
        stamp, former = self._store.files.stamp, snapshot.records.get(address)
        for path in member_paths(address, () if former is None else former.members or ()):
            snapshot.changed(path, stamp(path))
        for path, digest in zip(member_paths(address, members), members.values(), strict=True):
            snapshot.changed(path, stamp(path), digest)
        snapshot.tree.setdefault(members_base(address).removesuffix("/"), {})
