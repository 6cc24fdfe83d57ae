"""How much one commit of SQLite takes."""

from ...model import StoreLimits

LIMITS = StoreLimits()
