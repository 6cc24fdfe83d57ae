from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from stepwell.base.templates import (
    Missing,
    NodeOutput,
    TemplateError,
    compile_config,
    compile_expression,
    compile_template,
)
from stepwell.base.templates import template as compiling

SCOPE: dict[str, Any] = {
    "input": {"a": 1, "b": "two", "c": [1, 2.5, "x"], "d": {"e": {"f": True}}, "n": None},
    "fetch": NodeOutput({"result": {"x": [1]}, "status": 200}),
    "job": NodeOutput([1, 2]),
}


def test_references_name_what_is_read_and_where() -> None:
    text = (
        "Hello {{ input.a }},\n  {{ fetch.result.x }} {% for i in job.output %}{{ i }}{{ fetch['status'] }}{% endfor %}"
    )
    found = [each[:4] for each in compile_template(text).references]
    assert found == [
        ("input", "a", 1, 10),
        ("fetch", "result", 2, 6),
        ("job", "output", 2, 36),
        ("fetch", "status", 2, 6),
    ]
    assert [each[:4] for each in compile_template("{{ fetch.result.x }}").references] == [("fetch", "result", 1, 4)]
    assert [each[:4] for each in compile_expression("job.output[input.a]").references] == [
        ("job", "output", 1, 1),
        ("input", "a", 1, 12),
    ]
    assert compile_template("{% for x in input.c %}{{ x }}{{ loop.index }}{% endfor %}").references[0].name == "input"
    assert {each.name for each in compile_template("{{ x }}{% for x in input.c %}{{ x }}{% endfor %}").references} == {
        "x",
        "input",
    }


@pytest.mark.parametrize(
    ("text", "guards"),
    [
        ("{{ a.x }}", [""]),
        ("{{ a.x | default(b.x) }}", ["defaulted", ""]),
        ("{{ (a.x | d(b.x) + 1) | default(0) }}", ["defaulted", "defaulted"]),
        ("{{ a.x is defined }}", ["tested"]),
        ("{{ a['x'] }}", [""]),
        ("{{ a }}", ["whole"]),
        ("{{ a | default(1) }}", ["whole defaulted"]),
        ("text {% for x in a %}{{ x }}{% endfor %}", ["whole"]),
    ],
)
def test_references_say_whether_something_stands_for_them(text: str, guards: list[str]) -> None:
    marks = ("whole", "defaulted", "tested")
    found = [" ".join(mark for mark in marks if getattr(each, mark)) for each in compile_template(text).references]
    assert found == guards


def test_a_computed_key_reads_the_whole() -> None:
    assert compile_template("{{ fetch[input.b] }}").references[0].field is None


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("one\ntwo {{ input.a | uper }}", 2, 18), ("{% set x = 1 %}", 1, 1), ("\n\n{{ f(1) }}", 3, 4), ("{{ x", 1, 1)],
)
def test_an_error_says_where(text: str, line: int, column: int) -> None:
    with pytest.raises(TemplateError) as told:
        compile_template(text)
    assert (told.value.line, told.value.column) == (line, column)


def test_an_error_while_rendering_names_its_line() -> None:
    with pytest.raises(Missing, match=r"no field 'z'.*line 3"):
        compile_template("{{ input.a }}\n\n{{ input.d.z ~ 1 }}{{ input.b }}").render(SCOPE)


def test_a_loop_sees_its_own_variables_only() -> None:
    text = "{% for a in input.c %}{% for b in [a] %}{{ b }}{% endfor %}{% endfor %}{{ a | default('gone') }}"
    assert compile_template(text).render(SCOPE) == "12.5xgone"


def test_line_ends_and_white_space_stay_as_they_are() -> None:
    for text in ("a\r\nb {{ input.a }}\r\n", "\n{{ input.a }}\n", "{{ input.a }} ", "x\r{{ input.a | abs }}\r\n\n"):
        expected = text.replace("{{ input.a }}", "1").replace("{{ input.a | abs }}", "1")
        assert compile_template(text).render(SCOPE) == expected


NAMES = st.sampled_from(["input", "fetch", "job", "nobody", "true", "none", "in", "is"])
FIELDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "n", "result", "output", "x", "zz", "not"]), max_size=3)
PATHS = st.builds(lambda name, fields: ".".join([name, *fields]), NAMES, FIELDS)
TEXTS = st.lists(
    st.one_of(PATHS.map(lambda path: "{{ " + path + " }}"), st.sampled_from(["", " ", "x", "{", "}", "\n", "\r\n"]))
)


def told(render: Any) -> Any:
    try:
        return render()
    except TemplateError as error:
        return type(error)


@settings(max_examples=300, deadline=None)
@given(TEXTS.map("".join))
def test_the_short_way_for_names_and_fields_is_the_same_as_the_long_one(text: str) -> None:
    short = compiling._simple(text)
    if short is None or not short.references:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "_simple", lambda text: None)
        long = compile_template(text)
    assert [each[:2] for each in short.references] == [each[:2] for each in long.references]
    assert told(lambda: short.render(SCOPE)) == told(lambda: long.render(SCOPE))


