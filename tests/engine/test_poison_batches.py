"""An op that the store cannot apply is refused alone and told; everything else that came with it goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import apsw
import pytest

from stepwell import Builder, Context, Engine, Retry, StoreError, Workflow, step
from stepwell.core.model import Append, Claim, Create, Op, PutRecord, Settle
from stepwell.core.store import Store, reader
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.scheduling import batches as isolating
from stepwell.engine.scheduling.batches import Submission
from stepwell.engine.worker.group_commit import GroupCommit
from stepwell.errors import NotStored
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.schedulers import scheduler
from tests.engine.waiting import eventually


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolating, "FIRST_PAUSE", 1_000)
    monkeypatch.setattr(isolating, "LONGEST_PAUSE", 20_000)


class Poisoned:
    """A store that raises what nobody expects when a batch holds an op like this."""

    def __init__(self, store: Store, poison: Callable[[Op], bool], error: Exception | None = None) -> None:
        self.poison: Callable[[Op], bool] | None = poison
        self.error = error or TypeError("a defect in the store")
        self.raised = 0
        self._commit = store.commit
        store.commit = self.commit  # type: ignore[method-assign]

    def commit(self, batch: Any) -> Any:
        if self.poison is not None and any(map(self.poison, batch)):
            self.raised += 1
            raise self.error
        return self._commit(batch)


def completes_with(text: bytes) -> Callable[[Op], bool]:
    return lambda op: isinstance(op, Settle) and op.output is not None and text in op.output


def fan(*items: str, **options: Any) -> Builder:
    w = Builder("fan", on_failure="finish")
    w.fan_out(items, job=jobs.same, name=lambda item: item, args=lambda item: {"item": item}, **options)
    return w


@pytest.mark.parametrize("error", [TypeError("no"), apsw.ConstraintError("no")], ids=lambda error: type(error).__name__)
def test_the_others_of_a_batch_go_on(sqlite_engine: Engine, error: Exception) -> None:
    Poisoned(sqlite_engine.store, completes_with(b"bad"), error)
    names = [*(f"good{number}" for number in range(20)), "bad", *(f"fine{number}" for number in range(20))]
    run = sqlite_engine.run(fan(*names), check=False, wait=30)
    assert {node.name for node in run.nodes() if node.status == "COMPLETED"} == {*names} - {"bad"}
    (attempt,) = run.node("bad").attempts
    assert attempt.status == "FAILED"
    assert attempt.error is not None
    assert attempt.error.type == "NotStored"
    assert f"the output (5 bytes) of node 'bad' cannot be stored: {type(error).__name__}" in attempt.error.message
    assert sqlite_engine.run(fan("later"), wait=10).status == "COMPLETED"


def test_a_node_whose_result_cannot_be_stored_is_retried_as_after_any_failure(engine: Engine) -> None:
    Poisoned(engine.store, lambda op: isinstance(op, Settle) and op.output == b'"bad 1"')

    class Twice(Workflow):
        @step(retry=Retry(2, base_delay=0.01))
        def work(self, ctx: Context) -> str:
            return f"bad {ctx.attempt}"

    run = engine.run(Twice(), wait=30)
    assert [attempt.status for attempt in run.node("work").attempts] == ["FAILED", "COMPLETED"]


def test_what_somebody_asked_for_is_told_to_him_and_to_nobody_else(engine: Engine) -> None:
    held, began = threading.Event(), threading.Event()

    class Slow(Workflow):
        @step
        def work(self) -> None:
            began.set()
            held.wait(30)

    run = engine.start(Slow())
    assert began.wait(10)
    Poisoned(engine.store, lambda op: isinstance(op, Create) and op.run_id == "poison")
    with pytest.raises(NotStored, match="the store cannot apply this: TypeError: a defect in the store"):
        engine.start(fan("a"), run_id="poison")
    assert engine.run(fan("b"), wait=10).status == "COMPLETED"
    held.set()
    assert run.wait(10).status == "COMPLETED"


def test_a_run_that_cannot_be_claimed_of_keeps_no_other_from_being_claimed(engine: Engine) -> None:
    store = Poisoned(engine.store, lambda op: isinstance(op, Claim) and "poison" in (op.runs or ()))
    poison = engine.start(fan("x"), run_id="poison")
    others = engine.start_many([fan(f"a{number}", f"b{number}") for number in range(30)])
    for run in others:
        assert run.wait(10).status == "COMPLETED"
    for _ in range(2):  # whoever begins to wait later is told, too
        with pytest.raises(StoreError, match="nodes of run poison cannot be claimed"):
            poison.wait(20)
    assert engine.run(fan("y"), wait=10).status == "COMPLETED"
    store.poison = None
    assert poison.wait(20).status == "COMPLETED"


def test_a_line_that_cannot_be_stored_is_left_out(engine: Engine) -> None:
    Poisoned(engine.store, lambda op: isinstance(op, Append) and b"bad" in op.data)

    class Talks(Workflow):
        @step
        def talk(self) -> None:
            print("one")
            print("bad")
            print("two")

    run = engine.run(Talks(), wait=10)
    assert [line.message for line in run.logs()] == ["one", "two"]


def test_a_durable_effect_that_cannot_be_stored_fails_the_body_that_asked_for_it(engine: Engine) -> None:
    Poisoned(engine.store, lambda op: isinstance(op, Append) and b"bad" in op.data)

    class Asks(Workflow):
        @step
        def ask(self, ctx: Context) -> str:
            return ctx.effect("fetch", lambda: "bad", durable=True)

    run = engine.run(Asks(), check=False, wait=10)
    (attempt,) = run.node("ask").attempts
    assert attempt.error is not None
    assert attempt.error.type == "NotStored"


def test_an_end_that_cannot_be_stored_in_any_way_is_kept_until_it_can(open_sqlite: OpenEngine) -> None:
    """The store cannot even record that the attempt failed. Others go on, the lease is renewed, and nothing is lost."""
    engine = open_sqlite(lease_seconds=1)
    runs: list[str] = []
    store = Poisoned(engine.store, lambda op: isinstance(op, Settle) and op.attempt in bad)
    bad: list[str] = []
    commit = store._commit

    def remember(batch: Any) -> Any:
        receipts = commit(batch)
        for receipt in receipts:
            bad.extend(grant.attempt for grant in getattr(receipt, "grants", ()) if grant.run_id == "poison")
        return receipts

    store._commit = remember

    class Once(Workflow):
        @step(on_lost="interrupt")
        def work(self) -> str:
            runs.append("ran")
            return "done"

    run = engine.start(Once(), run_id="poison")
    with pytest.raises(StoreError, match="its settlement cannot be stored; it is tried again"):
        run.wait(20)
    assert engine.run(fan("y"), wait=10).status == "COMPLETED"
    store.poison = None
    assert run.wait(30).output("work") == "done"
    assert runs == ["ran"]


def test_an_empty_retry_does_not_keep_the_next_who_asks_waiting(engine: Engine) -> None:
    """Only the start itself was in the batch that failed, so there is nothing to send again."""
    engine.run(fan("a"), wait=10)
    assert engine.parts.work.runner is not None
    eventually(lambda: engine.parts.work.runner.idle)
    fail, commit = [True], engine.store.commit

    def failing(batch: Any) -> Any:
        if fail and any(isinstance(op, Create) for op in batch):
            fail.clear()
            raise StoreError("the store is away")
        return commit(batch)

    engine.store.commit = failing  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="away"):
        engine.start(fan("b"), run_id="b")
    assert engine.parts.work.runner.scheduler.idle


class Idle:
    """Nobody else commits. Whoever would keep a body is given one."""

    bodies_wait = False

    def act_on(self, result: Any, *, keep: bool) -> object:
        return "a body" if keep else None

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


@pytest.mark.parametrize("keep", [False, True])
def test_who_finds_that_a_batch_cannot_be_stored_sends_its_parts_before_anything_else(keep: bool) -> None:
    store, own = MemoryStore(), scheduler()
    Poisoned(store, lambda op: op == PutRecord("note", "3", b""))
    asked = [Submission([PutRecord("note", str(number), b"")]) for number in range(8)]
    for submission in asked:
        own.submit(submission)
    GroupCommit(store, own, threading.Lock(), Idle()).pump(keep=keep)  # type: ignore[arg-type]
    assert [number for number, each in enumerate(asked) if isinstance(each.error, NotStored)] == [3]
    assert [row.key for row in reader.all_records(store, "note")] == [*"0124567"]
