"""`run.why()`: each state is brought about for real, and the words are read."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import pytest

from stepwell import Builder, Context, Engine, Retry, RunNotFound, Workflow, step, task
from stepwell.core.graph import Graph, outline
from stepwell.core.model import queries
from stepwell.core.store import reader
from stepwell.engine.runs.stored import StoredRun
from stepwell.history.why import Why
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually

_CHANGING = (
    (r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d", "T"),
    (r" \((in )?[\d.]+ [smh]( \d\d [smh])?\)", ""),
    (r"process \d+ on \S+?(?=[;\n]|$)", "process P"),
)


def told(answer: Why) -> list[str]:
    """The lines of an answer, without what differs from time to time."""
    text = answer.text(command="stepwell {}".format)
    for pattern, instead in _CHANGING:
        text = re.sub(pattern, instead, text)
    return text.split("\n")


NO_WORKER = "→ `stepwell work tests.engine.test_why` works on it, or `stepwell resume r` on this run alone"
RETRY = "→ `run.retry()` or `stepwell retry r` runs only what did not complete"


class Order(Workflow):
    @step
    def validate(self) -> None: ...

    @step
    def charge(self) -> None:
        raise ConnectionError("the bank is closed")

    @step
    def pack(self) -> None: ...

    @step
    def ship(self) -> None: ...


def test_what_a_failure_brings_about(engine: Engine) -> None:
    run = engine.run(Order(), run_id="r", check=False)
    failed = [
        "charge failed for good: it has no retry=",
        "  attempt 1 failed at T: ConnectionError: the bank is closed",
    ]
    assert told(run.why("charge")) == [*failed, RETRY]
    below = [f"  {line}" for line in failed]
    assert told(run.why("ship")) == ["ship did not run: it depends on charge through other nodes", *below, RETRY]
    assert told(run.why("pack")) == ["pack did not run: it depends on charge", *below, RETRY]
    assert told(run.why()) == [
        "run r of Order failed at T: 4 nodes, 1 completed, 1 failed, 2 upstream failed",
        *below,
        RETRY,
    ]
    assert told(run.why("validate")) == ["validate completed at T", "  the run was started at T"]


def test_what_had_not_begun_when_another_node_failed(open_engine: OpenEngine) -> None:
    class Pair(Workflow):
        @task(depends_on=None)
        def broken(self) -> None:
            raise ValueError("no")

        @task(depends_on=None, retry=Retry(2, base_delay=30, max_delay=30))
        def waiting(self) -> None:
            raise ConnectionError

    run = open_engine(max_concurrent_nodes=1).run(Pair(), run_id="r", check=False)
    first = told(run.why("waiting"))[0]
    assert first in (
        "waiting was cancelled because the run failed",
        "waiting was cancelled before it began, because the run failed",
    )
    assert told(run.why("waiting"))[1] == "  broken failed for good: it has no retry="


class Patient(Workflow):
    @step(retry=Retry(5, base_delay=60, max_delay=60))
    def charge(self) -> None:
        raise TimeoutError("the bank did not answer")

    @step
    def ship(self) -> None: ...


def test_waiting_for_the_next_attempt(engine: Engine) -> None:
    run = engine.start(Patient(), run_id="r")
    eventually(lambda: run.node("charge").status == "WAITING")
    waits = [
        "charge waits until T for attempt 2 of 5",
        "  attempt 1 failed at T: TimeoutError: the bank did not answer",
    ]
    assert told(run.why("charge")) == waits
    assert told(run.why("ship")) == ["ship waits for charge", *(f"  {line}" for line in waits)]
    assert told(run.why()) == [
        "run r of Patient is running: 2 nodes, 1 pending, 1 waiting",
        *(f"  {line}" for line in waits),
    ]
    (cause,) = run.why("ship").causes
    due = run.node("charge").due_at
    assert due is not None
    assert (cause.because[0].at or 0) / 1e6 == pytest.approx(due)
    run.cancel()
    assert told(run.why("charge"))[0] == "charge was cancelled because the run was cancelled"


def test_ready_without_a_worker(open_engine: OpenEngine) -> None:
    run = open_engine(runner=None).start(Order(), run_id="r")
    waits = ["validate is ready to run since T", "  no worker is alive"]
    assert told(run.why("validate")) == [*waits, NO_WORKER]
    assert told(run.why("ship")) == [
        "ship waits for pack",
        "  pack waits for charge",
        "    charge waits for validate",
        *(f"      {line}" for line in waits),
        NO_WORKER,
    ]
    assert told(run.why()) == [
        "run r of Order is pending: 4 nodes, 3 pending, 1 ready",
        "  no worker is alive",
        "  validate is ready to run since T",
        NO_WORKER,
    ]


class Held(Workflow):
    """Ends when it is asked to stop."""

    @step
    def first(self, ctx: Context) -> None:
        while True:
            ctx.check()
            time.sleep(0.002)

    @step
    def second(self) -> None: ...


def test_running_and_then_cancelled(engine: Engine) -> None:
    run = engine.start(Held(), run_id="r")
    eventually(lambda: run.node("first").status == "RUNNING")
    running = "first is running since T, process P"
    assert told(run.why("first")) == [running, "  the run was started at T"]
    assert told(run.why("second")) == ["second waits for first", f"  {running}"]
    assert told(run.why())[1:] == [f"  {running}"]
    run.cancel().wait(5)
    by_whom = "  the run was cancelled at T"
    assert told(run.why("first")) == [
        "first was stopped while it ran at T, because the run was cancelled",
        by_whom,
        RETRY,
    ]
    assert told(run.why("second"))[:2] == [
        "second was cancelled before it began, because the run was cancelled",
        by_whom,
    ]
    assert told(run.why()) == ["run r of Held cancelled at T: 2 nodes, all cancelled", by_whom, RETRY]


def test_a_run_whose_time_was_up(engine: Engine) -> None:
    run = engine.start(Held(), run_id="r", deadline=0.2).wait(10)
    eventually(lambda: run.node("first").status == "CANCELLED")
    by_what = "  the run had to end by T"
    assert told(run.why("first"))[:2] == [
        "first was stopped while it ran at T, because the time of the run was up",
        by_what,
    ]
    assert told(run.why("second"))[:2] == [
        "second was cancelled before it began, because the time of the run was up",
        by_what,
    ]
    assert told(run.why())[1:] == [by_what, RETRY]


def test_interrupted(engine: Engine) -> None:
    release = threading.Event()

    class Charge(Workflow):
        @step(on_lost="interrupt", timeout=0.1)
        def charge(self) -> None:
            release.wait(10)

    run = engine.run(Charge(), run_id="r", check=False)
    release.set()
    assert told(run.why("charge")) == [
        "charge was interrupted: it may have done part of its work, and is not run again by itself",
        "  attempt 1 took too long at T: the body did not end within 0.1 s",
        "→ see whether charge did its work: a retry runs it once more",
        RETRY,
    ]


def test_in_a_run_that_goes_on_after_a_failure(engine: Engine) -> None:
    release = threading.Event()

    class Two(Workflow, on_failure="finish"):
        @task(depends_on=None)
        def broken(self) -> None:
            raise ValueError("no")

        @task(depends_on=None)
        def slow(self) -> None:
            release.wait(10)

        @task(depends_on=[broken, slow])
        def below(self) -> None: ...

    run = engine.start(Two(), run_id="r")
    eventually(lambda: run.node("broken").status == "FAILED" and run.node("slow").status == "RUNNING")
    lines = told(run.why("below"))
    release.set()
    assert lines[0] == "below can no longer run: it needs all of its 2 parents: broken, slow"
    assert lines[1] == "  broken failed for good: it has no retry="
    assert lines[3] == "  slow is running since T, process P"
    run.wait(10)
    assert told(run.why("below"))[0] == "below did not run: it depends on broken"


def test_asked_for_again(engine: Engine) -> None:
    mended = threading.Event()

    class Mended(Workflow):
        @step
        def before(self) -> None: ...

        @step
        def broken(self) -> None:
            if not mended.is_set():
                raise LookupError("not yet")

        @step
        def after(self) -> None: ...

    run = engine.run(Mended(), run_id="r", check=False)
    mended.set()
    run.retry().wait(10).check()
    again = "the run was retried (run.retry()) at T"
    assert told(run.why("broken")) == [
        "broken completed at T, in attempt 2",
        f"  {again}",
        "    attempt 1 failed at T: LookupError: not yet",
    ]
    assert told(run.why("after")) == ["after completed at T", f"  {again}"]
    assert told(run.why("before")) == ["before completed at T", "  the run was started at T"]
    assert told(run.why()) == ["run r of Mended completed at T: 3 nodes, all completed", f"  {again}"]


def test_the_last_of_several_parents_made_it_run(engine: Engine) -> None:
    done = threading.Event()

    class Join(Workflow):
        @task(depends_on=None)
        def quick(self) -> None: ...

        @task(depends_on=None)
        def slow(self) -> None:
            done.wait(10)

        @task(depends_on=[quick, slow])
        def join(self) -> None: ...

    run = engine.start(Join(), run_id="r")
    eventually(lambda: run.node("quick").status == "COMPLETED")
    assert told(run.why("join"))[0] == "join waits for slow"
    done.set()
    run.wait(10)
    assert told(run.why("join")) == ["join completed at T", "  slow, the last of its 2 parents, completed at T"]


def test_there_is_no_such_node_or_run(engine: Engine) -> None:
    run = engine.run(Small(), run_id="r")
    with pytest.raises(KeyError, match="run r has no node 'nix': there are: only"):
        run.why("nix")
    run.delete()
    for node in (None, "only"):
        with pytest.raises(RunNotFound):
            run.why(node)


class Small(Workflow):
    @step
    def only(self) -> None: ...


def wide(width: int, **options: Any) -> Builder:
    w = Builder("wide", **options)
    parts = w.fan_out(range(width), job=jobs.same, name=lambda i: f"part_{i}", depends_on=None)
    w.node("total", job=jobs.nothing, depends_on=parts)
    w.node("end", job=jobs.nothing)
    return w


def test_of_a_large_run_only_a_little_is_read(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(runner=None)
    run = engine.start(wide(20_000), run_id="r")
    rows = 0
    read = engine.store.read

    def counted(queries: Any) -> list[Any]:
        nonlocal rows
        answers = read(queries)
        rows += sum(
            len(answer) for answer in answers if isinstance(answer, tuple | list) and not hasattr(answer, "_fields")
        )
        return answers

    monkeypatch.setattr(engine.store, "read", counted)
    lines = told(run.why("end"))
    assert lines[0] == "end waits for total"
    assert re.fullmatch(r"  total waits for all of its 20,000 parents; among them part_\d+", lines[1])
    assert re.match("total waits for all of its 20,000 parents; among them part_", told(run.why("total"))[0])
    assert told(run.why())[0] == "run r of wide is pending: 20,002 nodes, 2 pending, 20,000 ready"
    told(run.why("part_19999"))
    assert rows < 500


def test_the_graph_of_an_ended_run_is_not_read(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine()
    engine.run(wide(3), run_id="r")
    asked: list[Any] = []
    read = engine.store.read
    monkeypatch.setattr(engine.store, "read", lambda queries: asked.extend(queries) or read(queries))
    why = StoredRun(engine.store, reader.require_run(engine.store, "r")).why()
    assert told(why)[0].startswith("run r of wide completed")
    assert not [query for query in asked if isinstance(query, queries.GetGraph)]


def test_no_run_is_explained_by_making_every_node_of_its_graph(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine()
    for on_failure in ("fail_fast", "pause"):
        w = wide(300, on_failure=on_failure)
        w.node("broken", job=jobs.fail, depends_on="end")
        engine.run(w, run_id=on_failure, check=False)
    made: list[str] = []
    monkeypatch.setattr(Graph, "load", lambda *_: pytest.fail("the whole graph is loaded"))
    read_node = outline.node_from_document
    monkeypatch.setattr(outline, "node_from_document", lambda node: made.append(node["id"]) or read_node(node))
    for run, status in (("fail_fast", "failed"), ("pause", "is paused")):
        why = StoredRun(engine.store, reader.require_run(engine.store, run)).why()
        assert told(why)[0].startswith(f"run {run} of wide {status}")
        assert "broken failed for good" in why.text()
    assert 0 < len(set(made)) < 10


def test_asking_while_the_run_goes_on(open_engine: OpenEngine) -> None:
    engine = open_engine()
    run = engine.start(wide(2_000), run_id="r")
    seen = set()
    while not run.status.terminal:
        seen |= {told(run.why(node))[0].split(" ")[1] for node in ("total", "end", "part_7", "part_1999")}
        assert told(run.why())[0].startswith("run r of wide ")
    assert run.status == "COMPLETED"
    assert seen <= {"waits", "is", "completed"}
    assert told(run.why("total"))[0] == "total completed at T"
