"""Stores that speak SQL. SQLite now; what is not a statement is shared with PostgreSQL later."""

from .sqlite import SqliteStore

__all__ = ["SqliteStore"]
