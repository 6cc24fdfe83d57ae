"""What is marked as a secret is in no record, no cassette and no report, however a body wrote it."""

from __future__ import annotations

import base64
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import stepwell
from stepwell import Builder, Context, Engine, Run
from stepwell.base import masking
from stepwell.core.store import reader
from stepwell.engine.reports.replay import replay_cassette
from stepwell.errors import InputError, ReplayMismatch
from stepwell.history.differences import graph_differences
from stepwell.history.httpx import RecordingTransport
from stepwell.history.replay.loading import load_cassette
from tests.engine.conftest import OpenEngine

TOKEN = "s3cr3t-4711-token"
QUOTED = 'pä"ss\\w0rd'
SPACED = "correct horse battery"
ODD = 'a!b c"d(e)'


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_values", set())
    monkeypatch.setattr(masking, "_pattern", None)
    monkeypatch.setattr(masking, "_longest", 0)


def run_one(engine: Engine, job: Callable[..., Any], **args: Any) -> Run:
    w = Builder("secrets")
    w.node("body", job=job, args=args, side_effects="recordable")
    return engine.run(w, check=False)


def stored(engine: Engine, run: Run) -> str:
    """All that was recorded beside outputs."""
    return "".join(line.data.decode() for line in reader.list_lines(engine.store, run.id))


def echo(value: Any) -> Any:
    return value


def refuse(value: str) -> None:
    raise ValueError(f"no entry for {value!r}", {"given": value})


def ask_in_many_ways(ctx: Context) -> None:
    secret = stepwell.secret(QUOTED)
    ctx.effect("plain", echo, secret)
    ctx.effect("json", echo, json.dumps({"p": secret}))
    ctx.effect("json in json", echo, json.dumps({"inner": json.dumps({"p": secret}, ensure_ascii=False)}))
    ctx.effect(f"call with {secret}", echo, 1)
    with contextlib.suppress(ValueError):
        ctx.effect("refused", refuse, secret)
    ctx.checkpoint(f"used {secret}")
    ctx.progress(1, 2, f"using {secret}")


def test_a_secret_is_in_no_record_however_it_is_escaped(engine: Engine) -> None:
    run = run_one(engine, ask_in_many_ways).check()
    plain, one, two, named, refused = run.effects()
    assert (plain.request, plain.response) == ({"args": ["***"]}, "***")
    assert one.response == '{"p": "***"}'
    assert two.request == {"args": ['{"inner": "{\\"p\\": \\"***\\"}"}']}
    assert named.name == "call with ***"
    assert refused.error is not None
    assert refused.error.args == ["no entry for '***'", {"given": "***"}]
    assert [label.label for label in run.checkpoints()] == ["used ***"]
    assert "w0rd" not in stored(engine, run)
    assert run.replay().effects == 5


def answer(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, content=request.content)


def send_in_many_ways(ctx: Context) -> list[int]:
    for value in (QUOTED, SPACED, ODD, TOKEN):
        stepwell.secret(value)
    url = "https://service.example/"
    with httpx.Client(transport=RecordingTransport(httpx.MockTransport(answer))) as client:
        answers = [
            client.post(url, json={"p": QUOTED}),
            client.post(url, data={"p": SPACED}),
            client.get(url, params={"p": SPACED}),
            client.get(f"{url}?t={ODD}"),
            client.get(f"{url}{ODD}"),
            client.post(
                url,
                data={"token": TOKEN, "other": QUOTED},
                files={"file": b"\xff\x00\xfe"},
                headers={"content-type": "multipart/form-data; boundary=between"},
            ),
        ]
    return [each.status_code for each in answers]


def test_a_secret_is_in_no_recorded_request_however_httpx_writes_it(engine: Engine) -> None:
    run = run_one(engine, send_in_many_ways).check()
    sent = [each.request for each in run.effects()]
    assert [each.get("body") for each in sent[:2]] == ['{"p":"***"}', "p=***"]
    assert [each["url"].removeprefix("https://service.example") for each in sent[2:5]] == ["/?p=***", "/?t=***", "/***"]
    assert run.replay().effects == len(sent)


def test_a_secret_is_not_behind_base64_either(engine: Engine) -> None:
    run = run_one(engine, send_in_many_ways).check()
    upload = run.effects()[-1]
    for data in (upload.request, upload.response):
        content = base64.b64decode(data["base64"])
        assert TOKEN.encode() not in content
        assert b"w0rd" not in content, "a secret that is not ASCII, in bytes that are no text"
        assert content.count(b"***") == 2


def same_calls(ctx: Context) -> list[Any]:
    return [ctx.effect(f"call {name}", len, name) for name in ("first-name", "other-name")]


def test_names_that_differ_in_a_secret_are_still_told_apart(engine: Engine) -> None:
    stepwell.secret("first-name")
    stepwell.secret("other-name")
    run = run_one(engine, same_calls).check()
    assert [(each.name, each.occurrence) for each in run.effects()] == [("call ***", 0), ("call ***", 1)]
    assert run.replay().effects == 2


