"""`stepwell pipeline ...`: results on stdout, JSON on request, exit codes that scripts can rely on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.forking.template import Template
from tests.pipeline.blog import write

PIPELINE = """
from stepwell import Pipeline
p = Pipeline("p", root="root")

@p.stage(input="in/{x}.txt", output="out/{x}.txt")
def up(text: str) -> str:
    if "boom" in text:
        raise ValueError("boom")
    return text.upper()
"""


def test_a_day_with_the_command_line(tmp_path: Path, template: Template) -> None:
    (tmp_path / "flow.py").write_text(PIPELINE)

    def ask(*words: str, code: int = 0, text: str = "") -> str:
        command, environment = ["-m", "stepwell", "pipeline", *words, "-p", "flow:p"], {**os.environ, "NO_COLOR": "1"}
        if text:
            ended = subprocess.run(
                [sys.executable, *command],
                cwd=tmp_path, env=environment, input=text, capture_output=True, text=True, check=False,
            )  # fmt: skip
        else:
            ended = template.run(command, cwd=tmp_path, env=environment, timeout=100)
        assert ended.returncode == code, ended.stderr
        return ended.stdout

    assert ask("put", "in/a.txt", "-", text="hello") == "in/a.txt: 5 bytes\n"
    write(tmp_path / "root", "in/bad.txt", "boom")
    plan = json.loads(ask("scan", "--dry-run", "--json"))
    assert [each["entity"] for each in plan["will_run"]] == ["a", "bad"] or [
        each["entity"] for each in plan["will_run"]
    ] == ["bad", "a"]
    assert ask("build", "--dry-run").splitlines()[0] == "will run: 2 states"
    assert "1 produced, 1 failed" in ask("build", code=1)
    status = json.loads(ask("status", "--json"))
    assert (status["fresh"], status["failed"], status["entities"]) == (1, 1, 2)
    assert "ValueError: boom" in ask("failures")
    failures = json.loads(ask("failures", "--json"))
    assert {name: (each["error"], each["attempts"]) for name, each in failures.items()} == {"p: up bad": ("boom", 1)}
    assert ask("status").splitlines()[0] == "p: 2 entities"
    assert [line.split() for line in ask("status", "--matrix").splitlines()[2:4]] == [["a", "✓"], ["bad", "✗"]]
    assert json.loads(ask("status", "--entity", "bad", "--json"))["failed"] == 1
    assert json.loads(ask("why", "out/bad.txt", "--json"))["status"] == "failed"
    assert json.loads(ask("retry", "up bad", "--json")) == ["up bad"]
    assert ask("retry") == "nothing to do\n"
    assert json.loads(ask("build", "--force", "a", "--json"))["produced"] == ["up a"]
    assert json.loads(ask("build", "bad", "--json", code=1))["failed"].keys() == {"up bad"}
    assert ask("retry") == "up bad: to be tried again\n"
    write(tmp_path / "root", "out/bad.txt", "by hand")
    assert ask("accept", "out/bad.txt") == "out/bad.txt: accepted\n"
    assert "nothing to do" in ask("scan")
    assert ask("invalidate", "out/*.txt", "--stage", "up").count("invalidated") == 2
    assert "out/a.txt is stale" in ask("why", "out/a.txt")
    ask("put", "out/a.txt", "-", code=2)
    ask("put", "../a.txt", "-", code=2)
    ask("put", "/in/a.txt", "-", code=2)
    ask("why", "nothing/there", code=2)
    assert json.loads(ask("accept", "out/a.txt", "--json")) == ["out/a.txt"]
    (tmp_path / "root/in/a.txt").unlink()
    assert ask("clean", "--dry-run") == "out/a.txt: would be removed\n"
    assert json.loads(ask("clean", "--json")) == ["out/a.txt"]
    assert not (tmp_path / "root/out/a.txt").exists()
    assert json.loads(ask("graph", "--json")) == []
    (tmp_path / "other.py").write_text(PIPELINE.replace('Pipeline("p", root="root")', 'Pipeline("q", root="other")'))
    assert [each["pipeline"] for each in json.loads(ask("status", "-p", "other:p", "--json"))] == ["q", "p"]
    ask("why", "out/bad.txt", "-p", "other:p")


TRIGGERED = """
from stepwell import Builder
from flow import p

def publish(event):
    builder = Builder("publish")
    builder.node("note", job=note, args={"event": event})
    return builder

def note(event):
    return event["entity"]

p.trigger("publish", state="up", workflow=publish)
"""


def test_the_command_in_the_example_works(tmp_path: Path, template: Template) -> None:
    from examples.pipelines import blog

    (line,) = [line.split() for line in (blog.__doc__ or "").splitlines() if line.startswith("    stepwell ")]
    write(tmp_path, "daily/2026-01-15/notes.txt", "Rain and wind over the hills, and more rain before the storm.")
    environment = {**os.environ, "BLOG_ROOT": str(tmp_path), "STEPWELL_STORE": f"sqlite:///{tmp_path}/store.db"}
    where = Path(__file__).parents[2]
    ended = template.run(["-m", *line], cwd=where, env=environment, timeout=100)
    assert ended.returncode == 0, ended.stderr
    assert [told.partition(" in ")[0] for told in ended.stdout.splitlines()] == [
        "auto-blog: 3 produced",
        "daily-podcast: 2 produced",
    ]


def test_scan_existing_fires_for_what_was_there_before_the_trigger(tmp_path: Path, template: Template) -> None:
    (tmp_path / "flow.py").write_text(PIPELINE)
    (tmp_path / "triggered.py").write_text(TRIGGERED)
    write(tmp_path / "root", "in/a.txt", "hello")

    def ask(*words: str) -> str:
        environment = {**os.environ, "NO_COLOR": "1"}
        ended = template.run(["-m", "stepwell", *words], cwd=tmp_path, env=environment, timeout=100)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def started() -> int:
        return len([run for run in json.loads(ask("ls", "--json")) if run["workflow"] == "publish"])

    ask("pipeline", "build", "-p", "flow:p")
    ask("pipeline", "scan", "-p", "triggered:p")
    assert started() == 0
    ask("pipeline", "scan", "--existing", "-p", "triggered:p")
    assert started() == 1
    ask("pipeline", "scan", "--existing", "-p", "triggered:p")
    assert started() == 1  # once for each
