"""What the programs of the page about branching print is what stands below them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "branching.md"


def test_the_programs_print_what_the_page_says(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    program = tmp_path / "page.py"
    program.write_text("\n".join(code for code, _ in blocks), "utf-8")
    printed = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert len(blocks) == 2
    assert printed == "".join(text for _, text in blocks)
