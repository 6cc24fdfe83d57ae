"""The embedded store: one SQLite file."""

from .store import SqliteStore

__all__ = ["SqliteStore"]
