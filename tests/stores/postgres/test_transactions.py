"""`transaction=True`: what a body writes and its completion stand or fall together, wherever it is killed or cut."""

import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from stepwell import Builder, Context, DefinitionError, Engine, InputError, Run, Workflow, step
from stepwell.core.model import AttemptStatus, NodeStatus, Settle
from stepwell.core.store import reader
from stepwell.stores.postgres.store import PostgresStore
from tests.conformance.audit import audit
from tests.postgres_server import ROOT, PostgresServer
from tests.stores.postgres.paying import LEASE_SECONDS, PLACES, Pay
from tests.stores.postgres.proxy import CUT, Proxy

TABLE = "public.payment"


@pytest.fixture(scope="module", autouse=True)
def _table(postgres: PostgresServer) -> None:
    postgres.execute(f"CREATE TABLE {TABLE} (run text, what text)")
    postgres.execute("CREATE TABLE public.account (id int PRIMARY KEY)")
    postgres.execute(
        "CREATE TABLE public.debt (account int REFERENCES public.account (id) DEFERRABLE INITIALLY DEFERRED)"
    )


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_url()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    with Engine(url) as engine:
        yield engine


def rows(postgres: PostgresServer, run: Run | str) -> list[str]:
    run_id = run if isinstance(run, str) else run.id
    found = postgres.execute(f"SELECT what FROM {TABLE} WHERE run = '{run_id}' ORDER BY what DESC")
    return [str(what) for (what,) in found]


def write(ctx: Context) -> None:
    ctx.db.execute(f"INSERT INTO {TABLE} VALUES (%s, %s)", (ctx.run_id, "written"))


def attempts(run: Run, node: str) -> list[str]:
    return [str(attempt.status) for attempt in run.node(node).attempts]


def test_what_a_body_wrote_and_its_completion_are_committed_together(postgres: PostgresServer, engine: Engine) -> None:
    events: list[Any] = []
    engine.on("node", events.append)
    run = engine.run(Pay(table=TABLE))
    assert run.outputs == {"pay": "paid", "book": "paid and booked"}
    assert rows(postgres, run) == ["pay", "book"]
    assert (engine.metrics.steps, engine.metrics.executed) == (4, 2)
    assert engine.metrics.step_seconds > 0
    engine.parts.listeners.wait_until_heard()
    assert [(event.name, event.status) for event in events] == [("pay", "COMPLETED"), ("book", "COMPLETED")]
    audit(engine.store)


class Raises(Workflow):
    @step(transaction=True)
    def pay(self, ctx: Context) -> None:
        print("about to fail")
        write(ctx)
        raise ValueError("no money")


class EndsItself(Workflow):
    how: str

    @step(transaction=True)
    def pay(self, ctx: Context) -> None:
        write(ctx)
        if self.how == "commit":
            ctx.db.commit()
        elif self.how == "swallowed":
            with pytest.raises(psycopg.errors.DivisionByZero):
                ctx.db.execute("SELECT 1 / 0")
        elif self.how == "close":
            ctx.db.close()
        elif self.how == "deferred":
            ctx.db.execute("INSERT INTO public.debt VALUES (7)")
        else:
            ctx.db.execute(self.how)


def test_what_a_body_wrote_that_raises_is_undone(postgres: PostgresServer, engine: Engine) -> None:
    run = engine.run(Raises(), check=False)
    assert (run.status, rows(postgres, run)) == ("FAILED", [])
    assert [line.message for line in run.logs()] == ["about to fail"]


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("commit", "Explicit commit() forbidden"),
        ("swallowed", "can only be undone"),
        ("close", "ended its transaction by itself, or closed"),
        ("deferred", "violates foreign key"),
        ("ROLLBACK", "ended its transaction by itself"),
        ("ROLLBACK; BEGIN", "ended its transaction by itself"),
    ],
)
def test_a_transaction_that_cannot_be_committed_fails_its_node(
    postgres: PostgresServer,
    engine: Engine,
    how: str,
    told: str,
) -> None:
    run = engine.run(EndsItself(how=how), check=False)
    (attempt,) = run.node("pay").attempts
    assert attempt.error is not None
    assert told in attempt.error.message
    assert (run.status, rows(postgres, run)) == ("FAILED", [])
    audit(engine.store)


class Savepoint(Workflow):
    @step(transaction=True)
    def pay(self, ctx: Context) -> None:
        write(ctx)
        try:
            with ctx.db.transaction():
                write(ctx)
                ctx.db.execute("SELECT 1 / 0")
        except psycopg.errors.DivisionByZero:
            pass


