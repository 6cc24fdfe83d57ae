"""Parsing source, and writing syntax as a text that changes only with its meaning.

`ast.dump` differs between versions of Python, so `written` has its own form: names of nodes, and fields that are not empty,
without docstrings, positions, comments and layout.
"""

from __future__ import annotations

import ast
import dis
import linecache
from types import CodeType
from typing import TypeAlias

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_SKIPPED = frozenset({"ctx", "kind", "type_comment", "lineno", "col_offset", "end_lineno", "end_col_offset"})
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})


def module_syntax(file: str) -> ast.Module | None:
    """Parse a file as it is now. None if it cannot be read or is not Python."""
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    if not lines:
        return None
    try:
        return ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None


def find_definition(module: ast.Module, code: CodeType) -> Definition | None:
    """Find a function by its name and first line, a lambda also by the position of its body."""
    if code.co_name == "<lambda>":
        return _find_lambda(module, code)
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


def _find_lambda(module: ast.Module, code: CodeType) -> ast.Lambda | None:
    alike = [node for node in ast.walk(module) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno]
    if len(alike) <= 1:
        return alike[0] if alike else None
    spots = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column]
    first = min(spots, default=(0, 0))
    inside = [
        node
        for node in alike
        if (node.body.lineno, node.body.col_offset) <= first <= (node.end_lineno or 0, node.end_col_offset or 0)
    ]
    # If lambdas are nested, the innermost one that contains the first instruction.
    return max(inside, key=lambda node: (node.lineno, node.col_offset), default=None)


def find_class(module: ast.Module, qualname: str) -> ast.ClassDef | None:
    """Find a class by its name, `Outer.Inner`. If there are several, the last one."""
    body: list[ast.stmt] = module.body
    found: ast.ClassDef | None = None
    for part in qualname.split("."):
        if part == "<locals>":
            return None
        found = next((node for node in reversed(body) if isinstance(node, ast.ClassDef) and node.name == part), None)
        if found is None:
            return None
        body = found.body
    return found


def assignments(module: ast.Module, name: str) -> list[ast.stmt]:
    """Return the statements of a module, also inside `if` and `try`, that assign a name."""
    found: list[ast.stmt] = []
    waiting: list[ast.stmt] = list(module.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        targets = (
            node.targets if isinstance(node, ast.Assign)
            else [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For)
            else []
        )  # fmt: skip
        if any(isinstance(each, ast.Name) and each.id == name for target in targets for each in ast.walk(target)):
            found.append(node)
        for field in ("body", "orelse", "finalbody", "handlers"):
            for below in getattr(node, field, None) or []:
                waiting += below.body if isinstance(below, ast.ExceptHandler) else [below]
    return found


def written(value: object) -> str:
    """Return a text that is the same for the same meaning on every version of Python."""
    if isinstance(value, list):
        return f"[{''.join(f'{written(each)},' for each in value)}]"
    if not isinstance(value, ast.AST):
        return f"{type(value).__name__}:{value!r}"
    text = f"({type(value).__name__}"
    for name in sorted(value._fields):
        field = getattr(value, name, None)
        if name in _SKIPPED or field is None or field == []:
            continue
        if name == "body" and isinstance(value, _DOCUMENTED) and ast.get_docstring(value, clean=False) is not None:
            field = value.body[1:] or [ast.Pass()]
        text += f" {name}={written(field)}"
    return f"{text})"


def global_names(node: ast.AST) -> set[str]:
    """Return the names that a definition takes from its module or from functions around it."""
    if isinstance(node, ast.expr):
        code = compile(ast.Expression(node), "<definition>", "eval", dont_inherit=True)
    else:
        assert isinstance(node, ast.stmt)
        code = compile(ast.Module([node], []), "<definition>", "exec", dont_inherit=True)
    names: set[str] = set()
    waiting = [code]
    while waiting:
        each = waiting.pop()
        names |= {step.argval for step in dis.get_instructions(each) if step.opname in _GLOBAL}
        waiting += [constant for constant in each.co_consts if isinstance(constant, CodeType)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        names.discard(node.name)
    return names


def attributes_of(node: ast.AST, name: str) -> set[tuple[str, ...]]:
    """Return the attributes used of a name: ("text", "clean") for `helpers.text.clean(x)` and `helpers`."""
    found: set[tuple[str, ...]] = set()
    for each in ast.walk(node):
        chain: list[str] = []
        inner: ast.AST = each
        while isinstance(inner, ast.Attribute):
            chain.append(inner.attr)
            inner = inner.value
        if chain and isinstance(inner, ast.Name) and inner.id == name:
            found.add(tuple(reversed(chain)))
    return found
