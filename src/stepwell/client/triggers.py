"""The triggers of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base.clock import SECOND
from ..triggers.book import STATUS_FIELDS, manual_key
from ..triggers.definition import Trigger
from ..triggers.times import moment, time_text
from .transport import Transport, path_of

if TYPE_CHECKING:
    from ..answers.triggers import TriggerRecord
    from ..answers.workflows import VersionRecord


class RemoteTrigger:
    """A trigger as a server describes it. Its attributes are those that a stored one has."""

    def __init__(self, record: TriggerRecord) -> None:
        self._record = record
        self.trigger = Trigger.of({name: value for name, value in record.items() if name not in STATUS_FIELDS})
        self.name = self.trigger.name
        self.version = record["version"]
        self.paused = record["paused"]
        self.error = record["error"]
        self.waiting = record["waiting"] + len(record["backfills"])

    def next_fires(self, count: int = 1) -> list[float]:
        return [(moment(time) or 0) / SECOND for time in self._record["next"][:count]]

    def to_dict(self, count: int = 5) -> TriggerRecord:
        return {**self._record, "next": self._record["next"][:count]}


class RemoteTriggers:
    """The verbs of `engine.triggers`, done by a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def all(self) -> list[RemoteTrigger]:
        return [RemoteTrigger(each) for each in self._transport.pages(path_of("triggers"))]

    def get(self, name: str, count: int = 5) -> RemoteTrigger:
        return RemoteTrigger(self._transport.get(path_of("triggers", name), next=count))

    def versions(self, name: str) -> list[VersionRecord]:
        versions: list[VersionRecord] = self._transport.get(path_of("triggers", name, "versions"))
        return versions

    def add(self, trigger: Trigger, *, paused: bool | None = None) -> RemoteTrigger:
        stored = RemoteTrigger(self._transport.post(path_of("triggers"), trigger.canonical, repeatable=True))
        if paused is None or paused == stored.paused:
            return stored
        return self.pause(trigger.name) if paused else self.resume(trigger.name)

    def pause(self, name: str) -> RemoteTrigger:
        return RemoteTrigger(self._transport.post(path_of("triggers", name, "pause"), repeatable=True))

    def resume(self, name: str) -> RemoteTrigger:
        return RemoteTrigger(self._transport.post(path_of("triggers", name, "resume"), repeatable=True))

    def remove(self, name: str) -> None:
        self._transport.ask("DELETE", path_of("triggers", name))

    def fire(self, name: str, input: Mapping[str, Any] | None = None, *, key: str | None = None) -> str:
        # A key of our own makes it safe to ask again when the answer is lost.
        asked = {"input": None if input is None else dict(input), "key": manual_key() if key is None else key}
        return str(self._transport.post(path_of("triggers", name, "fire"), asked, repeatable=True)["run"])

    def backfill(self, name: str, start: int, end: int, *, dry_run: bool = False) -> list[int]:
        asked = {"start": time_text(start), "end": time_text(end), "dry_run": dry_run}
        found = self._transport.post(path_of("triggers", name, "backfill"), asked, repeatable=True)
        return [moment(time) or 0 for time in found["times"]]

    def lacks(self, trigger: Trigger) -> str | None:
        """Only the server knows; it refuses what does not fit."""
        return None
