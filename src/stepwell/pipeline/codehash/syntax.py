"""Parsing source, and writing syntax as a text that changes only with its meaning.

`ast.dump` differs between versions of Python, so `written` has its own form: names of nodes, and fields that are not empty,
without docstrings, positions, comments and layout.
"""

from __future__ import annotations

import ast
import dis
import linecache
from collections.abc import Iterator
from types import CodeType
from typing import TypeAlias

NamedDefinition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Definition: TypeAlias = NamedDefinition | ast.Lambda
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
    """Find a class by its name, `Outer.Inner` or `make.<locals>.Inner`. If there are several, the last one."""
    inside: ast.AST = module
    for part in qualname.split("."):
        if part != "<locals>":
            found = find_named(inside, part)
            if found is None:
                return None
            inside = found
    return inside if isinstance(inside, ast.ClassDef) else None


def find_named(inside: ast.AST, name: str) -> NamedDefinition | None:
    """Find a function or class by its name. If there are several, the last one."""
    alike = [each for each in statements_in(inside) if isinstance(each, NamedDefinition) and each.name == name]
    return alike[-1] if alike else None


def statements_in(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a module, class or function, also inside `if`, `with` and `try`, but not inside definitions."""
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        for each in getattr(node, field, ()):
            if isinstance(each, ast.stmt):
                yield each
            if not isinstance(each, NamedDefinition):
                yield from statements_in(each)


def imports(module: ast.Module, name: str) -> str:
    """Return what a module imports under a name, unless the name alone says it, as with `import json`."""
    return " ".join(
        f"{'.' * getattr(node, 'level', 0)}{getattr(node, 'module', None) or ''}:{each.name}"
        for node in statements_in(module)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for each in node.names
        if (each.asname or each.name.partition(".")[0]) == name
        and (each.asname is not None or isinstance(node, ast.ImportFrom))
    )


def assignments(module: ast.Module, name: str) -> list[ast.stmt]:
    """Return the statements of a module, also inside `if` and `try`, that assign a name."""
    statements: list[ast.stmt] = []
    for node in statements_in(module):
        targets = (
            node.targets if isinstance(node, ast.Assign)
            else [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For)
            else []
        )  # fmt: skip
        if any(isinstance(each, ast.Name) and each.id == name for target in targets for each in ast.walk(target)):
            statements.append(node)
    return statements


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
    names = global_names_of(code)
    if isinstance(node, NamedDefinition):
        names.discard(node.name)
    return names


def global_names_of(code: CodeType) -> set[str]:
    """Return the names that code, and the code inside it, takes from its module."""
    names: set[str] = set()
    waiting = [code]
    while waiting:
        each = waiting.pop()
        names |= {step.argval for step in dis.get_instructions(each) if step.opname in _GLOBAL}
        waiting += [constant for constant in each.co_consts if isinstance(constant, CodeType)]
    return names


def bytecode_text(code: CodeType) -> str:
    """Return what code without source does, as a text."""
    constants = [
        bytecode_text(each) if isinstance(each, CodeType)
        else repr(sorted(map(repr, each))) if isinstance(each, frozenset)
        else repr(each)
        for each in code.co_consts
    ]  # fmt: skip
    return repr((code.co_code, code.co_names, code.co_freevars, constants))


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


_PURE_CALLS = frozenset({
    "bool", "bytes", "compile", "date", "datetime", "Decimal", "dict", "float", "Fraction", "frozenset", "int", "len", "list",
    "max", "min", "namedtuple", "NewType", "Path", "PurePath", "PurePosixPath", "range", "round", "set", "sorted", "str", "sum",
    "timedelta", "timezone", "tuple", "TypeVar",
})  # fmt: skip
"""Calls whose values depend only on the source, not on the machine."""


def is_literal(statement: ast.stmt) -> bool:
    """Whether a statement assigns a literal: it looks nothing up and calls nothing."""
    value = getattr(statement, "value", None)
    return value is not None and not any(
        isinstance(each, ast.Name | ast.Call | ast.Attribute | ast.Await) for each in ast.walk(value)
    )


def impure_call(statement: ast.stmt) -> str | None:
    """Return a call that is not pure, or a name that depends on the machine, in an assignment of a module."""
    value = getattr(statement, "value", None) or statement
    for each in ast.walk(value):
        if isinstance(each, ast.Call):
            called = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "?")
            if called not in _PURE_CALLS:
                return f"{called}()"
        if isinstance(each, ast.Attribute) and each.attr in ("environ", "argv"):
            return each.attr
        if isinstance(each, ast.Name) and each.id == "__file__":
            return each.id
    return None
