"""What it takes to start a run: options checked, and the records that follow from them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from typing import Any

from ..clock import microseconds
from ..codec import MAX_BYTES, encode
from ..define import Definition
from ..errors import DefinitionError, InputError
from ..ids import checked_run_id, new_run_id
from ..model import Create
from ..words import shown
from .bodies.held import RunFacts
from .checking import check_seconds, check_text, check_whole

MAX_LIMIT = 1_000_000
LEAST_LEASE = 0.1
"""Seconds."""
MAX_INPUT = MAX_BYTES


def create_op(
    definition: Definition,
    run_id: str | None = None,
    idempotency_key: str | None = None,
    priority: int = 0,
    timeout: float | None = None,
    seed: int | None = None,
) -> Create:
    chosen = new_run_id() if run_id is None else checked_run_id(run_id)
    limit = definition.timeout if timeout is None else timeout
    if limit is not None:
        check_seconds("timeout", limit, positive=True)
    check_whole("priority", priority, -(2**31), 2**31 - 1, "a whole number of 32 bits")
    if idempotency_key is not None:
        check_text("idempotency_key", idempotency_key)
    if seed is None:
        seed = int.from_bytes(hashlib.sha256(chosen.encode()).digest()[:8], "big")
    else:
        check_whole("seed", seed, 0, 2**64 - 1, "a whole number from 0 to 2**64 - 1")
    return Create(
        chosen,
        definition.workflow,
        definition.target,
        definition.graph.digest,
        kept_input(definition.input),
        seed,
        definition.on_failure,
        priority,
        None if limit is None else microseconds(limit),
        idempotency_key,
    )


def kept_input(values: Mapping[str, Any]) -> bytes:
    """The bytes of the input of a run."""
    kept = encode(dict(values))
    if len(kept) > MAX_INPUT:
        raise InputError(
            f"the input has {len(kept)} bytes; at most {MAX_INPUT} can be stored: keep it elsewhere and give where it is"
        )
    return kept


def facts_of(definition: Definition, create: Create) -> RunFacts:
    facts = RunFacts(
        create.run_id,
        definition.workflow,
        definition.target,
        definition.graph,
        create.input,
        create.seed,
        definition.bodies,
    )
    facts.priority = create.priority
    return facts


def check_limits(*, lease_seconds: float, close_seconds: float, queue_depth: int, **limits: int) -> None:
    check_whole("queue_depth", queue_depth, 0, MAX_LIMIT, "a whole number from 0, with which nothing is claimed ahead,")
    for name, value in limits.items():
        check_whole(name, value, 1, MAX_LIMIT, f"a whole number from 1 to {MAX_LIMIT:,}")
    check_seconds("lease_seconds", lease_seconds, positive=True)
    if lease_seconds < LEAST_LEASE:
        raise InputError(
            f"lease_seconds={lease_seconds}: at least {LEAST_LEASE} is needed, or it could not be renewed in time"
        )
    check_seconds("close_seconds", close_seconds)


def check_home(url: object, runner: object) -> None:
    """What an engine works on, and how."""
    if url is not None and not isinstance(url, str) and not callable(getattr(url, "commit", None)):
        raise InputError(f"Engine({shown(url)}): a store or its URL is needed, as in sqlite:///orders.db")
    if runner not in ("local", None):
        raise InputError(
            f"runner={shown(runner)}: 'local', or None for an engine that only starts and looks, is needed"
        )


def refuse_while_importing_main() -> None:
    """A process for bodies imports the main module, and would start the same runs again."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise DefinitionError(
            'a process for bodies (isolation="process") imports the main module, which opens an engine: '
            'put what it does when it is run below `if __name__ == "__main__":`'
        )
