"""What must be true when all faults are over, calculated from the shape of runs and the ledger, without the engine's help."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from stepwell import Engine, Run
from stepwell.core.model import AttemptStatus
from stepwell.core.store import reader
from stepwell.engine.reports.audit import audit_run
from tests.chaos.fleet.work import mix
from tests.engine.ledger import noted

PARENTS: dict[str, dict[str, list[str]]] = {
    "diamond": {"top": [], "left": ["top"], "right": ["top"], "bottom": ["left", "right"]},
    "chain": {f"link{number}": [f"link{number - 1}"] if number else [] for number in range(5)},
    "fan": {
        "first": [],
        **{f"part{number}": ["first"] for number in range(10)},
        "join": [f"part{number}" for number in range(10)],
    },
    "retried": {"flaky": [], "after": ["flaky"]},
    "careful": {"once": [], "after": ["once"]},
    "failing": {"fine": []},
}


class Figures(NamedTuple):
    runs: int = 0
    nodes: int = 0
    bodies: int = 0
    """Bodies that were entered: at least one for each node that completed."""
    lost_attempts: int = 0
    interrupted: int = 0
    """Nodes that run at most once and whose worker died: not run again."""
    healed: int = 0


def expected(kind: str, number: int, *, extra: bool) -> dict[str, str]:
    """What each node gives. The engine has no part in it."""
    parents = dict(PARENTS[kind])
    if extra:
        parents["extra"] = ["bottom"]
    outputs: dict[str, str] = {}
    above: dict[str, set[str]] = {}
    for node, direct in parents.items():
        above[node] = {*direct}.union(*(above[parent] for parent in direct))
        outputs[node] = mix(number, node, [outputs[each] for each in above[node]])
    return outputs


def judge(engine: Engine, started: dict[str, tuple[str, int]], ledger: Path) -> Figures:
    """Every run has ended as it must, completed nodes once, bodies at least once, careful ones at most once."""
    entered: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in noted(ledger):
        run_id, node, _attempt, _pid = line.split()
        entered[run_id][node] += 1
    assert set(entered) <= set(started), "a body ran of a run that nobody has started"
    figures = Figures()
    for run_id, (kind, number) in started.items():
        found = _judge_run(engine.get(run_id), kind, number, entered[run_id])
        figures = Figures(*(one + two for one, two in zip(figures, found, strict=True)))
    return figures


def _judge_run(run: Run, kind: str, number: int, entered: Counter[str]) -> Figures:
    store = run._parts.store
    problems = audit_run(store, run.id)
    assert not problems, f"{run.id}: {problems}"
    nodes = {node.name: node for node in run.nodes()}
    attempts = list(reader.list_attempts(store, run.id))
    assert not any(attempt.status is AttemptStatus.RUNNING for attempt in attempts), f"{run.id} holds an attempt"
    completions = Counter(attempt.index for attempt in attempts if attempt.status is AttemptStatus.COMPLETED)
    assert max(completions.values(), default=1) == 1, f"{run.id}: a node was completed twice"
    interrupted = sum(node.status == "INTERRUPTED" for node in nodes.values())
    right = expected(kind, number, extra="extra" in nodes)
    if kind == "failing":
        assert run.status == "FAILED", f"{run.id} is {run.status}"
        assert nodes["never"].status != "COMPLETED"
        assert entered["never"] == 0
    elif interrupted:
        assert kind == "careful", f"{run.id}: something was interrupted that may run again"
        right = {}
    else:
        assert run.status == "COMPLETED", _story(run)
    for node, output in right.items():
        assert run.output(node) == output, f"{run.id}: {node} gave something else"
        assert entered[node] >= 1, f"{run.id}: {node} was completed and never ran"
    if kind == "careful":
        assert entered["once"] <= 1, f"{run.id}: what runs at most once ran {entered['once']} times"
    lost = sum(attempt.status is AttemptStatus.LOST for attempt in attempts)
    return Figures(1, sum(completions.values()), sum(entered.values()), lost, interrupted, int("extra" in nodes))


def _story(run: Run) -> str:
    """How it came to an end that it must not have."""
    lines = [f"{run.id} is {run.status}: {run.row.reason}"]
    for node in run.nodes():
        if node.status != "COMPLETED":
            attempts = [(attempt.number, str(attempt.status), str(attempt.error)) for attempt in node.attempts]
            lines.append(f"{node.name} {node.status}: {attempts}")
    return "\n".join(lines)
