"""The largest commit that the SQLite store takes."""

from ...core.model import StoreLimits

LIMITS = StoreLimits()
