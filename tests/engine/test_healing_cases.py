"""A table of what people change in a class, and of where a run stands when they do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from stepwell import Engine, Retry, Run, Workflow, step, task
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually

N = Any
"""A node: its name, or its name and options."""


class Bodies:
    """What bodies did, whether they fail, and where they wait."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.failing: set[str] = set()
        self.waiting: set[str] = set()
        self.began = threading.Event()
        self.go = threading.Event()
        self.stopped = threading.Event()


BODIES = Bodies()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    BODIES.__init__()  # type: ignore[misc]
    yield
    BODIES.go.set()


def body(name: str, given: str = "") -> Callable[..., str]:
    def run(self: Workflow, ctx: Any, **outputs: Any) -> str:
        if name in BODIES.waiting:
            BODIES.began.set()
            while not BODIES.go.wait(0.01):
                if ctx.stopping:
                    BODIES.stopped.set()
                ctx.check()
        if name in BODIES.failing:
            raise ValueError(f"{name} fails for now")
        BODIES.done.append(name)
        return name + "".join(f"({given}={value})" for given, value in outputs.items())

    if not given:
        run.__name__ = run.__qualname__ = name
        return _without_outputs(run, name)
    scope: dict[str, Any] = {"run": run}
    exec(f"def {name}(self, ctx, {given}):\n    return run(self, ctx, {given}={given})", scope)
    made: Callable[..., str] = scope[name]
    return made


def _without_outputs(run: Callable[..., str], name: str) -> Callable[..., str]:
    def plain(self: Workflow, ctx: Any) -> str:
        return run(self, ctx)

    plain.__name__ = plain.__qualname__ = name
    return plain


def made(nodes: tuple[N, ...]) -> type[Workflow]:
    """A class with these nodes: `"a"` is a step; `("a", options)` a step with options, a task if it has `depends_on`."""
    members: dict[str, Any] = {}
    for node in nodes:
        name, options = (node, {}) if isinstance(node, str) else node
        options = dict(options)
        given = options.pop("given", "")
        make: Any = task if "depends_on" in options else step
        members[name] = make(**options)(body(name, given)) if options else make(body(name, given))
    return type(Workflow)("Changed", (Workflow,), members)


class Case(NamedTuple):
    before: tuple[N, ...]
    after: tuple[N, ...]
    done: list[str]
    """The bodies that ran to their end, in order: what came before the change, and after."""
    skipped: tuple[str, ...] = ()
    removed: dict[str, str] = {}  # noqa: RUF012
    outputs: dict[str, str] = {}  # noqa: RUF012
    ordered: bool = True


PATIENT = Retry(5, base_delay=0.01, max_delay=0.01)
CASES = {
    "nothing but the bodies": Case(("a", "b", "c"), ("a", "b", "c"), ["a", "b", "c"]),
    "a step before what is done": Case(("a", "b", "c"), ("x", "a", "b", "c"), ["a", "b", "c"], ("x",)),
    "a step after what is done": Case(("a", "b", "c"), ("a", "x", "b", "c"), ["a", "x", "b", "c"]),
    "a step at the end": Case(("a", "b", "c"), ("a", "b", "c", "x"), ["a", "b", "c", "x"]),
    "an unfinished step goes": Case(("a", "b", "c"), ("a", "b"), ["a", "b"], removed={"c": "CANCELLED"}),
    "a done step goes": Case(("a", "b", "c"), ("b", "c"), ["a", "b", "c"], removed={"a": "COMPLETED"}),
    "a rename of what is done": Case(("a", "b", "c"), (("z", {"was": "a"}), "b", "c"), ["a", "b", "c"]),
    "a rename of what is not": Case(("a", "b", "c"), ("a", "b", ("z", {"was": "c"})), ["a", "b", "z"]),
    "a timeout": Case(("a", "b", "c"), ("a", ("b", {"timeout": 60}), "c"), ["a", "b", "c"]),
    "a retry": Case(("a", "b", "c"), ("a", ("b", {"retry": 4}), "c"), ["a", "b", "c"]),
    "a queue": Case(("a", "b", "c"), ("a", ("b", {"queue": "large"}), ("c", {"queue": "large"})), ["a", "b", "c"]),
    "what is to become of it if its worker is lost": Case(
        ("a", "b", "c"), ("a", ("b", {"on_lost": "interrupt"}), "c"), ["a", "b", "c"]
    ),
    "what a body is given": Case(
        ("a", "b", "c"), ("a", "b", ("c", {"given": "a"})), ["a", "b", "c"], outputs={"c": "c(a=a)"}
    ),
    "what a body is no longer given": Case(
        ("a", "b", ("c", {"given": "a"})), ("a", "b", "c"), ["a", "b", "c"], outputs={"c": "c"}
    ),
    "a step that becomes a task": Case(
        ("a", "b", "c"), ("a", "b", ("c", {"depends_on": "a"})), ["a", "b", "c"], outputs={"c": "c"}, ordered=False
    ),
    "another order of what is not done": Case(("a", "b", "c", "d"), ("a", "b", "d", "c"), ["a", "b", "d", "c"]),
    "a task beside": Case(
        ("a", "b", "c"), ("a", "b", ("x", {"depends_on": "b"}), "c"), ["a", "b", "c", "x"], ordered=False
    ),
}
"""In each `a` has completed and `b` stands as the test says when the class changes."""


