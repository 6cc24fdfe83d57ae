"""What a scanner that died has left: its runs are finished by the next one, its failures back off, paused runs stay paused."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from stepwell import Engine, Pipeline
from stepwell.pipeline.building.build import Scanner
from stepwell.pipeline.building.found import GivenPipelines
from stepwell.pipeline.building.verdict import Listed
from stepwell.pipeline.building.work import Runs
from stepwell.pipeline.states.files.store import FileStates
from stepwell.pipeline.states.notes import read_failures
from tests.forking.template import Template
from tests.pipeline.blog import statuses, write

PROGRAM = """
import os, signal, sys
from stepwell import Pipeline
dying = Pipeline("dying", root=os.environ["ROOT"])

@dying.stage(input="in/{x}", output="out/{x}", version="1")
def fail(text: str, entity) -> str:
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(f"{entity}\\n")
    raise ValueError(text)

if __name__ == "__main__":
    from dying import dying as imported
    from stepwell.pipeline.building import work
    if sys.argv[2:] == ["die"]:
        work.change_failures = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    report = imported.build(engine=sys.argv[1])
    print(dict(sorted(report.left.items())))
"""


def test_what_failed_backs_off_although_the_scanner_died(tmp_path: Path, template: Template) -> None:
    (tmp_path / "dying.py").write_text(PROGRAM)
    ledger = tmp_path / "ledger"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ, "ROOT": str(tmp_path / "root"), "LEDGER": str(ledger), "PYTHONPATH": str(tmp_path)
        }  # fmt: skip
        words = [str(tmp_path / "dying.py"), f"sqlite:///{tmp_path}/engine.db", *arguments]
        return template.run(words, cwd=tmp_path, env=environment, timeout=100)

    for name in ("a", "b"):
        write(tmp_path / "root", f"in/{name}", "text")
    assert run("die").returncode == -signal.SIGKILL
    last = run()
    assert last.stdout == "{'fail a': 'failed', 'fail b': 'failed'}\n", last.stderr
    assert sorted(ledger.read_text().split()) == ["a", "b"]
    assert run("die").returncode == 0  # there is nothing to write down
    write(tmp_path / "root", "in/a", "another text")
    assert run("die").returncode == -signal.SIGKILL
    write(tmp_path / "root", "in/a", "it changed after it had failed")
    assert run().stdout == "{'fail a': 'failed', 'fail b': 'failed'}\n"
    assert sorted(ledger.read_text().split()) == ["a", "a", "a", "b"]


def make(root: Path, ran: list[str]) -> Pipeline:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}", output="out/{x}", limit=1, version="1")
    def copy(text: str, entity, ctx) -> str:
        ran.append(entity.id)
        return text

    return pipeline


def test_a_paused_run_keeps_what_it_was_started_for(root: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(root, f"in/{name}", name)
    ran: list[str] = []
    with Engine(f"sqlite:///{tmp_path}/engine.db", runner=None) as idle:
        # A scanner that died when it had started a run, which somebody paused then.
        left = make(root, ran)
        runs = Runs(left, idle, None, {})  # type: ignore[arg-type]
        chosen = [unit for unit in left.view().model.all_units() if unit.entity == "a"]
        run = idle.start(runs.graph_of(chosen), tags=runs.tags("copy"))
        idle.get(run.id).pause()
    with Engine(f"sqlite:///{tmp_path}/engine.db") as engine:
        report = make(root, ran).build(engine=engine)
        assert report.left == {"copy a": "paused"}
        assert ran == ["b"]
        engine.get(run.id).resume()
        make(root, ran).build(engine=engine)
        assert statuses(make(root, ran)) == {"copy a": "fresh", "copy b": "fresh"}
        assert sorted(ran) == ["a", "b"]


@pytest.mark.parametrize("paused", [True, False])
def test_a_run_that_ends_while_a_scan_begins_is_not_repeated(
    root: Path, tmp_path: Path, paused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After what is on disk was listed, and before it is asked which runs are unfinished."""
    write(root, "in/a", "text")
    ran: list[str] = []
    left = make(root, ran)
    with Engine(f"sqlite:///{tmp_path}/engine.db", runner=None) as engine:
        runs = Runs(left, engine, None, {})  # type: ignore[arg-type]
        runs.scan_number = 1
        run = engine.start(runs.graph_of(list(left.view().model.all_units())), tags=runs.tags("copy"))
        number = 1  # its scanner has died
        if paused:
            engine.get(run.id).pause()
            assert left.build(engine=engine).left == {"copy a": "paused"}
            engine.get(run.id).resume()
            number = left.store.lease_number("p")
        listed = Listed(number, left.store.files.walk(left.connections.wanted))
        with Engine(f"sqlite:///{tmp_path}/engine.db", pipelines=[left]) as other:
            assert other.adopt(run.id).wait().status == "COMPLETED"
        with Scanner(left, engine) as scanner:
            # A scanner that died has everything listed again under the lease; that listing is as early.
            walked = [listed.folders] if not paused else []
            walk = left.store.files.walk
            monkeypatch.setattr(left.store.files, "walk", lambda wanted: walked.pop() if walked else walk(wanted))
            assert scanner.scan(listed=listed).ok
        assert statuses(left) == {"copy a": "fresh"}
    assert ran == ["a"]


