"""A run goes on with an edited graph: what is done stays, all that is wrong is told at once, and nothing is half done."""

from __future__ import annotations

import copy
import json
import threading
from typing import Any

import pytest

from stepwell import Builder, Engine, Run
from stepwell.base.clock import SECOND
from stepwell.base.ids import new_gate_token
from stepwell.core.model import Finish, Gate, Rewrite
from stepwell.errors import GraphError, RunConflict
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.steered import Play, statuses
from tests.engine.waiting import eventually
from tests.sizes import in_seconds, sized


@pytest.fixture
def engine(open_engine: OpenEngine) -> Engine:
    """An engine that may run what an edited graph calls: its arguments are not those of the program."""
    return open_engine(jobs=["tests.engine.jobs"])


def node(form: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in form["nodes"].values() if each["name"] == name)
    return found


def missing(engine: Engine) -> Run:
    """A run that failed because a job is gone: `double` completed, `gone` did not, `total` waits for both."""
    w = Builder("repaired", on_failure="finish")
    first = w.node("double", job=jobs.double, args={"item": 4})
    second = w.node("gone", job="tests.engine.jobs:removed", args={"item": 3}, depends_on=None)
    w.node("total", job=jobs.total, depends_on=[first, second])
    run = engine.run(w, check=False)
    assert run.node("gone").error.type == "MissingJob"  # type: ignore[union-attr]
    return run


def test_a_missing_job_is_repaired(engine: Engine) -> None:
    run = missing(engine)
    form = run.export_graph()
    node(form, "gone")["job"] = "tests.engine.jobs:double"
    run.import_graph(json.dumps(form)).retry().wait(30).check()
    assert run.output("total") == 14
    assert [len(each.attempts) for each in run.nodes()] == [1, 2, 1]
    assert run.export_graph()["nodes"] == form["nodes"]
    assert run.audit() == []


def test_an_import_waits_for_who_is_just_changing_the_run(engine: Engine) -> None:
    """It may be a housekeeper of ours, that finishes what somebody died doing."""
    run = missing(engine)
    form = run.export_graph()
    node(form, "gone")["job"] = "tests.engine.jobs:double"
    token = new_gate_token()
    engine.store.commit([Gate(run.id, token, "retry", b"{}", 60 * SECOND)])
    as_it_was = Rewrite(run.id, token, (), Finish(run.row.status, open_gate=False))
    later = threading.Timer(0.3, lambda: engine.store.commit([as_it_was]))
    later.start()
    run.import_graph(form).retry().wait(30).check()
    later.join()
    assert run.output("total") == 14
    assert run.audit() == []


def test_nodes_are_added_and_dropped(engine: Engine) -> None:
    run = missing(engine)
    form = run.export_graph()
    gone = next(key for key, each in form["nodes"].items() if each["name"] == "gone")
    del form["nodes"][gone]
    node(form, "total")["depends_on"].remove(gone)
    form["nodes"]["extra"] = {"name": "extra", "job": "tests.engine.jobs:double", "args": {"item": 5}, "depends_on": []}
    node(form, "total")["depends_on"].append("extra")
    run.import_graph(form).retry().wait(30).check()
    assert run.output("total") == 18
    assert statuses(run)[gone] == "CANCELLED"
    assert sorted(each.name for each in run.nodes()) == ["double", "extra", "total"]
    assert run.audit() == []


def test_everything_that_touches_what_completed_is_told_at_once_and_nothing_changes(engine: Engine) -> None:
    w = Builder("done", on_failure="finish")
    w.fan_out(range(3), job=jobs.same, depends_on=None)
    w.node("fail", job=jobs.fail, depends_on=None)
    run = engine.run(w, check=False)
    form = run.export_graph()
    before, row = copy.deepcopy(form), run.row
    node(form, "same_0")["args"]["item"] = 7
    node(form, "same_1")["job"] = "tests.engine.jobs:double"
    del form["nodes"][next(key for key, each in form["nodes"].items() if each["name"] == "same_2")]
    with pytest.raises(GraphError) as refused:
        run.import_graph(form)
    assert sorted(str(problem).partition(": ")[2].partition(";")[0] for problem in refused.value.problems) == [
        "node 'same_0' has completed, so its args cannot change",
        "node 'same_1' has completed, so its job cannot change",
        "node 'same_2' has completed and cannot be removed",
    ]
    assert run.row == row
    assert run.export_graph() == before


