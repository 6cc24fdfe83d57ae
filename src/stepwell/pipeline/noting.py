"""Who asked for what of a pipeline, for the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.store import Store
from ..history.audit_log import note_change

SHOWN = 20
"""Targets that an entry names."""


def note_request(store: Store, pipeline: str, action: str, targets: Sequence[str] = (), **options: Any) -> None:
    """Note a request whose states were changed, or a scan that begins. Options that are not set are left out."""
    more = [f"and {len(targets) - SHOWN:,} more"] if len(targets) > SHOWN else []
    request = {"targets": [*targets[:SHOWN], *more], **options}
    note_change(store, action, "pipeline", pipeline, **{name: value for name, value in request.items() if value})
