"""docs/fork.md: its example does what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "fork.md").read_text()


def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "report.py").write_text(code)
    done = subprocess.run([sys.executable, "report.py"], cwd=tmp_path, check=True, capture_output=True, text=True)
    said = done.stdout.splitlines()
    promised = re.findall(r"print\(.*\)\s+# (.*)", code)
    assert said[0] == promised[0].partition(";")[0]
    assert said[1] == promised[1]
    told = re.findall(r"^  (\$.*)$", PAGE, re.MULTILINE)
    assert [line.strip().removeprefix("input ") for line in said if "$" in line] == told
