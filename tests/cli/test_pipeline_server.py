"""`stepwell pipeline ... --server URL`: a server is asked, and the same is said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer

from stepwell import Pipeline
from stepwell.cli.commands import pipeline as commands
from stepwell.cli.connect import Connection
from stepwell.cli.exits import code_for
from stepwell.client import pipelines
from stepwell.client.transport import Transport
from stepwell.errors import InputError, NotAllowed, PipelineBusy
from stepwell.server.access.tokens import create_token
from stepwell.server.serving import Serving
from tests.pipeline.blog import write
from tests.server.running import running

PIPELINES = """
from stepwell import Pipeline

up = Pipeline("up", root="root")
two = Pipeline("two", root="root")

@up.stage(input="in/{x}.txt", output="out/{x}.txt")
def upper(text: str) -> str:
    if "boom" in text:
        raise ValueError("boom")
    return text.upper()

@two.stage(input="out/{x}.txt", output="two/{x}.txt")
def twice(text: str) -> str:
    return text + text
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somewhere with a module that has two pipelines, and `-p` for both of them in the settings."""
    name = f"flow_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(PIPELINES)
    (tmp_path / "stepwell.toml").write_text(
        f'store = "sqlite:///{tmp_path}/engine.db"\npipelines = ["{name}:up", "{name}:two"]\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


class Asked:
    """Every command twice: here, and of the server."""

    def __init__(self, serving: Serving, capsys: pytest.CaptureFixture[str]) -> None:
        self.serving, self._capsys = serving, capsys
        self.place = Connection(None, server=serving.url)

    def __call__(self, command: str, *words: Any, server: bool, **options: Any) -> str:
        place = self.place if server else Connection(None)
        options = {"named": None, "as_json": False} | options
        self._capsys.readouterr()
        getattr(commands, command)(place, *words, **options)
        return self._capsys.readouterr().out

    def same(self, command: str, *words: Any, **options: Any) -> str:
        """What both say."""
        here = self(command, *words, server=False, **options)
        assert self(command, *words, server=True, **options) == here
        assert here
        return here


@pytest.fixture
def asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Asked]:
    served: list[Pipeline] = commands.find_pipelines(Connection(None), None)
    with running(f"sqlite:///{folder}/engine.db", worker={}, pipelines=served) as serving:
        asked = Asked(serving, capsys)
        yield asked
        if asked.place.transport is not None:
            asked.place.transport.close()


BUILD = {"force": False, "dry_run": False, "existing": False}


def without_times(text: str) -> str:
    return re.sub(r" in [\d.]+ m?s|\"seconds\": [\d.e-]+", "", text)


def test_every_command_says_the_same_of_a_server(folder: Path, asked: Asked) -> None:
    write(folder / "root", "in/a.txt", "hello")
    write(folder / "root", "in/bad.txt", "boom")
    for as_json in (False, True):
        assert "upper" in asked.same("build", (), **{**BUILD, "dry_run": True}, as_json=as_json)
    with pytest.raises(typer.Exit) as failed:
        asked("build", (), server=True, **BUILD)
    assert failed.value.exit_code == 1
    with pytest.raises(typer.Exit):
        asked("build", ("upper bad",), named=["up"], server=True, **{**BUILD, "force": True})
    for as_json in (False, True):
        asked.same("status", entity=None, matrix=False, as_json=as_json)
        asked.same("status", entity="bad", matrix=False, as_json=as_json, named=None)
        assert "ValueError" in asked.same("failures", as_json=as_json)
        assert "out/a.txt" in asked.same("why", "out/a.txt", as_json=as_json)
        assert "boom" in asked.same("why", "out/bad.txt", as_json=as_json)
        assert "fresh" in asked.same("why", "two/a.txt", as_json=as_json)  # of the second pipeline
        assert "up#upper" in asked.same("graph", as_json=True)
        assert "flowchart" in asked.same("graph")
        assert "nothing to do" in asked.same("clean", dry_run=True)
    assert "✓" in asked.same("status", entity=None, matrix=True)
    assert asked("retry", (), server=True) == "upper bad: to be tried again\n"
    write(folder / "root", "out/bad.txt", "by hand")
    assert asked("accept", ("out/bad.txt",), named=["up"], server=True) == "out/bad.txt: accepted\n"
    assert asked("invalidate", ("out/*.txt",), named=["up"], server=True, stage="upper").count("invalidated") == 2
    write(folder / "root", "in/bad.txt", "good")
    assert "2 produced" in asked("build", (), named=["up"], server=True, **BUILD)
    assert without_times(asked("scan", server=True, dry_run=False, existing=False)) == without_times(
        "up: nothing to do in 1 ms\ntwo: 1 produced in 1 ms\n"
    )
    (folder / "root" / "in" / "a.txt").unlink()
    assert asked.same("clean", dry_run=True, named=None) == "out/a.txt: would be removed\n"
    assert asked("clean", dry_run=False, server=True).startswith("out/a.txt: removed\n")
    assert not (folder / "root" / "out" / "a.txt").exists()


def test_what_cannot_be_asked_of_a_server_is_told(folder: Path, asked: Asked) -> None:
    for wrong in (
        lambda: asked("status", server=True, named=["flow:up"], entity=None, matrix=False),
        lambda: asked("why", "nowhere.txt", server=True),
        lambda: asked("invalidate", ("nowhere",), server=True, stage=None),
        lambda: asked("build", ("nowhere",), server=True, **BUILD),
    ):
        with pytest.raises(InputError, match=r"there are: up, two|is no stage, entity or state"):
            wrong()


def test_a_scan_waits_for_the_one_that_is_running(folder: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "root", "in/a.txt", "hello")
    busy = iter([True, True])
    post = Transport.post

    def refused(self: Transport, path: str, *args: Any, **options: Any) -> Any:
        if path.endswith("/scan") and next(busy, False):
            raise PipelineBusy("a scan is running already", pipeline="up")
        return post(self, path, *args, **options)

    monkeypatch.setattr(Transport, "post", refused)
    monkeypatch.setattr(pipelines, "LOOK_SECONDS", (0.001,))  # the scan takes longer than all of them
    assert "1 produced" in asked("build", (), server=True, **BUILD)
    assert next(busy, None) is None
    assert code_for(PipelineBusy("", pipeline="up")) == 6


def test_the_progress_of_a_scan_is_reported_as_that_of_a_build(
    folder: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "LOOK_SECONDS", (0.01,))
    write(folder / "root", "in/a.txt", "hello")
    with closing(Transport(asked.serving.url, None)) as transport:
        (pipeline,) = pipelines.remote_pipelines(transport, ["up"])
        reports: list[Mapping[str, int]] = []
        pipeline.build(progress=reports.append)
    assert reports[-1] == {"done": 1, "failed": 0, "running": 0, "ready": 0}


def test_a_token_is_needed_where_there_are_some(folder: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    token, _ = create_token(asked.serving.service.store, ["read"])
    monkeypatch.setenv("STEPWELL_TOKEN", token)
    asked.place = Connection(None, server=asked.serving.url)
    assert "up" in asked("status", server=True, entity=None, matrix=False)
    with pytest.raises(NotAllowed, match="scope 'run'"):
        asked("retry", (), server=True)
