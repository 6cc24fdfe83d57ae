"""How much a store takes at once, so that no commit blocks the others for long."""

from __future__ import annotations

from typing import NamedTuple


class StoreLimits(NamedTuple):
    nodes: int = 2_000
    """How many nodes one op adds, claims, rewrites, shares or deletes at most."""
    settlements: int = 2_000
    """How many settlements, or lines, one batch has at most."""
    batch_bytes: int = 8 * 1024 * 1024
    """Bytes of payloads after which a batch is full. A larger payload is a batch of its own."""
    runs: int = 256
    """How many runs, or (workflow, digest) pairs, one claim names at most."""
