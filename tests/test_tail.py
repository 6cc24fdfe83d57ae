"""ARCHITECTURE.md says why a file, a function or a class is longer than most."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parents[1]
SOURCE = HERE / "src" / "stepwell"
TAIL = (HERE / "ARCHITECTURE.md").read_text("utf-8").partition("## The tail")[2]
LINES, BODY, METHODS = 400, 70, 15
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_named(name: str) -> bool:
    return any(mark in TAIL for mark in (f"`{name}`", f"/{name}`", f": {name}`"))


def unexplained(path: Path) -> Iterator[str]:
    text = path.read_text("utf-8")
    parsed = ast.parse(text)
    classes = [each for each in ast.walk(parsed) if isinstance(each, ast.ClassDef)]
    if text.count("\n") > LINES and not any(map(is_named, (path.name, *(each.name for each in classes)))):
        yield f"{path.relative_to(SOURCE)} has {text.count(chr(10))} lines"
    for function in (each for each in ast.walk(parsed) if isinstance(each, FUNCTIONS)):
        body = function.body[1 if ast.get_docstring(function) else 0 :] or function.body
        length = (function.end_lineno or 0) - body[0].lineno + 1
        if length > BODY and not is_named(function.name):
            yield f"{path.relative_to(SOURCE)}: {function.name} has {length} lines"
    for kind in classes:
        public = {each.name for each in kind.body if isinstance(each, FUNCTIONS) and not each.name.startswith("_")}
        if len(public) > METHODS and not is_named(kind.name):
            yield f"{path.relative_to(SOURCE)}: {kind.name} has {len(public)} public methods"


def test_what_is_longer_than_most_has_its_reason_on_the_page() -> None:
    found = [problem for path in sorted(SOURCE.rglob("*.py")) for problem in unexplained(path)]
    assert not found, "\n".join(found)
