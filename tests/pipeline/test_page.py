"""What docs/pipelines.md shows is what happens."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from stepwell.pipeline.finding import load_pipeline
from stepwell.pipeline.staleness.standing import STATUSES
from tests.pipeline.blog import write

PAGE = (Path(__file__).parents[2] / "docs/pipelines.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_first_example_and_its_commands(tmp_path: Path) -> None:
    (tmp_path / "blog.py").write_text(blocks("python")[0])
    root = tmp_path / "output"
    for day in ("2026-01-15", "2026-01-16"):
        write(root, f"daily/{day}/notes.txt", f"Notes of {day}")
    write(root, "style.md", "Short.")
    told, environment = "", {**os.environ, "STEPWELL_PIPELINES": "blog:blog", "NO_COLOR": "1"}
    for line in blocks("console")[0].splitlines():
        if line.startswith("$ stepwell"):
            command = [sys.executable, "-m", *line[2:].split()]
            ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stderr
            told += ended.stdout
        elif line.startswith("$ echo"):
            subprocess.run(line[2:], shell=True, cwd=tmp_path, check=True)
    shown = [line for line in blocks("console")[0].splitlines() if line[0] != "$"]
    for line in shown:
        assert re.sub(r" in [\d.]+ s", "", line) in re.sub(r" in [\d.]+ s", "", told), told


def test_the_document_loads(tmp_path: Path) -> None:
    file = tmp_path / "blog.json"
    file.write_text(blocks("json")[0])
    assert list(load_pipeline(file, root=str(tmp_path / "root")).stages) == ["summary"]
    assert json.loads(blocks("json")[0])["mode"] == "pipeline"


def test_every_status_is_explained() -> None:
    assert [status for status in STATUSES if f"`{status}`" not in PAGE and status not in ("fresh", "stale")] == []
