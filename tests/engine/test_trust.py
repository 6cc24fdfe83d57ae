"""What came from elsewhere runs only what is registered here. What a program put into an embedded store needs no settings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from stepwell import Builder, Delta, Engine, Run, Workflow, step
from stepwell.base.codec import encode, sha256
from stepwell.core.graph import Graph, from_frozen
from stepwell.core.model import ListUnfinished
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.reports.replay import replay_cassette
from stepwell.errors import DefinitionError, InputError, MissingJob
from stepwell.history.replay.loading import load_cassette, read_cassette
from stepwell.reducers import add
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually

FOREIGN = """
import os
import shutil
from os import getcwd
from stepwell import Workflow, step, Delta

with open(__file__ + ".imported", "a") as marker:
    marker.write("x")

def wipe(folder="."):
    with open(__file__ + ".ran", "a") as marker:
        marker.write("x")
    return "wiped"

_wipe_all = wipe

class Busy(Exception): ...

class State:
    total: int = 0

class Foreign(Workflow):
    @step(side_effects="pure")
    def wipe(self):
        return wipe()

remove = shutil.rmtree
"""


class Module:
    """A module that somebody else wrote; it notes that it was imported, and that its job ran."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.stem, path
        path.write_text(FOREIGN)

    @property
    def imported(self) -> bool:
        return Path(f"{self._path}.imported").exists()

    @property
    def ran(self) -> bool:
        return Path(f"{self._path}.ran").exists()


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    (tmp_path / "code").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "code")
    module = Module(tmp_path / "code" / "foreign_module.py")
    yield module
    sys.modules.pop(module.name, None)


def half_done(engine: Engine, **options: Any) -> Run:
    """A run of which `first` has completed; it is paused."""
    w = Builder("edited", on_failure="pause", **options)
    w.node("first", job=jobs.double, args={"item": 4})
    w.node("second", job=jobs.fail)
    run = engine.start(w)
    assert run.wait(30).status == "PAUSED"
    return run


def edited(run: Run, job: str, **options: Any) -> dict[str, Any]:
    form = run.export_graph()
    (node,) = (each for each in form["nodes"].values() if each["name"] == "second")
    node |= {"job": job, "args": {}, **options}
    return form


# Imported graphs


@pytest.mark.parametrize("body", ["thread", "process"])
def test_an_imported_graph_runs_no_job_that_nobody_here_allowed(
    open_sqlite: OpenEngine, foreign: Module, body: str
) -> None:
    engine = open_sqlite(jobs=["tests"])
    run = half_done(engine)
    run.import_graph(edited(run, f"{foreign.name}:wipe", body=body))
    before, other = run.row, open_sqlite(jobs=["tests.engine"])
    for ask in (run.retry, run.resume, lambda: engine.adopt(run.id), lambda: other.get(run.id).retry()):
        with pytest.raises(MissingJob) as refused:
            ask()
        assert f"{foreign.name}:wipe is not registered here" in str(refused.value)
        assert f'Engine(jobs=["{foreign.name}"]), --jobs {foreign.name}' in str(refused.value)
        assert (refused.value.node, refused.value.job) == ("second", f"{foreign.name}:wipe")
    assert run.row == before
    assert len(run.node("second").attempts) == 1
    assert not foreign.imported
    allowed = open_sqlite(jobs=[foreign.name, "tests"]).get(run.id)
    assert allowed.retry().wait(30).output("second") == "wiped"


def test_a_graph_that_is_imported_while_the_run_is_worked_on_runs_nothing_either(
    open_sqlite: OpenEngine, foreign: Module
) -> None:
    engine = open_sqlite()
    w = Builder("edited")
    w.node("first", job=jobs.nap, args={"seconds": 0.3})
    w.node("second", job=jobs.nothing)
    run = engine.start(w)
    run.import_graph(edited(run, f"{foreign.name}:wipe"))
    worker = open_sqlite()
    worker.work(wait=0)
    (needed,) = worker.store.read([ListUnfinished()])[0]
    assert worker.parts.serving.can_serve(needed) is False
    assert "is not registered" in (worker.parts.serving.why_not(needed) or "")
    eventually(lambda: run.node("first").status == "COMPLETED")
    with pytest.raises(Exception, match="still"):
        run.wait(0.5)
    assert run.node("second").status == "READY"
    assert all(attempt.status == "RELEASED" for attempt in run.node("second").attempts)
    assert not foreign.imported
    assert open_sqlite(jobs=[foreign.name, "tests"]).adopt(run.id).wait(30).output("second") == "wiped"


