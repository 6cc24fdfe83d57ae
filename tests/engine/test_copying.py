"""Runs are copied and moved between stores: whole, audited, and never at work in both."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell import Builder, Context, Document, Engine, InputError, Retry, RetryLater, Workflow, step, task
from stepwell.base.clock import SECOND
from stepwell.core.model import Answer, Batch
from stepwell.core.store import Store, reader, versions
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.procedures import gates
from stepwell.engine.procedures.copy_runs import CopiedRun, _chunks, copy_runs
from stepwell.stores import open_store
from tests.conformance.audit import audit
from tests.postgres_server import PostgresServer
from tests.servers.redis_server import RedisServer
from tests.stores.postgres.sizes import size

go_on, begun, waiting, release = (threading.Event() for _ in range(4))


class Order(Workflow):
    order: int

    @step
    def take(self, ctx: Context) -> dict[str, object]:
        ctx.progress(1, 2)
        print("taken")
        ctx.effect("price", lambda: 7)
        return {"order": self.order, "text": "x" * 20_000}

    @task(depends_on=take, retry=Retry(3, base_delay=0.01))
    def check(self, ctx: Context, take: dict[str, object]) -> int:
        if ctx.attempt == 1:
            raise ValueError("once")
        return ctx.attempt

    @step
    def send(self, ctx: Context) -> str:
        begun.set()
        if not go_on.is_set():
            raise RetryLater(0.05)
        return "sent"


class Fails(Workflow):
    @step
    def breaks(self) -> None:
        raise ValueError("always")


def wide() -> Builder:
    builder = Builder("wide")
    builder.fan_out(range(2_500), job=double, args=lambda number: {"number": number})
    builder.node("sum", job=total)
    return builder


def double(number: int) -> int:
    return 2 * number


def total(ctx: Context) -> int:
    return sum(ctx.outputs[parent] for parent in ctx.parents)


KINDS = ["memory", "sqlite", "postgres", "redis"]


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new store of each kind."""
    match request.param:
        case "memory":
            store: Store = MemoryStore()
        case "sqlite":
            store = open_store(f"sqlite:///{tmp_path}/target.db")
        case "postgres":
            store = open_store(request.getfixturevalue("postgres").new_url())
        case _:
            store = open_store(f"{request.getfixturevalue('redis_server').url}?namespace={tmp_path.name}")
    yield store
    store.close()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/source.db")
    yield store
    store.close()


def whole(store: Store, run_id: str) -> list[object]:
    """All that is stored of a run."""
    return [
        reader.require_run(store, run_id),
        reader.all_nodes(store, run_id),
        reader.list_attempts(store, run_id),
        reader.list_journal(store, run_id),
        reader.list_lines(store, run_id),
        reader.list_marks(store, run_id),
    ]


def outcomes(copied: Iterator[CopiedRun]) -> dict[str, str]:
    return {each.run_id: each.outcome for each in copied}


def test_ended_runs_are_the_same_in_the_other_store(source: Store, target: Store) -> None:
    go_on.set()
    with Engine(source) as engine:
        engine.run(Order(order=7), run_id="order", tags={"customer": "9"}, idempotency_key="k")
        engine.run(Fails(), run_id="failed", check=False)
        engine.run(wide(), run_id="wide")
        engine.get("order").fork("send", run_id="fork").wait(30)
    source = open_store(source.url)
    for digest, content in (("d1", b"{}"), ("d2", b"[]"), ("d3", b"7")):
        versions.save_version(source, "document", "letter", digest, content)
    versions.activate_version(source, "document", "letter", 2)
    assert outcomes(copy_runs(source, target)) == dict.fromkeys(("order", "failed", "wide", "fork"), "copied")
    for run_id in ("order", "failed", "wide", "fork"):
        assert whole(target, run_id) == whole(source, run_id)
    letters = versions.all_versions(target, "document", "letter")
    assert [(row.digest, row.active) for row in letters] == [("d1", False), ("d2", True), ("d3", False)]
    assert [versions.get_content(target, "document", row.digest) for row in letters] == [b"{}", b"[]", b"7"]
    assert [row.id for row in reader.all_runs(target)] == [row.id for row in reader.all_runs(source)]
    assert set(outcomes(copy_runs(source, target)).values()) == {"there"}
    audit(target)
    source.close()


def letters(kind: str) -> str:
    """Far more than a store keeps within a row, and not the same for two kinds: equal payloads are stored once."""
    return f"{kind} " * 10_000


