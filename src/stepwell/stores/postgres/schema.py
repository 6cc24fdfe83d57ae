"""The schema: numbered migrations, their names for stored numbers filled in, applied under a lock."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from ...base.codec import sha256
from ...core.model import StoreLimits, ops, suspects
from ...core.store.rules import codes
from ...errors import SchemaTooNew, StoreError, StoreReadOnly

LIMITS = StoreLimits(nodes=500, settlements=500)
"""How much one commit takes: others wait for the rows of the same run, so it is to be short."""
MINIMUM = 1
"""The oldest schema version whose code can still work with what these migrations make. A migration that such code could not
live with raises it, and running processes of older versions then refuse to start."""
LOWEST = -2147483647
"""No rank is lower."""
_CONSTANTS: dict[str, int | str] = {
    "ENTRIES_A_NODE": ops.ENTRIES_A_NODE,
    "HAND_OUT": ops.HAND_OUT,
    "LOAD_LEASE": ops.LOAD_LEASE,
    "MAX_LOSSES": suspects.MAX_LOSSES,
    "NODES": LIMITS.nodes,
    "NODE_FAILED": ops.NODE_FAILED,
    "OUTAGE": ops.OUTAGE,
    "PATIENCE": "100ms",  # for so long a claim that found nothing else waits for a run that others hold
    "LOWEST": LOWEST,
    "STALE": 400,  # offers out of date that a claim passes by, or removes, at a time
    "SUSPECT_AFTER": suspects.SUSPECT_AFTER,
    "WORKER_LOST_ERROR": suspects.WORKER_LOST_ERROR.decode(),
}
_NAME = re.compile(r"\{([A-Z_]+)\}")


@cache
def migrations() -> tuple[tuple[int, str], ...]:
    """(number, SQL) of every migration, in order."""
    folder = resources.files(__package__) / "migrations"
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return tuple(sorted((int(entry.name[:4]), _NAME.sub(_value, entry.read_text("utf-8"))) for entry in found))


def _value(found: re.Match[str]) -> str:
    """What a name in braces stands for: a stored number, or a constant of the model."""
    name = found[1]
    if name.startswith("K_"):
        return str(codes.KIND_CODE[name[2:].lower()])
    return str(_CONSTANTS[name] if name in _CONSTANTS else getattr(codes, name))


def quoted(schema: str) -> str:
    return '"' + schema.replace('"', '""') + '"'


def script(schema: str) -> str:
    """Everything that makes the schema, to be read, and run by somebody who may: `stepwell migrate --print`."""
    begin = f"BEGIN;\nCREATE SCHEMA IF NOT EXISTS {quoted(schema)};\nSET LOCAL search_path = {quoted(schema)}, pg_temp;"
    parts = [f"{begin}\n{_VERSIONS};"]
    for number, text in migrations():
        parts.append(f"\n-- Migration {number}\n{text}\n{_done(number, text)};")
    return "\n".join([*parts, "COMMIT;\n"])


_VERSIONS = """
CREATE TABLE IF NOT EXISTS migration (
  number     integer PRIMARY KEY,
  minimum    integer NOT NULL,                    -- the oldest version of the code that can work with it
  digest     text NOT NULL,                       -- of what was run
  applied_at timestamptz NOT NULL DEFAULT now()
)"""


def _done(number: int, text: str) -> str:
    return f"INSERT INTO migration (number, minimum, digest) VALUES ({number}, {MINIMUM}, '{sha256(text.encode())}')"


_EXISTS = """
SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %s AND c.relname = 'migration'
"""


def applied(db: Any, schema: str) -> tuple[int, int]:
    """(newest migration, minimum version of the code); (0, 0) where there is nothing yet."""
    table = f"{quoted(schema)}.migration"
    # From the tables themselves: what a session remembers of them may be older than the lock it waited for.
    if db.execute(_EXISTS, (schema,)).fetchone() is None:
        return 0, 0
    known = dict(migrations())
    newest = minimum = 0
    # A table without digests is of a version from before there were any.
    for number, needed, digest in db.execute(f"SELECT number, minimum, to_jsonb(m) ->> 'digest' FROM {table} m"):
        newest, minimum = max(newest, number), max(minimum, needed)
        if number in known and digest != sha256(known[number].encode()):
            raise StoreError(
                f"schema {schema!r} was made by a Stepwell from before the first release whose migration {number} was another "
                f"one: use another schema (?schema=...), or drop this one; nothing was changed"
            )
    return newest, minimum


def migrate(db: Any, schema: str, where: str) -> None:
    """Bring the schema to the newest version, however many processes do so at once. `db` is in autocommit."""
    import psycopg

    newest = migrations()[-1][0]
    done, minimum = applied(db, schema)
    check(minimum, newest, where)
    if done >= newest:
        return
    try:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{schema} migrations",))
            done, minimum = applied(db, schema)
            check(minimum, newest, where)
            if done == 0:
                if db.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is None:
                    db.execute(f"CREATE SCHEMA {quoted(schema)}")
                db.execute(f"SET LOCAL search_path = {quoted(schema)}, pg_temp")
                db.execute(_VERSIONS)
            db.execute(f"SET LOCAL search_path = {quoted(schema)}, pg_temp")
            for number, text in migrations():
                if number > done:
                    db.execute(text.encode())
                    db.execute(_done(number, text).encode())
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreReadOnly(
            f"{where}: this role may not make or change the schema {schema!r} ({str(error).strip()}). "
            f"Let somebody who may run what `stepwell migrate --print` shows"
        ) from error


def check(minimum: int, newest: int, where: str) -> None:
    if minimum > newest:
        raise SchemaTooNew(
            f"{where} was changed by a newer Stepwell (it needs schema version {minimum}, this one knows {newest}): "
            "upgrade this installation; nothing was changed"
        )
