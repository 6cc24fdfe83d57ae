"""`postgresql://`: runs on a PostgreSQL server, for many processes and machines."""

from .store import PostgresStore

__all__ = ["PostgresStore"]
