"""Whatever is written and whatever it is given: a JSON value, or a TemplateError, soon."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell import codec
from stepwell.templates import NodeOutput, TemplateError, compile_expression, compile_template
from stepwell.templates.filters import FILTERS, TESTS

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


@settings(max_examples=600, deadline=None)
@given(EXPRESSIONS, VALUES, VALUES, st.booleans())
def test_any_expression_gives_json_or_says_what_is_wrong(expression: str, a: Any, b: Any, in_text: bool) -> None:
    scope = {"a": a, "b": b, "node": NodeOutput({"result": b, "x": a})}
    before = codec.text([a, b])
    start = time.process_time()
    try:
        if in_text:
            found = compile_template(f"x{{% for i in [1, 2] %}}{{{{ {expression} }}}}{{% endfor %}}").render(scope)
        else:
            found = compile_expression(expression).evaluate(scope)
        codec.check(found)
    except TemplateError as error:
        found = str(error)
    assert time.process_time() - start < 1
    assert codec.text([a, b]) == before, "what it reads is not changed"
    assert not in_text or isinstance(found, str)
