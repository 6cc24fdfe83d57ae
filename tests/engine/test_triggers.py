"""Triggers in an engine: what is due is started by whoever serves, once, and worked on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepwell import DefinitionError, Document, Engine, InputError, Run, RunStatus, Trigger, Workflow, step
from stepwell.base.forms.problems import Problem
from stepwell.engine.triggers import load_triggers
from stepwell.errors import DocumentError, TriggerError
from stepwell.triggers.firing import NotHere
from stepwell.triggers.rendering import Start


class Greeting(Workflow):
    who: str = "nobody"

    @step
    def greet(self) -> dict[str, str]:
        return {"told": f"hello {self.who}"}


class Follower(Workflow):
    told: str

    @step
    def note(self) -> str:
        return self.told


def wait_for(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not found():
        assert time.monotonic() < deadline, "it did not happen within 30 s"
        time.sleep(0.02)


def ended(engine: Engine, trigger: str) -> list[Run]:
    return [run for run in engine.runs(tag={"trigger": trigger}) if run.status is RunStatus.COMPLETED]


def test_an_engine_that_serves_fires_what_is_due_and_works_on_it() -> None:
    with Engine("memory://", workflows=[Greeting, Follower]) as engine:
        engine.triggers.add(Trigger("tick", Greeting, every=1, input={"who": "{{ trigger.name }}"}))
        engine.triggers.add(
            Trigger("then", Follower, run_finished=Greeting, input={"told": "{{ run.outputs.greet.told }}"})
        )
        wait_for(lambda: len(ended(engine, "tick")) >= 2 and len(ended(engine, "then")) >= 2)
        first = ended(engine, "tick")[-1]
        stored = engine.triggers.get("tick")
        assert first.id == f"tick:{dict(first.row.tags)['fire']}"
        assert first.outputs == {"greet": {"told": "hello tick"}}
        assert stored.state.error is None
        assert {run.output("note") for run in ended(engine, "then")} == {"hello tick"}
        engine.triggers.pause("tick")


def test_an_engine_that_only_runs_what_it_is_given_fires_nothing() -> None:
    with Engine("memory://") as engine:
        engine.triggers.add(Trigger("tick", Greeting, every=1))
        engine.run(Greeting())
        time.sleep(1.2)
        assert len(engine.runs(tag={"trigger": "tick"})) == 0


def test_one_without_a_runner_starts_runs_and_leaves_them_to_others() -> None:
    document = Document({"name": "report", "nodes": [{"id": "a", "handler": "transform", "config": {"template": "1"}}]})
    with Engine("memory://", runner=None) as engine:
        engine.save(document)
        engine.triggers.add(Trigger("tick", "report", every=1))
        wait_for(lambda: engine.triggers.fire_due() >= 0 and len(engine.runs(tag={"trigger": "tick"})) >= 1)
        (run, *_) = engine.runs(tag={"trigger": "tick"})
        assert run.row.workflow == "report"


def test_a_trigger_is_fired_by_hand_with_its_own_input_or_another() -> None:
    with Engine("memory://", workflows=[Greeting]) as engine:
        engine.triggers.add(Trigger("once", Greeting, cron="0 0 1 1 *", input={"who": "{{ fire.date }}"}))
        first = engine.get(engine.triggers.fire("once", key="today"))
        again = engine.triggers.fire("once", key="today")
        other = engine.get(engine.triggers.fire("once", {"who": "you"}))
        assert again == first.id == "once:today"
        other.wait(30)
        assert other.output("greet") == {"told": "hello you"}
        with pytest.raises(InputError):
            engine.triggers.fire("once", {"nobody": 1})
        with pytest.raises(InputError, match=r"no trigger 'onse'; did you mean 'once'\?"):
            engine.triggers.fire("onse")


@pytest.mark.parametrize(
    ("input", "wrong"),
    [
        ({}, r"\$\.input\.told: this field is missing"),
        ({"tolt": "{{ fire.time }}", "told": "x"}, r"\$\.input\.tolt: unknown field; did you mean 'told'"),
        ({"told": 7}, r"\$\.input\.told: expected a string, got 7"),
    ],
)
@pytest.mark.parametrize(
    "when",
    [
        {"run_finished": "Greeting"},
        {"webhook": {"secret": "secret:HOOK"}},
        {"state": {"pipeline": "blog", "state_type": "digest"}},
    ],
    ids=["run", "hook", "state"],
)
def test_the_input_of_a_trigger_is_checked_before_it_ever_fires(input: Any, wrong: str, when: dict[str, Any]) -> None:
    text = {"type": "object", "properties": {"told": {"type": "string"}}, "required": ["told"]}
    node = {"id": "a", "handler": "transform", "config": {"template": "1"}}
    with Engine("memory://", workflows=[Greeting, Follower]) as engine:
        engine.save(Document({"name": "told", "input": text, "nodes": [node]}))
        for workflow in (Follower, "told"):
            with pytest.raises(InputError, match=wrong):
                engine.triggers.add(Trigger("then", workflow, input=input, **when))
            assert engine.triggers.all() == []


@pytest.mark.parametrize("input", [{"told": "{{ run.status }}"}, {"told": "x"}, "{{ run.outputs.greet }}"])
def test_what_is_known_only_when_a_trigger_fires_is_left_to_then(input: Any) -> None:
    with Engine("memory://", workflows=[Greeting, Follower]) as engine:
        engine.triggers.add(Trigger("then", Follower, run_finished=Greeting, input=input))


def test_a_template_names_a_field_that_there_is() -> None:
    with pytest.raises(TriggerError, match="run has no 'output'; there are id, workflow, status, input, outputs"):
        Trigger("then", Follower, run_finished=Greeting, input={"told": "{{ run.output.greet }}"})
    state = {"pipeline": "blog", "state_type": "digest"}
    with pytest.raises(
        TriggerError, match="state has no 'stateType'; there are entity, state_type, path, code_hash, content_h"
    ):
        Trigger("then", Follower, state=state, input={"told": "{{ state.stateType }}"})


def test_a_class_that_only_workers_have_is_started_by_one_without_its_code(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    with Engine(url) as worker, Engine(url, runner=None) as orchestrator:
        worker.work([Greeting], wait=0)
        with pytest.raises(InputError, match="who"):
            orchestrator.triggers.add(Trigger("bad", "Greeting", every=60, input={"who": 7}))
        for name, workflow in (("by-name", "Greeting"), ("by-target", Greeting.workflow_target)):
            orchestrator.triggers.add(Trigger(name, workflow, every=3_600, input={"who": name}))
            started = orchestrator.get(orchestrator.triggers.fire(name))
            started.wait(30)
            assert started.output("greet") == {"told": f"hello {name}"}


def test_a_workflow_whose_code_is_elsewhere_is_left_to_others() -> None:
    with Engine("memory://", runner=None) as engine, pytest.raises(NotHere):
        engine.triggers._start(Start("r", "nowhere.to.be:Found", {}, 0, {}))


def test_a_trigger_tells_what_it_lacks_before_it_is_due() -> None:
    with Engine("memory://", workflows=[Greeting]) as engine:

        def lacks(workflow: str) -> str | None:
            return engine.triggers.lacks(Trigger("tick", workflow, every=60))

        assert lacks("Greeting") is None
        assert lacks("shop.orders:Order") is None, "what is not imported is not looked for"
        assert "no document 'report' is stored here" in str(lacks("report"))
        engine.save(report())
        assert (lacks("report"), lacks("report@1")) == (None, None)
        assert "no document 'report@2' is stored here" in str(lacks("report@2"))


def test_triggers_are_read_from_files_with_everything_that_is_wrong(tmp_path: Path) -> None:
    one = tmp_path / "one.yaml"
    one.write_text("name: nightly\nworkflow: report\ncron: 30 2 * * *\ntimezone: Europe/Berlin\n")
    some = tmp_path / "some.json"
    some.write_text(json.dumps({"triggers": [{"name": "a", "workflow": "w", "every": "15m"}] * 2}))
    assert [each.name for each in load_triggers(one)] == ["nightly"]
    assert len(load_triggers(some)) == 2
    some.write_text(json.dumps([{"name": "a", "workflow": "w", "every": "15m"}]))
    assert [each.name for each in load_triggers(some)] == ["a"]
    for odd in ({"triggers": [], "name": "a"}, {"name": "a"}, [7]):
        some.write_text(json.dumps(odd))
        with pytest.raises(TriggerError):
            load_triggers(some)
    one.write_text("name: nightly\nworkflow: report\ncron: 30 25 * * *\ntimezone: Berlin\n")
    with pytest.raises(TriggerError) as refused:
        load_triggers(one)
    assert [problem.place for problem in refused.value.problems] == [("cron",), ("timezone",)]
    assert [problem.line for problem in refused.value.problems] == [3, 4]
    one.write_text("name: a\nname: b\nworkflow: w\nevery: 5s")
    with pytest.raises(InputError, match="more than once"):
        load_triggers(one)


class Declared(Workflow, triggers=[{"every": "1s", "input": {"who": "{{ trigger.name }}"}}]):
    who: str

    @step
    def greet(self) -> str:
        return self.who


def test_a_class_declares_its_triggers_and_takes_them_back() -> None:
    with Engine("memory://", workflows=[Declared]) as engine:
        wait_for(lambda: len(ended(engine, "Declared")) >= 1)
        stored = engine.triggers.get("Declared")
        assert stored.state.declared_in == "class Declared"
        with pytest.raises(InputError, match="is declared in class Declared"):
            engine.triggers.declare("document x", [Trigger("Declared", "x", every=5)])
        engine.triggers.declare("class Declared", ())
        assert engine.triggers.all() == []


def test_triggers_of_a_class_that_are_written_wrongly_show_the_line() -> None:
    with pytest.raises(DefinitionError, match=r"triggers\[0\]\.cron: cron expression '61 (?s:.*)test_triggers\.py"):

        class Wrong(Workflow, triggers=[{"cron": "61 * * * *"}]):
            @step
            def a(self) -> None: ...


def report(**more: Any) -> Document:
    nodes = [{"id": "a", "handler": "transform", "config": {"template": "1"}}]
    return Document({"name": "report", "nodes": nodes, **more})


def test_a_document_declares_its_triggers_and_the_active_version_counts() -> None:
    nightly, weekly = {"name": "nightly", "cron": "0 2 * * *"}, {"name": "weekly", "cron": "0 2 * * 0"}
    with Engine("memory://", runner=None) as engine:
        first = engine.save(report(triggers=[nightly, weekly]))
        assert [each.name for each in engine.triggers.all()] == ["nightly", "weekly"]
        assert engine.triggers.get("nightly").trigger.workflow == "report"
        engine.triggers.pause("nightly")
        engine.save(report(triggers=[{**nightly, "cron": "0 3 * * *"}]))
        (only,) = engine.triggers.all()
        assert (only.name, only.version, only.paused) == ("nightly", 2, True)
        engine.activate(str(first))
        assert [each.name for each in engine.triggers.all()] == ["nightly", "weekly"]
        engine.triggers.add(Trigger("mine", "report", every=60))
        with pytest.raises(InputError, match="'mine' of document report was added by itself"):
            engine.save(report(triggers=[{**nightly, "name": "mine"}]))
        assert len(engine.parts.documents.versions("report")) == 2  # what is refused is not stored
        engine.activate("report")
        engine.save(report())
        assert [each.name for each in engine.triggers.all()] == ["mine"]


def test_a_document_tells_what_is_wrong_with_its_triggers() -> None:
    with pytest.raises(DocumentError) as refused:
        report(triggers=[{"cron": "0 25 * * *", "overlap": "no"}, {"name": "b", "workflow": "x", "every": 5}, 7])
    assert [problem.path for problem in refused.value.problems if isinstance(problem, Problem)] == [
        "$.triggers[0]",
        "$.triggers[0].cron",
        "$.triggers[0].overlap",
        "$.triggers[1].workflow",
        "$.triggers[2]",
    ]
    assert report(triggers=[{"every": "15m"}]).triggers[0].name == "report"
    assert report(triggers=[{"every": "15m"}]).digest != report().digest
    again = Document.parse(report(triggers=[{"every": "15m"}]).content)
    assert again.canonical["triggers"] == [{"name": "report", "every": 900}]


PROGRAM = """
import sys, time
from stepwell import Engine, Workflow, step

