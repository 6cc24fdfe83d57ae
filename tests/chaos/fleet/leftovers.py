"""What a fleet leaves behind: every key and row of its servers is listed, and each that may stay is named with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import psycopg
import redis
from psycopg import sql

STORE_KEYS = {
    "marker": "the store itself: version of the layout, counters that must never begin anew",
    "lane_texts": "names of queues, a few whatever runs there were; their numbers are in use for ever",
    "records:workflow": "what workers register of their classes, for servers that do not have the code",
    "record_keys:workflow": "their names",
    "records:audit(_run)?": "the audit log, which outlives its runs; `stepwell gc` forgets entries older than a year",
    "record_keys:audit(_run)?": "their keys",
}
BROKER_KEYS = {
    r"_kombu\.binding\.stepwell\.\w+": "kombu's list of queues; one for each queue that was ever used",
    r"stepwell\.\w+": "hints that were sent when nobody was there any more; at most 20 a queue, and harmless",
    r"_kombu\.binding\.(celeryev|.*celery\.pidbox)": "kombu's, of `celery inspect` and of events",
    r"unacked(_index|_mutex)?": "kombu's: hints that a killed process had taken, kept until they are delivered again",
    r"_kombu\.binding_deadlines": "kombu's: when it looks for bindings of who is gone",
}
STORE_TABLES = {
    "schema_version": "one number",
    "lane": "names of queues, a few whatever runs there were",
    "swept": "when somebody last swept: one row",
    "record": "what workers register of their classes; the audit log",
}
MOST_HINTS = 20


def keys_of(client: redis.Redis, prefix: str = "") -> dict[str, str]:
    """Every key that begins so, without that beginning, and its type."""
    found: dict[str, str] = {}
    for key in client.scan_iter(match=f"{prefix}*", count=1_000):
        kind: Any = client.type(key)
        found[key.decode(errors="replace").removeprefix(prefix)] = kind.decode()
    return found


def unnamed(found: Mapping[str, object], named: Mapping[str, str]) -> list[str]:
    """Those that nobody has given a reason for."""
    return sorted(key for key in found if not any(re.fullmatch(pattern, key) for pattern in named))


def rows_of(url: str, schema: str) -> dict[str, int]:
    """How many rows each table of a schema has, of those that have any."""
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        found = {}
        for (name,) in tables:
            asked = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, name))
            (number,) = connection.execute(asked).fetchone() or (0,)
            if number:
                found[name] = number
        return found
