"""Two that ask something of one run at the same moment: it is as if one had come after the other, or one is refused."""

from __future__ import annotations

import itertools
import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from stepwell import Builder, Engine, Run, RunNotFound
from stepwell.core.model import Sweep
from stepwell.engine.procedures import gates
from stepwell.engine.procedures.procedure import carry_out
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.engine import jobs
from tests.engine.ledger import noted
from tests.engine.waiting import eventually

VERBS = ("retry", "reattempt", "cancel", "pause", "resume", "delete")
REATTEMPTED = {"pending": "a", "paused": "a", "stopped": "b", "failed": "b", "cancelled": "a", "completed": "d"}
"""The states a run is in when it is raced for, each with the node that a reattempt is for."""
WAIT = 60


class Outcome(NamedTuple):
    answers: tuple[str, str]
    status: str | None
    nodes: tuple[str, ...]


class Yard:
    """Makes runs in any state: a -> b -> c and d, where b fails until it is mended."""

    def __init__(self, url: str, folder: Path) -> None:
        self.engine = Engine(url, runner=None)
        self.flag = folder / "mended"
        self._url = url

    def make(self, wanted: dict[str, int]) -> dict[str, Iterator[Run]]:
        """So many runs in each of these states."""
        with Engine(self._url) as worker:
            made = {state: [worker.start(self._graph(state)) for _ in range(wanted[state])] for state in WORKED}
            for runs in made.values():
                for run in runs:
                    eventually(lambda run=run: not _moves(run), seconds=WAIT)
        for state in ("pending", "paused", "cancelled"):
            made[state] = [self.engine.start(self._graph(state)) for _ in range(wanted[state])]
            for run in made[state]:
                if state != "pending":
                    getattr(run, {"paused": "pause", "cancelled": "cancel"}[state])()
        return {state: iter([self.engine.get(run.id) for run in runs]) for state, runs in made.items()}

    def _graph(self, state: str) -> Builder:
        w = Builder("raced", on_failure="pause" if state == "stopped" else "finish")
        first = w.node("a", job=jobs.nothing)
        w.node("b", job=jobs.nothing if state == "completed" else work.mended, args=self._args(state))
        w.node("c", job=jobs.nothing)
        w.node("d", job=jobs.nothing, depends_on=first)
        return w

    def _args(self, state: str) -> dict[str, str]:
        return {} if state == "completed" else {"flag": str(self.flag)}


WORKED = ("stopped", "failed", "completed")


def _moves(run: Run) -> bool:
    row = run.row
    return not (row.status.terminal or row.status == "PAUSED") or bool(row.active)


def outcome(engine: Engine, run_id: str, *answers: str) -> Outcome:
    """How the run stands when also what follows from the answers is done: who is refused may do that, and need not."""
    first, second = answers
    (swept,) = engine.store.commit([Sweep(run=run_id)])
    for left in swept.gates:
        carry_out(engine.store, gates.finish(left))
    try:
        run = engine.get(run_id)
        assert run.audit() == []
        return Outcome((first, second), run.status, tuple(node.status for node in run.nodes()))
    except RunNotFound:
        return Outcome((first, second), None, ())


def one_after_the_other(engine: Engine, runs: Iterator[Run], state: str, first: str, second: str) -> list[Outcome]:
    """What the two leave one after the other, in both orders, or when one is refused because the other is at it."""
    node, found = REATTEMPTED[state], []
    for verbs in ((first, second), (second, first)):
        run = next(runs).id
        answers = [work.ask(engine, run, verb, node) for verb in verbs]
        found.append(outcome(engine, run, *(answers if verbs == (first, second) else reversed(answers))))
    for alone in (0, 1):
        run = next(runs).id
        answer = work.ask(engine, run, (first, second)[alone], node)
        for refused in ("conflict", "gone"):
            found.append(outcome(engine, run, *((answer, refused) if alone == 0 else (refused, answer))))
    if first == second == "delete":
        found.append(Outcome(("done", "done"), None, ()))  # both saw it, and now it is gone
    return found


def finish(run: Run) -> None:
    """Bring any run to its end: by one retry or resume, and one more if what had begun before that then fails."""
    for _ in range(3):
        if run.status == "CANCELLING":
            run.wait(WAIT)
        row = run.row
        if row.status in ("FAILED", "CANCELLED") or (row.status == "PAUSED" and row.failed):
            run.retry()
        elif row.status == "PAUSED":
            run.resume()
        if run.wait(WAIT).status == "COMPLETED":
            break
    assert run.status == "COMPLETED"
    assert run.audit() == []


