"""House words: one class name stands for one class, and messages say what was expected and what was there."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from tests.test_imports import modules, statements

PARTICIPLES = {"found", "told", "taken", "kept"}


def test_a_class_name_stands_for_one_class() -> None:
    homes = defaultdict(set)
    for name, path in modules().items():
        for statement in statements(path):
            if isinstance(statement, ast.ClassDef):
                homes[statement.name.lstrip("_")].add(name)
    repeated = {name: sorted(homes[name]) for name in homes if len(homes[name]) > 1}
    assert not repeated, repeated


def test_messages_say_what_was_expected() -> None:
    """ "expected X, got Y", and not "X is needed"."""
    lines = [
        f"{name}:{number}: {line.strip()}"
        for name, path in modules().items()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"\b(is|are) needed\b", line)
    ]
    assert not lines, "\n".join(lines)


def test_variables_have_nouns_for_names() -> None:
    """`rows` or `match`, and not `found`. Lower the number; it must become 0."""
    rooms = tuple(f"stepwell.{room}." for room in ("base", "define", "handlers", "pipeline", "triggers"))
    named = [
        f"{name}:{node.lineno} {node.id}"
        for name, path in modules().items()
        if name.startswith(rooms)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in PARTICIPLES
    ]
    assert len(named) <= 66, "\n".join(named)
