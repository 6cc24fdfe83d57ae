"""`make prove WHAT=users`: a project as `stepwell init` writes it, seen by the type checkers that users have.

`make test` asks mypy alone. The other one is pyright in the edition that installs with all it needs (basedpyright); that of its
authors downloads itself when it is first run, which no pinned file describes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cli.mistakes import MISTAKES, wrong_lines


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "shop"
        subprocess.run([sys.executable, "-m", "stepwell", "init", str(project)], check=True)
        (project / "mistakes.py").write_text(MISTAKES)
        checks = {"mypy --strict": _mypy(project), "pyright, strict": _pyright(project)}
    for name, problems in checks.items():
        print(f"{name}: {'fine' if not problems else ''}")
        for problem in problems:
            print(f"  {problem}")
    return 1 if any(checks.values()) else 0


def _mypy(project: Path) -> list[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--output", "json", "orders.py", "tests"]
    done = subprocess.run([*command, "mistakes.py"], cwd=project, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return _compared([(each["file"], each["line"], each["message"]) for each in found if each["severity"] == "error"])


def _pyright(project: Path) -> list[str]:
    settings = {"typeCheckingMode": "strict", "include": ["orders.py", "tests", "mistakes.py"], "extraPaths": ["."]}
    settings["reportUnusedExpression"] = "none"
    (project / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = [each for each in found if each["severity"] == "error"]
    return _compared([(each["file"], each["range"]["start"]["line"] + 1, each["message"]) for each in errors])


def _compared(found: list[tuple[str, int, str]]) -> list[str]:
    """What should not have been found, and what should have been and was not."""
    mistakes = {line for file, line, _ in found if file.endswith("mistakes.py")}
    told = [
        f"{Path(file).name}:{line}: {message}"
        for file, line, message in found
        if not (file.endswith("mistakes.py") and line in wrong_lines())
    ]
    return told + [f"mistakes.py:{line}: this mistake was not found" for line in sorted(wrong_lines() - mistakes)]


if __name__ == "__main__":
    sys.exit(main())
