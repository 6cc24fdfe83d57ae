"""The schema: SQL files, names of stored numbers filled in. The first process that opens a store runs them, under a lock."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any, cast

from ....core.model import HEALED_LATE, PARENT_PAUSED, StoreLimits, ops, suspects
from ....core.store.rules import codes
from ....errors import SchemaTooNew, StoreError, StoreReadOnly

VERSION = 3
"""The version of the schema. Those before were never released."""
LIMITS = StoreLimits(nodes=500, settlements=500)
"""How much one commit takes: others wait for the rows of the same run, so it is to be short."""
LOWEST = -2147483647
"""No rank is lower."""
_CONSTANTS: dict[str, int | str] = {
    "ENDED": ops.ENDED,
    "ENTRIES_A_NODE": ops.ENTRIES_A_NODE,
    "HAND_OUT": ops.HAND_OUT,
    "HEALED_LATE": HEALED_LATE,
    "LOAD_LEASE": ops.LOAD_LEASE,
    "MAX_LOSSES": suspects.MAX_LOSSES,
    "NODES": LIMITS.nodes,
    "NODE_FAILED": ops.NODE_FAILED,
    "OUTAGE": ops.OUTAGE,
    "PARENT_PAUSED": PARENT_PAUSED,
    "PATIENCE": "100ms",  # for so long a claim that found nothing else waits for a run that others hold
    "LOWEST": LOWEST,
    "STALE": 400,  # offers out of date that a claim passes by, or removes, at a time
    "SUSPECT_AFTER": suspects.SUSPECT_AFTER,
    "WORKER_LOST": suspects.WORKER_LOST,
    "WORKER_LOST_ERROR": suspects.WORKER_LOST_ERROR.decode(),
}
_NAME = re.compile(r"\{([A-Z_]+)\}")


@cache
def statements() -> str:
    """The SQL of all files, tables first: functions are checked against them."""
    files = sorted(
        (entry for entry in resources.files(__package__).iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: (entry.name != "tables.sql", entry.name),
    )
    texts = (_NAME.sub(_value, entry.read_text("utf-8")) for entry in files)
    return "\n".join([*texts, f"INSERT INTO schema_version (number) VALUES ({VERSION});\n"])


def _value(name: re.Match[str]) -> str:
    """What a name in braces stands for: a stored number, or a constant of the model."""
    if name[1].startswith("K_"):
        return str(codes.KIND_CODE[name[1][2:].lower()])
    return str(_CONSTANTS[name[1]] if name[1] in _CONSTANTS else getattr(codes, name[1]))


def quoted(schema: str) -> str:
    return '"' + schema.replace('"', '""') + '"'


def script(schema: str) -> str:
    """Everything that makes the schema, for somebody who may run it: `stepwell migrate --print`."""
    name = quoted(schema)
    begin = f"BEGIN;\nCREATE SCHEMA IF NOT EXISTS {name};\nSET LOCAL search_path = {name}, pg_temp;\n"
    return f"{begin}\n{statements()}COMMIT;\n"


_EXISTS = """
SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %s AND c.relname = 'schema_version'
"""


def _version(db: Any, schema: str) -> int:
    """The version of the schema, 0 where there is none."""
    # From the tables themselves: what a session remembers of them may be older than the lock it waited for.
    if db.execute(_EXISTS, (schema,)).fetchone() is None:
        return 0
    (number,) = db.execute(f"SELECT number FROM {quoted(schema)}.schema_version").fetchone()
    return cast(int, number)


def _is_made(db: Any, schema: str, where: str) -> bool:
    version = _version(db, schema)
    if version > VERSION:
        raise SchemaTooNew(
            f"{where} was written by a newer Stepwell (schema {version}, this one knows {VERSION}): "
            "upgrade this installation; nothing was changed"
        )
    if 0 < version < VERSION:
        raise StoreError(
            f"{where}: the schema {schema!r} was made by a Stepwell from before the first release (schema {version}): "
            "use another schema (?schema=...), or drop this one; nothing was changed"
        )
    return version == VERSION


def make(db: Any, schema: str, where: str) -> None:
    """Make the schema unless it is there, however many processes do so at once. `db` is in autocommit."""
    import psycopg

    if _is_made(db, schema, where):
        return
    try:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{schema} schema",))
            if _is_made(db, schema, where):
                return
            if db.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is None:
                db.execute(f"CREATE SCHEMA {quoted(schema)}")
            db.execute(f"SET LOCAL search_path = {quoted(schema)}, pg_temp")
            db.execute(statements().encode())
    except (psycopg.errors.DuplicateTable, psycopg.errors.DuplicateObject, psycopg.errors.DuplicateFunction) as error:
        raise StoreError(
            f"{where}: the schema {schema!r} holds tables of another program, or of a Stepwell from before the first release "
            f"({str(error).strip()}): use another schema (?schema=...), or drop this one; nothing was changed"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreReadOnly(
            f"{where}: this role may not make the schema {schema!r} ({str(error).strip()}). "
            f"Let somebody who may run what `stepwell migrate --print` shows"
        ) from error
