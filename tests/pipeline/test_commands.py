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
    assert [each["entity"] for each in plan["willRun"]] == ["a", "bad"] or [
        each["entity"] for each in plan["willRun"]
    ] == ["bad", "a"]
    assert "1 produced, 1 failed" in ask("build", code=1)
    status = json.loads(ask("status", "--json"))
    assert (status["fresh"], status["failed"], status["entities"]) == (1, 1, 2)
    assert "ValueError: boom" in ask("failures")
    assert ask("retry") == "up bad: to be tried again\n"
    write(tmp_path / "root", "out/bad.txt", "by hand")
    assert ask("accept", "out/bad.txt") == "out/bad.txt: accepted\n"
    assert "nothing to do" in ask("scan")
    assert ask("invalidate", "out/*.txt", "--stage", "up").count("invalidated") == 2
    assert "out/a.txt is stale" in ask("why", "out/a.txt")
    ask("put", "out/a.txt", "-", code=2)
    ask("why", "nothing/there", code=2)


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
        return ask("ls", "--json").count('"publish"')

    ask("pipeline", "build", "-p", "flow:p")
    ask("pipeline", "scan", "-p", "triggered:p")
    assert started() == 0
    ask("pipeline", "scan", "--existing", "-p", "triggered:p")
    assert started() == 1
    ask("pipeline", "scan", "--existing", "-p", "triggered:p")
    assert started() == 1  # once for each
