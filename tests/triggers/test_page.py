"""docs/triggers.md is run: documents are saved, commands executed, Python executed, and its tables name what there is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from stepwell.cli.app import app
from stepwell.triggers.definition import Trigger
from stepwell.triggers.kinds import FORMS, RunFinished, Webhook
from stepwell.triggers.schedule import NICKNAMES
from stepwell.triggers.schemes import SCHEMES
from tests.tables import field_rows, rows_below

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


def test_the_commands_of_the_page_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: tests/cli starts the same commands as processes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("stepwell.cli.streams.reserve_stdout", lambda: None)  # it changes the whole process
    ran = 0
    for kind, text in BLOCKS:
        if kind == "yaml":
            (tmp_path / text.partition("\n")[0].removeprefix("# ")).write_text(text)
        elif kind == "console":
            for part in re.split(r"^\$ stepwell ", text, flags=re.MULTILINE)[1:]:
                words, _, expected = part.partition("\n")
                with pytest.raises(SystemExit) as ended:
                    app(shlex.split(words), prog_name="stepwell")
                printed = capsys.readouterr()
                assert not ended.value.code, (words, printed.err)
                pattern = ".*".join(map(re.escape, expected.split("…")))
                assert re.fullmatch(pattern, printed.out), f"{words}\n{printed.out}\ninstead of\n{expected}"
                ran += 1
    assert ran > 5


def test_the_json_of_the_page_is_a_trigger() -> None:
    (found,) = [json.loads(text) for kind, text in BLOCKS if kind == "json"]
    assert Trigger.of(found).kind == "webhook"


def test_the_table_of_fields_is_made_from_the_kinds() -> None:
    assert rows_below("## The fields of a trigger", PAGE) == field_rows(*FORMS.values())


def test_the_tables_name_everything_there_is() -> None:
    for name in {*Webhook.model_fields, *RunFinished.model_fields, *SCHEMES}:
        assert re.search(rf'[`"{{ ]{re.escape(name)}[`":]', PAGE), name
    for name in NICKNAMES:
        assert f"`{name}`" in PAGE or name in ("@midnight", "@annually")
    for scheme in SCHEMES.values():
        assert scheme.header in PAGE.lower()