def test_a_fork_and_a_freeze_and_another_import_are_as_little_trusted(open_sqlite: OpenEngine, foreign: Module) -> None:
    run = half_done(open_sqlite())
    run.import_graph(edited(run, f"{foreign.name}:wipe"))
    assert not run.graph.trusted
    engine = open_sqlite(runner=None)
    fork = engine.get(run.id).fork("second", run_id="fork")
    with pytest.raises(MissingJob, match="is not registered"):
        open_sqlite().adopt(fork.id)
    assert not engine.get(run.id).freeze().graph.trusted
    assert not run.import_graph(edited(run, f"{foreign.name}:wipe", timeout=5)).graph.trusted
    assert not run.import_graph(edited(run, "tests.engine.jobs:double")).graph.trusted
    assert not foreign.imported
    assert open_sqlite(jobs=[foreign.name, "tests.engine"]).adopt("fork").wait(30).output("second") == "wiped"


def test_what_the_run_called_before_needs_no_settings(open_sqlite: OpenEngine) -> None:
    run = half_done(open_sqlite())
    form = edited(run, "tests.engine.jobs:double", args={"item": 4}, timeout=20)
    assert run.import_graph(form).graph.trusted
    assert open_sqlite().get(run.id).retry().wait(30).output("second") == 8


@pytest.mark.parametrize(("job", "args"), [("double", {"item": 3}), ("total", {})])
def test_other_arguments_and_what_some_builder_was_given_need_their_module_allowed(
    open_sqlite: OpenEngine, job: str, args: dict[str, Any]
) -> None:
    """Or who may edit graphs could call whatever this process has ever run, with anything."""
    engine = open_sqlite()
    given = Builder("given")
    given.node("total", job=jobs.total)
    engine.run(given, check=False)
    run = half_done(engine)
    assert not run.import_graph(edited(run, f"tests.engine.jobs:{job}", args=args)).graph.trusted
    for other in (engine, open_sqlite()):
        with pytest.raises(MissingJob, match="is not registered here"):
            other.get(run.id).retry()
    allowed = half_done(open_sqlite(jobs=["tests.engine"]))
    assert allowed.import_graph(edited(allowed, f"tests.engine.jobs:{job}", args=args)).graph.trusted
    for each in (run, allowed):
        assert open_sqlite(jobs=["tests.engine"]).get(each.id).retry().wait(30).status == "COMPLETED"


def test_the_jobs_of_a_class_that_was_given_are_not_registered_for_data(open_sqlite: OpenEngine) -> None:
    run = half_done(open_sqlite())
    run.import_graph(edited(run, "tests.engine.jobs:nothing"))
    with pytest.raises(MissingJob) as refused:
        open_sqlite().adopt(run.id)
    assert refused.value.job == "tests.engine.jobs:double"
    assert refused.value.others == ("tests.engine.jobs:nothing",)
    assert "(also missing: tests.engine.jobs:nothing)" in str(refused.value)
    other = half_done(open_sqlite(workflows=[Naming]))
    assert not other.import_graph(edited(other, "tests.engine.jobs:nothing")).graph.trusted


class Naming(Workflow):
    @step
    def first(self) -> None:
        raise ValueError

    @step
    def second(self) -> None: ...

    mail = step(job="tests.engine.jobs:nothing")


def test_an_edited_graph_of_a_class_reaches_its_methods_and_not_its_jobs(
    open_sqlite: OpenEngine, foreign: Module
) -> None:
    run = open_sqlite().run(Naming(), check=False)
    form = run.export_graph()
    form["nodes"]["first"] |= {"job": f"{foreign.name}:wipe"}
    run.import_graph(form)
    with pytest.raises(MissingJob) as refused:
        open_sqlite().get(run.id).retry()
    assert (refused.value.job, refused.value.others) == (f"{foreign.name}:wipe", ("tests.engine.jobs:nothing",))
    assert open_sqlite(jobs=[foreign.name, "tests.engine.jobs"]).get(run.id).retry().wait(30).status == "COMPLETED"