def test_a_secret_that_is_known_only_now_is_in_no_cassette_and_it_replays(engine: Engine, tmp_path: Path) -> None:
    run = run_one(engine, same_calls).check()
    assert [each.name for each in run.effects()] == ["call first-name", "call other-name"]
    stepwell.secret("first-name")
    stepwell.secret("other-name")
    path = run.export(tmp_path / "late.cassette.json")
    assert "-name" not in path.read_text(encoding="utf-8")
    assert replay_cassette(load_cassette(path), jobs=["tests"]).effects == 2
    assert run.replay().effects == 2


CHANGED: set[str] = set()


@pytest.fixture
def changed() -> Iterator[set[str]]:
    CHANGED.clear()
    yield CHANGED
    CHANGED.clear()


def use_token(ctx: Context) -> dict[str, Any]:
    user = "bob" if "request" in CHANGED else "ann"
    ctx.effect("login", echo, {"token": TOKEN, "user": user}, request={"token": TOKEN, "user": user})
    return {"token": TOKEN, "cents": 12 + len(CHANGED)}


@pytest.mark.parametrize("known", ["before", "after"])
@pytest.mark.parametrize("change", ["output", "request"])
def test_a_report_shows_no_secret(engine: Engine, tmp_path: Path, changed: set[str], change: str, known: str) -> None:
    if known == "before":
        stepwell.secret(TOKEN)
    run = run_one(engine, use_token).check()
    stepwell.secret(TOKEN)
    path = run.export(tmp_path / "token.cassette.json")
    assert replay_cassette(load_cassette(path), jobs=["tests"]).executed, "equal without the secret is equal"
    changed.add(change)
    for replay in (run.replay, lambda: replay_cassette(load_cassette(path), jobs=["tests"])):
        with pytest.raises(ReplayMismatch) as caught:
            replay()
        assert len(caught.value.diff) == 1, "what differs is one place, and not the secret"
        assert TOKEN not in str(caught.value)


def test_a_report_on_graphs_shows_no_secret() -> None:
    graphs = []
    for token, cents in (("one-secret", 1), ("two-secret", 1), ("two-secret", 2)):
        stepwell.secret(token)
        w = Builder("graphs")
        w.node("body", job=echo, args={"value": [token, cents]})
        graphs.append(w.graph())
    (node,) = graphs[0].order
    assert graph_differences(graphs[0], graphs[1]) == (f"$.{node}: recorded a secret, now another secret",)
    assert graph_differences(graphs[1], graphs[2]) == (f"$.{node}.args.value[1]: recorded 1, now 2",)


def test_a_job_that_cannot_be_imported_tells_no_secret(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, monkeypatch, "broken_hush", "import stepwell\nraise ValueError(stepwell.secret('s3cr3t-broken'))\n")
    w = Builder("broken")
    w.node("body", job="broken_hush:work")
    run = engine.run(w, check=False)
    message = run.node("body").error
    assert "importing broken_hush raised ValueError: ***" in str(message)


def write(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> Path:
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    file = folder / f"{name}.py"
    file.write_text(code, encoding="utf-8")
    return file


HUSH = """
import stepwell

TOKEN = stepwell.secret("s3cr3t-of-a-module")

def work():
    return {"used": TOKEN}
"""


@pytest.fixture
def elsewhere(open_sqlite: OpenEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Run, Path]]:
    """A run of a job in a module that names a secret, in a process that has not imported it, and the module's file."""
    file = write(tmp_path, monkeypatch, "hush_jobs", HUSH)
    w = Builder("hush")
    w.node("work", job="hush_jobs:work", side_effects="recordable")
    run = open_sqlite().run(w)
    sys.modules.pop("hush_jobs")
    masking._values.clear()
    monkeypatch.setattr(masking, "_pattern", None)
    yield open_sqlite(runner=None).get(run.id), file
    sys.modules.pop("hush_jobs", None)


def test_an_export_knows_the_secrets_that_the_code_of_the_run_names(
    elsewhere: tuple[Run, Path], tmp_path: Path
) -> None:
    run, _ = elsewhere
    text = run.export(tmp_path / "hush.cassette.json").read_text(encoding="utf-8")
    assert "s3cr3t" not in text
    assert '"used": "***"' in text


def test_an_export_without_the_code_is_refused_unless_it_is_asked_for(
    elsewhere: tuple[Run, Path], tmp_path: Path
) -> None:
    run, file = elsewhere
    file.unlink()
    path = tmp_path / "hush.cassette.json"
    with pytest.raises(
        InputError, match=rf"(?s)run {run.id} cannot be imported.*no module 'hush_jobs'.*missing_code_ok"
    ):
        run.export(path)
    assert not path.exists()
    assert run.export(path, missing_code_ok=True) == path
    assert json.loads(path.read_text(encoding="utf-8"))["run"]["id"] == run.id


def test_an_id_with_a_secret_in_it_is_not_exported(engine: Engine, tmp_path: Path) -> None:
    w = Builder("secrets")
    w.node("body", job=same_calls)
    run = engine.run(w, run_id=f"run-{TOKEN}")
    stepwell.secret(TOKEN)
    with pytest.raises(InputError, match="the id of this run holds a value that is marked as a secret"):
        run.export(tmp_path / "id.cassette.json")
