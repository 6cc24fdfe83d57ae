"""docs/triggers.md is run: documents are saved, commands executed, Python executed, and its tables name what there is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from stepwell.triggers.definition import Trigger
from stepwell.triggers.reading import ENDED, FIELDS
from stepwell.triggers.schedule import NICKNAMES
from stepwell.triggers.schemes import SCHEMES

PAGE = (Path(__file__).parents[2] / "docs" / "triggers.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(yaml|console|python|json)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_python_of_the_page_does_what_it_says() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    try:
        for kind, text in BLOCKS:
            if kind == "python":
                exec(compile(text, "docs/triggers.md", "exec"), names)
    finally:
        names["engine"].close()


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    ran = 0
    for kind, text in BLOCKS:
        if kind == "yaml":
            (tmp_path / text.partition("\n")[0].removeprefix("# ")).write_text(text)
        elif kind == "console":
            for part in re.split(r"^\$ stepwell ", text, flags=re.MULTILINE)[1:]:
                words, _, expected = part.partition("\n")
                done = subprocess.run(
                    f"{sys.executable} -m stepwell {words}",
                    shell=True,
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    timeout=100,
                    env={**os.environ, "COLUMNS": "120", "PYTHONIOENCODING": "utf-8"},
                    check=False,
                )
                assert done.returncode == 0, (words, done.stderr)
                pattern = ".*".join(map(re.escape, expected.split("…")))
                assert re.fullmatch(pattern, done.stdout), f"{words}\n{done.stdout}\ninstead of\n{expected}"
                ran += 1
    assert ran > 5


def test_the_json_of_the_page_is_a_trigger() -> None:
    (found,) = [json.loads(text) for kind, text in BLOCKS if kind == "json"]
    assert Trigger.of(found).kind == "webhook"


def test_the_tables_name_everything_there_is() -> None:
    for name in {name for fields in FIELDS.values() for name in fields} | set(SCHEMES) | set(ENDED[:1]):
        assert f"`{name}`" in PAGE or name in ENDED, name
    for name in NICKNAMES:
        assert f"`{name}`" in PAGE or name in ("@midnight", "@annually")
    for scheme in SCHEMES.values():
        assert scheme.header in PAGE.lower()