class Large(Workflow):
    text: str

    @step
    def write(self, ctx: Context) -> str:
        ctx.checkpoint("begun")
        print(letters("printed"))
        assert ctx.effect("fetch", lambda: letters("effect")) == letters("effect")
        return letters("output")

    @task(depends_on=write, retry=Retry(2, base_delay=0.01))
    def fail(self, write: str) -> None:
        raise ValueError(letters("error"))


LARGE: dict[str, object] = {
    "name": "large",
    "input": {"properties": {"text": {"type": "string"}}},
    "nodes": [
        {"id": "a", "handler": "transform", "config": {"template": f"{letters('config')} {{{{ input.text }}}}"}},
    ],
}


def test_large_payloads_of_every_kind_are_the_same_in_the_other_store(source: Store, target: Store) -> None:
    with Engine(source) as engine:
        engine.run(Large(text=letters("input")), run_id="class", check=False)
        engine.get("class").fork("fail", run_id="fork").wait(30)
        engine.run(Document(LARGE), input={"text": letters("given")}, run_id="document")
    source = open_store(source.url)
    stored = str([whole(source, row.id) for row in reader.all_runs(source)])
    for kind in ("input", "output", "effect", "config", "given"):
        assert letters(kind)[:20_000] in stored, kind
    for kind in ("error", "printed"):  # of these only so much is kept
        assert letters(kind)[:2_000] in stored, kind
    assert outcomes(copy_runs(source, target)) == dict.fromkeys(("class", "fork", "document"), "copied")
    for row in reader.all_runs(source):
        assert whole(target, row.id) == whole(source, row.id)
        assert reader.get_outputs(target, row.id) == reader.get_outputs(source, row.id)
        assert reader.get_graph(target, row.digest) == reader.get_graph(source, row.digest)
    audit(target)
    with Engine(target) as engine:
        assert engine.get("document").output("a") == {"result": f"{letters('config')} {letters('given')}"}
        assert [effect.response for effect in engine.get("fork").effects("write")] == [letters("effect")]
    source.close()


def test_an_unfinished_run_goes_on_in_the_other_store(source: Store, target: Store, tmp_path: Path) -> None:
    go_on.clear()
    begun.clear()
    with Engine(f"sqlite:///{tmp_path}/source.db") as engine:
        engine.start(Order(order=7), run_id="order")
        engine.start(Order(order=8), run_id="paused").pause()
        assert begun.wait(30)
        assert outcomes(copy_runs(source, target)) == {"order": "left", "paused": "left"}
        assert outcomes(copy_runs(source, target, unfinished=True)) == {"order": "moved", "paused": "moved"}
        assert list(reader.all_runs(source)) == []
    go_on.set()
    assert reader.require_run(target, "paused").status == "PAUSED", "whoever paused it has not asked to go on"
    assert outcomes(copy_runs(source, target, unfinished=True)) == {}
    with Engine(target, workflows=[Order]) as engine:
        run = engine.adopt("order").wait(30)
        assert run.outputs["check"] == 2
        assert [a.status for a in run.node("take").attempts] == ["COMPLETED"], "what was done is not done again"
        assert engine.get("paused").resume().wait(30).status == "COMPLETED"
        audit(engine.store)


class Stopped(Exception):
    """Stands for a crash."""


def stop_at(number: int, patch: pytest.MonkeyPatch, *stores: Store) -> None:
    """The commit of this number, in any of the stores, is not made."""
    numbers = count(1)

    def stopping(real: Callable[[Batch], Answer], batch: Batch) -> Answer:
        if next(numbers) == number:
            raise Stopped
        return real(batch)

    for store in stores:
        patch.setattr(store, "commit", partial(stopping, store.commit))