@pytest.mark.parametrize("rubbish", ["", "{", "[]", "7", '{"version": 1}', b"\xff", {"nodes": 3}, {"version": 99}])
def test_rubbish_is_refused(engine: Engine, rubbish: Any) -> None:
    run = missing(engine)
    row = run.row
    with pytest.raises(GraphError):
        run.import_graph(rubbish)
    assert run.row == row


def test_what_has_completed_as_a_whole_cannot_be_changed(engine: Engine) -> None:
    w = Builder("done")
    w.node("double", job=jobs.double, args={"item": 4})
    run = engine.run(w)
    form = run.export_graph()
    form["nodes"]["extra"] = {"name": "extra", "job": "tests.engine.jobs:nothing", "args": {}, "depends_on": []}
    with pytest.raises(RunConflict, match="is COMPLETED"):
        run.import_graph(form)


def test_the_same_graph_again_changes_nothing(engine: Engine) -> None:
    run = missing(engine)
    form = run.export_graph()
    row = run.import_graph(form).row
    assert run.import_graph(form).row == row
    assert run.audit() == []


def test_a_run_that_is_being_worked_on_switches_graphs(open_engine: OpenEngine) -> None:
    engine = open_engine(jobs=["tests.engine.jobs"])
    play = Play(held="a")
    run = engine.start(play.workflow(a=None, b="a"))
    play.begins("a")
    form = run.export_graph()
    form["nodes"]["extra"] = {
        "name": "extra",
        "job": "tests.engine.jobs:double",
        "args": {"item": 5},
        "depends_on": ["a"],
    }
    run.import_graph(form)
    play.release("a")
    run.wait(30).check()
    assert run.output("extra") == 10
    assert play.entered == {"a": 1, "b": 1}
    assert run.audit() == []


def test_a_paused_run_switches_graphs_and_stays_paused(engine: Engine) -> None:
    play = Play(held="a")
    run = engine.start(play.workflow(a=None, b="a"))
    play.begins("a")
    run.pause()
    form = run.export_graph()
    del form["nodes"]["b"]
    run.import_graph(form)
    assert (run.row.status, run.row.reason) == ("PAUSED", "paused")
    play.release("a")
    run.resume().wait(30).check()
    assert play.entered == {"a": 1}
    assert run.audit() == []


def test_an_imported_graph_no_longer_follows_its_class(open_sqlite: OpenEngine) -> None:
    play = Play(broken="b")
    run = open_sqlite().run(play.workflow(a=None, b="a"), check=False)
    open_sqlite(runner=None).get(run.id).import_graph(_without(run, "b"))
    play.broken.clear()
    now = type(play.workflow(a=None, b="a", c="b"))
    found = open_sqlite(workflows=[now]).get(run.id).retry().wait(30).check()
    assert [each.id for each in found.nodes()] == ["a"]


def _without(run: Run, *nodes: str) -> dict[str, Any]:
    form = run.export_graph()
    for each in nodes:
        del form["nodes"][each]
    return form


def test_of_two_imports_at_once_one_holds_whole(open_sqlite: OpenEngine) -> None:
    """Whoever comes second either is refused or is based on what the first left."""
    run = missing(open_sqlite())
    forms = [run.export_graph() for _ in range(2)]
    for number, form in enumerate(forms):
        node(form, "gone")["job"] = "tests.engine.jobs:double"
        node(form, "gone")["args"]["item"] = 10 + number
    outcomes: list[str] = []

    def import_one(form: dict[str, Any]) -> None:
        try:
            open_sqlite(runner=None).get(run.id).import_graph(form)
            outcomes.append("imported")
        except RunConflict:
            outcomes.append("refused")

    threads = [threading.Thread(target=import_one, args=(form,)) for form in forms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(outcomes) == 2
    assert "imported" in outcomes
    assert run.audit() == []
    assert open_sqlite(jobs=["tests.engine.jobs"]).get(run.id).retry().wait(30).check().output("total") in (28, 30)


@pytest.mark.full_size
def test_a_graph_of_100_000_nodes_is_imported_in_seconds(open_engine: OpenEngine) -> None:
    half = sized(50_000)
    w = Builder("wide")
    w.node("fail", job=jobs.fail)
    w.fan_out(range(half), job=jobs.same)
    engine = open_engine()
    run = engine.run(w, check=False, wait=60)
    form = run.export_graph()
    node(form, "fail")["job"] = "tests.engine.jobs:nothing"
    for number in range(half):
        form["nodes"][f"new_{number}"] = {"name": f"new_{number}", "job": "tests.engine.jobs:nothing", "depends_on": []}
    with in_seconds(40):
        run.import_graph(form)
    assert run.row.nodes == 2 * half + 1
    eventually(lambda: run.audit() == [], show=run.audit)
