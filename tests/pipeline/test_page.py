"""What docs/pipelines.md shows is what happens. Its first example and its commands: tests/docs/test_console.py."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

from stepwell.answers.staleness import CAUSES, STATUSES, CauseCode, Status
from stepwell.pipeline.document.forms import DATA, PipelineForm, StateNodeForm
from stepwell.pipeline.finding import load_pipeline
from tests.tables import field_rows, rows_below

PAGE = (Path(__file__).parents[2] / "docs/pipelines.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_document_loads(tmp_path: Path) -> None:
    file = tmp_path / "blog.json"
    file.write_text(blocks("json")[0])
    assert list(load_pipeline(file, root=str(tmp_path / "root")).stages) == ["summary"]
    assert json.loads(blocks("json")[0])["mode"] == "pipeline"


def test_the_tables_of_fields_are_made_from_the_forms() -> None:
    assert rows_below("## As JSON or YAML", PAGE) == field_rows(PipelineForm)
    assert field_rows(StateNodeForm) <= set(PAGE.splitlines())
    for kind, form in DATA.items():
        (row,) = [line for line in PAGE.splitlines() if line.startswith("| `state_") and f"`{kind}`" in line]
        assert {info.alias or name for name, info in form.model_fields.items()} <= set(re.findall("`(\\w+)`", row)), (
            kind
        )


def test_every_status_and_cause_is_explained() -> None:
    assert set(CAUSES) == set(get_args(CauseCode))
    assert set(STATUSES) == set(get_args(Status)) == {"fresh", *(each.status for each in CAUSES.values())}
    assert rows_below("## Why something is stale", PAGE) == {
        f"| `{cause}` | {meaning.status} | {meaning.words} |" for cause, meaning in CAUSES.items()
    }