@pytest.mark.parametrize(
    ("path", "home"),
    [("shutil.rmtree", "shutil"), ("remove", "shutil"), ("getcwd", "posix"), ("os.environ.clear", "collections.abc")],
)
def test_an_allowed_module_allows_what_it_defines_and_not_what_it_imported(
    open_sqlite: OpenEngine, foreign: Module, path: str, home: str
) -> None:
    run = half_done(open_sqlite())
    run.import_graph(edited(run, f"{foreign.name}:{path}"))
    with pytest.raises(MissingJob, match=f"is defined in {home}, which is not allowed"):
        open_sqlite(jobs=[foreign.name, "tests"]).get(run.id).retry()


def test_what_an_address_leads_to_decides_also_whether_an_import_is_trusted(
    open_sqlite: OpenEngine, foreign: Module
) -> None:
    """Or a trusted run would call it, wherever it comes from."""
    __import__(foreign.name)
    run = half_done(open_sqlite(jobs=[foreign.name]))
    assert not run.import_graph(edited(run, f"{foreign.name}:remove")).graph.trusted
    other = half_done(open_sqlite(jobs=[foreign.name]))
    assert other.import_graph(edited(other, f"{foreign.name}:wipe")).graph.trusted


def test_a_module_allows_those_below_it_and_no_other_that_begins_like_it(foreign: Module) -> None:
    from stepwell.define import NotRegistered, Registry

    assert Registry(["tests"]).find("tests.engine.jobs:double") is jobs.double
    assert Registry(["tests.engine.jobs"]).find("tests.engine.jobs:double") is jobs.double
    assert Registry(["tests"]).allows("tests.engine.jobs:double")
    assert not Registry(["tests"]).allows("tests"), "a name without a colon is no address"
    for modules in ([], ["test"], ["tests.engine.job"], ["tests.engine.jobs.more"], ["foreign"]):
        assert not Registry(modules).allows("tests.engine.jobs:double")
        with pytest.raises(NotRegistered):
            Registry(modules).find("tests.engine.jobs:double")
        with pytest.raises(NotRegistered):
            Registry(modules).find(f"{foreign.name}:wipe")
    assert not foreign.imported


@pytest.mark.parametrize("name", ["foreign_module.Busy", "foreign_module.Outer.Busy"])
def test_an_exception_of_an_imported_graph_is_not_imported(open_sqlite: OpenEngine, foreign: Module, name: str) -> None:
    run = half_done(open_sqlite())
    form = edited(run, "tests.engine.jobs:fail", retry={"max_attempts": 2, "retry_on": [name]})
    run.import_graph(form)
    with pytest.raises(MissingJob, match=f"retry_on='{name}' is not registered here"):
        open_sqlite(jobs=["tests"]).get(run.id).retry()
    assert not foreign.imported


@pytest.mark.parametrize(("name", "tries"), [("ValueError", 3), ("json.JSONDecodeError", 1), ("builtins.Exception", 3)])
def test_an_exception_in_data_is_looked_up_when_the_run_is_taken_up(
    open_sqlite: OpenEngine, name: str, tries: int
) -> None:
    run = half_done(open_sqlite())
    retry = {"max_attempts": 3, "base_delay": 0.001, "retry_on": [name]}
    run.import_graph(edited(run, "tests.engine.jobs:fail", retry=retry))
    again = open_sqlite(jobs=["tests"]).get(run.id).retry()
    assert again.wait(30).status == "PAUSED"
    # The engine of before may have claimed it once more, and given it back.
    assert len([each for each in run.node("second").attempts if each.status != "RELEASED"]) == 1 + tries


@pytest.mark.parametrize("name", ["NoSuchErr", "json.NoSuchErr", "json.loads"])
def test_an_exception_in_data_that_there_is_not_is_told_then(open_sqlite: OpenEngine, name: str) -> None:
    run = half_done(open_sqlite())
    run.import_graph(edited(run, "tests.engine.jobs:fail", retry={"max_attempts": 3, "retry_on": [name]}))
    with pytest.raises(MissingJob, match=f"retry_on='{name}'"):
        open_sqlite(jobs=["tests"]).get(run.id).retry()
    assert len(run.node("second").attempts) == 1


