"""How much one commit of PostgreSQL takes: others wait for the rows of the same run, so it is to be short."""

from ...model import StoreLimits

LIMITS = StoreLimits(nodes=500, settlements=500)
