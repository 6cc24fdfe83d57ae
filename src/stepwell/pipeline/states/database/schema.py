"""The tables of states.

states           a row for each file, and for each state of several files: path, content, size, when, record
state_contents   what is in files, once for each hash
state_failures   what failed, and when it is tried again
state_notes      the id of the root, what stages were made of, what triggers were fired for
state_aside      files that were replaced although nobody had recorded them so
state_drafts     outputs that were written and are not seen yet; their contents are there already
state_leases     who may scan (PostgreSQL; for SQLite it is a lock of the operating system)
"""

from __future__ import annotations


def statements(path: str = "TEXT", body: str = "BLOB") -> list[str]:
    """Paths are compared byte by byte, whatever the language of the database."""
    return [
        f"CREATE TABLE IF NOT EXISTS states (path {path} PRIMARY KEY, content TEXT, size BIGINT, changed BIGINT, "
        "version BIGINT, record TEXT)",
        f"CREATE TABLE IF NOT EXISTS state_contents (hash TEXT PRIMARY KEY, body {body} NOT NULL, added BIGINT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS state_failures (unit TEXT PRIMARY KEY, failure TEXT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS state_notes (kind TEXT, key TEXT, value TEXT, PRIMARY KEY (kind, key))",
        f"CREATE TABLE IF NOT EXISTS state_aside (path {path}, content TEXT, at BIGINT)",
        "CREATE TABLE IF NOT EXISTS state_drafts (name TEXT PRIMARY KEY, added BIGINT NOT NULL)",
    ]


FILES = "version IS NOT NULL"
"""What is a file, and not the record of a state that is made of several."""
WRITE_FILE = (
    "INSERT INTO states (path, content, size, changed, version, record) VALUES (?, ?, ?, ?, 1, ?) ON CONFLICT (path) DO UPDATE "
    "SET content = excluded.content, size = excluded.size, changed = excluded.changed, "
    "version = coalesce(states.version, 0) + 1, record = excluded.record"
)
WRITE_RECORD = (
    "INSERT INTO states (path, content, size, changed, version, record) VALUES (?, ?, 0, 0, NULL, ?) ON CONFLICT (path) "
    "DO UPDATE SET content = CASE WHEN states.version IS NULL THEN excluded.content ELSE states.content END, "
    "record = excluded.record"
)
WRITE_CONTENT = (
    "INSERT INTO state_contents (hash, body, added) VALUES (?, ?, ?) "
    "ON CONFLICT (hash) DO UPDATE SET added = excluded.added"
)
WRITE_NOTE = (
    "INSERT INTO state_notes (kind, key, value) VALUES (?, ?, ?) "
    "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value"
)
WRITE_FAILURE = (
    "INSERT INTO state_failures (unit, failure) VALUES (?, ?) "
    "ON CONFLICT (unit) DO UPDATE SET failure = excluded.failure"
)
