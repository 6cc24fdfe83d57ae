"""Whatever is written and whatever it is given: a JSON value, or a TemplateError, soon."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.base import codec
from stepwell.base.templates import NodeOutput, TemplateError, compile_expression, compile_template, shapes, template
from stepwell.base.templates.filters import FILTERS, TESTS
from tests import processor_time

ATOMS = st.sampled_from(
    [
        *(
            "a",
            "b",
            "node.result",
            "node.output",
            "node.x",
            "nothing",
            "1",
            "0",
            "2.5",
            "'text'",
            "''",
            "true",
            "none",
            "[]",
        ),
        *("[1, 'x']", "{'k': a}", "10 ** 30", "-1", "a.k", "b[0]", "b['k']", "a[b]", "range(3)", "a[1:]", "loop.index"),
    ]
)
SIGNS = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "in", "and", "or", "not in"])
ARGUMENTS = st.lists(
    st.sampled_from(["1", "'k'", "a", "none", "-1", "'%Y'", "attribute='k'", "default=0", "reverse=true"]), max_size=2
)


def _filtered(value: str, name: str, arguments: list[str]) -> str:
    return f"({value} | {name}{'(' + ', '.join(arguments) + ')' if arguments else ''})"


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(lambda left, sign, right: f"({left} {sign} {right})", inner, SIGNS, inner),
        st.builds(_filtered, inner, st.sampled_from([*FILTERS, "default"]), ARGUMENTS),
        st.builds(lambda value, test, other: f"({value} is {test}({other}))", inner, st.sampled_from([*TESTS]), inner),
        st.builds(lambda value: f"(not {value})", inner),
        st.builds(lambda value: f"(-{value})", inner),
        st.builds(lambda yes, test, no: f"({yes} if {test} else {no})", inner, inner, inner),
        st.builds(lambda base, key: f"{base}[{key}]", inner, inner),
    )


EXPRESSIONS = st.recursive(ATOMS, _grown, max_leaves=8)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(10**400), 10**400),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=20),
        st.sampled_from(["2026-01-15", "[1]", "k", "7", "{{ a }}", "secret:DB"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from("kxab"), inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS, VALUES, VALUES, st.booleans())
def test_any_expression_gives_json_or_says_what_is_wrong(expression: str, a: Any, b: Any, in_text: bool) -> None:
    scope = {"a": a, "b": b, "node": NodeOutput({"result": b, "x": a})}
    before = codec.text([a, b])
    with processor_time.at_most(processor_time.SECOND):
        try:
            if in_text:
                found = compile_template(f"x{{% for i in [1, 2] %}}{{{{ {expression} }}}}{{% endfor %}}").render(scope)
            else:
                found = compile_expression(expression).evaluate(scope)
            codec.check(found)
        except TemplateError as error:
            found = str(error)
    assert codec.text([a, b]) == before, "what it reads is not changed"
    assert not in_text or isinstance(found, str)


def told(evaluate: Any, text: str, scope: Any) -> str:
    """What an expression gives, or what is told; a name with fields, which needs no parser, is called null by its name."""
    try:
        return codec.text(evaluate(text)(scope))
    except TemplateError as error:
        return "null" if "is null" in str(error) else str(error)


WAYS = (
    ("%s", lambda text: compile_expression(text).evaluate, lambda text: template._parsed_expression(text).evaluate),
    ("{{ %s }}", lambda text: compile_template(text).render, lambda text: template._parsed_template(text).render),
)


@settings(max_examples=250, deadline=None)
@given(EXPRESSIONS, VALUES, VALUES)
def test_a_shape_that_is_known_changes_nothing(expression: str, a: Any, b: Any) -> None:
    scope = {"a": a, "b": b, "node": NodeOutput({"result": b, "x": a})}
    for form, short, long in WAYS:
        assert told(short, form % expression, scope) == told(long, form % expression, scope)
    try:
        expected = template._parsed_expression(expression).references
    except TemplateError:
        return
    found = compile_expression(expression).references
    assert sorted(str(each[:2]) for each in found) == sorted(str(each[:2]) for each in expected)


def test_expressions_that_differ_in_names_only_are_parsed_once() -> None:
    shapes._shape.cache_clear()
    for number in range(50):
        references = compile_expression(f"(n{number}.result + input.n) | default(0)").references
        assert [each[:2] for each in references] == [(f"n{number}", "result"), ("input", "n")]
    compiled = [compile_template(f"{{{{ n{number}.result * 2 }}}}") for number in range(50)]
    rendered = [each.render({f"n{place}": {"result": place}}) for place, each in enumerate(compiled)]
    assert rendered == [2 * place for place in range(50)]
    assert (shapes._shape.cache_info().misses, shapes._shape.cache_info().hits) == (2, 98)
    assert [each[:4] for each in compiled[7].references] == [("n7", "result", 1, 4)]