def test_a_worker_waits_for_a_module_that_another_thread_imports(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slowly.py").write_text(
        "import threading, time\nfrom stepwell import Pipeline\n"
        f"slowly = Pipeline('slowly', root={str(root)!r})\n"
        "threading.current_thread().half_way.set()\ntime.sleep(0.3)\n"
        "@slowly.stage(input='in/{x}', output='out/{x}')\ndef copy(text: str) -> str: return text\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=importlib.import_module, args=("slowly",))
    half_way = thread.half_way = threading.Event()  # type: ignore[attr-defined]
    thread.start()
    assert half_way.wait(30)
    root_id = Pipeline("other", root=root).store.root_id
    try:
        given = GivenPipelines([], lambda module: module == "slowly")
        assert "copy" in given.find("slowly", "slowly", root_id, "copy").stages
    finally:
        thread.join()
        del sys.modules["slowly"]


def test_a_pipeline_of_the_module_that_python_was_started_with_is_the_one_that_is_there(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing the module by its name would run the program a second time."""
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec("started", None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec(f"from stepwell import Pipeline\nstarted = Pipeline('started', root={str(root)!r})", main.__dict__)
    main.started.stage("copy", input="in/{x}", output="out/{x}", version="1")(lambda text: text)
    given = GivenPipelines([], lambda module: module == "started")
    assert given.find("started", "started", main.started.store.root_id, "copy") is main.started


def test_a_root_leaves_the_runs_of_another_root_alone(tmp_path: Path) -> None:
    """Two checkouts of one project that share an engine's store."""
    ran: list[str] = []
    roots = [tmp_path / "one", tmp_path / "two"]
    for folder in roots:
        write(folder, "in/a", "text")
    with Engine(f"sqlite:///{tmp_path}/engine.db", runner=None) as idle:
        left = make(roots[0], ran)
        runs = Runs(left, idle, None, {})  # type: ignore[arg-type]
        run = idle.start(runs.graph_of(list(left.view().model.all_units())), tags=runs.tags("copy"))
    with Engine(f"sqlite:///{tmp_path}/engine.db") as engine:
        assert make(roots[1], ran).build(engine=engine).ok
        assert engine.get(run.id).status == "PENDING"
        assert make(roots[0], ran).build(engine=engine).ok
        assert engine.get(run.id).status == "COMPLETED"
    left = make(roots[0], ran)
    assert read_failures(left.store.notes, left.name) == {}
    assert ran == ["a", "a"]


@pytest.mark.parametrize("newer", ["newer", "OLDER"], ids=["of-other-content", "of-the-same-content"])
def test_what_a_crash_left_never_replaces_a_newer_result(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newer: str
) -> None:
    """Also if both are of one second: the newer was built with another engine, which does not know the run. Nor does it replace
    the record of one that came out the same of other inputs.
    """
    pipeline = Pipeline("p", root=root)
    pipeline.stage("copy", input="in/{x}", output="out/{x}", version="1")(_lower)
    one, other = (f"sqlite:///{tmp_path}/{name}.db" for name in ("one", "other"))
    write(root, "in/a", "older")
    monkeypatch.setattr(
        "stepwell.pipeline.building.jobs.utc_text", lambda time: "2026-01-15T10:30:00Z"
    )  # in one second
    with monkeypatch.context() as dying:
        dying.setattr(FileStates, "publish", _die)
        with pytest.raises(KeyboardInterrupt):
            pipeline.build(engine=one)
    assert not (root / "out/a").exists()
    assert list((root / "out").glob(".stepwell-*"))
    write(root, "in/a", newer)
    assert pipeline.build(engine=other).produced == ("copy a",)
    record = pipeline.why("out/a").record
    assert pipeline.build(engine=one).produced == ()
    assert pipeline.why("out/a").record == record
    assert (root / "out/a").read_text() == newer.lower()
    assert not list((root / "out").glob(".stepwell-*"))
    assert not (root / ".stepwell/aside").exists()


def _same(text: str) -> str:
    return text


def _lower(text: str) -> str:
    return text.lower()


def _die(*arguments: object) -> None:
    raise KeyboardInterrupt
