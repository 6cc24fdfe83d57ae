"""Templates that want out of their language, or too much of the machine: refused, or harmless, and always soon.

Published escapes from Jinja's sandbox are among them: CVE-2016-10745 (`str.format`), CVE-2019-10906 (`str.format_map`),
CVE-2024-56201, CVE-2024-56326 (a stored reference to `str.format`), CVE-2025-27516 (`|attr`), and what collections of
template injections list.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from stepwell.base.templates import NodeOutput, TemplateError, compile_config, compile_expression, compile_template
from stepwell.base.templates.filters import FILTERS, TESTS
from stepwell.base.templates.limits import MAX_CHARACTERS, MAX_ITEMS
from tests import processor_time

ESCAPES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] }}",
    "{{ [].__class__.__base__.__subclasses__() }}",
    "{{ {}.__class__.__bases__[0] }}",
    "{{ ().__class__ }}",
    "{{ (1).__class__ }}",
    "{{ input.__class__ }}",
    "{{ input['__class__'] }}",
    "{{ input.__init__.__globals__ }}",
    "{{ fetch.__class__ }}",
    "{{ fetch.value }}",
    "{{ fetch.field }}",
    "{{ fetch.__slots__ }}",
    "{{ run.__dict__ }}",
    "{{ '{0.__class__}'.format(input) }}",
    "{{ '{a.__class__}'.format_map({'a': input}) }}",
    "{{ ('{0.__class__.__init__.__globals__}' | string).format(input) }}",
    "{{ '%s' % input }}",
    "{{ '%(x)s' % {'x': 1} }}",
    "{{ '%9999999999d' % 1 }}",
    "{% set f = '{0.__class__}'.format %}{{ f(input) }}",
    "{{ ['{0.__class__}'.format] | map('string') | list }}",
    "{{ input | attr('__class__') }}",
    "{{ '' | attr('format') }}",
    "{{ ('{0.__class__}' | attr('format'))(input) }}",
    "{{ input | map(attribute='__class__') | list }}",
    "{{ [input] | map(attribute='__class__') }}",
    "{{ [input] | groupby('__class__') }}",
    "{{ [input] | sum(attribute='__class__') }}",
    "{{ [input] | sort(attribute='__class__') }}",
    "{{ [''] | map('__class__.__mro__') }}",
    "{{ self }}",
    "{{ self._TemplateReference__context }}",
    "{{ self.__init__.__globals__.__builtins__ }}",
    "{{ config }}",
    "{{ request }}",
    "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ dict.__mro__ }}",
    "{{ range.__class__ }}",
    "{{ range(3).__class__ }}",
    "{{ loop }}",
    "{% for x in [1] %}{{ loop.__class__ }}{% endfor %}",
    "{% for x in [1] %}{{ loop._iterable }}{% endfor %}",
    "{% for x in [1] %}{{ loop.cycle(1) }}{% endfor %}",
    "{% for x in [[1]] recursive %}{{ loop(x) }}{% endfor %}",
    "{% for input.url in [1] %}{% endfor %}",
    "{% for __class__ in [1] %}{{ __class__.__class__ }}{% endfor %}",
    "{{ x() }}",
    "{{ input() }}",
    "{{ (lambda: 1)() }}",
    "{{ __import__('os').system('id') }}",
    "{{ __builtins__ }}",
    "{{ open('/etc/passwd').read() }}",
    "{{ input.pop('url') }}",
    "{{ input.update({'url': 1}) }}",
    "{{ input.items.append(1) }}",
    "{{ ''.join(['a', 'b']) }}",
    "{% import 'os' as os %}",
    "{% from 'os' import system %}",
    "{% include '/etc/passwd' %}",
    "{% extends '/etc/passwd' %}",
    "{% block x %}{% endblock %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m() %}x{% endmacro %}{{ m.__globals__ }}",
    "{% call x() %}{% endcall %}",
    "{% filter upper %}a{% endfilter %}",
    "{% set x = 1 %}",
    "{% set ns.x = 1 %}",
    "{% with x = 1 %}{{ x }}{% endwith %}",
    "{% autoescape false %}{% endautoescape %}",
    "{% do input.clear() %}",
    "{% debug %}",
    "{% trans %}x{% endtrans %}",
    "{{ _('x') }}",
    "{{ caller() }}",
    "{{ varargs }}",
    "{{ input | xmlattr }}",
    "{{ input | pprint }}",
    "{{ 'x' | format(1) }}",
    "{{ [1] | map('upper') | list | random }}",
    "{{ 'a' is callable }}",
    "{{ 'a' is filter }}",
    "{{ input | default(input.__class__) | map }}",
    "{{ x | upper(*[1]) }}",
    "{{ x | upper(**{'a': 1}) }}",
    "{{ context }}",
    "{{ environment }}",
    "{{ secret }}",
    "{{ other.result }}",
    "{{ True.__class__ }}",
    "{{ none.__class__ }}",
    "{{ 1.0.__class__ }}",
    "{{ [].0 }}",
    "{{ ''[input] }}",
    "{{ input[[]] }}",
    "{{ input[none] }}",
    "{{ {[]: 1} }}",
    "{{ {1: 1} }}",
    "{{",
    "{%",
    "{{ }}",
    "{#",
    "x {# y",
    "{{ 'a }}",
    "{{ 'a\\u12' }}",
    "{{ 0x }}",
    "{{ 1e999 }}",
    "{{ -1e308 * 10 }}",
    "{{ 1e308 + 1e308 }}",
    "{{ (-1) ** 0.5 }}",
    "{{ 0 ** -1 }}",
    "{{ 1 % 0 }}",
    "{{ 'a' < 1 }}",
    "{{ [1, 'a'] | sort }}",
    "{{ 'nan' | float }}",
    "{{ 'inf' | float }}",
    "{{ '1_000' | int }}",
    "{{ '[NaN]' | fromjson }}",
    "{{ 'x' | date }}",
    "{{ 1e18 | date }}",
    "{{ 0 | shift(days=1e18) }}",
    "{{ '2026-01-01' | date('%Q') }}",
]

HARMLESS = {
    "{{ [input] | map('attr', '__class__') }}": ["__class__"],
    "{{ [input] | selectattr('__class__') }}": [],
    "{{ [input] | rejectattr('__class__') | length }}": 1,
    "{{ input.__class__ is defined }}": False,
    "{{ input.__class__ | default('none') }}": "none",
    "{{ 'secret:DB' }}": "secret:DB",
    "{{ '{{ run.id }}' }}": "{{ run.id }}",
    "{{ '{0.__class__}' }}": "{0.__class__}",
    "{{ '<script>' }}": "<script>",
}

EXPENSIVE = [
    "{{ range(10**9) }}",
    "{{ range(0, 10**30) | length }}",
    "{{ range(10**9) | list }}",
    "{% for i in range(10**9) %}x{% endfor %}",
    "{{ 'a' * 10**9 }}",
    "{{ 10**9 * 'a' }}",
    "{{ [0] * 10**9 }}",
    "{{ 'ab' * 5000000 ~ 'ab' * 5000000 }}",
    "{{ 9**9**9 }}",
    "{{ 9**(9**9) }}",
    "{{ 10 ** 1000000 }}",
    "{{ (10**30) * (10**30) }}",
    "{{ 2.0 ** 100000 }}",
    "{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) %}x{% endfor %}{% endfor %}{% endfor %}",
    "{% for a in range(100000) %}{% for b in range(100000) if b < 0 %}{% endfor %}{% endfor %}",
    "{% for a in range(90000) %}{{ 'x' * 1000000 }}{% endfor %}",
    "{% for a in range(90000) %}{{ big | upper | length }}{% endfor %}",
    "{% for a in range(90000) %}{{ 'zz' in big }}{% endfor %}",
    "{% for a in range(90000) %}{% if big ~ 'x' == big ~ 'y' %}{% endif %}{% endfor %}",
    "{% for a in range(90000) %}{% if many == many %}{% endif %}{% endfor %}",
    "{% for a in range(90000) %}{{ 7 in many }}{% endfor %}",
    "{% for a in range(90000) %}{{ many | sort | first }}{% endfor %}",
    "{% for a in range(90000) %}{{ many | tojson | length }}{% endfor %}",
    "{% for a in range(90000) %}{{ many | sum }}{% endfor %}",
    "{% for a in range(90000) %}{{ many[1:] | length }}{% endfor %}",
    "{% for a in range(90000) %}{{ many | unique | length }}{% endfor %}",
    "{% for a in range(90000) %}{{ many | min }}{% endfor %}",
    "{% for a in range(90000) %}{{ digits | fromjson }}{% endfor %}",
    "{% for a in range(90000) %}{{ big | replace('a', 'bb') | length }}{% endfor %}",
    "{% for a in range(90000) %}{{ big | split('a') | length }}{% endfor %}",
    "{{ big | replace('a', big) }}",
    "{{ many | join(big) }}",
    "{{ [many] * 100000 }}",
    "{{ [[many] * 1000] * 1000 }}",
    "x{{ [many] * 100000 }}",
    "{{ 'x' | replace('', big) | replace('', big) }}",
    "{{ " + "(" * 10_000 + "1" + ")" * 10_000 + " }}",
    "{{ " + "[" * 5_000 + "]" * 5_000 + " }}",
    "{{ " + "not " * 10_000 + "1 }}",
    "{{ " + "-" * 10_000 + "1 }}",
    "{{ 1" + " + 1" * 10_000 + " }}",
    "{{ input" + ".a" * 10_000 + " }}",
    "{{ input" + "[0]" * 10_000 + " }}",
    "{{ 'a'" + " | upper" * 10_000 + " }}",
    "{% if 1 %}" * 2_000 + "{% endif %}" * 2_000,
    "{{ " + "9" * 10_000 + " }}",
    "{{ '" + "[" * 50_000 + "' | fromjson }}",
    "{# " + "x" * 1_000_000 + " #}",
    "{{ 1 }}" * 200_000,
    "{{ a }}" + "x" * 1_000_000,
    "{{ {'a': big * 9, 'b': big * 9, 'c': big * 9} | urlencode }}",
    "{{ 'ß' * 6000000 | upper }}",
    "{{ ('ß' * 6000000) | upper }}",
    "{{ ('€' * 2600000) | base64 }}",
    "{{ ('€' * 2500000) | urlencode }}",
    "{{ ([{}] * 90000) | map('" + "a." * 1_000 + "', default=0) }}",
    "{% for a in range(90000) %}{{ wide.nothing | default(0) }}{% endfor %}{{ wide.nothing }}",
    "\r" + "{{" * 49_990,
    "\r" + "{%{#{{" * 16_000,
    "\r{{ a" + ".a" * 49_000 + " }}",
    "x{{ nothing }}" * 7_000,
]


LARGE: dict[str, Any] = {
    "long": "ß\x00" * 500_000,
    "short": "ß" * 3_000_000,
    "list": ["ß" * 900] * 9_999,
    "object": {f"ß{number}": "\x00" * 900 for number in range(9_999)},
    "records": [{"a": "x" * 900}] * 9_999,
}
VALUES = (*LARGE, "7", "'2026-01-15'")
ARGUMENTS = ("", "('a')", "(short)", "('ß', short)", "(attribute='a')", "('a', default=long)")


def scope() -> dict[str, Any]:
    return {
        "input": {"url": "https://example.com", "items": [1]},
        "run": {"id": "r-1"},
        "fetch": NodeOutput({"result": "text"}),
        "big": "a" * 1_000_000,
        "wide": {f"nothing{'ab' * 12}{number}": 1 for number in range(200)},
        "many": list(range(20_000, 0, -1)),
        "digits": "[" + "1," * 20_000 + "1]",
    }


def test_the_tables_are_large_enough() -> None:
    assert len(set(ESCAPES)) > 100
    assert len(set(EXPENSIVE)) > 40


@pytest.mark.parametrize("template", ESCAPES)
def test_an_escape_is_refused(template: str) -> None:
    given = scope()
    with pytest.raises(TemplateError) as told:
        compile_template(template).render(given)
    assert "Traceback" not in str(told.value)
    assert "object at 0x" not in str(told.value)
    assert {name: value for name, value in given.items() if name != "fetch"} == {
        name: value for name, value in scope().items() if name != "fetch"
    }


@pytest.mark.parametrize("template", HARMLESS)
def test_what_looks_like_an_escape_is_data(template: str) -> None:
    assert compile_template(template).render(scope()) == HARMLESS[template]


@pytest.mark.parametrize("template", EXPENSIVE, ids=lambda text: text[:60])
def test_what_costs_too_much_ends_soon(template: str) -> None:
    given = scope()
    with processor_time.at_most(2 * processor_time.SECOND), pytest.raises(TemplateError) as told:
        compile_template(template).render(given)
    assert len(str(told.value)) < 1_000


@pytest.mark.parametrize("template", [each for each in ESCAPES if each.startswith("{{") and each.endswith("}}")])
def test_an_expression_is_no_way_out_either(template: str) -> None:
    with pytest.raises(TemplateError):
        compile_expression(template[2:-2]).evaluate(scope())


RESULTS = [
    f"{{{{ {value} | {name}{arguments} }}}}" for name in FILTERS for value in VALUES for arguments in ARGUMENTS
] + [f"{{{{ {value} is {name}{arguments} }}}}" for name in TESTS for value in VALUES for arguments in ARGUMENTS]


def test_no_function_gives_more_than_is_allowed() -> None:
    """Every filter and test, of a large value of every kind, with every argument."""
    given = LARGE | scope()
    for template in RESULTS:
        with suppress(TemplateError):
            made = compile_template(template).render(given)
            assert not isinstance(made, str) or len(made) <= MAX_CHARACTERS, template
            assert not isinstance(made, list) or len(made) <= MAX_ITEMS, template


def test_the_templates_of_a_node_share_one_limit() -> None:
    given = scope()
    one = compile_config({"x": "{{ big * 10 }}"})
    assert len(one.render(given)["x"]) == MAX_CHARACTERS
    for many in (
        {str(number): "{{ big * 10 }}" for number in range(40)},
        {str(number): "{{ big }}" for number in range(40)},
        {str(number): "{{ fetch.output.text }}" for number in range(40)},
        [["{{ many }}"] * 100],
        [["{{ many if true else 0 }}"] * 100],
    ):
        with pytest.raises(TemplateError, match="it takes more than 1,000,000 steps"):
            compile_config({"x": many}).render({**given, "fetch": NodeOutput({"text": given["big"]})})
    assert compile_config({"x": ["{{ many }}"] * 10}).render(given)["x"][9] is given["many"]


def test_an_expression_cannot_end_its_braces() -> None:
    for text in ("1 }}{% set x = 1 %}{{ 2", "1 }} {{ 2", "1 }}", "{{ 1 }}", "", " ", "1; 2", "# x", "{% raw %}"):
        with pytest.raises(TemplateError):
            compile_expression(text).evaluate(scope())


def test_what_a_template_gave_is_never_a_template() -> None:
    answer = "{{ run.id }}{% for x in y %}"
    given = {"fetch": NodeOutput({"result": answer}), "run": {"id": "r-1"}}
    assert compile_template("{{ fetch.result }}").render(given) == answer
    assert compile_template("> {{ fetch.result }}").render(given) == f"> {answer}"
    assert compile_template("{{ fetch.result | upper }}").render(given) == answer.upper()
