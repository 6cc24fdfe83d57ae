"""Where runs are kept. `open_store(url)` is the one place that turns a URL into a store."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

from ..base.clock import SECONDS_NEEDED, Clock, is_seconds
from ..base.words import shown
from ..core.store.port import Store
from ..errors import InputError

__all__ = ["Store", "open_store", "public"]


def open_store(url: str, *, clock: Clock | None = None, connections: int | None = None) -> Store:
    """Open the store that a URL names. `connections`: how many it may use at once on a server, besides the one that listens.

    `memory://` | `sqlite:///relative.db` | `sqlite:////absolute.db`, with `?synchronous=normal` (a power cut may then
    undo the last commits; a crash of the process does not) and `?busy_seconds=30` |
    `postgresql://user@host:5432/database` with the options of docs/postgres.md and whatever libpq knows |
    `redis://host:6379/0`, `rediss://…` or `redis+sentinel://host:26379/service/0`, with the options of docs/redis.md.
    """
    scheme, separator, rest = url.partition("://")
    location, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if separator and scheme == "memory" and not location and not options:
        from ..core.store.memory import MemoryStore

        return MemoryStore(clock)
    if separator and scheme in ("redis", "rediss", "redis+sentinel"):
        return _open_redis(url, clock, connections)
    if separator and scheme == "sqlite":
        return _open_sqlite(url, unquote(location), options, clock)
    if separator and scheme in ("postgresql", "postgres"):
        return _open_postgres(url, clock, connections)
    raise InputError(
        f"store URL {public(url)!r}: use memory://, sqlite:///path/to/file.db, postgresql://user@host/database "
        "or redis://host:6379/0"
    )


def public(url: str) -> str:
    """A URL as it may be shown.

    >>> public("postgresql://me:secret@host/db"), public("sqlite:///a.db")
    ('postgresql://me:***@host/db', 'sqlite:///a.db')
    """
    return re.sub(r"([?&](?:ssl)?password=)[^&]*", r"\1***", re.sub(r"://([^/@:]*):[^@]*@", r"://\1:***@", url))


def _open_postgres(url: str, clock: Clock | None, connections: int | None) -> Store:
    try:
        from .postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise InputError("a postgresql:// store needs psycopg: pip install 'stepwell[postgres]'") from None
    return PostgresStore(url, clock=clock, connections=connections)


def _open_redis(url: str, clock: Clock | None, connections: int | None) -> Store:
    if clock is not None:
        raise InputError("a Redis store goes by the clock of its server: no other can be given")
    try:
        from .redis.store import RedisStore
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise InputError("a redis:// store needs redis-py: pip install 'stepwell[redis]'") from None
    return RedisStore(url, connections=connections)


def _open_sqlite(url: str, location: str, options: dict[str, str], clock: Clock | None) -> Store:
    from .sqlite import SqliteStore

    if not location.startswith("/") or len(location) < 2:
        raise InputError(f"store URL {url!r}: expected three slashes and a path, as in sqlite:///stepwell.db")
    synchronous = options.pop("synchronous", "full")
    busy_seconds = options.pop("busy_seconds", "30")
    if synchronous not in ("full", "normal"):
        raise InputError(f"store URL {url!r}: synchronous={synchronous!r} is not one of full, normal")
    try:
        seconds = float(busy_seconds)
    except ValueError:
        seconds = -1.0
    if not is_seconds(seconds):
        raise InputError(f"store URL {url!r}: busy_seconds={shown(busy_seconds)}: expected {SECONDS_NEEDED}")
    if options:
        raise InputError(
            f"store URL {url!r}: unknown option {', '.join(sorted(options))}; known: synchronous, busy_seconds"
        )
    return SqliteStore(
        location[1:], clock=clock, synchronous="normal" if synchronous == "normal" else "full", busy_seconds=seconds
    )
