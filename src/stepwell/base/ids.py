"""Identifiers and their types."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from functools import cache, lru_cache
from typing import NewType

from ..errors import InputError
from .clock import boot_id
from .words import shown

RunId = NewType("RunId", str)
NodeId = NewType("NodeId", str)
WorkerId = NewType("WorkerId", str)
ClaimId = NewType("ClaimId", str)
AttemptId = NewType("AttemptId", str)
GateToken = NewType("GateToken", str)
Digest = NewType("Digest", str)

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,199}\Z")
# A claim takes at most a chunk of nodes, so four digits are enough for the ordinal.
_ORDINAL = re.compile(r"(0|[1-9][0-9]{0,3})\Z")


def time_ordered() -> str:
    """32 hex digits: 48 bits of milliseconds, then 80 random bits. Later ids sort later; nobody can guess one."""
    try:
        bits = _supply.popleft()
    except IndexError:
        bits = _80_random_bits()
    return f"{time.time_ns() // 1_000_000:012x}{bits}"


_supply: deque[str] = deque()
"""Random bits for the next ids: to ask the system for many takes no longer than to ask for a few."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_supply.clear)  # two processes must not use the same


def _80_random_bits() -> str:
    digits = os.urandom(10 * 100).hex()
    _supply.extend(digits[start : start + 20] for start in range(20, len(digits), 20))
    return digits[:20]


def idempotency_key(run_id: RunId, node: str, generation: int, own: str | None = None) -> str:
    """What services are given to recognise another attempt at a node: the same for all until a completion is superseded.

    `node` is the first id that the node had; `own` is what a function of the node has made instead.

    >>> idempotency_key(RunId("order-7"), "charge", 0), idempotency_key(RunId("order-7"), "charge", 1)
    ('order-7:charge', 'order-7:charge:1')
    """
    key = own or f"{run_id}:{node}"
    return f"{key}:{generation}" if generation else key


def new_run_id() -> RunId:
    return RunId(time_ordered())


def new_claim_id() -> ClaimId:
    return ClaimId(time_ordered())


def new_worker_id() -> WorkerId:
    return WorkerId(time_ordered())


def new_gate_token() -> GateToken:
    """It names its process, so that nobody has to wait for a holder that died."""
    return GateToken(f"{time_ordered()}@{machine()}:{os.getpid()}")


@cache
def machine() -> str:
    """The scope of process ids: containers may share a host name but not their processes."""
    import platform  # not needed for anything else that is loaded at once

    try:
        processes = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        processes = 0
    return f"{platform.node()}/{boot_id()}/{processes}"


def attempt_id(claim: str, ordinal: int) -> AttemptId:
    """The id of the `ordinal`-th attempt that a claim was granted. It is also the attempt's fence."""
    return AttemptId(f"{claim}.{ordinal}")


def split_attempt_id(attempt: str) -> tuple[str, int]:
    """The claim and the ordinal an attempt id is made of.

    Attempts are fenced by equality, so another spelling of the same number, or anything else that `attempt_id` would not
    have written, is the id of no attempt: ("", 0).
    """
    claim, _, digits = attempt.rpartition(".")
    ordinal = _ordinal(digits)
    return ("", 0) if ordinal is None or not claim or "." in claim else (claim, ordinal)


@lru_cache(maxsize=10_000)
def _ordinal(digits: str) -> int | None:
    return int(digits) if _ORDINAL.match(digits) else None


def checked_run_id(text: str) -> RunId:
    """A valid run id; InputError says what is allowed."""
    if not isinstance(text, str) or not _RUN_ID.match(text):
        allowed = "1 to 200 letters, digits or . _ : @ + -, beginning with a letter or digit"
        raise InputError(f"run id {shown(text)} is not allowed: use {allowed}")
    return RunId(text)
