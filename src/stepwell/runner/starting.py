"""What it takes to start a run: options checked, and the records that follow from them."""

from __future__ import annotations

import hashlib
import sys

from ..clock import microseconds
from ..codec import encode
from ..define import Definition
from ..errors import DefinitionError, InputError
from ..ids import checked_run_id, new_run_id
from ..model import Create
from .work import RunFacts


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
    if limit is not None and not 0 < limit < 2**40:
        raise InputError(f"timeout={limit}: a positive number of seconds is needed")
    if not -(2**31) <= priority < 2**31:
        raise InputError(f"priority={priority}: a whole number of 32 bits is needed")
    if seed is None:
        seed = int.from_bytes(hashlib.sha256(chosen.encode()).digest()[:8], "big")
    elif not 0 <= seed < 2**64:
        raise InputError(f"seed={seed}: a whole number from 0 to 2**64 - 1 is needed")
    return Create(
        chosen,
        definition.workflow,
        definition.target,
        definition.graph.digest,
        encode(dict(definition.input)),
        seed,
        definition.on_failure,
        priority,
        None if limit is None else microseconds(limit),
        idempotency_key,
    )


def facts_of(definition: Definition, create: Create) -> RunFacts:
    return RunFacts(
        create.run_id,
        definition.workflow,
        definition.target,
        definition.graph,
        create.input,
        create.seed,
        definition.bodies,
    )


def check_limits(*, lease_seconds: float, queue_depth: int, **limits: int) -> None:
    if queue_depth < 0:
        raise InputError(f"queue_depth={queue_depth}: 0 or more is needed; with 0 nothing is claimed ahead")
    for name, value in limits.items():
        if value < 1:
            raise InputError(f"{name}={value}: at least 1 is needed")
    if lease_seconds <= 0:
        raise InputError(f"lease_seconds={lease_seconds}: a positive number is needed")


def refuse_while_importing_main() -> None:
    """A process for bodies imports the main module, and would start the same runs again."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise DefinitionError(
            'a process for bodies (isolation="process") imports the main module, which opens an engine: '
            'put what it does when it is run below `if __name__ == "__main__":`'
        )
