"""What an expression means: every node of its syntax tree becomes a function of a frame.

The table at the end is the whole language. Other nodes are refused, so new features of Jinja do not become part of it by
themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import nodes

from ..words import suggestion
from .errors import Missing, TemplateError
from .filters import FILTERS, TESTS
from .frames import Evaluate, Frame, Reference
from .limits import MAX_ITEMS, MAX_NESTING, Budget
from .parsing import described, parse_expression, says_null
from .values import add, calculated, checked_number, compared, field, is_number, item, multiply, part, plain, written
from .values import described as shown

_SIGNS = {nodes.Sub: "-", nodes.Div: "/", nodes.FloorDiv: "//", nodes.Mod: "%", nodes.Pow: "**"}
_METHODS = {"strip": "trim", "get": "default", "format": "~"}
"""What stands here for methods that people know from Python."""


class Expressions:
    """Compiles one tree. `references` collects the names it reads that no loop binds."""

    def __init__(self, text: str, shift: int = 0) -> None:
        self._lines = text.split("\n")
        self._shift = shift
        self.bound: list[str] = []
        self.depth = 0
        self.size = 0
        """Nodes compiled so far: what evaluating them once costs."""
        self.references: list[Reference] = []
        self._defaults = 0
        """In how many operands of `default` this is."""
        self._tests = 0

    def expression(self, node: nodes.Node) -> Evaluate:
        compile_node = _EXPRESSIONS.get(type(node))
        if compile_node is None:
            raise self.refused(node, f"{name_of(node)} is not part of the language")
        self.depth += 1
        self.size += 1
        if self.depth > MAX_NESTING:
            raise self.refused(node, f"it is nested deeper than {MAX_NESTING} levels")
        try:
            return compile_node(self, node)
        finally:
            self.depth -= 1

    def _const(self, node: nodes.Const) -> Evaluate:
        value = node.value
        if is_number(value):
            checked_number(value)
        return lambda frame: value

    def _name(self, node: nodes.Name) -> Evaluate:
        find, name = self._raw_name(node, None, whole=True), node.name
        return lambda frame: plain(find(frame), name)

    def _raw_name(self, node: nodes.Name, of_it: str | None, *, whole: bool = False) -> Evaluate:
        name = node.name
        if name in self.bound:
            return lambda frame: frame.local[name]
        line = node.lineno
        guards = self._defaults > 0, self._tests > 0
        self.references.append(Reference(name, of_it, line, self._column(line, name), whole, *guards))

        def find(frame: Frame) -> Any:
            try:
                return frame.scope[name]
            except KeyError:
                raise Missing(f"there is nothing called {name!r} here", line=line) from None

        return find

    def _base(self, node: nodes.Node, of_it: str | None) -> Evaluate:
        """What a field is looked up in: here the name of a node may stand by itself."""
        return self._raw_name(node, of_it) if isinstance(node, nodes.Name) else self.expression(node)

    def _getattr(self, node: nodes.Getattr) -> Evaluate:
        name, words = node.attr, described(node)
        base = self._base(node.node, name)
        return lambda frame: field(base(frame), name, words)

    def _getitem(self, node: nodes.Getitem) -> Evaluate:
        words = described(node)
        if isinstance(node.arg, nodes.Slice):
            whole = self.expression(node.node)
            ends = [
                None if each is None else self.expression(each)
                for each in (node.arg.start, node.arg.stop, node.arg.step)
            ]

            def cut(frame: Frame) -> Any:
                start, stop, step = (None if each is None else each(frame) for each in ends)
                return part(whole(frame), start, stop, step, frame.budget)

            return cut
        if isinstance(node.arg, nodes.Const):
            constant = node.arg.value
            base = self._base(node.node, constant if isinstance(constant, str) else None)
            return lambda frame: item(base(frame), constant, words)
        base, key = self._base(node.node, None), self.expression(node.arg)
        return lambda frame: item(base(frame), key(frame), words)

    def _list(self, node: nodes.List | nodes.Tuple) -> Evaluate:
        items = [self.expression(each) for each in node.items]
        return lambda frame: [each(frame) for each in items]

    def _dict(self, node: nodes.Dict) -> Evaluate:
        pairs = [(self.expression(each.key), self.expression(each.value)) for each in node.items]

        def make(frame: Frame) -> dict[str, Any]:
            made = {}
            for key, value in pairs:
                name = key(frame)
                if type(name) is not str:
                    raise TemplateError(f"{shown(name)} cannot be a key; expected a text")
                made[name] = value(frame)
            return made

        return make

    def _add_or_multiply(self, node: nodes.Add | nodes.Mul) -> Evaluate:
        left, right = self.expression(node.left), self.expression(node.right)
        combine = add if isinstance(node, nodes.Add) else multiply
        return lambda frame: combine(left(frame), right(frame), frame.budget)

    def _calculate(self, node: nodes.BinExpr) -> Evaluate:
        sign = _SIGNS[type(node)]
        left, right = self.expression(node.left), self.expression(node.right)
        return lambda frame: calculated(sign, left(frame), right(frame))

    def _and_or(self, node: nodes.And | nodes.Or) -> Evaluate:
        left, right = self.expression(node.left), self.expression(node.right)
        if isinstance(node, nodes.And):
            return lambda frame: left(frame) and right(frame)
        return lambda frame: left(frame) or right(frame)

    def _not(self, node: nodes.Not) -> Evaluate:
        value = self.expression(node.node)
        return lambda frame: not value(frame)

    def _signed(self, node: nodes.Neg | nodes.Pos) -> Evaluate:
        value = self.expression(node.node)
        if isinstance(node, nodes.Neg):
            return lambda frame: calculated("-", 0, value(frame))
        return lambda frame: calculated("-", value(frame), 0)

    def _concat(self, node: nodes.Concat) -> Evaluate:
        parts = [self.expression(each) for each in node.nodes]

        def join(frame: Frame) -> str:
            made = [written(each(frame), frame.budget) for each in parts]
            frame.budget.for_text(sum(map(len, made)))
            return "".join(made)

        return join

    def _compare(self, node: nodes.Compare) -> Evaluate:
        first = self.expression(node.expr)
        others = [(each.op, self.expression(each.expr)) for each in node.ops]

        def compare(frame: Frame) -> bool:
            left = first(frame)
            for sign, other in others:
                right = other(frame)
                if not compared(sign, left, right, frame.budget):
                    return False
                left = right
            return True

        return compare

    def _conditional(self, node: nodes.CondExpr) -> Evaluate:
        if node.expr2 is None:
            raise self.refused(node, "an if inside an expression needs its else")
        test, yes, no = self.expression(node.test), self.expression(node.expr1), self.expression(node.expr2)
        return lambda frame: yes(frame) if test(frame) else no(frame)

    def _call(self, node: nodes.Call) -> Evaluate:
        if isinstance(node.node, nodes.Name) and node.node.name == "range" and "range" not in self.bound:
            if node.kwargs or node.dyn_args or node.dyn_kwargs or not 1 <= len(node.args) <= 3:
                raise self.refused(node, "range takes one to three whole numbers")
            ends = [self.expression(each) for each in node.args]
            return lambda frame: _range([each(frame) for each in ends], frame.budget)
        words = described(node.node)
        method = node.node.attr if isinstance(node.node, nodes.Getattr) else ""
        filter_name = method if method in FILTERS else _METHODS.get(method)
        advice = f": write | {filter_name}" if filter_name else ": filters do it, as in x | upper"
        raise self.refused(node, f"{words or 'this'}(...) cannot be called; the only function is range{advice}")

    def _filter(self, node: nodes.Filter) -> Evaluate:
        if node.node is None or node.dyn_args is not None or node.dyn_kwargs is not None:
            raise self.refused(node, f"the filter {node.name} cannot be used like this")
        if node.name in ("default", "d"):
            return self._default(node)
        function = FILTERS.get(node.name)
        if function is None:
            meant = suggestion(node.name, (*FILTERS, "default"))
            raise self.refused(node, f"there is no filter {node.name!r}; {meant}")
        value = self.expression(node.node)
        arguments, named = self._arguments(node, function, "filter")

        def apply(frame: Frame) -> Any:
            given = {name: each(frame) for name, each in named} if named else {}
            return function(frame.budget, value(frame), *(each(frame) for each in arguments), **given)

        return apply

    def _default(self, node: nodes.Filter) -> Evaluate:
        """What stands for a value that is missing or null, and with `true` also for one that is empty."""
        assert node.node is not None
        self._defaults += 1
        value = self.expression(node.node)
        self._defaults -= 1
        arguments, named = self._arguments(node, _default_signature, "filter")
        given = dict(zip(("value", "empty"), arguments, strict=False)) | dict(named)
        otherwise, empty = given.get("value"), given.get("empty")

        def choose(frame: Frame) -> Any:
            try:
                result = value(frame)
            except Missing:
                result = None
            if result is None or (not result and empty is not None and empty(frame)):
                return None if otherwise is None else otherwise(frame)
            return result

        return choose

    def _test(self, node: nodes.Test) -> Evaluate:
        name = _ALIASES.get(node.name, node.name)
        function = TESTS.get(name)
        if function is None:
            raise self.refused(node, f"there is no test {node.name!r}; {suggestion(node.name, TESTS)}")
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            raise self.refused(node, f"the test {node.name} cannot be used like this")
        if name in ("defined", "undefined"):
            self._tests += 1
            value = self.expression(node.node)
            self._tests -= 1
            return _presence(value, name == "defined")
        value = self.expression(node.node)
        arguments, named = self._arguments(node, function, "test")
        if named:
            raise self.refused(node, f"the test {name} takes no named arguments")
        return lambda frame: function(frame.budget, value(frame), *(each(frame) for each in arguments))

    def _arguments(
        self, node: nodes.Filter | nodes.Test, function: Callable[..., Any], kind: str
    ) -> tuple[list[Evaluate], list[tuple[str, Evaluate]]]:
        signature = _signature(function)
        try:
            signature.bind(None, None, *node.args, **{str(each.key): each for each in node.kwargs})
        except TypeError as error:
            takes = ", ".join(list(signature.parameters)[2:]) or "no arguments"
            raise self.refused(node, f"the {kind} {node.name} takes {takes}: {error}") from None
        named = [(str(each.key), self.expression(each.value)) for each in node.kwargs]
        return [self.expression(each) for each in node.args], named

    # Errors

    def refused(self, node: nodes.Node, problem: str) -> TemplateError:
        line = node.lineno or 1
        if isinstance(node, nodes.Filter | nodes.Test):
            return TemplateError(problem, line=line, column=self._column(line, node.name))
        words = described(node.node if isinstance(node, nodes.Call) else node)
        return TemplateError(problem, line=line, column=self._column(line, words))

    def _column(self, line: int, words: str) -> int:
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        return max(text.find(words), 0) + 1 - (self._shift if line == 1 else 0)


_ALIASES = {"equalto": "eq", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "sequence": "list"}


def _default_signature(budget: Any, before: Any, value: Any, empty: Any = False) -> None:
    """What `default` takes."""


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _presence(value: Evaluate, wanted: bool) -> Evaluate:
    def is_there(frame: Frame) -> bool:
        try:
            value(frame)
        except Missing:
            return not wanted
        return wanted

    return is_there


def _range(ends: list[Any], budget: Budget) -> list[int]:
    for each in ends:
        if type(each) is not int:
            raise TemplateError(f"range needs whole numbers, not {shown(each)}")
    if len(ends) == 3 and ends[2] == 0:
        raise TemplateError("range cannot have steps of 0")
    made = range(*ends)
    try:
        budget.for_items(len(made))
    except OverflowError:
        raise TemplateError(f"range: at most {MAX_ITEMS:,} items are allowed") from None
    return list(made)


def name_of(node: nodes.Node) -> str:
    names = {"Assign": "set", "AssignBlock": "set", "FromImport": "import", "ScopedEvalContextModifier": "autoescape"}
    return names.get(type(node).__name__, type(node).__name__.lower())


_EXPRESSIONS: dict[type[nodes.Node], Callable[[Expressions, Any], Evaluate]] = {
    nodes.Const: Expressions._const,
    nodes.Name: Expressions._name,
    nodes.Getattr: Expressions._getattr,
    nodes.Getitem: Expressions._getitem,
    nodes.List: Expressions._list,
    nodes.Tuple: Expressions._list,
    nodes.Dict: Expressions._dict,
    **dict.fromkeys((nodes.Add, nodes.Mul), Expressions._add_or_multiply),
    **dict.fromkeys(_SIGNS, Expressions._calculate),
    **dict.fromkeys((nodes.And, nodes.Or), Expressions._and_or),
    nodes.Not: Expressions._not,
    **dict.fromkeys((nodes.Neg, nodes.Pos), Expressions._signed),
    nodes.Concat: Expressions._concat,
    nodes.Compare: Expressions._compare,
    nodes.CondExpr: Expressions._conditional,
    nodes.Call: Expressions._call,
    nodes.Filter: Expressions._filter,
    nodes.Test: Expressions._test,
}


def compiled(text: str) -> tuple[Evaluate, tuple[Reference, ...], bool]:
    """An expression, the names it reads, and whether it may give null."""
    tree = parse_expression(text)
    compiler = Expressions("{{ " + text, shift=3)
    evaluate = compiler.expression(tree)  # which collects the references
    return evaluate, tuple(compiler.references), says_null(tree)
