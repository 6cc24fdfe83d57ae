"""Templates and expressions, compiled once and rendered as often as needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .errors import Missing, TemplateError
from .frames import Evaluate, Frame, Reference, Scope
from .limits import MAX_CHARACTERS, MAX_NESTING, MAX_TEMPLATE, Budget, spend_parsing
from .shapes import WORDS, Renamed, shaped
from .values import field, plain, written

_MARKS = ("{{", "{%", "{#")
_SIMPLE = re.compile(r"(?<!\{)\{\{ *+([A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+) *+\}\}")
_EXACTLY_ONE = re.compile(r"\{\{.*\}\}\Z", re.DOTALL)


def is_template(text: str) -> bool:
    """Whether a text holds anything to be rendered."""
    return any(mark in text for mark in _MARKS)


class Template:
    """A compiled template. A string that is exactly one `{{ expression }}` keeps the type of its value.

    >>> compile_template("{{ order.items }}").render({"order": {"items": [1, 2]}})
    [1, 2]
    >>> compile_template("Items: {{ order.items }}").render({"order": {"items": [1, 2]}})
    'Items: [1,2]'
    """

    __slots__ = ("_render", "references", "text")

    def __init__(self, text: str, references: tuple[Reference, ...], render: Callable[[Scope, Budget], Any]) -> None:
        self.text = text
        self.references = references
        """The names it reads, in the order of writing."""
        self._render = render

    def render(self, scope: Scope, budget: Budget | None = None) -> Any:
        """The JSON value it gives; TemplateError if it cannot be rendered with this scope.

        `budget` is what may still be spent by the templates of one node; else the template has all of it.
        """
        try:
            return self._render(scope, Budget() if budget is None else budget)
        except TemplateError as error:
            if error.template is None:
                error.template = self.text
            raise
        except RecursionError:
            raise TemplateError("its values are nested too deeply") from None
        except (ArithmeticError, ValueError, TypeError, LookupError) as error:  # unforeseen
            failure = TemplateError(f"it cannot be rendered: {error}")
            failure.template = self.text
            raise failure from error


class Expression(Template):
    """A compiled expression. The JSON value it gives may be null.

    >>> compile_expression("price * count").evaluate({"price": 3, "count": 4})
    12
    """

    __slots__ = ()
    evaluate = Template.render


def compile_template(text: str) -> Template:
    """The template that a text is; TemplateError, with its position, if it is written wrongly."""
    simple = _simple(text) or _shaped_template(text)
    return _parsed_template(text) if simple is None else simple


def _parsed_template(text: str) -> Template:
    from .parsing import parse_template, says_null
    from .statements import Statements

    try:
        tree = parse_template(text)
        compiler = Statements(text)
        only = _only_expression(text, tree)
        if only is not None:
            evaluate = compiler.expression(only)
            return Template(text, tuple(compiler.references), _typed(evaluate, may_be_null=says_null(only)))
        write = compiler.statements(tree.body)
    except TemplateError as error:
        error.template = text
        raise

    def render(scope: Scope, budget: Budget) -> str:
        out: list[str] = []
        write(Frame(scope, budget, {}), out)
        made = "".join(out)
        if len(made) > MAX_CHARACTERS:
            raise TemplateError(f"it gives {len(made):,} characters; at most {MAX_CHARACTERS:,} are allowed")
        return made

    return Template(text, tuple(compiler.references), render)


def compile_expression(text: str) -> Expression:
    """The expression that a text is, without `{{ }}`; TemplateError if it is written wrongly."""
    known = shaped(text)
    if known is None:
        return _parsed_expression(text)
    evaluate, names = known.shape.evaluate, known.names

    def run(scope: Scope, budget: Budget) -> Any:
        try:
            return _evaluated(evaluate, Renamed(scope, names), budget)
        except TemplateError:
            return _parsed_expression(text).evaluate(scope, budget)  # which says it with its own names

    return Expression(text, known.references, run)


def compile_condition(text: str) -> Expression:
    """The expression of a condition, which is written as exactly one `{{ expression }}`."""
    if not (text.startswith("{{") and text.endswith("}}")):
        raise TemplateError("expected exactly one expression in {{ }}, as in {{ check.result }}")
    return compile_expression(text[2:-2])


def _shaped_template(text: str) -> Template | None:
    """A template that is exactly one expression, of a shape that may be known."""
    if not text.startswith("{{") or not text.endswith("}}"):
        return None
    known = shaped(text[2:-2], 3)
    if known is None:
        return None
    render, names = _typed(known.shape.evaluate, may_be_null=known.shape.may_be_null), known.names

    def run(scope: Scope, budget: Budget) -> Any:
        try:
            return render(Renamed(scope, names), budget)
        except TemplateError:
            return _parsed_template(text).render(scope, budget)

    return Template(text, known.references, run)


def _parsed_expression(text: str) -> Expression:
    from .expressions import compiled

    try:
        evaluate, references, _ = compiled(text)
    except TemplateError as error:
        error.template = text
        raise
    return Expression(text, references, lambda scope, budget: _evaluated(evaluate, scope, budget))


def _evaluated(evaluate: Evaluate, scope: Scope | Renamed, budget: Budget) -> Any:
    result = evaluate(Frame(scope, budget, {}))
    if type(result) is list or type(result) is dict:
        budget.for_all_of(result)  # a few characters can name the same large list many times
    else:
        budget.for_passed(result)
    return result


def _typed(evaluate: Evaluate, *, may_be_null: bool) -> Callable[[Scope | Renamed, Budget], Any]:
    def render(scope: Scope | Renamed, budget: Budget) -> Any:
        result = _evaluated(evaluate, scope, budget)
        if result is None and not may_be_null:
            raise Missing("it is null: say what stands for it with default(...), for null itself default(none)")
        return result

    return render


def _only_expression(text: str, tree: Any) -> Any:
    """The expression that is all there is to a template, or None."""
    from jinja2 import nodes

    if not _EXACTLY_ONE.match(text) or len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = tree.body[0].nodes
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData) else None


# Most templates are names with fields, alone or inside text. They need no parser.


def _simple(text: str) -> Template | None:
    parts = _SIMPLE.split(text)
    if len(parts) == 1:
        return None if is_template(text) else Template(text, (), lambda scope, budget: text)
    if len(text) > MAX_TEMPLATE or any(is_template(data) for data in parts[::2]):
        return None  # the parser says what is wrong
    paths = [tuple(path.split(".")) for path in parts[1::2]]
    if any(not WORDS.isdisjoint(path) or len(path) > MAX_NESTING for path in paths):
        return None
    spend_parsing(2 * len(paths))
    references = tuple(_references(text, paths))
    if parts[::2] == ["", ""]:
        return Template(text, references, _whole(_path(paths[0])))
    return Template(text, references, _text_of(parts[::2], [_path(path) for path in paths]))


def _references(text: str, paths: list[tuple[str, ...]]) -> list[Reference]:
    references = []
    line, begin, looked = 1, 0, 0
    for path, match in zip(paths, _SIMPLE.finditer(text), strict=True):
        at = match.start(1)
        lines = text.count("\n", looked, at)
        if lines:
            line, begin = line + lines, text.rfind("\n", looked, at) + 1
        looked = at
        name, field_name = path[0], path[1] if len(path) > 1 else None
        references.append(Reference(name, field_name, line, at - begin + 1, whole=field_name is None))
    return references


def _path(path: tuple[str, ...]) -> Callable[[Scope], Any]:
    name, fields, words = path[0], path[1:], ".".join(path)

    def find(scope: Scope) -> Any:
        try:
            value = scope[name]
        except KeyError:
            raise Missing(f"there is nothing called {name!r} here") from None
        if not fields:
            value = plain(value, name)
        for each in fields:
            value = field(value, each, words)
        if value is None:
            advice = f"say what stands for it with {words} | default(...), for null itself default(none)"
            raise Missing(f"{words} is null: {advice}")
        return value

    return find


def _whole(value: Callable[[Scope], Any]) -> Callable[[Scope, Budget], Any]:
    def render(scope: Scope, budget: Budget) -> Any:
        result = value(scope)
        budget.for_passed(result)
        return result

    return render


def _text_of(data: list[str], values: list[Callable[[Scope], Any]]) -> Callable[[Scope, Budget], str]:
    def render(scope: Scope, budget: Budget) -> str:
        made = [data[0]]
        for value, after in zip(values, data[1:], strict=True):
            made.append(written(value(scope), budget))
            made.append(after)
        return "".join(made)

    return render
