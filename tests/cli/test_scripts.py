"""A workflow class of a script, where it is called `__main__`, is found again by other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shop

SCRIPT = """
import os, signal
from pathlib import Path
from stepwell import Engine, Workflow, step

class Nightly(Workflow):
    day: int

    @step
    def first(self):
        return self.day

    @step
    def second(self, first):
        if not Path("go").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return first + 1

if __name__ == "__main__":
    with Engine("sqlite:///nightly.db") as engine:
        engine.run(Nightly(day=3), run_id="night")
"""


@pytest.mark.parametrize(
    "started", [["nightly.py"], ["-m", "nightly"], ["-m", "reports.nightly"], ["reports/nightly.py"]]
)
def test_a_run_that_a_killed_script_left_is_resumed(shop: Shop, started: list[str]) -> None:
    (shop.folder / "reports").mkdir()
    (shop.folder / ("reports" if "reports" in started[-1] else "") / "nightly.py").write_text(SCRIPT)
    killed = subprocess.run([sys.executable, *started], cwd=shop.folder, check=False, timeout=60)
    assert killed.returncode == -9
    shop.touch("go")
    ended = shop("resume", "night", "--store", "sqlite:///nightly.db")
    assert ended.json == 4
    nodes = shop("show", "night", "--json", "--store", "sqlite:///nightly.db").json["nodes"]
    assert [(node["status"], node["attempts"]) for node in nodes] == [("COMPLETED", 1), ("COMPLETED", 2)]


@pytest.mark.parametrize(
    ("started", "path", "name"),
    [
        ("nightly.py", "", "nightly"),
        ("reports/nightly.py", "", "reports.nightly"),
        ("reports/nightly.py", "reports", "nightly"),
        ("2-reports/nightly.py", "", "nightly"),
        ("../nightly.py", "", "nightly"),
    ],
)
def test_a_script_is_named_as_another_process_in_the_same_folder_can_import_it(
    tmp_path: Path, started: str, path: str, name: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    script = here / started
    script.parent.mkdir(exist_ok=True)
    script.write_text("from stepwell.base.importable import module_of\nclass Order: pass\nprint(module_of(Order))\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here / path)] if path else [])}
    done = subprocess.run(
        [sys.executable, started], cwd=here, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == name


def test_a_class_that_only_its_process_knows_says_so(shop: Shop) -> None:
    (shop.folder / "2-nightly.py").write_text(SCRIPT)
    killed = subprocess.run([sys.executable, "2-nightly.py"], cwd=shop.folder, check=False, timeout=60)
    assert killed.returncode == -9
    shop.touch("go")
    ended = shop("resume", "night", "--store", "sqlite:///nightly.db", code=2)
    assert "'Nightly' was defined in a session that no other process can import" in ended.err
    assert "define it in a module" in ended.err
