"""Payloads are opaque bytes. Large ones are kept once for each run, by hash, and the rows that have them hold a reference."""

from __future__ import annotations

import hashlib

from ....base.codec import decode

LARGE = 16 * 1024
"""From this size on a payload is kept apart."""
REFERENCE = b"\x00"
"""What a reference begins with. No JSON text does; other payloads that do are kept as large ones, whatever their size."""


def is_large(payload: bytes) -> bool:
    return len(payload) >= LARGE or payload[:1] == REFERENCE


def reference(payload: bytes) -> bytes:
    """What a row holds instead of a large payload."""
    return REFERENCE + hashlib.sha256(payload).digest()


LONGEST_TYPE = 100
"""Characters of the class of an error that every store can keep and find runs by."""


def error_type(error: bytes | None) -> str | None:
    """The class of the exception that an attempt recorded, if it is a record of one.

    >>> error_type(b'{"message":"no","traceback":"","type":"KeyError"}'), error_type(b"anything"), error_type(None)
    ('KeyError', None, None)
    """
    try:
        found = decode(error) if error else None
    except ValueError:
        return None
    kind = found.get("type") if isinstance(found, dict) else None
    return kind[:LONGEST_TYPE] if isinstance(kind, str) and kind and kind.isprintable() else None
