"""Every example of docs/state.md prints what is below it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "state.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", TEXT, re.DOTALL)
IMPORTS = EXAMPLES[0][0].partition("class ")[0]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_is_below_it(number: int, tmp_path: Path) -> None:
    code, shown = EXAMPLES[number]
    file = tmp_path / "example.py"
    file.write_text(code if number == 0 else IMPORTS + code, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == (shown, "")


def test_the_page_is_read_whole() -> None:
    assert len(EXAMPLES) == TEXT.count("```python\n") == 3
