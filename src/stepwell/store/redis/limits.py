"""How much one call of the library takes: it stands in the way of everybody else on the server, so it is to be short."""

from ...model import StoreLimits

LIMITS = StoreLimits(nodes=500, settlements=500, batch_bytes=2 * 1024 * 1024, runs=64)
SLICE = 500
"""How many children of one completed node one call tells."""
EDGES = 2_000
"""How many edges of a graph one call adds."""
DERIVED = 2_500
"""How many nodes and edges one call looks at before a gate opens."""