class Race(NamedTuple):
    state: str
    run: str
    verbs: tuple[str, str]


Possible = dict[tuple[str, str, str], list[Outcome]]
"""By the state of a run and what the two ask."""


def races(yard: Yard) -> list[Race]:
    """Every ordered pair of requests, on runs in every state."""
    pairs = list(itertools.product(VERBS, VERBS))
    runs = yard.make(dict.fromkeys(REATTEMPTED, len(pairs)))
    return [Race(state, next(runs[state]).id, pair) for state in REATTEMPTED for pair in pairs]


def judge(yard: Yard, possible: Possible, race: Race, answers: tuple[str, str]) -> None:
    found, allowed = outcome(yard.engine, race.run, *answers), possible[race.state, *race.verbs]
    assert found in allowed, f"{race.state}: {' and '.join(race.verbs)}: {found}, not one of {allowed}"


@contextmanager
def opened(folder: Path) -> Iterator[Yard]:
    made = Yard(f"sqlite:///{folder}/stepwell.db?synchronous=normal", folder)
    yield made
    made.engine.close()


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with opened(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def possible(tmp_path_factory: pytest.TempPathFactory) -> Possible:
    """What may come of every pair: found once, for who comes first does not matter here."""
    pairs = list(itertools.combinations_with_replacement(VERBS, 2))
    found: Possible = {}
    with opened(tmp_path_factory.mktemp("one_after_the_other")) as yard:
        runs = yard.make(dict.fromkeys(REATTEMPTED, 4 * len(pairs)))
        for state, (first, second) in itertools.product(REATTEMPTED, pairs):
            outcomes = one_after_the_other(yard.engine, runs[state], state, first, second)
            found[state, first, second] = outcomes
            found[state, second, first] = [each._replace(answers=each.answers[::-1]) for each in outcomes]
    return found


def finish_all(yard: Yard, raced: list[Race]) -> None:
    yard.flag.touch()
    with Engine(yard.engine.store.url) as worker:
        worker.work(wait=0)
        for race in raced:
            try:
                finish(worker.get(race.run))
            except RunNotFound:
                assert "delete" in race.verbs


def test_two_threads(yard: Yard, possible: Possible) -> None:
    raced = races(yard)
    together = threading.Barrier(2)
    answers: list[list[str]] = [[], []]

    def ask(place: int) -> None:
        with Engine(yard.engine.store.url, runner=None) as engine:
            for race in raced:
                together.wait(WAIT)
                answers[place].append(work.ask(engine, race.run, race.verbs[place], REATTEMPTED[race.state]))

    threads = [threading.Thread(target=ask, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * WAIT)
    for race, *given in zip(raced, *answers, strict=True):
        judge(yard, possible, race, (given[0], given[1]))
    finish_all(yard, raced)


def test_two_processes(yard: Yard, possible: Possible, tmp_path: Path, start_child: StartChild) -> None:
    raced = races(yard)
    together = multiprocessing.get_context("forkserver").Barrier(2)
    children = []
    for place in (0, 1):
        asks = [(race.run, race.verbs[place], REATTEMPTED[race.state]) for race in raced]
        ledger = str(tmp_path / f"answers-{place}")
        children.append(start_child(work.ask_in_turn, yard.engine.store.url, asks, together, ledger))
    for child in children:
        child.join(2 * WAIT)
        assert child.exitcode == 0
    told = [[line.split()[1] for line in noted(tmp_path / f"answers-{place}")] for place in (0, 1)]
    for race, *given in zip(raced, *told, strict=True):
        judge(yard, possible, race, (given[0], given[1]))
    finish_all(yard, raced)


def test_while_somebody_works_on_the_runs(yard: Yard) -> None:
    """Bodies begin and end meanwhile, so what comes of it is open; but it is consistent, and can be brought to an end."""
    with Engine(yard.engine.store.url) as worker, Engine(yard.engine.store.url) as other:
        worker.work(wait=0)
        for number, pair in enumerate(itertools.product(VERBS, VERBS)):
            state = ("stopped", "failed")[number % 2]
            run = worker.start(yard._graph(state))
            threads = [
                threading.Thread(target=_ask_often, args=(engine, run.id, verb))
                for engine, verb in zip((worker, other), pair, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(WAIT)
                assert not thread.is_alive()
        yard.flag.touch()
        for run in yard.engine.runs(limit=1_000):
            finish(worker.get(run.id))


def _ask_often(engine: Engine, run_id: str, verb: str) -> None:
    for _ in range(5):
        assert work.ask(engine, run_id, verb, "b") in ("done", "conflict", "gone")