class Totals:
    total: Annotated[int, add] = 0


def test_the_state_of_an_imported_graph_must_be_registered_too(open_sqlite: OpenEngine, foreign: Module) -> None:
    engine = open_sqlite()
    run = half_done(engine)
    form = edited(run, "tests.engine.jobs:double", args={"item": 1}) | {"state": f"{foreign.name}:State"}
    run.import_graph(form)
    with pytest.raises(MissingJob, match=f"the code of run .* is missing: {foreign.name}:State is not registered"):
        open_sqlite(jobs=["tests"]).get(run.id).retry()
    with pytest.raises(DefinitionError, match="is not registered"):
        _ = run.state
    with pytest.raises(InputError, match="is not registered"):
        run.export("nowhere.json")
    assert not foreign.imported
    assert open_sqlite(jobs=["tests", foreign.name]).get(run.id).retry().wait(30).state == {"total": 0}


def add_one() -> Delta:
    return Delta(total=1)


def test_the_state_of_an_imported_graph_may_be_in_an_allowed_module(open_sqlite: OpenEngine) -> None:
    engine = open_sqlite(jobs=["tests"])
    w = Builder("counted", state=Totals)
    w.node("one", job=add_one)
    engine.run(w)
    run = half_done(engine)
    form = edited(run, f"{__name__}:add_one") | {"state": f"{__name__}:Totals"}
    assert run.import_graph(form).graph.trusted
    assert open_sqlite(jobs=["tests"]).get(run.id).retry().wait(30).state == {"total": 1}


def test_trust_is_part_of_what_is_stored_and_of_nothing_that_people_write(open_sqlite: OpenEngine) -> None:
    run = half_done(open_sqlite())
    run.import_graph(edited(run, "shutil:rmtree"))
    again = Graph.load(run.graph.document)
    assert (again.trusted, again.digest) == (False, run.row.digest)
    assert "trusted" not in run.export_graph()
    with pytest.raises(DefinitionError, match="no such field"):
        from_frozen({**run.export_graph(), "trusted": True})


# Cassettes


def cassette(job: str, args: dict[str, Any], target: str | None = None) -> str:
    node: dict[str, Any] = {"id": "wipe", "side_effects": "pure"}
    if target is None:
        node |= {"job": job} | ({"args": args} if args else {})
    graph = [node]
    digest = sha256(encode(graph))
    run = {"id": "r", "workflow": "w", "status": "COMPLETED", "input": {}, "seed": "1", "graph": digest}
    done = {"index": 0, "id": "wipe", "attempt": 1, "generation": 0, "output": "wiped", "effects": []}
    done["sha256"] = sha256(encode("wiped"))
    form = {"cassette": 1, "run": run | {"target": target}, "graphs": {digest: graph}, "nodes": [done]}
    return json.dumps(form)


