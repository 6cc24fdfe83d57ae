"""Causes that hold for the whole run: its gate, and whether a worker serves it."""

from __future__ import annotations

from ...answers.causes import CauseKind
from ...core.model import GateState
from .records import Facts, WhyCause


def gate_causes(facts: Facts) -> tuple[WhyCause, ...]:
    """What keeps every node of the run from moving, if anything does."""
    run = facts.run
    if run.gate is GateState.HELD:  # whoever works finishes what it is held for
        hold = WhyCause(CauseKind.HELD, detail={"purpose": run.purpose})
        return (hold,) if facts.workers else (hold, _no_worker(facts))
    return (pause_cause(facts),) if run.status.paused else ()


def pause_cause(facts: Facts) -> WhyCause:
    entries = [entry for entry in facts.gates if entry.kind == "run" and entry.status == facts.run.status]
    return WhyCause(CauseKind.PAUSED, at=entries[-1].at if entries else None, detail={"reason": facts.run.reason})


def request_causes(facts: Facts, purpose: str) -> tuple[WhyCause, ...]:
    """The latest request for this."""
    entries = [entry for entry in facts.gates if entry.kind == "gate" and entry.status == purpose]
    return (WhyCause(CauseKind.ASKED, at=entries[-1].at, detail={"purpose": purpose}),) if entries else ()


def unserved_run(facts: Facts) -> WhyCause | None:
    """No live worker would take a READY node of this run; None when one might."""
    run = facts.run
    if not facts.workers:
        return _no_worker(facts)
    lacking = [worker.lacks.get((run.workflow, run.digest)) for worker in facts.workers]
    if all(lacking):
        reasons = sorted({str(reason).partition("\n")[0] for reason in lacking})
        return WhyCause(CauseKind.LACKING, detail={"workers": len(lacking), "reasons": reasons[:5]})
    offers = [worker.serves for worker in facts.workers]
    if run.target is None:  # workers announce versions of classes, but no graphs that were built at run time
        return None
    versions = {(run.workflow, run.digest), (run.workflow, facts.graph.follows)}
    if any(serves is None or not serves.isdisjoint(versions) for serves in offers):
        return None
    others = sorted({pair for serves in offers for pair in serves or ()})
    detail = {
        "module": _module(facts),
        "workflow": run.workflow,
        "digest": run.digest,
        "workers": len(facts.workers),
        "other_versions": sum(workflow == run.workflow for workflow, _ in others),
        "serving": sorted({workflow for workflow, _ in others})[:5],
    }
    return WhyCause(CauseKind.NOT_SERVED, detail=detail)


def unserved_queue(facts: Facts, queue: str) -> WhyCause | None:
    """No live worker takes nodes from this queue; None when one does."""
    offers = [worker.queues for worker in facts.workers]
    if any(queues is None or queue in queues for queues in offers):
        return None
    queues_taken = sorted({name for queues in offers for name in queues or ()})
    detail = {"module": _module(facts), "queue": queue, "workers": len(facts.workers), "queues": queues_taken[:5]}
    return WhyCause(CauseKind.QUEUE_NOT_SERVED, detail=detail)


def _no_worker(facts: Facts) -> WhyCause:
    return WhyCause(CauseKind.NO_WORKER, detail={"module": _module(facts)})


def _module(facts: Facts) -> str | None:
    """The module to start a worker with; "" if handlers of documents need none."""
    jobs = [job for job in facts.graph.jobs if job is not None]
    address = facts.run.target or next((job for job in jobs if ":" in job), "" if jobs else None)
    return None if address is None else address.partition(":")[0]
