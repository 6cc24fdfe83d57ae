"""One request to many runs: first a preview, then the same of the runs of that preview, and of no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.codec import clean
from ...base.words import iso
from ...core.model import RUN_VERBS, ListRuns, RunPage, RunRow, RunStatus
from ...core.store import reader
from ...errors import InputError, RunConflict, StepwellError
from ..checking import checked_choice
from ..parts import Parts
from .run import Run

if TYPE_CHECKING:
    from ...answers.runs import BulkOutcome, BulkRecord, PreviewedRun

MAX_BULK = 1_000
"""Runs of one preview."""
MAX_NODES = 200_000
"""Nodes of all runs that one preview looks at, unless a single run has more."""
BULK_VERBS = tuple(name for name, verb in RUN_VERBS.items() if verb.options is not None)
_AT_WORK = {RunStatus.PENDING, RunStatus.RUNNING}


class BulkVerb(NamedTuple):
    """What is requested of each of the runs."""

    verb: str
    options: Mapping[str, Any]
    """Those of the method of `Run` with this name."""
    node: str | None = None
    """Of reattempt: which node of each run."""
    key: str | None = None
    """Of fork: the forks are called RUN-KEY."""


def bulk_verb(verb: str, options: Mapping[str, Any]) -> BulkVerb:
    """The request, with the options that were given for it; refuses those of other verbs."""
    checked_choice("verb", verb, BULK_VERBS)
    own = (*(RUN_VERBS[verb].options or ()), *{"reattempt": ("node",), "fork": ("key",)}.get(verb, ()))
    foreign = [name for name in options if name not in own]
    if foreign:
        raise InputError(f"{verb} takes no {foreign[0]}; it takes {', '.join(own) or 'no options'}")
    if (verb == "reattempt") != ("node" in options):
        raise InputError("expected `node` for reattempt, which is done to one node of each run")
    of_runs = {name: value for name, value in options.items() if name not in ("node", "key")}
    return BulkVerb(verb, of_runs, options.get("node"), options.get("key"))


def preview_bulk(parts: Parts, asked: BulkVerb, query: ListRuns) -> tuple[BulkRecord, tuple[int, int] | None]:
    """What would be done to the runs of a query that the verb is for; and where the next preview goes on, if more match."""
    at = iso(parts.store.now())
    page = _page(parts, asked.verb, query)
    outcomes = [_outcome(parts, row, asked, dry_run=True) for row in page.runs]
    record = _bulk_record(asked.verb, at, outcomes, dry_run=True)
    record["preview"] = [
        {"run": row.id, "created_at": iso(row.created_at), "status": row.status, "seq": row.seq}
        for row, outcome in zip(page.runs, outcomes, strict=True)
        if outcome["outcome"] == "done"
    ]
    return {**record, "more": page.cursor is not None}, page.cursor


def apply_bulk(parts: Parts, asked: BulkVerb, previewed: Sequence[PreviewedRun]) -> BulkRecord:
    """Request it of the runs of a preview. Each stands or falls alone; one that is another by now is left alone."""
    at = iso(parts.store.now())
    return _bulk_record(asked.verb, at, [_apply(parts, each, asked) for each in previewed], dry_run=False)


def _page(parts: Parts, verb: str, query: ListRuns) -> RunPage:
    """The runs of a query that the verb is for, as many as have not too many nodes to look at."""
    allowed = RUN_VERBS[verb].allowed
    statuses = tuple(status for status in query.statuses if status in allowed) if query.statuses else allowed
    if not statuses:
        raise InputError(f"{verb} is for runs that are {', '.join(allowed)}; the filter asks for others")
    query = query._replace(statuses=statuses)
    page = reader.list_runs(parts.store, query)
    fitting = sum(size <= MAX_NODES for size in accumulate(row.nodes for row in page.runs))
    return page if fitting == len(page.runs) else reader.list_runs(parts.store, query._replace(limit=max(1, fitting)))


def _bulk_record(verb: Any, at: str, outcomes: list[BulkOutcome], *, dry_run: bool) -> BulkRecord:
    counts = Counter(outcome["outcome"] for outcome in outcomes)
    return {
        "verb": verb,
        "dry_run": dry_run,
        "at": at,
        "matched": len(outcomes),
        "done": counts["done"],
        "refused": counts["refused"],
        "changed": counts["changed"],
        "nodes": sum(outcome["nodes"] or 0 for outcome in outcomes),
        "runs": outcomes,
        "preview": [],
        "more": False,
        "next": None,
    }


def _apply(parts: Parts, previewed: PreviewedRun, asked: BulkVerb) -> BulkOutcome:
    row = reader.get_run(parts.store, previewed["run"])
    change = _change_since(previewed, row)
    if row is not None and change is None:
        return _outcome(parts, row, asked, dry_run=False)
    status = None if row is None else row.status
    return {
        "run": previewed["run"],
        "status": status,
        "outcome": "changed",
        "detail": change,
        "nodes": None,
        "fork": None,
    }


def _change_since(previewed: PreviewedRun, row: RunRow | None) -> str | None:
    """What makes a run another than the one that was previewed; not that its nodes went on, which they do by themselves."""
    if row is None or iso(row.created_at) != previewed["created_at"]:
        return "it was deleted after the preview"
    if row.status is not previewed["status"] and not {row.status, previewed["status"]} <= _AT_WORK:
        return f"it was {previewed['status']} and is {row.status}"
    has_moved = row.status not in _AT_WORK and row.seq != previewed["seq"]
    return "something was done to it after the preview" if has_moved else None


def _outcome(parts: Parts, row: RunRow, asked: BulkVerb, *, dry_run: bool) -> BulkOutcome:
    run = Run(parts, row.id)
    outcome: BulkOutcome = {
        "run": row.id,
        "status": row.status,
        "outcome": "done",
        "detail": None,
        "nodes": None,
        "fork": None,
    }
    options = dict(asked.options)
    nodes = () if asked.node is None else (asked.node,)
    try:
        for name in (*nodes, options.get("at")):
            if isinstance(name, str) and (nodes or run._step_of(name) is None):
                _check_node(run, name)
        if asked.key is not None:
            options["run_id"] = f"{run.id}-{asked.key}"
        result = getattr(run, asked.verb)(*nodes, **options, dry_run=dry_run)
        if dry_run:
            return {**outcome, "nodes": len(result)}
        return {**outcome, "status": run.status, "fork": result.id if asked.verb == "fork" else None}
    except StepwellError as error:
        return {**outcome, "outcome": "refused", "detail": clean(error.public_message)}


def _check_node(run: Run, node: str) -> None:
    try:
        run._index_of(node)
    except KeyError as error:
        raise RunConflict(str(error.args[0]), run_id=run.id) from None