class Standing:
    """A run of which `a` has completed, and what has to be done for it to go on."""

    def __init__(self, open_engine: OpenEngine, before: type[Workflow]) -> None:
        self.open = open_engine
        self.engine: Engine = open_engine(max_concurrent_nodes=1)
        self.before = before

    def started(self) -> Run:
        return self.engine.start(self.before())

    def paused(self) -> str:
        BODIES.waiting.add("b")
        run = self.started()
        assert BODIES.began.wait(20)
        run.pause()
        self.engine.close(0)
        assert BODIES.stopped.wait(20)
        return run.id

    def waiting(self) -> str:
        BODIES.failing.add("b")
        run = self.started()
        eventually(lambda: run.node("b").status == "WAITING", seconds=20, show=run.nodes)
        self.engine.close()
        return run.id

    def left(self) -> str:
        BODIES.waiting.add("b")
        run = self.started()
        assert BODIES.began.wait(20)
        self.engine.close(0)
        assert BODIES.stopped.wait(20)
        return run.id

    def failed(self) -> str:
        BODIES.failing.add("b")
        run = self.started().wait(20)
        assert run.status == "FAILED"
        self.engine.close()
        return run.id

    def running(self) -> str:
        BODIES.waiting.add("b")
        run = self.started()
        assert BODIES.began.wait(20)
        return run.id


def go_on(standing: str, engine: Engine, run_id: str) -> Run:
    BODIES.failing.clear()
    run = engine.get(run_id)
    if standing == "paused":
        run.resume()
    elif standing == "failed":
        run.retry()
    elif standing == "running":  # on a body in another engine, which goes on until it is healed
        eventually(lambda: run.row.heals == 1 or _same(run, engine), seconds=20, show=lambda: run.row)
    BODIES.go.set()
    return run.wait(30)


def _same(run: Run, engine: Engine) -> bool:
    return run.graph.follows == engine.parts.code.given["Changed"].workflow_graph().digest


@pytest.mark.parametrize("standing", ["paused", "waiting", "left", "failed", "running"])
@pytest.mark.parametrize("name", CASES)
def test_a_change(open_sqlite: OpenEngine, name: str, standing: str) -> None:
    case = CASES[name]
    patient = {"retry": Retry(9, base_delay=3600, max_delay=3600)} if standing == "waiting" else {}
    before = tuple(("b", patient) if node == "b" and patient else node for node in case.before)
    run_id = getattr(Standing(open_sqlite, made(before)), standing)()
    if standing == "waiting":
        # An hour is long: what waits is asked for by a retry of the paused run, in the new version.
        with open_sqlite(runner=None) as engine:
            engine.get(run_id).pause()
    engine = open_sqlite(workflows=[made(case.after)], max_concurrent_nodes=1)
    if standing == "waiting":
        eventually(lambda: _same(engine.get(run_id), engine) and engine.get(run_id).row.purpose is None, seconds=20)
        assert engine.get(run_id).node("b").status == ("PENDING" if name == "a step after what is done" else "WAITING")
        engine.get(run_id).audit()
        engine.get(run_id).cancel(grace_seconds=0).wait(20)
        run = go_on("failed", engine, run_id)
    else:
        run = go_on(standing, engine, run_id)
    assert run.status == "COMPLETED", run.nodes(removed=True)
    expected = case.done
    if standing == "running" and name == "a step after what is done":
        expected = ["a", "b", "c"]  # it comes too late: `b` runs
    assert (BODIES.done if case.ordered else sorted(BODIES.done)) == expected
    nodes = {node.id: node for node in run.nodes()}
    late = case.skipped if expected is case.done else ("x",)
    assert {node.id for node in nodes.values() if node.status == "SKIPPED"} == set(late)
    assert all(nodes[node].reason == "healed_late" for node in late)
    gone = {node.id: str(node.status) for node in run.nodes(removed=True) if node.id not in nodes}
    assert gone == case.removed
    for node, output in case.outputs.items():
        assert run.output(node) == output
    assert run.audit() == []


def test_every_node_is_replaced(open_sqlite: OpenEngine) -> None:
    """A possible rename, as it may be that all were renamed; accepted, the run has another life, and the old one is history."""
    run_id = Standing(open_sqlite, made(("a", "b", "c"))).failed()
    BODIES.failing.clear()
    run = open_sqlite(workflows=[made(("x", "y"))]).get(run_id).retry(accept=True).wait(20)
    assert run.status == "COMPLETED"
    assert BODIES.done == ["a", "x", "y"]
    assert {node.id: str(node.status) for node in run.nodes(removed=True)} == {
        "a": "COMPLETED",
        "b": "CANCELLED",
        "c": "CANCELLED",
        "x": "COMPLETED",
        "y": "COMPLETED",
    }
    assert run.audit() == []


def test_fewer_attempts_are_allowed_than_have_failed(open_sqlite: OpenEngine) -> None:
    BODIES.failing.add("b")
    before = made(("a", ("b", {"retry": Retry(9, base_delay=0.01, max_delay=0.01)})))
    with open_sqlite() as engine:
        run = engine.start(before())
        eventually(lambda: len(run.node("b").attempts) >= 5, seconds=20)
        run.pause()
    engine = open_sqlite(workflows=[made(("a", ("b", {"retry": 2})))])
    found = engine.get(run.id).resume().wait(20)
    assert found.status == "FAILED"
    assert found.audit() == []
