"""Payloads are opaque bytes. Large ones are kept once for each run, by hash, and the rows that have them hold a reference."""

from __future__ import annotations

import hashlib

LARGE = 16 * 1024
"""From this size on a payload is kept apart."""
REFERENCE = b"\x00"
"""What a reference begins with. No JSON text does; other payloads that do are kept as large ones, whatever their size."""


def is_large(payload: bytes) -> bool:
    return len(payload) >= LARGE or payload[:1] == REFERENCE


def reference(payload: bytes) -> bytes:
    """What a row holds instead of a large payload."""
    return REFERENCE + hashlib.sha256(payload).digest()
