"""What a stranger writes (documents, edited graphs, triggers, runs) reaches no function of Stepwell itself, and only pipelines
that this process was given are found."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stepwell
from stepwell import Builder, Engine, Pipeline, Workflow, step
from stepwell.core.store.memory import MemoryStore
from stepwell.define import ANYTHING, Registry
from stepwell.define.code.address import address_of
from stepwell.define.code.registry import ForData
from stepwell.define.document import Document
from stepwell.errors import DefinitionError, MissingJob
from stepwell.pipeline.building.found import GivenPipelines
from stepwell.pipeline.building.jobs import produce, produce_async
from stepwell.pipeline.building.work import Runs
from tests.engine import jobs as user_jobs
from tests.pipeline.blog import make_blog, statuses, write

A = "2026-01-15"


class Server(MemoryStore):
    """Stands for a store that others write to as well."""

    embedded = False

    def close(self) -> None:
        """Several engines share it."""


def own_functions() -> Iterator[str]:
    """The address of every function and class of Stepwell."""
    home = Path(stepwell.__file__).parent
    for file in home.rglob("*.py"):
        module = ".".join(("stepwell", *file.relative_to(home).with_suffix("").parts)).removesuffix(".__init__")
        for each in ast.parse(file.read_text()).body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield f"{module}:{each.name}"


def test_no_name_leads_to_a_function_of_stepwell_itself() -> None:
    own = list(own_functions())
    assert {address_of(each) for each in (produce, produce_async)} < set(own)
    assert len(own) > 1_000
    for finder in (ANYTHING, Registry(["stepwell"]), ForData(["stepwell"])):
        for address in own:
            with pytest.raises(DefinitionError, match="is a function of Stepwell itself"):
                finder.find(address)
    assert not any(map(ForData(["stepwell"]).knows, own))


class Charging(Workflow):
    charge = step(job=user_jobs.nothing)


def test_documents_name_what_is_registered_for_documents_and_nothing_else(root: Path) -> None:
    """Of everything that an engine has used for other work."""
    write(root, f"daily/{A}/a.txt", "text")
    w = Builder("given")
    w.node("double", job=user_jobs.double, args={"item": 2})
    with Engine(Server(), workflows=[Charging], jobs=["tests.pipeline.blog"]) as engine:
        engine.run(w)
        engine.run(Charging())
        assert make_blog(root).build(engine=engine).ok
        registry = engine.parts.code._registry
        registered = {*registry._things, *registry._names} | {address_of(each) for each in (produce, produce_async)}
        assert address_of(user_jobs.double) in registered
        assert address_of(user_jobs.nothing) in registered
        for address in sorted(each for each in registered if ":" in each):
            with pytest.raises(MissingJob):
                engine.start(document(address))
        with Engine(Server(), jobs=[__name__]) as allowed:
            with pytest.raises(MissingJob, match=r"_private is private, as its name begins with _"):
                allowed.start(document(f"{__name__}:_private"))
            assert allowed.run(document(f"{__name__}:public")).output("only") == "called"


def document(function: str) -> Document:
    return Document({"name": "asked", "nodes": [{"id": "only", "handler": function, "config": {}}]})


def public() -> str:
    return "called"


def _private() -> str:
    raise AssertionError("nobody may call this")


def failed_run(root: Path, engine: Engine) -> Any:
    write(root, f"daily/{A}/a.txt", "boom")
    pipeline = make_blog(root)
    report = pipeline.build(engine=engine)
    assert report.failed
    return engine.get(report.runs[0])


@pytest.mark.parametrize(
    "changed",
    [
        {"home": "never_named"},
        {"home": "/etc/secrets.json"},
        {"units": [[[A], {"files": ["../../secret.txt"]}]]},
        {"units": [[["another"], {}]]},
    ],
)
@pytest.mark.parametrize("embedded", [True, False])
def test_an_edited_graph_of_a_pipeline_run_gives_its_jobs_no_other_arguments(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], embedded: bool
) -> None:
    (tmp_path / "never_named.py").write_text("raise AssertionError('it was imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with Engine(MemoryStore() if embedded else Server(), jobs=["tests"]) as engine:
        run = failed_run(root, engine)
        form = run.export_graph()
        (node,) = form["nodes"].values()
        node["args"] |= changed
        run.import_graph(form)
        assert not run.graph.trusted
        with pytest.raises(MissingJob, match="is a function of Stepwell itself"):
            run.retry()
    assert "never_named" not in sys.modules


def test_a_graph_with_the_same_arguments_stays_trusted(root: Path) -> None:
    with Engine(Server()) as engine:
        run = failed_run(root, engine)
        form = run.export_graph()
        (node,) = form["nodes"].values()
        node["timeout"] = 60
        run.import_graph(form)
        assert run.graph.trusted
        assert run.retry().wait(30).status == "FAILED"
        assert [each.error.type for each in run.node(node["name"]).attempts] == ["ValueError"] * 2


def test_a_body_finds_only_pipelines_that_its_process_was_given(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "never_given.py").write_text("raise AssertionError('it was imported')")
    monkeypatch.syspath_prepend(tmp_path)
    given = make_blog(root)
    pipelines = GivenPipelines([given], lambda module: module == "tests.pipeline.absent")
    place = (given.name, given.store.root_id, "summary")
    assert pipelines.find(given.home, *place) is given
    (tmp_path / "other.json").write_text('{"secret": 1}')
    for home in ("never_given", str(tmp_path / "other.json"), "stored:any@1"):
        with pytest.raises(DefinitionError, match="was not given to this process") as refused:
            pipelines.find(home, *place)
        assert "secret" not in str(refused.value)
    with pytest.raises(ModuleNotFoundError):  # it is allowed, so it was looked for
        pipelines.find("tests.pipeline.absent", *place)


def test_a_worker_leaves_the_runs_of_pipelines_that_it_was_not_given(root: Path) -> None:
    write(root, f"daily/{A}/a.txt", "text")
    store, blog = Server(), make_blog(root)
    with Engine(store, runner=None) as idle:
        runs = Runs(blog, idle, None, {})  # type: ignore[arg-type]
        summary = [unit for unit in blog.view().model.all_units() if unit.stage.name == "summary"]
        run = idle.start(runs.graph_of(summary), tags=runs.tags("summary"))
    with Engine(store) as other:
        with pytest.raises(MissingJob, match=r"was not given to this process: allow its module \(`stepwell work"):
            other.adopt(run.id)
        assert other.get(run.id).nodes()[0].attempts == ()
    with Engine(store, pipelines=[blog]) as engine:
        assert engine.adopt(run.id).wait(30).status == "COMPLETED"


def test_a_scanner_publishes_nothing_of_a_run_that_somebody_else_wrote(root: Path, tmp_path: Path) -> None:
    """Who may post graphs chooses the name, the tags and the outputs of a run."""
    write(root, f"daily/{A}/a.txt", "text")
    blog = make_blog(root)
    with Engine(Server(), jobs=[__name__]) as engine:
        assert blog.build(engine=engine).ok
        before = statuses(blog)
        runs = Runs(blog, engine, None, {})  # type: ignore[arg-type]
        runs.scan_number = blog.store.lease_number("auto-blog")
        w = Builder(runs.workflow)
        w.node("summary x", job=forged)
        engine.run(w, tags=runs.tags("summary"))
        waiting = Builder(runs.workflow)
        waiting.node("summary y", job=forged, queue="that nobody serves")
        engine.start(waiting, tags=runs.tags("summary"))
        write(root, f"daily/{A}/b.txt", "more")
        assert blog.build(engine=engine).ok
    assert statuses(blog) == before
    assert not (root / "forged.txt").exists()


def forged() -> dict[str, Any]:
    unit = ["x", "", {}, [["forged.txt", "forged", "", None]]]
    return {"stage": "summary", "common": [""] * 5, "seconds": 0, "units": [unit], "failed": {}}


STAGES = """
from stepwell import Pipeline
import os
states = Pipeline("states", root=os.environ["STATES_ROOT"])
@states.stage(input="in/{x}.txt", output="out/{x}.txt", isolation="process")
def pids(text: str) -> str:
    return f"{text} {os.getpid()}"
"""


def test_a_child_process_makes_states_of_what_its_parent_was_given(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "given_states.py").write_text(STAGES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("STATES_ROOT", str(root))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    import given_states  # type: ignore[import-not-found]

    write(root, "in/a.txt", "text")
    pipeline: Pipeline = given_states.states
    with Engine(f"sqlite:///{tmp_path}/engine.db") as engine:
        report = pipeline.build(engine=engine)
        assert report.ok, report
    assert (root / "out/a.txt").read_text().startswith("text ")
