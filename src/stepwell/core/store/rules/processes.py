"""Which process may use what a process has opened."""

from __future__ import annotations

import os

from ....errors import StoreError


def check_process(opener: int, what: str) -> None:
    """Raise StoreError in a process that was forked from the `opener`. To be called before any lock is taken: locks that
    other threads held during the fork are never released, and threads of the opener do not exist here."""
    if os.getpid() != opener:
        raise StoreError(
            f"{what} was opened by process {opener} and cannot be used in process {os.getpid()}, which was forked from it; "
            "open a new one here"
        )