def test_a_part_of_a_transaction_may_be_undone_alone(postgres: PostgresServer, engine: Engine) -> None:
    assert rows(postgres, engine.run(Savepoint())) == ["written"]


begun, go_on = threading.Event(), threading.Event()


class Waits(Workflow):
    says: bool

    @step(transaction=True)
    def pay(self, ctx: Context) -> None:
        write(ctx)
        if ctx.attempt == 1:
            begun.set()
            assert go_on.wait(30)
            if self.says:
                logging.getLogger("payments").warning("paid")


@pytest.mark.parametrize("says", [False, True])
def test_a_fenced_body_writes_nothing(postgres: PostgresServer, url: str, engine: Engine, says: bool) -> None:
    begun.clear()
    go_on.clear()
    run = engine.start(Waits(says=says))
    assert begun.wait(30)
    store = PostgresStore(url)
    (attempt,) = reader.list_attempts(store, run.id)
    store.commit([Settle(attempt.id, AttemptStatus.LOST, NodeStatus.READY)])
    store.close()
    go_on.set()
    run.wait(30)
    assert (attempts(run, "pay"), rows(postgres, run)) == (["LOST", "COMPLETED"], ["written"])
    audit(engine.store)


class Sleeps(Workflow):
    @step(transaction=True, timeout=0.3)
    def pay(self, ctx: Context) -> None:
        write(ctx)
        ctx.db.execute("SELECT pg_sleep(600)")


class SleepsLong(Workflow):
    @step(transaction=True)
    def pay(self, ctx: Context) -> None:
        write(ctx)
        begun.set()
        ctx.db.execute("SELECT pg_sleep(600)")


SLEEPERS = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE query LIKE '%pg_sleep(600)%' AND state = 'active' AND pid <> pg_backend_pid()"
)


def nobody_sleeps(postgres: PostgresServer) -> None:
    give_up_at = time.monotonic() + 30
    while postgres.execute(SLEEPERS) != [(0,)]:
        assert time.monotonic() < give_up_at, "its statement still runs on the server"
        time.sleep(0.05)


def test_a_time_out_cancels_what_the_server_does(postgres: PostgresServer, engine: Engine) -> None:
    run = engine.run(Sleeps(), check=False)
    assert (attempts(run, "pay"), rows(postgres, run)) == (["TIMED_OUT"], [])
    nobody_sleeps(postgres)


def test_cancelling_a_run_cancels_what_the_server_does(postgres: PostgresServer, engine: Engine) -> None:
    begun.clear()
    run = engine.start(SleepsLong())
    assert begun.wait(30)
    run.cancel()
    assert run.wait(30).status == "CANCELLED"
    assert (attempts(run, "pay"), rows(postgres, run)) == (["CANCELLED"], [])
    nobody_sleeps(postgres)


@pytest.mark.parametrize("cut", ["request", "reply"])
def test_a_commit_whose_answer_is_lost_is_looked_up_and_never_sent_again(
    postgres: PostgresServer,
    url: str,
    cut: str,
) -> None:
    proxy, cuts = Proxy(postgres.port), [CUT] * 2
    asked: set[int] = set()

    def is_commit(data: bytes) -> bool:
        return data.startswith(b"Q") and b"COMMIT" in data

    def on_request(data: bytes) -> float:
        if is_commit(data) and cuts:
            if cut == "request":
                return cuts.pop()
            asked.add(1)
        return 0.0

    def on_reply(data: bytes) -> float:
        if asked and cuts and data.startswith(b"C") and b"COMMIT" in data:
            asked.clear()
            return cuts.pop()
        return 0.0

    try:
        with Engine(url.replace(f":{postgres.port}/", f":{proxy.port}/")) as engine:
            proxy.on_request, proxy.on_reply = on_request, on_reply
            run = engine.run(Pay(table=TABLE))
            assert not cuts, "no COMMIT was cut"
            assert rows(postgres, run) == ["pay", "book"]
            all_attempts = [status for node in run.nodes() for status in attempts(run, node.name)]
            failed = 2 if cut == "request" else 0
            assert sorted(all_attempts) == ["COMPLETED"] * 2 + ["FAILED"] * failed
            audit(engine.store)
    finally:
        proxy.close()


def name_of(place: str) -> str:
    return f"killed.{place.replace(' ', '.')}"


