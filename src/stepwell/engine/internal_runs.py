"""Runs of Stepwell's own workflow: what needs the code of a run, done by a worker that has it.

A server may have no code of users. To replay a run, or to fold its state, it starts a run of one node whose arguments name that
run. A worker serves such a run exactly if the code of the named run is there, so it is claimed, repeated after a lost worker,
followed and cancelled like any other. Its graph must be one that the server made: data never names these jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ..base.clock import SECOND
from ..base.ids import NodeId, RunId
from ..core.graph import Graph, NodeSpec
from ..core.model import INTERNAL_WORKFLOW, TERMINAL_RUNS, RunRow
from ..core.store import Store, reader
from ..core.store.living import living
from ..define import Bodies, Definition
from ..errors import DefinitionError, ReplayMismatch, RunError
from ..history.why import Worker
from .code.code import Code
from .procedures.gates import delete
from .procedures.procedure import carry_out
from .recent import Recent

if TYPE_CHECKING:
    from ..answers.reports import CheckpointRecord, MismatchRecord, ReplayOutcome
    from .bodies.context import Context

JOB = f"{__name__}:"
DEADLINE_SECONDS = 3_600.0
"""How long such a run may take, waiting for a worker included."""
KEPT_SECONDS = 86_400
"""How long after its end the next one deletes it."""
DELETED_AT_ONCE = 100


def internal_definition(row: RunRow, kind: str, queue: str, **arguments: Any) -> Definition:
    """A run that does this with another run: "replay", or "state" `at` a checkpoint."""
    spec = NodeSpec(NodeId(kind), kind, job=JOB + kind, args={"run": row.id, **arguments}, queue=queue)
    return Definition(INTERNAL_WORKFLOW, None, Graph([spec]), {}, "fail_fast", DEADLINE_SECONDS, Bodies())


def queue_with_code(store: Store, row: RunRow, graph: Graph) -> str | None:
    """A queue of the run from which a live worker that has its code takes nodes; None if there is no such worker.

    Workers announce classes only, so for graphs that were built at run time any worker may have the code.
    """
    workers = [worker for worker in map(Worker.of, living(store)) if _has_code(worker, row)]
    queues = dict.fromkeys(spec.queue for spec in graph)
    return next((each for each in queues if any(w.queues is None or each in w.queues for w in workers)), None)


def _has_code(worker: Worker, row: RunRow) -> bool:
    if (row.workflow, row.digest) in worker.lacks:
        return False
    return row.target is None or worker.serves is None or row.workflow in {name for name, _ in worker.serves}


def delete_old(store: Store) -> None:
    """Delete internal runs that ended a day ago: their results were read, or never will be."""
    before = store.now() - KEPT_SECONDS * SECOND
    rows = reader.all_runs(store, *TERMINAL_RUNS, workflow=INTERNAL_WORKFLOW, ended_before=before)
    for row in list(islice(rows, DELETED_AT_ONCE)):
        with suppress(RunError):  # another process has just deleted it
            carry_out(store, delete(row.id))


def internal_bodies(store: Store, code: Code, graph: Graph) -> Bodies:
    """The bodies of an internal run; a DefinitionError if the code of the run that it names is not here."""
    spec = graph.in_order[0]
    kind = spec.name
    if not graph.trusted or len(graph) != 1 or spec.job != JOB + kind or kind not in _JOBS:
        raise DefinitionError(f"a run of {INTERNAL_WORKFLOW} is only one that Stepwell started")
    row = reader.get_run(store, RunId(str(spec.args.get("run"))))
    if row is not None:  # the body of an internal run fails if the run was deleted
        _check_code(code, row)
    job = _JOBS[kind]

    def run_job(ctx: Context, **arguments: Any) -> Any:
        return job(store, code, ctx, arguments)

    return Bodies(jobs={JOB + kind: run_job})


def _check_code(code: Code, row: RunRow) -> None:
    graph = code.graphs.of(row)
    bodies = code.bodies(row.workflow, row.target, graph)
    if row.target is not None:
        return  # nodes that its class does not have any more are a difference, which a replay reports
    missing = [each for each in bodies.missing(graph, is_data=graph.follows is None) if not each.lacking]
    if missing:
        raise missing[0]


def _replay(store: Store, code: Code, ctx: Context, arguments: Mapping[str, Any]) -> ReplayOutcome:
    from .reports.replay import replay_run

    def report(done: int, total: int) -> None:
        ctx.check()
        ctx.progress(done, total, "nodes")

    run_id = RunId(arguments["run"])
    try:
        return {"run": run_id, "replay": replay_run(store, code, run_id, report).to_dict(), "mismatch": None}
    except ReplayMismatch as error:
        return {"run": run_id, "replay": None, "mismatch": _mismatch(error)}


def _mismatch(error: ReplayMismatch) -> MismatchRecord:
    return {
        "what": error.what,
        "node": error.node,
        "attempt": error.attempt,
        "effect": error.effect,
        "diff": list(error.diff),
    }


def _state(store: Store, code: Code, ctx: Context, arguments: Mapping[str, Any]) -> CheckpointRecord:
    from .reports.checkpoints import checkpoint

    run_id = RunId(arguments["run"])
    found = checkpoint(
        store, run_id, lambda digest: code.graphs.get(digest, run_id), code.bodies_of, arguments["at"], Recent(1_000)
    )
    return found.data()


_JOBS: Final[Mapping[str, Callable[[Store, Code, Context, Mapping[str, Any]], Any]]] = {
    "replay": _replay,
    "state": _state,
}
