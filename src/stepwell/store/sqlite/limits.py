"""The largest commit that the SQLite store takes."""

from ...model import StoreLimits

LIMITS = StoreLimits()
