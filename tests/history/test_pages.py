"""What docs/checkpoints.md shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from stepwell import Engine

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_story_of_the_checkpoints_page(tmp_path: Path) -> None:
    definition, story = blocks("checkpoints.md", "python")
    names: dict[str, object] = {"__name__": "imports_of_the_page"}
    exec(compile(definition, "imports.py", "exec", dont_inherit=True), names)
    expected = [found.strip() for found in re.findall(r"print\(.*\)\s+# (.*)$", story, re.MULTILINE)]
    with Engine(f"sqlite:///{tmp_path}/page.db", workflows=[names["Import"]]) as engine:  # type: ignore[list-item]
        names["engine"] = engine
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(story, "story.py", "exec", dont_inherit=True), names)
    assert len(expected) == 4
    assert said.getvalue().splitlines() == expected


def test_the_fields_of_the_page_are_those_there_are(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "checkpoints.md").read_text(encoding="utf-8")
    table = text[text.index("| field |") : text.index("A work item has")]
    told = [name for row in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    definition, _ = blocks("checkpoints.md", "python")
    names: dict[str, object] = {"__name__": "imports_of_the_page"}
    exec(compile(definition, "imports.py", "exec", dont_inherit=True), names)
    with Engine("memory://") as engine:
        data = engine.run(names["Import"]()).checkpoint("prices loaded").data()  # type: ignore[operator]
    assert told == list(data)
    items = re.search(r"A work item has (.*?), and\n`edge`", text, re.DOTALL)
    assert items is not None
    for name in data["frontier"][0]:
        assert f"`{name}`" in text