def test_copying_that_dies_anywhere_is_finished_by_copying_again(
    postgres: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At each commit, in either store: the run is at work in one of them at most, and in the end is there, whole."""
    monkeypatch.setattr(gates, "GATE_LEASE", SECOND // 5)
    for number in range(1, 100, size(4, 1)):
        go_on.clear()
        place = f"sqlite:///{tmp_path}/{number}.db"
        with Engine(place) as engine:
            begun.clear()
            engine.start(Order(order=7), run_id="order")
            assert begun.wait(30)
        source = open_store(place)
        target = open_store(postgres.new_url())
        with monkeypatch.context() as patch:
            stop_at(number, patch, source, target)
            died = False
            try:
                outcomes(copy_runs(source, target, unfinished=True))
            except Stopped:
                died = True
        here, there = reader.get_run(source, "order"), reader.get_run(target, "order")
        assert sum(row is not None and row.status == "RUNNING" for row in (here, there)) <= 1
        for _ in range(2):
            copied = outcomes(copy_runs(source, target, unfinished=True))
        assert set(copied.values()) <= {"there"}
        assert reader.get_run(source, "order") is None
        go_on.set()
        with Engine(target, workflows=[Order]) as engine:
            run = engine.adopt("order").wait(30)
            assert (run.status, len(run.node("take").attempts)) == ("COMPLETED", 1)
            audit(engine.store)
        source.close()
        if not died:
            assert number > 12, "it died at so few places that this proves little"
            return
    raise AssertionError("it never came to an end")


def test_what_differs_there_is_told_and_left(source: Store) -> None:
    target = MemoryStore()
    with Engine(source) as engine:
        engine.run(Fails(), run_id="failed", check=False)
    source = open_store(source.url)
    assert outcomes(copy_runs(source, target)) == {"failed": "copied"}
    engine = Engine(source, runner=None)
    engine.get("failed").retry()
    engine.get("failed").cancel(grace_seconds=0)
    (found,) = copy_runs(source, target)
    assert (found.outcome, "and stays so" in found.detail) == ("there", True)
    source.close()


def test_rows_of_a_server_are_copied_into_a_file_only_by_those_who_trust_them(
    postgres: PostgresServer,
    source: Store,
) -> None:
    server = open_store(postgres.new_url())
    with pytest.raises(InputError, match="--trust"):
        copy_runs(server, source)
    assert outcomes(copy_runs(server, source, trust=True)) == {}
    server.close()


def test_a_run_that_does_not_come_to_rest_stays_where_it_is(source: Store, tmp_path: Path) -> None:
    target = MemoryStore()
    release.clear()
    waiting.clear()
    with Engine(f"sqlite:///{tmp_path}/source.db") as engine:
        run = engine.start(Waits(), run_id="waits")
        assert waiting.wait(30)
        (found,) = copy_runs(source, target, unfinished=True, wait_seconds=0.2)
        assert (found.outcome, "1 of its nodes still ran" in found.detail) == ("refused", True)
        release.set()
        assert run.wait(30).status == "COMPLETED", "it went on here"
    assert reader.get_run(target, "waits") is None


class Waits(Workflow):
    @step
    def wait(self) -> None:
        waiting.set()
        assert release.wait(30)


def test_the_command_says_what_it_did(source: Store, tmp_path: Path) -> None:
    with Engine(source) as engine:
        engine.run(Fails(), run_id="failed", check=False)
    program = [str(Path(sys.executable).with_name("stepwell")), "copy"]
    urls = [f"sqlite:///{tmp_path}/source.db", f"sqlite:///{tmp_path}/other.db"]
    done = subprocess.run([*program, *urls], check=True, capture_output=True, text=True)
    assert done.stdout == "1 run: 1 copied and audited (1 node, 1 attempt)\n"
    again = subprocess.run([*program, *urls, "--json"], check=True, capture_output=True, text=True)
    assert [run["outcome"] for run in json.loads(again.stdout)["runs"]] == ["there"]
    with Engine(urls[0]) as engine:
        engine.run(Fails(), idempotency_key="monday", run_id="ours", check=False)
    with Engine(urls[1]) as engine:
        engine.run(Fails(), idempotency_key="monday", run_id="theirs", check=False)
    refused = subprocess.run([*program, *urls], check=False, capture_output=True, text=True)
    told = "not copied: another run of Fails there has its idempotency key 'monday'"
    assert (refused.returncode, told in refused.stdout) == (6, True), refused
    missing = subprocess.run(
        [*program, f"sqlite:///{tmp_path}/no.db", urls[1]], check=False, capture_output=True, text=True
    )
    assert (missing.returncode, "there is no such file" in missing.stderr) == (4, True)


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 6), st.integers(0, 20))
def test_rows_are_copied_in_as_few_parts_as_the_limits_allow(sizes: list[int], rows: int, size: int) -> None:
    """One row may be larger than a batch should be."""
    parts = list(_chunks(sizes, lambda each: each, rows, size))
    assert [each for part in parts for each in part] == sizes
    for part in parts:
        assert 1 <= len(part) <= rows
        assert sum(part) <= size or len(part) == 1
    for part, (first, *_) in pairwise(parts):
        assert len(part) == rows or sum(part) + first > size, "the next row had room in it"