def test_a_worker_killed_anywhere_leaves_each_row_once(postgres: PostgresServer) -> None:
    urls = {place: postgres.new_url() for place in PLACES}
    children = {}
    for place, url in urls.items():
        with Engine(url, runner=None) as starter:
            starter.start(Pay(table=TABLE), run_id=name_of(place))
        command = [sys.executable, "-m", "tests.stores.postgres.paying", url, place]
        children[place] = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT)
    try:
        for place, child in children.items():
            assert child.wait(60) == -signal.SIGKILL, f"it did not come to {place}"
    finally:
        for child in children.values():
            child.kill()
            child.communicate()
    with ExitStack() as stack:
        engines = [
            stack.enter_context(Engine(url, workflows=[Pay], lease_seconds=LEASE_SECONDS)) for url in urls.values()
        ]
        runs = [engine.adopt(name_of(place)) for engine, place in zip(engines, PLACES, strict=True)]
        for engine, run, place in zip(engines, runs, PLACES, strict=True):
            assert run.wait(60).status == "COMPLETED", place
            assert rows(postgres, run) == ["pay", "book"], place
            lost = [status for node in run.nodes() for status in attempts(run, node.name)].count("LOST")
            assert lost >= (0 if place == "after COMMIT" else 1), place
            audit(engine.store)


async def paid(ctx: Context) -> None: ...


def paid_here(ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"isolation": "process"}, "isolation='process'"),
        ({"side_effects": "pure"}, "side_effects='pure'"),
        ({"job": paid}, "expected a `def` body"),
        ({"transaction": 1}, "expected true or false"),
    ],
)
def test_a_transaction_that_makes_no_sense_is_refused_where_it_is_written(options: dict[str, Any], told: str) -> None:
    def build() -> None:
        builder = Builder("paying")
        builder.node("pay", **{"job": paid_here, "transaction": True} | options)
        builder.graph()

    with pytest.raises(DefinitionError, match=told):
        build()


@pytest.mark.parametrize("store", ["memory://", "sqlite"])
def test_other_stores_refuse_to_start_it(store: str, tmp_path: Path) -> None:
    with Engine(store if store != "sqlite" else f"sqlite:///{tmp_path}/a.db") as engine:
        for _ in range(2):
            with pytest.raises(InputError, match="'pay' has transaction=True, and this store is no PostgreSQL server"):
                engine.start(Pay(table=TABLE))
        assert not list(engine.runs())


class Without(Workflow):
    @step
    def pay(self, ctx: Context) -> None:
        ctx.db.execute("SELECT 1")


def test_a_node_that_did_not_ask_for_one_has_none(engine: Engine) -> None:
    run = engine.run(Without(), check=False)
    (attempt,) = run.node("pay").attempts
    assert attempt.error is not None
    assert "declare it with transaction=True" in attempt.error.message


LEAKED: list[Any] = []


def who(ctx: Context, leak: bool = False) -> int:
    """The session it has; what it leaves there is for nobody."""
    (found,) = ctx.db.execute("SELECT current_setting('app.mark', true), to_regclass('pg_temp.mine')").fetchall()
    assert found in ((None, None), ("", None)), "another body has left something"
    assert ctx.db.row_factory is psycopg.rows.tuple_row
    ctx.db.execute("SET app.mark = 'here'")
    ctx.db.execute("CREATE TEMP TABLE mine (one int)")
    ctx.db.execute("SELECT pg_advisory_lock(4711)")
    for _ in range(6):
        ctx.db.execute("SELECT %s::int", (1,))  # prepared, in the end
    if leak:
        LEAKED.append(ctx.db)
    pid = ctx.db.info.backend_pid
    ctx.db.row_factory = psycopg.rows.dict_row
    return pid


def test_a_session_is_used_again_when_nothing_is_left_of_it(engine: Engine) -> None:
    def pids(**args: Any) -> list[Any]:
        builder = Builder("sessions")
        for number in range(4):
            builder.node(f"n{number}", job=who, transaction=True, args=args)
        run = engine.run(builder)
        return [run.output(f"n{number}") for number in range(4)]

    assert len(set(pids())) == 1
    leaked = pids(leak=True)
    assert len(set(leaked)) == 4, "a body that kept its connection must not meet another in it"
    assert all(connection.closed for connection in LEAKED)
    LEAKED.clear()


def test_a_session_that_broke_while_it_was_kept_is_replaced(postgres: PostgresServer, engine: Engine) -> None:
    builder = Builder("broken")
    builder.node("only", job=who, transaction=True)
    (first,) = (engine.run(builder).output("only"),)
    postgres.execute(f"SELECT pg_terminate_backend({first}, 10000)")
    run = engine.run(builder)
    assert run.output("only") != first
    assert attempts(run, "only") == ["COMPLETED"]
