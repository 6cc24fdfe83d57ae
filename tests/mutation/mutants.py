"""Small, plausible bugs: every one that can be made from a module by changing one place of its source.

A place is changed in the text, where the syntax tree says it is, so that a mutant differs from the module in a line or two.
What cannot change behaviour is left alone: docstrings, annotations, decorators, asserts, log lines, the texts of errors.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .lua import changed_lua
from .rooms import is_in
from .statements import changed_statements, is_statement

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|")}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
METHODS = {"popleft": "pop", "startswith": "endswith", "setdefault": "get"}
LARGEST = 9
"""A greater number is a limit or a size that somebody chose, and one more of it is as good a choice."""

LOGS = {"log", "warnings"}
DANGEROUS = {"kill", "killpg"}
"""A mutant of these could end a process that is not ours."""
TEXTS = {"__repr__", "__str__"}


@dataclass(frozen=True)
class Mutant:
    module: str
    """Below the package: `core/kernel/healing.py`."""
    function: str
    """The qualified name of what is around it; empty at the top of a module."""
    was: str
    """The lines that are changed, without their indent,"""
    now: str
    """and what they are changed to."""
    occurrence: int
    """Which of those that are equal in all this."""
    line: int
    """Where the change is."""
    reached_by: tuple[int, int]
    """Whoever runs one of the lines from here to there meets it; of what is run at import, see `names`."""
    names: tuple[str, ...]
    """What the statement defines, if it is run when the module is imported: whoever uses these meets it."""
    start: int
    end: int
    text: str
    """What is put in place of the characters from `start` to `end`."""

    @property
    def id(self) -> str:
        """Stays the same when lines move."""
        parts = (self.module, self.function, self.was, self.now, str(self.occurrence))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def compiles(self, source: str) -> bool:
        if not self.module.endswith(".py"):
            return True
        try:
            compile(self.apply(source), self.module, "exec")
        except SyntaxError:
            return False
        return True

    def diff(self, source: str) -> str:
        lines = difflib.unified_diff(
            source.splitlines(), self.apply(source).splitlines(), self.module, self.module, n=2, lineterm=""
        )
        return "\n".join(list(lines)[2:])


def make_mutants(sources: Mapping[str, str], paths: Sequence[str]) -> Iterator[Mutant]:
    """All mutants of the modules in these folders or files."""
    for module, source in sources.items():
        if is_in(module, paths):
            yield from mutants_of(module, source)


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    changes = _Changes(source).all() if module.endswith(".py") else _changes_of_text(module, source)
    seen: Counter[tuple[str, str, str]] = Counter()
    for change in changes:
        mutated = source[: change.start] + change.text + source[change.end :]
        was, now = (
            _lines(source, change.start, change.end),
            _lines(mutated, change.start, change.start + len(change.text)),
        )
        key = (change.function, was, now)
        yield Mutant(
            module,
            change.function,
            was,
            now,
            seen[key],
            source.count("\n", 0, change.start) + 1,
            change.reached_by,
            change.names,
            change.start,
            change.end,
            change.text,
        )
        seen[key] += 1


def _lines(text: str, start: int, end: int) -> str:
    """The whole lines from here to there, without their indent."""
    start = text.rfind("\n", 0, start) + 1
    end = text.find("\n", end)
    return "\n".join(line.strip() for line in text[start : end if end >= 0 else len(text)].split("\n"))


@dataclass(frozen=True)
class _Change:
    start: int
    end: int
    text: str
    function: str
    reached_by: tuple[int, int]
    names: tuple[str, ...]


_DEFINED = re.compile(r"^(?:CREATE (?:OR REPLACE )?FUNCTION |local function |function )([\w.:]+)", re.MULTILINE)


def _changes_of_text(module: str, source: str) -> Iterator[_Change]:
    """Changes of Lua and SQL, which have no syntax tree here. Definitions of tables are left alone: no rule is in them."""
    names = [(each.start(), each.group(1)) for each in _DEFINED.finditer(source)]
    changed = changed_lua if module.endswith(".lua") else changed_statements
    for start, end, text in changed(source):
        around = next((name for at, name in reversed(names) if at <= start), "")
        if around or module.endswith(".lua"):
            yield _Change(start, end, text, around, (0, 0), ())


class _Changes:
    """Walks through a module; `_reached` and `_names` are those of the statement it is in."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tree = ast.parse(source)
        self._offsets = [0]
        for line in source.splitlines(keepends=True):
            self._offsets.append(self._offsets[-1] + len(line))
        self._lines = source.splitlines(keepends=True)
        self._around: list[str] = []
        self._in_function = False
        self._reached = (0, 0)
        self._names: tuple[str, ...] = ()

    def all(self) -> Iterator[_Change]:
        yield from self._block(self._tree.body)

    # Statements

    def _block(self, body: list[ast.stmt]) -> Iterator[_Change]:
        for statement in body:
            if not _is_left_alone(statement):
                if not self._in_function:
                    self._names = defined_names(statement) or self._names
                self._reached = header_lines(statement)
                yield from self._statement(statement)

    def _statement(self, statement: ast.stmt) -> Iterator[_Change]:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._function(statement)
            case ast.ClassDef():
                self._around.append(statement.name)
                yield from self._block(statement.body)
                self._around.pop()
            case ast.AnnAssign(value=value):
                yield from self._removed(statement)
                yield from self._expression(value)
            case ast.Raise():  # what is raised tells a person
                yield from self._removed(statement)
            case ast.If() | ast.While():
                yield from self._condition(statement.test, never=isinstance(statement, ast.While))
                yield from self._expression(statement.test)
                yield from self._block(statement.body)
                yield from self._block(statement.orelse)
            case _:
                yield from self._removed(statement)
                yield from self._swapped(statement)
                yield from self._returned(statement)
                yield from self._parts(statement)

    def _function(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Change]:
        if function.name in TEXTS:
            return
        outer = (self._in_function, self._names)
        self._around.append(function.name)
        self._in_function, self._names = True, ()
        self._reached = (function.body[0].lineno, function.end_lineno or 0)
        for default in [*function.args.defaults, *function.args.kw_defaults]:
            yield from self._expression(default)
        yield from self._block(function.body)
        self._around.pop()
        self._in_function, self._names = outer

    def _parts(self, statement: ast.AST) -> Iterator[_Change]:
        """What a statement of any other kind is made of."""
        for name, value in ast.iter_fields(statement):
            if name in ("type", "annotation"):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.stmt):
                    yield from self._block([part])
                elif isinstance(part, ast.expr):
                    yield from self._expression(part)
                elif isinstance(part, ast.match_case):
                    if part.guard:
                        yield from self._condition(part.guard)
                        yield from self._expression(part.guard)
                    yield from self._block(part.body)
                elif isinstance(part, ast.AST):
                    yield from self._parts(part)

    def _removed(self, statement: ast.stmt) -> Iterator[_Change]:
        match statement:
            case ast.Expr(value=ast.Yield() | ast.YieldFrom()):  # or the function is none that yields any more
                return
            case (
                ast.Expr() | ast.Assign() | ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Continue() | ast.Break()
            ):
                pass
            case ast.AnnAssign(value=ast.expr()):
                pass
            case ast.Return(value=None):
                pass
            case _:
                return
        if isinstance(statement, ast.Assign | ast.AnnAssign) and (
            self._around[-1:] == ["__init__"] or all(isinstance(each, ast.Name) for each in _targets(statement))
        ):
            return  # its readers would stumble over what is missing, and so would any test
        yield self._replace(statement, "pass")

    def _swapped(self, statement: ast.stmt) -> Iterator[_Change]:
        if isinstance(statement, ast.AugAssign) and type(statement.op) in ARITHMETIC:
            old, new = ARITHMETIC[type(statement.op)]
            yield from self._between(statement.target, statement.value, f"{old}=", f"{new}=")

    def _returned(self, statement: ast.stmt) -> Iterator[_Change]:
        if isinstance(statement, ast.Return) and statement.value and not isinstance(statement.value, ast.Constant):
            yield self._replace(statement.value, "None")

    # Expressions

    def _expression(self, expression: ast.AST | None) -> Iterator[_Change]:
        match expression:
            case None:
                return
            case ast.JoinedStr() | ast.Constant(value=str()):
                yield from self._text(expression)
                return
            case ast.Constant(value=value):
                yield from self._constant(expression, value)
            case ast.Compare():
                for left, operator, right in zip(
                    [expression.left, *expression.comparators], expression.ops, expression.comparators, strict=False
                ):
                    yield from self._between(left, right, *COMPARISONS[type(operator)])
            case ast.BoolOp():
                yield from self._boolean(expression)
            case ast.UnaryOp(op=ast.Not()):
                yield self._replace(expression, f"({self._of(expression.operand)})")
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in ARITHMETIC:
                yield from self._between(left, right, *ARITHMETIC[type(operator)])
            case ast.IfExp():
                yield from self._condition(expression.test)
            case ast.comprehension():
                for condition in expression.ifs:
                    yield self._replace(condition, "True")
            case ast.Slice():
                for bound in (expression.lower, expression.upper):
                    if bound and not isinstance(bound, ast.Constant | ast.UnaryOp):
                        yield self._replace(bound, f"({self._of(bound)}) + 1")
            case ast.Call():
                name = _called(expression)
                if name in DANGEROUS:
                    return
                others = CALLS if isinstance(expression.func, ast.Name) else METHODS
                if name in others:
                    at = self._end(expression.func)
                    yield self._change(at - len(name), at, others[name])
            case _:
                pass
        for part in ast.iter_child_nodes(expression):
            yield from self._expression(part)

    def _text(self, text: ast.expr) -> Iterator[_Change]:
        """Of all texts only statements for the database are changed, within what is written in the source."""
        source = self._of(text)
        if is_statement(source):
            at = self._start(text)
            for start, end, new in changed_statements(source):
                yield self._change(at + start, at + end, new)

    def _constant(self, constant: ast.Constant, value: object) -> Iterator[_Change]:
        if isinstance(value, bool):
            yield self._replace(constant, str(not value))
        elif isinstance(value, int) and value <= LARGEST:
            yield self._replace(constant, str(value + 1))
            if value > 0:
                yield self._replace(constant, str(value - 1))

    def _boolean(self, expression: ast.BoolOp) -> Iterator[_Change]:
        old, new = ("and", "or") if isinstance(expression.op, ast.And) else ("or", "and")
        for left, right in zip(expression.values, expression.values[1:], strict=False):
            yield from self._between(left, right, old, new)
        for term in expression.values if old == "and" else ():  # one that was forgotten
            yield self._replace(term, "True")

    def _condition(self, test: ast.expr, never: bool = False) -> Iterator[_Change]:
        """Forced to be true and to be false; with `never` only that, because the other one would not end."""
        if not isinstance(test, ast.Constant):
            yield self._replace(test, "False")
            if not never:
                yield self._replace(test, "True")

    # The text

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[_Change]:
        """An operator has no place in the tree: it is what stands between its operands."""
        start, end = self._end(left), self._start(right)
        at = self._source.find(old, start, end)
        if at >= 0:
            yield self._change(at, at + len(old), new)

    def _replace(self, node: ast.expr | ast.stmt, text: str) -> _Change:
        return self._change(self._start(node), self._end(node), text)

    def _change(self, start: int, end: int, text: str) -> _Change:
        return _Change(start, end, text, ".".join(self._around), self._reached, self._names)

    def _of(self, node: ast.expr) -> str:
        return self._source[self._start(node) : self._end(node)]

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.end_lineno or 0, node.end_col_offset or 0)

    def _offset(self, line: int, column: int) -> int:
        """The tree counts bytes, a text has characters."""
        before = self._lines[line - 1].encode()[:column].decode()
        return self._offsets[line - 1] + len(before)


def _is_left_alone(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass() | ast.Global() | ast.Nonlocal():
            return True
        case ast.Expr(value=ast.Constant()):  # a docstring
            return True
        case ast.Expr(value=ast.Call() as call):
            return _called(call) == "assert_never" or _is_log(call)
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case _:
            return False


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _is_log(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id in LOGS


def defined_names(statement: ast.stmt) -> tuple[str, ...]:
    """What a statement at the top of a module or class gives a name to."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Assign(targets=targets):
            return tuple(each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            return (name,)
        case _:
            return ()


def header_lines(statement: ast.stmt) -> tuple[int, int]:
    """The lines of a statement itself, without those of the statements inside it."""
    first = min((each.lineno for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt)), default=None)
    last = statement.end_lineno or statement.lineno
    return statement.lineno, last if first is None else max(statement.lineno, first - 1)
