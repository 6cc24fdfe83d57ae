"""A replay runs bodies again, asks nobody, and names the first difference."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path

import apsw
import pytest

from stepwell import Builder, Context, Engine, Run, Workflow, step
from stepwell.errors import ReplayMismatch
from tests.engine.conftest import OpenEngine
from tests.history import replayed
from tests.history.replayed import CHANGED, RAN, Flaky, Impure, Opaque, Order, Patient, Tally

EXECUTED = ("price", "convert", "reserve", "pay")


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    CHANGED.clear()
    RAN.clear()
    yield
    CHANGED.clear()


def mismatch(run: Run) -> ReplayMismatch:
    with pytest.raises(ReplayMismatch) as caught:
        run.replay()
    assert caught.value.run_id == run.id
    assert run.id in str(caught.value)
    return caught.value


def test_bodies_run_again_and_nobody_is_asked(engine: Engine) -> None:
    run = engine.run(Order())
    seq = run.row.seq
    RAN.clear()
    report = run.replay()
    assert sorted(report.executed) == sorted(EXECUTED)
    assert report.stubbed == {"ship": "opaque"}
    assert report.effects == 1 + 4 + 1 + 1
    assert 0 < report.seconds < 60
    assert sorted(RAN) == ["convert", "pay", "price", "reserve"], "only bodies, no effect and nothing that is opaque"
    assert run.row.seq == seq, "a replay writes nothing"


def test_a_hundred_replays_are_the_same(engine: Engine) -> None:
    run = engine.run(Order())
    first = run.replay()
    for _ in range(99):
        assert run.replay()._replace(seconds=0) == first._replace(seconds=0)


def test_a_changed_body_is_named_with_what_differs(engine: Engine) -> None:
    run = engine.run(Order(count=4))
    CHANGED.add("cents")
    found = mismatch(run)
    assert (found.node, found.attempt, found.effect) == ("convert", 1, None)
    assert found.diff == ("$.cents: recorded 9995, now 17991",)


def test_another_request_is_named_with_what_differs(engine: Engine) -> None:
    run = engine.run(Order())
    CHANGED.add("currency")
    found = mismatch(run)
    assert (found.node, found.attempt, found.effect) == ("convert", 1, 0)
    assert found.diff == ('$.args[1]: recorded "USD", now "GBP"',)


def test_an_effect_that_is_not_asked_for_any_more_is_a_mismatch(engine: Engine) -> None:
    run = engine.run(Order())
    CHANGED.add("no effect")
    found = mismatch(run)
    assert (found.node, found.effect) == ("convert", 0)
    assert "not asked for any more" in found.what


def test_an_effect_that_was_not_recorded_is_a_mismatch(engine: Engine) -> None:
    run = engine.run(Order())
    CHANGED.add("twice")
    found = mismatch(run)
    assert (found.node, found.effect) == ("convert", 1)
    assert "was not recorded" in found.what
    assert "rate" not in RAN[RAN.index("convert", 1 + RAN.index("convert")) :]


def test_a_mismatch_that_the_body_swallows_is_still_one(engine: Engine) -> None:
    run = engine.run(Order())
    CHANGED.add("swallows")
    assert (mismatch(run).node, mismatch(run).effect) == ("convert", 1)


def test_a_body_that_asks_the_clock_behind_the_records_back_is_refused(engine: Engine) -> None:
    run = engine.run(Impure())
    found = mismatch(run)
    assert found.node == "stamp"
    assert "datetime.now" in found.what
    assert f"{replayed.__name__.rpartition('.')[2]}.py:" in found.what, "the line that tried"


def refuse() -> None:
    raise ConnectionRefusedError("no line")


class Sly(Workflow):
    @step(side_effects="recordable")
    def ask(self, ctx: Context) -> bool:
        with pytest.raises(ConnectionError):
            ctx.effect("gate", refuse)
        return datetime.now().year > 2000


def test_after_an_effect_that_failed_the_body_is_watched_as_before(engine: Engine) -> None:
    found = mismatch(engine.run(Sly()))
    assert found.node == "ask"
    assert "datetime.now" in found.what


def test_attempts_before_the_one_that_completed_are_not_replayed(engine: Engine) -> None:
    run = engine.run(Flaky())
    assert run.output("book")[:2] == [3, 30]
    assert RAN.count("rate") == 1
    report = run.replay()
    assert (report.executed, report.effects) == (("book",), 2)
    assert RAN.count("rate") == 1


def test_an_effect_that_its_body_gave_up_is_given_up_again(engine: Engine) -> None:
    run = engine.run(Patient())
    assert run.output("wait") == "gave up"
    assert run.replay().seconds < 30


def test_deltas_to_a_state_are_compared_too(engine: Engine) -> None:
    run = engine.run(Tally())
    assert run.output("third") == [11, ["first", "second"]]
    assert run.replay().executed == ("first", "second", "third")
    CHANGED.add("total")
    found = mismatch(run)
    assert (found.node, found.diff) == ("second", ("$.total: recorded 10, now 11",))
    assert "its delta" in found.what


def test_it_works_inside_a_loop(engine: Engine) -> None:
    run = engine.run(Order())

    async def inside() -> int:
        return len(run.replay().executed)

    assert asyncio.run(inside()) == 4


ASKED_BY: ContextVar[str] = ContextVar("asked_by", default="nobody")


class Looping(Workflow):
    """Its bodies, which are no coroutines, run loops of their own."""

    @step(side_effects="recordable")
    def gather(self, ctx: Context) -> int:
        async def later() -> int:
            found: int = await ctx.effect("stock", replayed.stock, "lamp")
            return found

        return asyncio.run(later())

    @step(side_effects="pure")
    async def after(self, gather: int) -> int:
        await asyncio.sleep(0)
        return gather + 1

    @step(side_effects="pure")
    def told(self) -> str:
        return ASKED_BY.get()


def test_bodies_may_run_loops_of_their_own_wherever_the_replay_was_asked_for(engine: Engine) -> None:
    run = engine.run(Looping())
    assert run.replay().executed == ("gather", "after", "told")

    async def inside() -> tuple[str, ...]:
        found = run.replay().executed
        ASKED_BY.set("somebody")
        with pytest.raises(ReplayMismatch, match="told"):
            run.replay()
        return found

    assert asyncio.run(inside()) == ("gather", "after", "told")


def test_what_executes_nothing_says_so(engine: Engine) -> None:
    report = engine.run(Opaque()).replay()
    assert (report.executed, report.stubbed) == ((), {"only": "opaque"})


def test_a_run_that_failed_is_replayed_as_far_as_it_came(engine: Engine) -> None:
    class Broken(Workflow):
        @step(side_effects="pure")
        def fine(self) -> int:
            return 1

        @step(side_effects="pure")
        def bad(self) -> int:
            raise ValueError("no")

    run = engine.run(Broken(), check=False)
    assert run.replay().executed == ("fine",)


def test_a_body_that_raises_now_is_named_with_its_line(engine: Engine) -> None:
    failing = False

    class Later(Workflow):
        @step(side_effects="pure")
        def work(self) -> int:
            if failing:
                raise ValueError("not any more")
            return 1

    run = engine.run(Later())
    failing = True
    found = mismatch(run)
    assert found.node == "work"
    assert "raised ValueError: not any more" in found.what
    assert any("test_replaying.py" in line for line in found.diff)


def versions() -> tuple[type[Workflow], type[Workflow]]:
    def first() -> type[Workflow]:
        class Versions(Workflow):
            @step(side_effects="pure")
            def one(self) -> int:
                return 1

        return Versions

    def second() -> type[Workflow]:
        class Versions(Workflow):
            @step(side_effects="pure")
            def one(self) -> int:
                return 1

            @step(side_effects="pure")
            def two(self) -> int:
                return 2

        return Versions

    return first(), second()


def test_another_graph_is_a_mismatch(open_sqlite: OpenEngine) -> None:
    first, second = versions()
    run = open_sqlite(workflows=[first]).run(first())
    found = mismatch(open_sqlite(workflows=[second]).get(run.id))
    assert found.node is None
    assert found.diff == ("two: it is new",)


def test_a_missing_job_is_a_mismatch(sqlite_engine: Engine) -> None:
    w = Builder("jobs")
    w.node("first", job=replayed.rate, args={"base": "a", "currency": "b"}, side_effects="pure")
    run = sqlite_engine.run(w)
    before = replayed.rate
    try:
        del replayed.rate
        with Engine(sqlite_engine.store.url) as other:
            found = mismatch(other.get(run.id))
    finally:
        replayed.rate = before
    assert found.node == "first"
    assert "missing" in found.what


@pytest.mark.parametrize("field", ["response", "request"])
def test_a_flipped_byte_in_a_record_is_named(sqlite_engine: Engine, sqlite_url: str, field: str) -> None:
    run = sqlite_engine.run(Order())
    connection = apsw.Connection(sqlite_url.removeprefix("sqlite:///"))
    old, new = (b'"rate":1.25', b'"rate":1.35') if field == "response" else (b'["EUR","USD"]}', b'["EUR","USE"]}')
    changed = 0
    for table, column, place in (("line", "data", "attempt = ? AND idx = ?"), ("attempt", "record", "key = ?")):
        columns = place.replace(" = ? AND", ",").removesuffix(" = ?")
        for data, *where in list(connection.execute(f"SELECT {column}, {columns} FROM {table}")):
            if old in (data or b""):
                given = (data.replace(old, new), *where)
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {place}", given)
                changed += 1
    connection.close()
    assert changed == 1
    found = mismatch(run)
    assert (found.node, found.attempt, found.effect) == ("convert", 1, 0)
    assert f"the recorded {field} of 'rate' was changed" in found.what


def test_a_fork_is_replayed_with_what_it_shares_as_its_origin_did_it(engine: Engine) -> None:
    origin = engine.run(Order())
    fork = origin.fork("pay", input={"count": 7}).wait(60).check()
    RAN.clear()
    report = fork.replay()
    assert sorted(report.executed) == sorted(EXECUTED)
    assert report.effects == 7
    assert origin.id not in fork.output("pay"), "its own key"
    origin.delete()
    report = fork.replay()
    assert report.executed == ("pay",)
    assert report.stubbed["price"] == "shared with a run that was deleted"


def test_another_hash_seed_time_zone_and_locale_change_nothing(sqlite_engine: Engine, sqlite_url: str) -> None:
    run = sqlite_engine.run(Order())
    expected = run.replay()
    script = (
        "import sys; from stepwell import Engine\n"
        "report = Engine(sys.argv[1], runner=None).get(sys.argv[2]).replay()\n"
        "print(report.executed, dict(report.stubbed), report.effects)"
    )
    folder = Path(__file__).parents[2]
    for changed in (
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8", "PYTHONUTF8": "0"},
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, sqlite_url, run.id],
            env={**os.environ, "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}", **changed},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == f"{expected.executed} {dict(expected.stubbed)} {expected.effects}"


def test_a_thousand_pure_nodes_take_no_time_worth_mentioning(engine: Engine) -> None:
    """100 ms where nothing else runs; here many tests do."""
    w = Builder("many")
    for number in range(1_000):
        w.node(f"n{number}", job=nothing, side_effects="pure")
    run = engine.run(w)
    reports = [run.replay() for _ in range(3)]
    assert len(reports[0].executed) == 1_000
    assert min(report.seconds for report in reports) < 1.0


def nothing() -> None:
    return None
