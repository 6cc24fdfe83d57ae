"""docs/class-form.md shows what really happens: every case and every message on the page is tried."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

import stepwell.base.types
import stepwell.define
from stepwell import PREVIOUS, Retry, Workflow, step, task
from stepwell.define import definition_of
from stepwell.errors import DefinitionError, StepwellError

PAGE = Path(__file__).parents[2] / "docs" / "class-form.md"
TEXT = PAGE.read_text(encoding="utf-8")


class Case(NamedTuple):
    """A block of Python, and the block of text below it that says what becomes of it."""

    line: int
    code: str
    shown: str

    @property
    def raises(self) -> bool:
        return re.match(r"\w+: ", self.shown) is not None


def cases() -> list[Case]:
    found = []
    for match in re.finditer(r"^```python\n(.*?)^```\n```text\n(.*?)^```\n", TEXT, re.DOTALL | re.MULTILINE):
        found.append(Case(TEXT[: match.start()].count("\n") + 1, match[1], match[2].rstrip("\n")))
    return found


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a line of headings."""
    lines = TEXT[TEXT.index(f"\n{heading}\n") :].splitlines()[3:]
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append([cell.strip().replace("\\", "") for cell in line.strip("|").split(" | ")])
    return found


def executed(code: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {
        "__name__": "orders",
        "PREVIOUS": PREVIOUS,
        "Retry": Retry,
        "Workflow": Workflow,
        "step": step,
        "task": task,
        "date": date,
        "Literal": Literal,
    }
    exec(compile(code, "orders.py", "exec", dont_inherit=True), namespace)
    return namespace


def shown(cls: type[Workflow]) -> dict[str, dict[str, list[str]]]:
    """The nodes of a class, as the page shows them."""
    return {
        spec.id: {
            word: list(names)
            for word, names in (("after", spec.depends_on), ("takes", spec.needs), ("was", spec.was))
            if names
        }
        for spec in cls.workflow_graph()
    }


def read(text: str) -> Iterator[tuple[str, str, dict[str, dict[str, list[str]]]]]:
    """The classes in a block of text: name, options, and nodes."""
    for part in re.split(r"\n(?=\w)", text):
        heading, *lines = part.splitlines()
        nodes: dict[str, dict[str, list[str]]] = {}
        for line in lines:
            name, *rest = re.split(r"\s+(?=(?:after|takes|was) )", line.strip())
            nodes[name] = {word: names.split(", ") for word, _, names in (each.partition(" ") for each in rest)}
        name, _, options = heading.partition(" ")
        yield name, options, nodes


@pytest.mark.parametrize("case", [case for case in cases() if not case.raises], ids=lambda case: f"line {case.line}")
def test_a_class_of_the_page_has_the_dependencies_below_it(case: Case) -> None:
    classes = executed(case.code)
    for name, options, nodes in read(case.shown):
        cls = classes[name]
        assert shown(cls) == nodes
        if options:
            made = definition_of(cls())
            assert options == f'(name="{made.workflow}", on_failure="{made.on_failure}", deadline={made.deadline})'


@pytest.mark.parametrize("case", [case for case in cases() if case.raises], ids=lambda case: f"line {case.line}")
def test_a_mistake_of_the_page_says_what_is_below_it(case: Case) -> None:
    with pytest.raises(StepwellError) as caught:
        executed(case.code)
    assert f"{type(caught.value).__name__}: {caught.value}" == case.shown


@pytest.mark.parametrize(
    ("written", "after", "changes"), rows("| written above `pack` | `pack` runs after | what else changes |")
)
def test_a_row_of_the_table_says_what_pack_runs_after(written: str, after: str, changes: str) -> None:
    skeleton = cases()[0].code
    expected = shown(executed(skeleton)["Order"])
    made = executed(f"{skeleton}    {written.strip('`')}\n    def pack(self): ...\n")["Order"]
    expected["pack"] = {"after": re.findall(r"`(\w+)`", after)} if after != "nothing" else {}
    for node, parent in re.findall(r"`(\w+)` after `(\w+)`", changes):
        expected[node] = {"after": [parent]}
    found = shown(made)
    found["pack"].pop("was", None)
    assert found == expected


@pytest.mark.parametrize(("written", "message"), rows("| written | refused with |"))
def test_a_row_of_what_is_wrong_in_itself_says_its_message(written: str, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        executed(written.strip("`"))
    assert str(caught.value) == f"{message}\n  defined at orders.py:1"


ON_THE_PAGE = ["decorators", "gather", "compile", "inputs", "signatures", "kinds", "options", "workflow", "jobs"]
ELSEWHERE = (
    "Workflow is a base: write a class with steps, `class OrderWorkflow(Workflow): ...`",  # test_inputs.py
    "), which another process would run instead; give the function that has this name",  # test_jobs.py
    "function inside a function by its name; move it to the top level of its module",  # test_retry_on.py
    ": this name leads to something else",  # test_retry_on.py
)


def messages(module: str) -> Iterator[str]:
    """The longest fixed part of each message that a module of the class form can raise or report."""
    rooms = (Path(room.__path__[0]) for room in (stepwell.define, stepwell.base.types))
    tree = ast.parse(next(file for room in rooms for file in room.rglob(f"{module}.py")).read_text(encoding="utf-8"))
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "id", None) in RAISING:
            words = [each.value for each in ast.walk(call) if isinstance(each, ast.Constant)]
            yield max((each for each in words if isinstance(each, str)), key=len, default="").strip()


RAISING = {"DefinitionError", "InputError", "Unsupported", "TypeError", "report"}


@pytest.mark.parametrize("module", ON_THE_PAGE)
def test_every_message_of_the_class_form_is_on_the_page(module: str) -> None:
    """A new message without an example fails here."""
    found = list(messages(module))
    assert found
    assert [each for each in found if each not in TEXT and each not in ELSEWHERE] == []


def test_the_page_is_read_whole() -> None:
    """A block that no test reads would be free to be wrong."""
    assert len(cases()) == TEXT.count("```python\n") == TEXT.count("```text\n")
    assert len(rows("| written above `pack` | `pack` runs after | what else changes |")) >= 17
    assert len(rows("| written | refused with |")) >= 17
