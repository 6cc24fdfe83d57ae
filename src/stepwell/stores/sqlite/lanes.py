"""The numbers by which rows refer to lanes. Lanes are few and never deleted, so each is looked up once."""

from __future__ import annotations

import json
from collections.abc import Iterable

import apsw

from ...core.model import Lane

_ADD = """
INSERT OR IGNORE INTO lane (queue, body, careful, suspect)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)
"""


class Lanes:
    def __init__(self) -> None:
        self._keys: dict[Lane, int] = {}
        self._lanes: dict[int, Lane] = {}

    def key(self, db: apsw.Connection, lane: Lane) -> int | None:
        """The number of a lane, or None if no graph ever had a node in it."""
        if lane not in self._keys:
            self._load(db)
        return self._keys.get(lane)

    def lane(self, db: apsw.Connection, key: int) -> Lane:
        if key not in self._lanes:
            self._load(db)
        return self._lanes[key]

    def add(self, db: apsw.Connection, lanes: Iterable[Lane]) -> None:
        """Add these lanes, and those of their suspects."""
        wanted = sorted({lane._replace(suspect=suspect) for lane in lanes for suspect in (False, True)})
        if any(lane not in self._keys for lane in wanted):
            db.execute(_ADD, (json.dumps([(q, b, int(c), int(s)) for q, b, c, s in wanted]),))
            self._load(db)

    def forget(self) -> None:
        """Forget all lanes after a rollback, which undid what the transaction added."""
        self._keys.clear()
        self._lanes.clear()

    def _load(self, db: apsw.Connection) -> None:
        for key, queue, body, careful, suspect in db.execute("SELECT key, queue, body, careful, suspect FROM lane"):
            lane = Lane(queue, body, bool(careful), bool(suspect))
            self._keys[lane], self._lanes[key] = key, lane
