"""Nodes return deltas; each sees the fold of its ancestors, and the run ends with the fold over all."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from stepwell import Engine, NodeStatus, RunFailed
from stepwell.base.codec import decode, encode
from stepwell.core.store import reader
from stepwell.errors import StateError
from tests.define.states import Research, dynamic
from tests.engine import states
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


def test_every_kind_of_body_sees_its_ancestors_and_returns_deltas(engine: Engine) -> None:
    run = engine.run(Research(topic="wells"), wait=60)
    order = [node for node in Research.workflow_graph().order if node in ("web", "books", "people")]
    notes = {"web": ["web", "plan wells"], "books": ["books after wells"], "people": ["people 1"]}
    assert run.state == {
        "notes": ["plan wells", *(note for node in order for note in notes[node])],
        "pages": 43,
        "best": 0.5,
        "tags": ["a", "b"],
        "links": {"a": next(node for node in reversed(order) if node != "books")},
        "title": "People",
        "author": "web",
    }
    assert run.outputs == {
        "plan": {"topic": "wells"},
        "web": None,
        "books": None,
        "people": {"asked": "wells"},
        "write": {"text": f"43 pages: {', '.join(run.state['notes'])}", "asked": "wells"},
    }
    assert run.output("people") == {"asked": "wells"}


def test_a_builder_has_a_state_too(engine: Engine) -> None:
    run = engine.run(dynamic(), wait=60)
    assert sorted(run.output("read")) == ["a", "b", "c"]
    assert run.state == {"notes": run.output("read"), "count": 3}


LOOK = """
import sys
from stepwell import Engine
with Engine(sys.argv[1], runner=None) as engine:
    for run_id in sys.argv[2:]:
        print(engine.get(run_id).state)
