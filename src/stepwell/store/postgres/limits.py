"""How much one commit of PostgreSQL takes."""

from ...model import StoreLimits

LIMITS = StoreLimits()
