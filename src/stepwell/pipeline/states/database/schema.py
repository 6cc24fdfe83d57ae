"""The tables of states.

states           a row for each file, and for each state of several files: path, content, size, when; if a stage made it,
                 also how (RECORD): entity, pipeline and stage (`state_type`), hashes, inputs, when it was first and last made
state_contents   what is in files, once for each hash
state_failures   what failed, how often in a row, and when it is tried again
state_notes      the id of the root, what stages were made of, what triggers were fired for
state_aside      files that were replaced although nobody had recorded them so
state_drafts     outputs that were written and are not seen yet; their contents are there already
state_leases     who may scan (PostgreSQL; for SQLite it is a lock of the operating system)
"""

from __future__ import annotations

from collections.abc import Iterable

RECORD = (
    "entity_id",
    "pipeline",
    "state_type",
    "code_hash",
    "config_hash",
    "content_hash",
    "inputs_hash",
    "check_hash",
    "inputs",
    "members",
    "stale",
    "created_at",
    "updated_at",
)
"""The columns that say how a state came to be; all are null for a source, and for a file of a state of several."""
FAILURE = (
    "error",
    "error_type",
    "attempt",
    "first_failed_at",
    "last_failed_at",
    "next_retry_at",
    "identity",
    "run_id",
)
"""The columns of a failure, in the order of the fields of `Failure`. Times are seconds since 1970."""
RECORD_COLUMNS = ", ".join(RECORD)
FAILURE_KEY = "pipeline, state_type, entity_id"
FAILURE_COLUMNS = ", ".join(FAILURE)


def statements(path: str = "TEXT", body: str = "BLOB") -> list[str]:
    """Paths are compared byte by byte, whatever the language of the database."""
    return [
        f"CREATE TABLE IF NOT EXISTS states (path {path} PRIMARY KEY, content TEXT, size BIGINT, changed BIGINT, "
        f"version BIGINT, {', '.join(f'{name} TEXT' for name in RECORD)})",
        f"CREATE TABLE IF NOT EXISTS state_contents (hash TEXT PRIMARY KEY, body {body} NOT NULL, added BIGINT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS state_failures (pipeline TEXT, state_type TEXT, entity_id TEXT, error TEXT NOT NULL, "
        "error_type TEXT NOT NULL, attempt INTEGER NOT NULL, first_failed_at DOUBLE PRECISION NOT NULL, "
        "last_failed_at DOUBLE PRECISION NOT NULL, next_retry_at DOUBLE PRECISION, identity TEXT NOT NULL, "
        f"run_id TEXT NOT NULL, PRIMARY KEY ({FAILURE_KEY}))",
        "CREATE TABLE IF NOT EXISTS state_notes (kind TEXT, key TEXT, value TEXT, PRIMARY KEY (kind, key))",
        f"CREATE TABLE IF NOT EXISTS state_aside (path {path}, content TEXT, at BIGINT)",
        "CREATE TABLE IF NOT EXISTS state_drafts (name TEXT PRIMARY KEY, added BIGINT NOT NULL)",
    ]


FILES = "version IS NOT NULL"
"""What is a file, and not the record of a state that is made of several."""
RECORDED = "code_hash IS NOT NULL"
"""What a stage made."""


def _values(count: int) -> str:
    return ", ".join("?" * count)


def _replaced(names: Iterable[str]) -> str:
    return ", ".join(f"{name} = excluded.{name}" for name in names)


_RECORD_REPLACED = (
    f"{_replaced(name for name in RECORD if name != 'created_at')}, "
    "created_at = CASE WHEN excluded.code_hash IS NULL THEN NULL ELSE coalesce(states.created_at, excluded.created_at) END"
)
WRITE_FILE = (
    f"INSERT INTO states (path, content, size, changed, version, {RECORD_COLUMNS}) "
    f"VALUES (?, ?, ?, ?, 1, {_values(len(RECORD))}) ON CONFLICT (path) DO UPDATE "
    f"SET {_replaced(('content', 'size', 'changed'))}, version = coalesce(states.version, 0) + 1, {_RECORD_REPLACED}"
)
WRITE_RECORD = (
    f"INSERT INTO states (path, content, size, changed, version, {RECORD_COLUMNS}) "
    f"VALUES (?, ?, 0, 0, NULL, {_values(len(RECORD))}) ON CONFLICT (path) DO UPDATE "
    f"SET content = CASE WHEN states.version IS NULL THEN excluded.content ELSE states.content END, {_RECORD_REPLACED}"
)
FORGET_RECORD = f"UPDATE states SET {', '.join(f'{name} = NULL' for name in RECORD)} WHERE path = ?"
WRITE_CONTENT = (
    "INSERT INTO state_contents (hash, body, added) VALUES (?, ?, ?) "
    "ON CONFLICT (hash) DO UPDATE SET added = excluded.added"
)
WRITE_NOTE = (
    "INSERT INTO state_notes (kind, key, value) VALUES (?, ?, ?) "
    "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value"
)
WRITE_FAILURE = (
    f"INSERT INTO state_failures ({FAILURE_KEY}, {FAILURE_COLUMNS}) VALUES ({_values(3 + len(FAILURE))}) "
    f"ON CONFLICT ({FAILURE_KEY}) DO UPDATE SET {_replaced(FAILURE)}"
)
