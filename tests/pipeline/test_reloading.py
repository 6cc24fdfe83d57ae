"""`stepwell pipeline watch` goes on with new code, and with the old one while the new one is broken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stepwell import Engine, Pipeline
from stepwell.errors import DefinitionError
from stepwell.pipeline.building.watch import Watcher
from tests.pipeline.blog import write

HELPER = "def change(text):\n    return text.{how}()\n"
STAGES = """
from stepwell import Pipeline
from helper import change
watched = Pipeline("watched", root="root")

@watched.stage(input="in/{x}", output="out/{x}")
def stage(text: str) -> str:
    return change(text)
"""


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    give_up_at = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up_at, "it took too long"
        assert process is None or process.poll() is None, "the process ended"
        time.sleep(0.05)


HANDLER = (
    "from stepwell import handler\n"
    + HELPER
    + "\n@handler('changed')\ndef changed(ctx, config): return change(config['input'])\n"
)
DOCUMENT = """
mode: pipeline
stateRoot: root
scanInterval: 600
nodes:
  - {id: scan, typeId: state_scan, data: {pattern: "in/{x}"}}
  - {id: stage, typeId: state_transform, data: {output: "out/{{ $.scan.id }}", transform: changed}}
connections: [{sourceNodeId: scan, targetNodeId: stage}]
"""


@pytest.mark.parametrize("form", ["module", "document", "document that is up to date"])
def test_new_code_is_used_as_soon_as_it_is_written(tmp_path: Path, form: str) -> None:
    (tmp_path / "stages.py").write_text(STAGES)
    (tmp_path / "document.yaml").write_text(DOCUMENT)
    (tmp_path / "stepwell.toml").write_text("" if form == "module" else "handlers = ['helper']")
    code, name = (HELPER, "stages:watched") if form == "module" else (HANDLER, "document.yaml")
    (tmp_path / "helper.py").write_text(code.format(how="upper"))
    write(tmp_path / "root", "in/a", "Text")
    said, made = tmp_path / "said", tmp_path / "root/out/a"
    command = [sys.executable, "-m", "stepwell", "pipeline"]
    place = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(tmp_path)}}
    if form == "document that is up to date":
        subprocess.run([*command, "build", "-p", name], **place, check=True)  # type: ignore[call-overload]
    with said.open("w") as errors:
        process = subprocess.Popen([*command, "watch", "-p", name], **place, stderr=errors, text=True)  # type: ignore[call-overload]
    try:
        wait_for(lambda: "watching" in said.read_text() and made.exists() and made.read_text() == "TEXT", process)
        (tmp_path / "helper.py").write_text(code.format(how="lower"))
        wait_for(lambda: made.read_text() == "text", process)
        (tmp_path / "helper.py").write_text("def change(text: ...")
        wait_for(lambda: "SyntaxError" in said.read_text(), process)
        write(tmp_path / "root", "in/b", "Other")
        wait_for((tmp_path / "root/out/b").exists, process)
        assert (tmp_path / "root/out/b").read_text() == "other"
        (tmp_path / "helper.py").write_text(code.format(how="title"))
        wait_for(lambda: made.read_text() == "Text" and (tmp_path / "root/out/b").read_text() == "Other", process)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in said.read_text()


def test_a_document_is_loaded_again_as_soon_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "document.yaml").write_text(DOCUMENT)
    (tmp_path / "stepwell.toml").write_text("handlers = ['helper']")
    (tmp_path / "helper.py").write_text(HANDLER.format(how="upper"))
    write(tmp_path / "root", "in/a", "Text")
    said, made, more = tmp_path / "said", tmp_path / "root/out/a", tmp_path / "root/more/a"
    with said.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "stepwell", "pipeline", "watch", "-p", "document.yaml"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            stderr=errors,
            text=True,
        )
    try:
        wait_for(lambda: "watching" in said.read_text() and made.exists(), process)
        (tmp_path / "document.yaml").write_text(DOCUMENT.replace("nodes:", "nodes: what"))
        wait_for(lambda: "document.yaml" in said.read_text().partition("watching")[2], process)
        (tmp_path / "document.yaml").write_text(DOCUMENT.replace('"out/', '"more/'))
        wait_for(more.exists, process)
        assert more.read_text() == "TEXT"
        process.send_signal(signal.SIGINT)
        process.wait(60)
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in said.read_text()


def test_what_was_written_and_not_loaded_is_never_taken_for_what_ran(
    tmp_path: Path, root: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "edited_stages.py").write_text(STAGES.replace("helper", "edited_helper").replace("'root'", repr(root)))
    (tmp_path / "edited_helper.py").write_text(HELPER.format(how="upper"))
    monkeypatch.chdir(tmp_path)
    pipeline: Pipeline = importlib.import_module("edited_stages").watched
    write(tmp_path / "root", "in/a", "Text")
    (tmp_path / "edited_helper.py").write_text(HELPER.format(how="swapcase"))
    with pytest.raises(DefinitionError, match=r"edited_helper.py was changed after this process had imported it"):
        pipeline.build(engine=engine)
    assert not (tmp_path / "root/out/a").exists()
    importlib.reload(sys.modules["edited_helper"])
    importlib.reload(sys.modules["edited_stages"]).watched.build(engine=engine)
    assert (tmp_path / "root/out/a").read_text() == "tEXT"
    for name in ("edited_helper", "edited_stages"):
        del sys.modules[name]


def test_a_database_is_watched_too_and_a_problem_is_told_and_tried_again(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> Pipeline:
        pipeline = Pipeline("p", root=f"sqlite:///{tmp_path}/states.db")
        pipeline.stage("copy", input="in/{x}", output="out/{x}", version="1")(_same)
        return pipeline

    monkeypatch.setattr("stepwell.pipeline.building.watch.AGAIN_SECONDS", 0.1)
    problems: list[Exception] = []
    watched, other = make(), make()
    with Watcher([watched], engine, interval=3_600, on_problem=problems.append) as watcher:
        thread = threading.Thread(target=watcher.run)
        thread.start()
        try:
            other.put("in/a", b"text")
            wait_for(lambda: other.store.files.exists("out/a"))
            with monkeypatch.context() as broken:
                broken.setattr(type(watched.store.files), "walk", _disk_is_gone)
                other.put("in/b", b"text")
                wait_for(lambda: len(problems) > 1)
            wait_for(lambda: other.store.files.exists("out/b"))
        finally:
            watcher.stop()
            thread.join(30)
    assert not thread.is_alive()
    assert not (tmp_path / "sqlite:").exists()


def _disk_is_gone(*_: object) -> None:
    raise OSError("the disk is gone")


def _same(text: str) -> str:
    return text
