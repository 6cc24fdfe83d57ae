"""Nodes whose workers are lost again and again."""

from __future__ import annotations

SUSPECT_AFTER = 2
"""After this many lost workers a node is suspect: it is claimed alone, so that the next loss is certainly its own."""
MAX_LOSSES = SUSPECT_AFTER + 3
"""At this many losses the node is FAILED, reason `worker_lost`."""
WORKER_LOST = "WorkerLost"
"""The class of that error."""
WORKER_LOST_ERROR = (
    b'{"message":"the worker that ran this attempt died or did not renew its lease in time","type":"WorkerLost"}'
)
