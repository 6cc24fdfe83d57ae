"""The stored state of a trigger: one record, changed by compare-and-set."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

from ..base.codec import decode, encode_checked
from ..errors import StoreCorrupt

RECORD = "trigger"
"""The kind of its record."""


class Backfill(NamedTuple):
    """Past times to start: after `after`, up to `until`. `after` advances as they are started."""

    after: int
    until: int


@dataclass(frozen=True)
class TriggerState:
    """The state of a trigger. Times are microseconds since 1970, by the clock of the store."""

    version: int
    """Which version of its definition counts."""
    digest: str
    added_at: int
    since: int
    """When it was added, or resumed: what ended before does not count."""
    mark: int
    """All times up to this one are decided: started, waiting in `pending` or `queue`, or left out."""
    paused: bool = False
    declared_in: str | None = None
    """The document or class that declares it, and whose later versions may remove it. None: it was added by hand."""
    pending: tuple[int, ...] = ()
    """Times that must fire and may not have been started yet. Any process starts them."""
    queue: tuple[int, ...] = ()
    """Times that wait until the run before has ended."""
    backfills: tuple[Backfill, ...] = ()
    last_run: str | None = None
    last_time: int | None = None
    """The latest time that was started."""
    fired: int = 0
    left_out: int = 0
    """How many times were decided not to fire, as far as they were counted."""
    error: str | None = None
    """Why the latest start did not succeed; None if it did."""
    tried_at: int = 0
    """When a start last failed: it is tried again after a while."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Fields of a newer Stepwell, left as they are."""

    def encoded(self) -> bytes:
        fields = asdict(self)
        extra = fields.pop("extra")
        return encode_checked({**extra, **{name: value for name, value in fields.items() if value is not None}})

    @classmethod
    def decoded(cls, value: bytes) -> TriggerState:
        try:
            data = decode(value)
            known = {each.name: data.pop(each.name) for each in fields(cls) if each.name in data}
            for name in ("pending", "queue"):
                known[name] = tuple(known.get(name, ()))
            known["backfills"] = tuple(Backfill(*each) for each in known.get("backfills", ()))
            return cls(**known, extra=data)
        except (TypeError, ValueError, AttributeError) as error:
            raise StoreCorrupt(f"the record of a trigger cannot be read: {error}") from None

    def changed(self, **changes: Any) -> TriggerState:
        return replace(self, **changes)
