"""A file beside the store, to which bodies write what they really did, whatever the engine believes."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path


def note(ledger: str | Path, *words: object) -> None:
    """Append one line, whole, whoever else writes."""
    descriptor = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, (" ".join(map(str, words)) + "\n").encode())
    finally:
        os.close(descriptor)


def noted(ledger: str | Path) -> list[str]:
    path = Path(ledger)
    return path.read_text().splitlines() if path.exists() else []


def counted(ledger: str | Path) -> Counter[str]:
    """How often each first word was noted."""
    return Counter(line.split()[0] for line in noted(ledger))