def test_a_cassette_deletes_no_folder(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    recorded = read_cassette(cassette("shutil:rmtree", {"path": str(victim)}))
    with pytest.raises(MissingJob, match="shutil:rmtree is not registered here"):
        replay_cassette(recorded)
    with pytest.raises(MissingJob, match="shutil:rmtree is not registered here"):
        replay_cassette(recorded, jobs=["tests"])
    assert victim.exists()


def test_a_cassette_reaches_no_private_function_of_an_allowed_module(foreign: Module) -> None:
    with pytest.raises(MissingJob, match="is private, as its name begins with _"):
        replay_cassette(read_cassette(cassette(f"{foreign.name}:_wipe_all", {})), jobs=[foreign.name])


def test_a_cassette_imports_nothing_that_is_not_allowed(foreign: Module, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(cassette(f"{foreign.name}:wipe", {}))
    recorded = load_cassette(tmp_path / "x.json")
    with pytest.raises(MissingJob, match="is not registered here"):
        replay_cassette(recorded)
    assert not foreign.imported
    assert replay_cassette(recorded, jobs=[foreign.name]).executed == ("wipe",)


def test_the_class_of_a_cassette_must_be_given_or_its_module_allowed(foreign: Module) -> None:
    recorded = read_cassette(cassette("", {}, target=f"{foreign.name}:Foreign"))
    with pytest.raises(MissingJob, match=f"{foreign.name}:Foreign is not registered here"):
        replay_cassette(recorded)
    assert not foreign.imported
    assert replay_cassette(recorded, jobs=[foreign.name]).executed == ("wipe",)

    class Own(Workflow):
        @step(side_effects="pure")
        def wipe(self) -> str:
            return "wiped"

    assert replay_cassette(recorded, Own).executed == ("wipe",)


# Servers


class Server(MemoryStore):
    """Stands for a store that others write to as well."""

    embedded = False

    def close(self) -> None:
        """Several engines share it."""


def test_on_a_server_a_function_that_a_builder_was_given_is_registered_and_a_name_is_not(foreign: Module) -> None:
    store = Server()
    w = Builder("given")
    w.node("double", job=jobs.double, args={"item": 2})
    with Engine(store) as engine:
        assert engine.run(w).output("double") == 4
        w.node("wipe", job=f"{foreign.name}:wipe")
        with pytest.raises(MissingJob, match=r"is not registered here: it is given to the Builder as text") as refused:
            engine.start(w)
        assert "Give the function itself (`job=wipe` instead of" in refused.value.reason
        assert f'allow its module: Engine(jobs=["{foreign.name}"])' in refused.value.reason
        assert "elsewhere" not in str(refused.value)
        assert len(engine.runs()) == 1
    assert not foreign.imported


def test_who_only_starts_runs_on_a_server_needs_no_code(foreign: Module) -> None:
    """Whoever works on them does, and looks whether it is registered there."""
    store = Server()
    w = Builder("names")
    w.node("wipe", job=f"{foreign.name}:wipe")
    with Engine(store, runner=None) as sender:
        run = sender.start(w)
        assert not foreign.imported
        with Engine(store) as careful:
            with pytest.raises(MissingJob, match="is not registered here, and what names it came from elsewhere"):
                careful.adopt(run.id)
            assert not foreign.imported
        with Engine(store, jobs=[foreign.name]) as worker:
            assert worker.adopt(run.id).wait(30).status == "COMPLETED"


def test_on_a_server_runs_of_others_need_what_they_name_registered(foreign: Module) -> None:
    store = Server()
    w = Builder("names")
    w.node("wipe", job=f"{foreign.name}:wipe")
    with Engine(store, runner=None, jobs=[foreign.name]) as sender:
        dynamic = sender.start(w)
        foreign_class = __import__(foreign.name).Foreign
        of_class = sender.start(foreign_class())
    with Engine(store) as engine:
        for run in (dynamic, of_class):
            with pytest.raises(MissingJob, match="is not registered here"):
                engine.adopt(run.id)
            assert engine.get(run.id).nodes()[0].attempts == ()
        engine.work(wait=0)
        assert not any(engine.parts.serving.can_serve(needed) for needed in store.read([ListUnfinished()])[0])
    assert not foreign.ran
    with Engine(store, workflows=[foreign_class]) as engine:
        assert engine.adopt(of_class.id).wait(30).status == "COMPLETED"
    with Engine(store, jobs=[foreign.name]) as engine:
        assert engine.adopt(dynamic.id).wait(30).status == "COMPLETED"


@pytest.mark.parametrize("wrong", ["shop.jobs", [7], ["shop:jobs"], [""], 3, [jobs]])
def test_what_is_no_list_of_modules_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"jobs=.*expected a list of names of modules"):
        Engine("memory://", jobs=wrong)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("ValueError", True),
        ("builtins.ValueError", True),
        ("tests.engine.jobs.Refused", True),
        ("subprocess.CalledProcessError", False),
        ("tests.engine.jobs:double", True),
        ("tests.engine.jobs:_private", False),
        ("subprocess:run", False),
    ],
)
def test_what_data_may_name_is_known_without_importing_anything(name: str, known: bool) -> None:
    from stepwell.define import Registry

    assert Registry(["tests.engine.jobs"]).for_data.knows(name) is known
