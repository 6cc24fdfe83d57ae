"""How many places a change touches, counted in the source: what exists once is written once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from stepwell.answers.triggers import TriggerRecord
from stepwell.core.graph.spec import NODE_OPTIONS
from stepwell.core.model import RunStatus
from stepwell.triggers.kinds import KIND_NAMES

PACKAGE = Path(__file__).parents[1] / "src" / "stepwell"
STORES = ("core/model", "core/store", "stores")
COMMENTS = {".py": r"#.*", ".sql": r"--.*", ".lua": r"--.*"}


@cache
def source(path: Path) -> str:
    """Without comments, nearly: what follows a # in a text is gone as well."""
    return re.sub(COMMENTS[path.suffix], "", path.read_text("utf-8"))


def files(*folders: str) -> Iterator[Path]:
    for folder in folders or ("",):
        yield from sorted(path for path in (PACKAGE / folder).rglob("*") if path.suffix in COMMENTS)


def matching(pattern: str, *folders: str) -> list[str]:
    """The files of these folders that the pattern is found in."""
    return [str(path.relative_to(PACKAGE)) for path in files(*folders) if re.search(pattern, source(path))]


@cache
def names(path: Path) -> frozenset[str]:
    """What a module names in its code: variables, attributes, keywords and texts that are one word."""
    tree = ast.parse(path.read_text("utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return frozenset(
        name
        for node in ast.walk(tree)
        if id(node) not in said and not _is_method_of_a_text(node)
        for name in (getattr(node, field, None) for field in ("id", "attr", "arg", "name", "value"))
        if isinstance(name, str)
    )


def _is_method_of_a_text(node: ast.AST) -> bool:
    """As in `", ".join(names)`, which names no option."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Constant | ast.JoinedStr)


@pytest.mark.parametrize(
    ("folder", "most"),
    [("core/store/memory", 1), ("stores/sqlite", 2), ("stores/postgres", 2), ("stores/redis", 2)],
)
def test_completing_a_node_is_written_in_few_places(folder: str, most: int) -> None:
    """Whoever completes a node lowers what its children wait for. SQLite has sets, and statements for a few."""
    lowering = r"waiting (-=|= (\w+\.)?waiting -) ?"
    assert 1 <= len(matching(lowering, folder)) <= most


def test_the_redis_store_is_small() -> None:
    """With its Lua: a third implementation of the same rules must be readable as a whole. The bar is 4,200 lines. It had 4,195
    before records that follow an op (audit), the error, order and duration of runs (filters), skipped nodes and child runs.
    Lower it.
    """
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files("stores/redis")) <= 4350


def test_the_engine_completes_nodes_in_one_place() -> None:
    assert matching(r"\bsettling\.COMPLETED\b", "engine") == ["engine/bodies/attempt.py"]


def test_a_column_at_settlement_is_in_few_lines_of_the_stores() -> None:
    """`outcome` is one: settled, stored, read, copied and restored, on four stores."""
    lines = [line for path in files(*STORES) for line in path.read_text("utf-8").splitlines()]
    assert 20 < sum(bool(re.search(r"\boutcome\b", line)) for line in lines) <= 40


@pytest.mark.parametrize("status", RunStatus)
def test_a_status_of_runs_is_named_in_few_files(status: RunStatus) -> None:
    """As `RunStatus.X`, as R_X in statements, and as R.X in Lua and in the tables of statuses."""
    assert 2 <= len(matching(rf"\b(RunStatus\.|R\.|R_){status}\b")) <= 14


ACTS = {
    "retry": {
        "core/graph/retry.py",  # what it is
        "define/document/retry.py",  # its form in documents, an object
        "core/graph/frozen_node.py",  # its form in frozen graphs, checked field by field
        "define/code/bodies.py",  # the names in `retry_on` are looked up, with those of bodies
        "define/code/registry.py",
        "define/document/document.py",  # a handler brings one, but not to a node that is run at most once
    },
    "timeout": {"define/options.py"},  # the default of a workflow for its nodes
    "on_lost": {"core/graph/graph.py"},  # a part of lanes
    "side_effects": {
        "define/options.py",  # the default of a workflow for its nodes: a keyword of both ways to write one
        "define/builder.py",
        "define/classes/workflow.py",
    },
    "when": {
        "core/graph/branching.py",  # how a function is stored, and which nodes may be skipped
        "core/graph/draw.py",  # a node that has one looks different
        "define/builder.py",  # only its address is stored, and its parameters are nodes
        "define/classes/compile.py",
        "define/classes/conditions.py",
        "define/code/bodies.py",  # it is found, and stands before the body
        "define/code/conditions.py",  # what it is
        "define/code/registry.py",
        "define/document/checking.py",
        "define/document/forms.py",
    },
    "join": {"core/graph/branching.py"},
    "was": {"core/graph/check.py"},  # former names must be of one node only
}
"""Where an option acts, or is written as something else than an option of a node."""


@pytest.mark.parametrize("option", [option.name for option in NODE_OPTIONS])
def test_an_option_of_nodes_is_in_few_files_beside_those_where_it_acts(option: str) -> None:
    naming = {path.relative_to(PACKAGE).as_posix() for path in files("define", "core/graph") if option in names(path)}
    acts = ACTS.get(option, set())
    assert acts <= naming, "it no longer acts there"
    assert 1 <= len(naming - acts) <= 3, naming - acts


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_kind_of_triggers_is_in_few_files(kind: str) -> None:
    """Its class, the keyword of `Trigger`, and the record of the API; `stepwell trigger add` has options for some.

    `every` and `state` are words for much else, so that only files are counted that name another kind, too.
    """
    others = set(KIND_NAMES) - {kind, "every", "state"}
    naming = [path for path in files("triggers", "answers", "engine", "client", "pipeline") if kind in names(path)]
    assert sum(bool(others & names(path)) for path in naming) == 3, naming
    assert get_args(get_type_hints(TriggerRecord)["kind"]) == KIND_NAMES
