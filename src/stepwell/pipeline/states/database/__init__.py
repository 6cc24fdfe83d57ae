"""States in a database: SQLite for one machine, PostgreSQL for many."""

from __future__ import annotations

import os

from .store import DatabaseStates


def open_database_states(url: str, pipeline: str = "") -> DatabaseStates:
    """The states in a database; its driver is loaded only now."""
    if url.startswith("sqlite:///"):
        from .sqlite import SqliteDatabase

        return DatabaseStates(SqliteDatabase(url), pipeline)
    from .postgres import PostgresDatabase

    return DatabaseStates(PostgresDatabase(url), pipeline)


def is_created(url: str) -> bool:
    """Whether there are states in a database. Makes nothing."""
    if url.startswith("sqlite:///"):
        from .sqlite import path_of

        return os.path.exists(path_of(url))
    from .postgres import has_tables

    return has_tables(url)