NUMBERS = st.sampled_from(["1", "2.5", "input.a", "(input.a + 3)", "input.c[1]", "input.c | length"])
SIGNS = st.sampled_from(["+", "-", "*", "//", "<", "==", ">="])
CALCULATIONS = st.recursive(
    NUMBERS, lambda inner: st.builds(lambda a, sign, b: f"({a} {sign} {b})", inner, SIGNS, inner), max_leaves=6
)


@settings(max_examples=150, deadline=None)
@given(CALCULATIONS)
def test_calculations_mean_what_they_mean_in_jinja(text: str) -> None:
    environment = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined)
    try:
        ours = compile_expression(text).evaluate(SCOPE)
    except TemplateError:
        return  # `true + 1`, or a division by zero
    if "==" not in text:  # where true is 1
        assert ours == environment.compile_expression(text)(**SCOPE)


JINJA = [
    "{% for x in input.c %}{{ loop.index }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{%- if input.a == 1 -%} yes {%- elif input.b %} no {% else %} - {%- endif -%} .",
    "{{ input.b | upper }}{{ input.b ~ input.b }}{# nothing #}{{ 'a' if input.a else 'b' }}",
    "{% raw %}{{ x }}{% endraw %}{{ input.c[0] }}{{ input.b[1:] }}",
    "{% for x in [3, 1, 2] | sort %}{{ x }}{% else %}none{% endfor %}{% for x in [] %}{% else %}none{% endfor %}",
    "{{ ['a', 'b'] | join('-') }}{{ ' x ' | trim }}{{ 'abc' | replace('b', 'x') }}{{ 'abc' | first if false else '' }}",
    "{{ input.missing | default('d') }}{{ 7 // 2 }}{{ 2 ** 5 }}{{ -3 | abs }}{{ 7 % 3 }}",
]


@pytest.mark.parametrize("text", JINJA)
def test_templates_mean_what_they_mean_in_jinja(text: str) -> None:
    environment = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    assert compile_template(text).render(SCOPE) == environment.from_string(text).render(**SCOPE)


# Whole configs


def test_a_config_is_rendered_deep_down_and_its_keys_are_not() -> None:
    config = {"a": ["{{ input.a }}", {"{{ input.b }}": "x{{ input.b }}", "n": None, "t": True}], "f": 1.5}
    compiled = compile_config(config)
    assert compiled.render(SCOPE) == {"a": [1, {"{{ input.b }}": "xtwo", "n": None, "t": True}], "f": 1.5}
    assert [path for path, _ in compiled.references] == [("a", 0), ("a", 1, "{{ input.b }}")]


def test_only_the_text_of_the_document_is_a_secret() -> None:
    scope = {"fetch": NodeOutput({"result": "secret:DB"})}
    config = {
        "a": "secret:DB",
        "b": "{{ fetch.result }}",
        "c": "x secret:DB",
        "d": "secret:{{ fetch.result }}",
        "e": "secret:",
    }
    made = compile_config(config).render(scope, lambda name: ("SECRET", name))
    assert made == {
        "a": ("SECRET", "DB"),
        "b": "secret:DB",
        "c": "x secret:DB",
        "d": "secret:secret:DB",
        "e": "secret:",
    }


def test_some_fields_are_expressions() -> None:
    config = {"expression": "input.a + 1", "other": "input.a + 1", "deep": {"expression": "input.a"}}
    made = compile_config(config, expressions=["expression"]).render(SCOPE)
    assert made == {"expression": 2, "other": "input.a + 1", "deep": {"expression": "input.a"}}


def test_an_error_says_which_field_it_was() -> None:
    with pytest.raises(TemplateError, match=r"^\$\.body\.items\[1\]: input\.zz: there is no field"):
        compile_config({"body": {"items": ["x", "{{ input.zz }}"]}}).render(SCOPE)
    problems: list[Any] = []
    compile_config({"a": "{{ x", "b": ["{% set %}"], "c": "{{ input.a }}"}, problems=problems)
    assert [path for path, _ in problems] == [("a",), ("b", 0)]


# Speed


def test_a_simple_expression_is_rendered_in_50_microseconds() -> None:
    for text in ("{{ fetch.result.x }}", "Items: {{ fetch.result.x }}", "{{ input.a + 1 }}", "{{ input.b | upper }}"):
        compiled = compile_template(text)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(50):
                compiled.render(SCOPE)
            times.append((time.perf_counter() - start) / 50)
        assert statistics.median(times) < 50e-6, text


def test_names_and_fields_load_no_jinja() -> None:
    code = (
        "import sys, stepwell; from stepwell.base.templates import compile_template;"
        "compile_template('x {{ a.b }}').render({'a': {'b': 1}}); assert 'jinja2' not in sys.modules;"
        "compile_template('{{ a.b + 1 }}'); assert 'jinja2' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