class Slow(Workflow, name="Tick"):
    @step
    def a(self): return 1

if __name__ == "__main__":
    engine = Engine(sys.argv[1], workflows=[Slow])
    print("ready", flush=True)
    time.sleep(60)
"""


def test_processes_on_one_file_fire_each_time_once_although_one_is_killed(tmp_path: Path) -> None:
    """Three processes, one of which is killed: no time is missing between the first and the last."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    program = tmp_path / "ticking.py"
    program.write_text(PROGRAM)
    with Engine(url, runner=None) as engine:
        engine.triggers.add(Trigger("tick", "Tick", every=1, catch_up="all"))
        processes = [
            subprocess.Popen([sys.executable, program, url], stdout=subprocess.PIPE, text=True) for _ in range(3)
        ]
        try:
            for each in processes:
                assert each.stdout is not None
                assert each.stdout.readline() == "ready\n"
            wait_for(lambda: len(ended(engine, "tick")) >= 2)
            processes[0].kill()
            wait_for(lambda: len(ended(engine, "tick")) >= 5)
        finally:
            for each in processes:
                each.kill()
                each.wait(30)
                assert each.stdout is not None
                each.stdout.close()
        found = [run.id for run in engine.runs(tag={"trigger": "tick"})]
        state = engine.triggers.get("tick").state
        times = [state.added_at // 10**6 + 1 + count for count in range(len(found))]
        assert sorted(found) == [f"tick:{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(each))}" for each in times]
