"""A value that makes no sense is refused where it is given, in words, before anything is stored."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from stepwell import Builder, Context, DefinitionError, Engine, Retry, RunNotFound, Workflow, step
from stepwell.base.clock import MAX_SECONDS
from stepwell.core.model import RunStatus
from stepwell.core.store import reader
from stepwell.engine import checking
from stepwell.errors import InputError
from stepwell.stores import open_store

NAN = math.nan
NO_SECONDS = [NAN, math.inf, -math.inf, 1e300, 10**30, 10**5_000, "1", -1, True, None, 10**10, MAX_SECONDS + 1]


class Small(Workflow):
    size: int = 0

    @step
    def only(self, ctx: Context) -> None:
        ctx.checkpoint("2024")


@pytest.fixture
def looking() -> Any:
    with Engine("memory://", runner=None) as engine:
        yield engine


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("value", NO_SECONDS, ids=range(len(NO_SECONDS)))
def test_the_grace_of_a_cancel(looking: Engine, value: Any, dry_run: bool) -> None:
    run = looking.start(Small())
    with pytest.raises(InputError, match=r"grace_seconds=.*: expected a number of seconds from 0 to 315,360,000 \(ten"):
        run.cancel(grace_seconds=value, dry_run=dry_run)
    assert run.status == "PENDING"


@pytest.mark.parametrize("value", [each for each in NO_SECONDS if each is not None], ids=range(len(NO_SECONDS) - 1))
def test_how_long_to_wait(looking: Engine, value: Any) -> None:
    run = looking.start(Small())
    with pytest.raises(
        InputError, match=r"timeout=.*: expected a number of seconds from 0 to 315,360,000 \(ten years\)$"
    ):
        run.wait(timeout=value)


@pytest.mark.parametrize("value", [each for each in NO_SECONDS if each is not None], ids=range(len(NO_SECONDS) - 1))
def test_how_long_bodies_may_take_when_an_engine_is_closed(value: Any) -> None:
    with Engine("memory://") as engine:
        run = engine.run(Small())
        with pytest.raises(
            InputError, match=r"timeout=.*: expected a number of seconds from 0 to 315,360,000 \(ten years\)$"
        ):
            engine.close(value)
        assert engine.run(Small()).diff(run).same_outputs


def test_ten_years_are_allowed_everywhere() -> None:
    class Patient(Workflow, deadline=MAX_SECONDS):
        @step(timeout=MAX_SECONDS, retry=Retry(2, base_delay=MAX_SECONDS, max_delay=MAX_SECONDS))
        def only(self) -> None: ...

    with Engine("memory://", lease_seconds=MAX_SECONDS, close_seconds=MAX_SECONDS) as engine:
        run = engine.start(Patient(), deadline=MAX_SECONDS).wait(MAX_SECONDS)
        assert run.status == "COMPLETED"
        assert engine.run(Patient(), wait=MAX_SECONDS).status == "COMPLETED"


@pytest.mark.parametrize("value", [10**10, 1e300, math.inf, NAN])
def test_no_duration_is_longer_than_ten_years(value: Any) -> None:
    """AttemptOutput where it is written: what a store or a thread cannot count would only show up later."""
    for written in (
        lambda: step(timeout=value),
        lambda: Retry(2, base_delay=value),
        lambda: Retry(2, max_delay=value),
        lambda: type("Long", (Workflow,), {}, deadline=value),
        lambda: Builder("long", deadline=value),
        lambda: Builder("long").node("a", job="tests.engine.jobs:nothing", timeout=value),
    ):
        with pytest.raises(DefinitionError, match=r"up to 315,360,000|from 0 to 315,360,000"):
            written()
    for asked in (
        lambda: Engine("memory://", lease_seconds=value),
        lambda: Engine("memory://", close_seconds=value),
        lambda: Engine("memory://", runner=None).run(Small(), wait=value),
        lambda: Engine("memory://", runner=None).start(Small(), deadline=value),
    ):
        with pytest.raises(InputError, match=r"expected .*315,360,000 \(ten years\)"):
            asked()


@pytest.mark.parametrize(
    "options",
    [
        {"runner": "zz"},
        {"url": 5},
        {"url": ["memory://"]},
        {"workflows": [int]},
        {"workflows": [Small()]},
        {"workflows": Small},
        {"workflows": 5},
        {"workflows": "Small"},
        {"lease_seconds": NAN},
        {"lease_seconds": 0},
        {"lease_seconds": 0.001},
        {"lease_seconds": "30"},
        {"close_seconds": NAN},
        {"close_seconds": -1},
        {"node_timeout": 0},
        {"node_timeout": NAN},
        {"queues": []},
        {"jobs": "shop.jobs"},
        {"pipelines": "shop"},
        {"max_concurrent_nodes": "x"},
        {"max_concurrent_nodes": 1.5},
        {"max_concurrent_nodes": True},
        {"max_async_nodes": 0},
        {"queue_depth": -1},
        {"queue_depth": None},
    ],
    ids=str,
)
def test_an_engine(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"needed|expected"):
        Engine(**{"url": "memory://"} | options)


def test_an_engine_takes_a_store() -> None:
    Engine(open_store("memory://"), workflows={Small}, runner=None).close()


@pytest.mark.parametrize("wrong", [[5], 5, [Small()], Small])
def test_what_is_served(wrong: Any) -> None:
    with Engine("memory://") as engine, pytest.raises(InputError, match="expected a list of Workflow classes"):
        engine.work(wrong, wait=0)


@pytest.mark.parametrize(
    "options",
    [
        *({"priority": value} for value in (1.5, True, "x", None, 2**31)),
        *({"idempotency_key": value} for value in (5, "", "k" * 1_000_000, b"k", "\ud800")),
        *({"deadline": value} for value in ("x", NAN, 0, True)),
        *({"seed": value} for value in ("x", 1.5, -1, 2**64, True)),
    ],
    ids=lambda options: str(options)[:40],
)
def test_how_a_run_is_started(looking: Engine, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=f"{name}=.*: expected ") as refused:
        looking.start(Small(), **options)
    assert len(str(refused.value)) < 300
    assert list(reader.all_runs(looking.store)) == []


def test_listeners(looking: Engine) -> None:
    with pytest.raises(InputError, match="expected a function of one argument"):
        looking.on("run", None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="there are: run, node"):
        looking.on("nodes", print)  # type: ignore[arg-type]

    async def later(event: object) -> None: ...

    with pytest.raises(InputError, match="an async def is called on a loop"):
        looking.on("run", later)
    with pytest.raises(InputError, match="only metrics are told now and then"):
        looking.on("run", print, every=5)  # type: ignore[call-overload]


@pytest.mark.parametrize("attempt", ["x", 0, 1.0, True])
def test_the_number_of_an_attempt(looking: Engine, attempt: Any) -> None:
    run = looking.start(Small())
    for ask in (run.logs, run.effects):
        with pytest.raises(InputError, match=r"attempt=.*: expected a whole number from 1"):
            ask(attempt=attempt)


HUGE = 10**5_000
NO_TEXT = [None, True, -1, HUGE, NAN, b"", [], {}, (), {1: 2}, object(), Small, Small(), print]
NUMBERED = range(len(NO_TEXT))


@pytest.mark.parametrize("value", NO_TEXT, ids=NUMBERED)
def test_the_name_of_a_node(looking: Engine, value: Any) -> None:
    run = looking.start(Small())
    asks = [run.node, run._index_of, run.reattempt]
    if not callable(value):  # which may be a method or a job
        asks.append(run.output)
    if value is not None:
        asks += [run.logs, run.effects, run.why]
    for ask in asks:
        with pytest.raises(InputError, match="expected the name or id of a node") as refused:
            ask(value)
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize("value", [each for each in NO_TEXT if each not in (None, -1)], ids=NUMBERED[:-2])
def test_where_a_run_is_forked_or_looked_at(looking: Engine, value: Any) -> None:
    run = looking.start(Small())
    for ask in (run.fork, run.checkpoint):
        with pytest.raises(
            InputError, match=r"has no checkpoint .*: expected a seq of its journal, which is a whole number, or"
        ):
            ask(value)
    assert run.forks() == []


@pytest.mark.parametrize("value", [5, True, NAN, "x", b"x", [1], {1: 2}, object(), HUGE, [("size", 1)]], ids=range(10))
def test_what_a_fork_changes_in_the_input(looking: Engine, value: Any) -> None:
    run = looking.start(Small())
    with pytest.raises(InputError, match=r"input=.*: expected a dict of inputs by name"):
        run.fork(input=value)
    assert run.forks() == []
    assert run.fork(input={}).input == run.input


def test_a_number_is_a_seq_and_a_text_a_label() -> None:
    with Engine("memory://") as engine:
        run = engine.run(Small())
        assert run.checkpoint("2024").label == "2024"
        assert run.fork("2024").origin == run.fork(run.checkpoint("2024").step).origin
        with pytest.raises(InputError, match="has no checkpoint 2024"):
            run.fork(2024)


@pytest.mark.parametrize("value", NO_TEXT, ids=NUMBERED)
def test_which_run_is_compared(looking: Engine, value: Any) -> None:
    run = looking.start(Small())
    for ask in (run.diff, lambda other: looking.compare(other, run), lambda other: looking.compare(run, other)):
        with pytest.raises(InputError, match="expected a Run or a run id, got"):
            ask(value)


@pytest.mark.parametrize("value", NO_TEXT, ids=NUMBERED)
def test_the_id_of_a_run(looking: Engine, value: Any) -> None:
    for ask in (looking.get, looking.adopt, looking.parts.requests.delete):
        with pytest.raises(InputError, match="is no id of a run, which is a text"):
            ask(value)


@pytest.mark.parametrize("url", ["memory://", "sqlite:///odd.db"])
@pytest.mark.parametrize("value", ["", "\ud800", "a\0b", "x" * 100_000], ids=range(4))
def test_an_id_that_no_run_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, value: str) -> None:
    monkeypatch.chdir(tmp_path)
    with Engine(url, runner=None) as engine:
        for ask in (engine.get, engine.adopt, engine.wait):
            with pytest.raises(RunNotFound) as refused:
                ask(value)  # type: ignore[arg-type]
            assert len(str(refused.value)) < 300
        assert engine.runs(workflow=value) == []
        with pytest.raises(InputError, match="is not allowed: use 1 to 200 letters"):
            engine.start(Small(), run_id=value)


@pytest.mark.parametrize(
    "options",
    [
        *({"limit": value} for value in (None, True, -1, 0, 10**30, NAN, "1", [])),
        *({"workflow": value} for value in (True, 5, [], Small)),
        *({"status": value} for value in ("", "DONE", 5, [], HUGE, "\ud800")),
    ],
    ids=lambda options: str([*options])[:40],
)
def test_which_runs_are_listed(looking: Engine, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=f"{name}=.*: expected "):
        looking.runs(**options)


@pytest.mark.parametrize("value", [None, True, 5, NAN, "x", b"x", {}, object(), Small, Small()], ids=range(10))
def test_what_is_started_together(looking: Engine, value: Any) -> None:
    with pytest.raises(InputError, match="expected a list of what to run"):
        looking.start_many(value)


@pytest.mark.parametrize("value", NO_TEXT, ids=NUMBERED)
def test_an_event(looking: Engine, value: Any) -> None:
    with pytest.raises(InputError, match="there are: run, node"):
        looking.on(value, print)


@pytest.mark.parametrize("value", [None, True, 5, NAN, object(), HUGE], ids=range(6))
def test_what_is_fanned_out(value: Any) -> None:
    with pytest.raises(DefinitionError, match="expected items, one for each node"):
        Builder("wide").fan_out(value, job=dict)


def test_a_number_that_cannot_be_shown(looking: Engine) -> None:
    """Python refuses to write whole numbers of more than 4,300 digits, which must not hide what was wrong."""

    class Named(Small, name="named"):
        title: str = ""

    run = looking.start(Small())
    for ask in (lambda: Named(title=HUGE), lambda: run.import_graph(HUGE), lambda: looking.on("run", HUGE)):  # type: ignore[arg-type]
        with pytest.raises((InputError, DefinitionError), match="that cannot be shown"):
            ask()
    for build in (
        lambda: Builder(HUGE),  # type: ignore[arg-type]
        lambda: Builder("x", deadline=HUGE),
        lambda: Builder("x", on_failure=HUGE),  # type: ignore[arg-type]
        lambda: Builder("x", state=HUGE),  # type: ignore[arg-type]
        lambda: Builder("x").node("a", job=HUGE),  # type: ignore[arg-type]
        lambda: Builder("x").node("a", job=dict, args=HUGE),  # type: ignore[arg-type]
        lambda: Builder("x").node("a", job=dict, depends_on=HUGE),  # type: ignore[arg-type]
    ):
        with pytest.raises(DefinitionError, match="that cannot be shown"):
            build()


@pytest.mark.parametrize(
    "value", [*NO_TEXT, "", ".", "\ud800", "a\0b", "x" * 256, "file.txt/x.json", "folder"], ids=range(21)
)
def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    with Engine("memory://") as engine:
        run = engine.run(Small())
        with pytest.raises(InputError, match=r"it cannot be written|expected the path of a file") as refused:
            run.export(value)
        assert len(str(refused.value)) < 300
        assert sorted(each.name for each in tmp_path.iterdir()) == ["file.txt", "folder"]
        assert run.export("x" * 255).is_file()


KEY = "k" * checking.MAX_KEY
LONG = f"{KEY}k"


@pytest.mark.parametrize(
    ("check", "given", "used"),
    [
        (lambda value: checking.checked_seconds("wait", value), 0, 0.0),
        (lambda value: checking.checked_seconds("wait", value), timedelta(minutes=2), 120.0),
        (lambda value: checking.checked_limit("wait", value, positive=True), None, None),
        (lambda value: checking.checked_limit("wait", value, positive=True), 1, 1.0),
        (lambda value: checking.check_whole("n", value, 2, 5, "2 to 5"), 2, None),
        (lambda value: checking.check_whole("n", value, 2, 5, "2 to 5"), 5, None),
        (lambda value: checking.check_text("key", value), KEY, None),
        (lambda value: checking.check_text("key", value), "é", None),
        (checking.checked_tags, None, ()),
        (checking.checked_tags, {}, ()),
        (checking.checked_tags, {"b": "2", "a": KEY}, (("a", KEY), ("b", "2"))),
        (
            checking.checked_tags,
            dict.fromkeys(map(chr, range(65, 97)), "x"),
            tuple((chr(n), "x") for n in range(65, 97)),
        ),
        (checking.check_attempt, None, None),
        (checking.check_attempt, 1, None),
        (lambda value: checking.check_step("run", value), None, None),
        (lambda value: checking.check_step("run", value), "label", None),
        (lambda value: checking.check_step("run", value), -3, None),
        (lambda value: checking.check_step("run", value), 2**63 - 1, None),
        (checking.check_node_name, "node", None),
        (checking.checked_changes, None, {}),
        (checking.checked_changes, {"express": True}, {"express": True}),
        (checking.check_page, 1, None),
        (lambda value: checking.check_name("prefix", value, "a text"), None, None),
        (lambda value: checking.check_name("prefix", value, "a text"), "01ab", None),
        (lambda value: checking.checked_time("before", value), None, None),
        (lambda value: checking.checked_time("before", value), datetime(1970, 1, 2, tzinfo=UTC), 86_400 * 1_000_000),
        (checking.checked_status, "failed", RunStatus.FAILED),
        (checking.checked_status, "COMPLETED", RunStatus.COMPLETED),
        (checking.checked_list, [1, 2], [1, 2]),
        (checking.checked_workflows, (), []),
        (checking.checked_workflows, (Workflow,), [Workflow]),
        (checking.checked_queues, None, None),
        (checking.checked_queues, ["gpu", "default", "gpu"], frozenset({"gpu", "default"})),
        (checking.checked_modules, ["shop.jobs", "own"], ("shop.jobs", "own")),
        (checking.checked_pipelines, [1], [1]),
        (lambda value: checking.check_limits(queue_depth=value), 0, None),
        (lambda value: checking.check_limits(queue_depth=0, threads=value), 1, None),
        (lambda value: checking.check_limits(queue_depth=value, threads=value), checking.MAX_LIMIT, None),
        (checking.checked_lease, 0.1, 0.1),
        (lambda value: checking.check_home(value, "local"), None, None),
        (lambda value: checking.check_home(value, None), "memory://", None),
        (lambda value: checking.check_home(None, value), "celery", None),
    ],
)
def test_what_is_allowed_comes_back_as_it_is_used(check: Callable[[Any], Any], given: Any, used: Any) -> None:
    """The first and the last value that each check takes."""
    assert check(given) == used


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        (lambda value: checking.checked_seconds("wait", value), [-1, True, "1", None, float("nan")]),
        (lambda value: checking.checked_limit("wait", value, positive=True), [0, -1, "1"]),
        (lambda value: checking.check_whole("n", value, 2, 5, "2 to 5"), [1, 6, True, 2.0, "3", None]),
        (lambda value: checking.check_text("key", value), ["", LONG, "é" * 251, "a\x00b", "\ud800", 7, None]),
        (
            checking.checked_tags,
            [
                [("a", "1")],
                "a",
                {"a": 1},
                {1: "a"},
                {"": "a"},
                {"a": ""},
                {"a": LONG},
                dict.fromkeys(map(str, range(checking.MAX_TAGS + 1)), "x"),
            ],
        ),
        (checking.check_attempt, [0, -1, True, "1", 2**63]),
        (lambda value: checking.check_step("run", value), [True, 1.0, 2**63, ["a"]]),
        (checking.check_node_name, [None, 7, b"node"]),
        (checking.checked_changes, [{1: 2}, [("a", 1)], "a", 0]),
        (checking.check_page, [0, -1, True, None, "5"]),
        (lambda value: checking.check_name("prefix", value, "a text"), [7, b"01", Workflow]),
        (lambda value: checking.checked_time("before", value), [datetime(2026, 1, 1), 0, "2026-01-01"]),
        (checking.checked_status, ["", "done", None, 7]),
        (checking.checked_list, ["ab", b"ab", {"a": 1}, 7, None]),
        (checking.checked_workflows, [Workflow, "Order", [int], [Workflow, 7], 7]),
        (checking.checked_queues, [[], "gpu", b"gpu", [""], ["a/b"], ["gpu", 7], 7]),
        (checking.checked_modules, ["shop", ["shop-jobs"], ["shop."], [""], [7], 7]),
        (checking.checked_pipelines, ["shop", 7, None]),
        (lambda value: checking.check_limits(queue_depth=value), [-1, checking.MAX_LIMIT + 1, True, 1.0]),
        (lambda value: checking.check_limits(queue_depth=0, threads=value), [0, checking.MAX_LIMIT + 1, True, None]),
        (checking.checked_lease, [0, 0.09, "30", None]),
        (lambda value: checking.check_home(value, "local"), [7, b"memory://"]),
        (lambda value: checking.check_home(None, value), ["", "remote", 7]),
    ],
)
def test_what_is_not_allowed_is_refused_by_each_check(check: Callable[[Any], Any], wrong: list[Any]) -> None:
    """The values next to the first and the last ones, and other types."""
    for value in wrong:
        with pytest.raises(InputError):
            check(value)
