"""What an acknowledged commit survives, as the server is set: told when a store is opened."""

from __future__ import annotations

import logging
from typing import Any, Literal, NamedTuple

log = logging.getLogger("stepwell.stores")

_ASK = """
SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', current_setting('synchronous_commit'),
       current_setting('synchronous_standby_names') <> '', (SELECT count(*) FROM pg_stat_replication)
"""


class PostgresDurability(NamedTuple):
    kind: Literal["standby", "disk", "lagging", "none"]
    """`standby`: on the disks of two servers; `disk`: of one; `lagging`: the last moments may be lost; `none`: everything."""
    words: str
    fsync: bool
    synchronous_commit: str
    standbys: int

    def __str__(self) -> str:
        return self.words


def inspect(db: Any, where: str) -> PostgresDurability:
    fsync, whole_pages, commit, named, standbys = db.execute(_ASK).fetchone()
    found = PostgresDurability(*_judged(fsync and whole_pages, commit, named), fsync, commit, standbys)
    level = logging.INFO if found.kind in ("standby", "disk") else logging.WARNING
    log.log(level, "store=%s durability=%s (%s), %d standby(s)", where, found.kind, found, standbys)
    return found


def _judged(safe: bool, commit: str, named: bool) -> tuple[Literal["standby", "disk", "lagging", "none"], str]:
    if not safe:
        return "none", "fsync or full_page_writes is off: a power cut may damage the whole database"
    if commit == "off":
        return (
            "lagging",
            "synchronous_commit=off: a crash of the server undoes the last moments, of which runs were told already",
        )
    if named and commit in ("on", "remote_apply"):
        return (
            "standby",
            f"synchronous_commit={commit} with a synchronous standby: a commit survives the loss of one server",
        )
    if named and commit == "remote_write":
        return (
            "disk",
            "synchronous_commit=remote_write: a commit survives a power cut, and the loss of a server if the other has power",
        )
    return "disk", "fsync is on: a commit survives a power cut; a standby that takes over may lack the last moments"
