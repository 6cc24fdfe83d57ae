"""Every example of docs/types.md does what is below it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell import DefinitionError

TEXT = (Path(__file__).parents[3] / "docs" / "types.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_does_what_is_below_it(number: int, tmp_path: Path) -> None:
    code, shown = EXAMPLES[number]
    if shown.startswith("GraphError"):
        with pytest.raises(DefinitionError) as caught:
            exec(compile(code, "payments.py", "exec", dont_inherit=True), {"__name__": "payments"})
        assert f"GraphError: {caught.value}\n" == shown
        return
    file = tmp_path / "example.py"
    file.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == (shown, "")


def test_the_page_is_read_whole() -> None:
    assert len(EXAMPLES) == TEXT.count("```python\n") == 3
