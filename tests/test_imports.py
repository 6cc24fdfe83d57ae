"""No module imports itself by way of others: also not inside a function, and not for types only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from subprocess import check_output
from sys import executable

SOURCE = Path(__file__).parents[1] / "src"


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def statements(path: Path) -> Iterator[ast.AST]:
    """Every statement of a module; `ast.walk` would also give every expression, of which there are a million."""
    waiting: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while waiting:
        node = waiting.pop()
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, block, ())
            waiting += below if isinstance(below, list) else ()


def imported(name: str, path: Path, known: set[str]) -> set[str]:
    """The modules that a module imports, wherever in it. `from . import x` imports the package too."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found: set[str] = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            found |= {stem} | {f"{stem}.{alias.name}" for alias in node.names}
    return (found & known) - {name}


def cycles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The sets of modules that all reach each other (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph[module]:
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.add(frozenset(stack[at:]))
            del stack[at:]

    for module in graph:
        if module not in index:
            visit(module)
    return found


def test_a_cycle_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {frozenset({"b", "c"})}


def test_no_module_imports_itself_by_way_of_others() -> None:
    found = modules()
    graph = {name: imported(name, path, set(found)) for name, path in found.items()}
    assert cycles(graph) == LATE


LATE = {
    # `async with Engine(...)` gives an AsyncEngine, which is a view of the engine: imported when that is done.
    frozenset({"stepwell.engine.engine", "stepwell.engine.aio.engine"}),
}
"""A late import inside one room is allowed where it keeps a concept in one class."""

SMALLEST = """
import sys
from stepwell import Engine, Workflow, step
class Smallest(Workflow):
    @step
    def one(self) -> int:
        return 1
with Engine("memory://") as engine:
    assert engine.run(Smallest()).output("one") == 1
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"pydantic", "httpx", "jinja2", "yaml", "rich", "typer"}))
"""


def test_the_smallest_program_loads_no_large_library() -> None:
    assert check_output([executable, "-c", SMALLEST], text=True).split() == []