"""


def test_another_process_folds_the_state_of_a_stored_run(open_sqlite: OpenEngine, sqlite_url: str) -> None:
    engine = open_sqlite()
    runs = [engine.run(Research(topic="wells"), wait=60), engine.run(dynamic(), wait=60)]
    command = [sys.executable, "-c", LOOK, sqlite_url, *(run.id for run in runs)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert shown.splitlines() == [str(run.state) for run in runs]


def test_another_process_goes_on_with_what_the_first_one_did(open_sqlite: OpenEngine, sqlite_url: str) -> None:
    engine = open_sqlite()
    run = engine.start(states.counting(40))
    eventually(lambda: run.state["count"] > 3, "nothing happened")
    engine.close()
    with Engine(sqlite_url) as other:
        again = other.adopt(run.id).wait(60).check()
        assert again.state == {"count": 40, "notes": list(range(40))}


def test_a_thousand_runs_on_1_to_16_workers_end_with_the_same_bytes() -> None:
    found: set[tuple[bytes, bytes]] = set()
    for workers in range(1, 17):
        with Engine("memory://", max_concurrent_nodes=workers) as engine:
            runs = [engine.start(states.Branches(), seed=7) for _ in range(63)]
            for run in runs:
                run.wait(120).check()
                found.add((encode(run.state), encode(run.outputs)))
    assert len(found) == 1
    ((state, _),) = found
    assert decode(state)["notes"] == [node for node in states.Branches.workflow_graph().order if node != "d"]


def test_the_stores_end_with_the_same_bytes(open_sqlite: OpenEngine) -> None:
    found = set()
    for engine in (open_sqlite(max_concurrent_nodes=16), Engine("memory://", max_concurrent_nodes=3)):
        with engine:
            found |= {encode(engine.run(states.Branches(), wait=60).state) for _ in range(20)}
    assert len(found) == 1


def test_a_sibling_that_happened_to_finish_is_not_seen(engine: Engine) -> None:
    states.finished.clear()
    run = engine.start(states.Siblings())
    eventually(lambda: run.node("quick").status is NodeStatus.COMPLETED, "quick did not complete")
    assert run.state == {"notes": ["quick"]}
    states.finished.set()
    run.wait(30).check()
    assert run.outputs == {"quick": None, "slow": [], "both": ["quick"]}


def test_a_long_chain_that_looks_at_every_node_is_not_quadratic() -> None:
    """Every node reads one delta, that of its parent, and not those of all above it."""
    reads = []
    with Engine("memory://") as engine:
        read = engine.store.read

        def counting(queries: Any) -> Any:
            reads.extend(len(query.indexes or ()) for query in queries if hasattr(query, "indexes"))
            return read(queries)

        engine.store.read = counting  # type: ignore[method-assign]
        run = engine.run(states.counting(2_000), wait=300)
        assert sum(reads) == 1_999
        assert run.state["count"] == 2_000


@pytest.mark.parametrize("workflow", [states.Careless, states.CarelessElsewhere])
@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("in place", "StateError", r"node 'spoil' changed state.notes in place.*return Delta\(notes=\.\.\.\)"),
        ("assigned", "StateError", r"state.total cannot be assigned.*return Delta\(total=\.\.\.\)"),
        (
            "wrong",
            "StateError",
            r"(?s)totl: there is no such field; there are notes, total.*total: expected int, got 'x'",
        ),
        ("not json", "NotJson", "node 'spoil' returned what cannot be stored"),
    ],
)
def test_a_careless_body_fails_with_advice(
    sqlite_engine: Engine, workflow: type[states.Careless], how: str, kind: str, message: str
) -> None:
    with pytest.raises(RunFailed, match=message) as caught:
        sqlite_engine.run(workflow(how=how), wait=60)
    assert (caught.value.node, caught.value.error_type) == ("spoil", kind)
    run = sqlite_engine.get(caught.value.run_id)
    assert run.state == {"notes": ["begin"], "total": 0}


def test_a_reducer_that_raises_fails_the_node_that_looks_and_a_better_one_is_used_by_a_retry(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RunFailed) as caught:
        engine.run(states.Fragile(), wait=60)
    assert (caught.value.node, caught.value.error_type) == ("look", "StateError")
    for words in ("Fragile.State.total", "tests.engine.states:fussy", "2 is too much", "node 'give'", "run.retry()"):
        assert words in caught.value.error_message
    run = engine.get(caught.value.run_id)
    with pytest.raises(StateError, match="the delta of node 'give'"):
        run.state  # noqa: B018
    monkeypatch.setitem(states.limits, "highest", 2)
    run.retry()
    assert run.wait(60).check().output("look") == 2
    assert run.state == {"total": 2}


@pytest.mark.parametrize(
    ("workflow", "field", "reducer", "node", "problem", "advice"),
    [
        (states.Sums, "total", "add", "second", "inf is not a JSON number", "give the field another reducer"),
        (states.LargeCount, "count", "add", "second", "Exceeds the limit", "give the field another reducer"),
        (states.Halves, "text", "tests.engine.states:half", "give", "half of a surrogate pair", "correct the reducer"),
    ],
)
def test_a_fold_that_json_cannot_keep_is_refused_with_its_field_and_node(
    engine: Engine, workflow: Any, field: str, reducer: str, node: str, problem: str, advice: str
) -> None:
    with pytest.raises(RunFailed) as caught:
        engine.run(workflow(), wait=60)
    assert (caught.value.node, caught.value.error_type) == ("look", "StateError")
    run = engine.get(caught.value.run_id)
    for look in (lambda: run.state, run.checkpoint):
        with pytest.raises(StateError) as refused:
            look()
        assert (refused.value.field, refused.value.node) == (field, node)
        for words in (f"{workflow.__qualname__}.State.{field}, {reducer}, gave what", problem, advice, "run.retry()"):
            assert words.replace("LargeCount", "Sums") in str(refused.value)


@pytest.mark.parametrize("looks", [False, True])
def test_a_reducer_is_given_what_json_gives_back_whoever_looked_before(engine: Engine, looks: bool) -> None:
    run = engine.run(states.Pairs(looks=looks), wait=60)
    assert run.state == {"pairs": [[1, "1"], [1, "1"], [2, "2"]]}
    assert run.checkpoint().state == run.state
    assert run.output("third") == ([[1, "1"], [1, "1"]] if looks else None)


@pytest.mark.parametrize("how", ["look", "return"])
def test_a_workflow_without_a_state_says_so(engine: Engine, how: str) -> None:
    with pytest.raises(RunFailed, match="Stateless declares no state: write `class State:`"):
        engine.run(states.Stateless(how=how), wait=60)
    assert engine.runs()[0].state == {}


def test_a_superseded_attempt_contributes_nothing(engine: Engine) -> None:
    run = engine.run(states.Again(), wait=60)
    assert run.state == {"notes": ["begin 1", "end 1 after begin 1"]}
    run.reattempt("end")
    run.wait(60).check()
    assert run.state == {"notes": ["begin 1", "end 2 after begin 1"]}
    assert [attempt.status for attempt in run.node("end").attempts] == ["SUPERSEDED", "COMPLETED"]


def test_what_goes_again_sees_what_goes_again_above_it(engine: Engine) -> None:
    """The run is only PAUSED, so its worker still remembers what `end` saw at first."""
    states.Handed.fails = True
    run = engine.start(states.Handed())
    eventually(lambda: run.status == "PAUSED")
    states.Handed.fails = False
    run.reattempt("begin").wait(60).check()
    assert run.state == {"notes": ["begin 2", "end 2 after begin 2"]}
    run.reattempt("begin", cascade=True).wait(60).check()
    assert run.state == {"notes": ["begin 3", "end 3 after begin 3"]}
    assert run.replay().stubbed.keys() == {"begin", "end"}
    assert run.audit() == []


def test_an_attempt_that_failed_contributes_nothing(engine: Engine) -> None:
    states.Again.fails = True
    with pytest.raises(RunFailed) as caught:
        engine.run(states.Again(), wait=60)
    states.Again.fails = False
    run = engine.get(caught.value.run_id)
    run.retry()
    run.wait(60).check()
    assert run.state == {"notes": ["begin 1", "end 2 after begin 1"]}


def test_an_output_without_a_delta_is_stored_as_it_always_was(engine: Engine) -> None:
    run = engine.run(Research(topic="a\nb"), wait=60)
    stored = reader.get_stored_outputs(engine.store, run.id)
    index = Research.workflow_graph().index
    assert stored[index["write"]] == encode(run.output("write"))
    assert stored[index["plan"]] == (b'{"topic":"a\\nb"}\n{"author":"plan","notes":"plan a\\nb","tags":["b"]}\n')


def test_a_dynamic_run_that_was_repaired_keeps_its_state(open_sqlite: OpenEngine, sqlite_url: str) -> None:
    engine = open_sqlite()
    w = dynamic()
    w.node("broken", job="tests.define.states:missing")
    with pytest.raises(RunFailed) as caught:
        engine.run(w, wait=60)
    run = engine.get(caught.value.run_id)
    form = run.export_graph()
    (broken,) = (node for node in form["nodes"].values() if node["name"] == "broken")
    broken["job"] = "tests.define.states:read"
    run.import_graph(form)
    run.retry()
    run.wait(60).check()
    assert run.output("broken") == run.output("read")
    assert run.state == {"notes": run.output("read"), "count": 3}
    engine.close()
    with Engine(sqlite_url, runner=None) as other:
        assert other.get(run.id).state == {"notes": other.get(run.id).output("read"), "count": 3}
