"""What signs, limits and costs mean, for values of every kind: tables walked entry by entry, and properties."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.base import codec
from stepwell.base.templates import NodeOutput, TemplateError, compile_expression, compile_template, template
from stepwell.base.templates.filters import FILTERS
from stepwell.base.templates.limits import (
    MAX_BITS,
    MAX_CHARACTERS,
    MAX_ITEMS,
    MAX_NESTING,
    MAX_TEMPLATE,
    MAX_WORK,
    Budget,
)
from stepwell.base.templates.values import described

KINDS: dict[str, list[Any]] = {
    "number": [0, 1, -1, 2, 7, 0.5, -2.0, 1.0],
    "text": ["", "a", "ab", "1"],
    "list": [[], [1], [1, "a"], [[1]]],
    "object": [{}, {"a": 1}, {"a": 1.0, "b": None}],
    "truth": [True, False],
    "null": [None],
}
PLUS = {("number", "number"), ("text", "text"), ("list", "list")}
TIMES = {("number", "number"), ("text", "number"), ("number", "text"), ("list", "number"), ("number", "list")}
NUMBERS = {("number", "number")}
SIGNS: dict[str, tuple[Callable[[Any, Any], Any], set[tuple[str, str]], str]] = {
    "+": (operator.add, PLUS, "cannot add"),
    "*": (operator.mul, TIMES, "cannot multiply"),
    "-": (operator.sub, NUMBERS, "cannot calculate"),
    "/": (operator.truediv, NUMBERS, "cannot calculate"),
    "//": (operator.floordiv, NUMBERS, "cannot calculate"),
    "%": (operator.mod, NUMBERS, "cannot calculate"),
    "**": (operator.pow, NUMBERS, "cannot calculate"),
    "<": (operator.lt, {*NUMBERS, ("text", "text")}, "cannot compare"),
    "<=": (operator.le, {*NUMBERS, ("text", "text")}, "cannot compare"),
    ">": (operator.gt, {*NUMBERS, ("text", "text")}, "cannot compare"),
    ">=": (operator.ge, {*NUMBERS, ("text", "text")}, "cannot compare"),
}


def evaluate(text: str, **scope: Any) -> Any:
    return compile_expression(text).evaluate(scope)


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_means_what_it_means_in_python_for_the_kinds_it_is_for(sign: str) -> None:
    meaning, kinds, refused = SIGNS[sign]
    pairs = [
        (left, right, (one, other) in kinds)
        for one, lefts in KINDS.items()
        for other, rights in KINDS.items()
        for left in lefts
        for right in rights
    ]
    for left, right, allowed in pairs:
        if not allowed:
            with pytest.raises(TemplateError, match=refused):
                evaluate(f"a {sign} b", a=left, b=right)
            continue
        try:
            expected = meaning(left, right)
        except (ZeroDivisionError, TypeError):  # the text 'a' times 0.5
            expected = None
        if expected is None or isinstance(expected, complex):
            with pytest.raises(TemplateError, match=r"division by zero|cannot multiply|not a number"):
                evaluate(f"a {sign} b", a=left, b=right)
        else:
            found = evaluate(f"a {sign} b", a=left, b=right)
            assert (type(found), found) == (type(expected), expected), (left, sign, right)


def tagged(value: Any) -> Any:
    """What is equal of it exactly if the values are the same JSON, where 1 is 1.0 and true is not 1."""
    if isinstance(value, list):
        return ("list", [tagged(each) for each in value])
    if isinstance(value, dict):
        return ("object", {key: tagged(each) for key, each in value.items()})
    return ("number" if type(value) is float else type(value).__name__.replace("int", "number"), value)


FEW = st.recursive(
    st.sampled_from([0, 1, 1.0, True, False, None, "", "1", "a", "ab"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
NEAR = FEW.flatmap(lambda value: st.tuples(st.just(value), st.just(value) | FEW))


@settings(max_examples=200)
@given(NEAR, st.lists(FEW, max_size=2))
def test_equal_is_what_is_the_same_json(pair: tuple[Any, Any], more: list[Any]) -> None:
    one, other = pair
    same = tagged(one) == tagged(other)
    inside = same or any(tagged(each) == tagged(one) for each in more)
    scope = {"a": one, "b": other, "more": [*more, other]}
    assert evaluate("[a == b, a != b, a is eq(b), a is ne(b)]", **scope) == [same, not same, same, not same]
    assert evaluate("[[a] == [b], [a, 1] == [b, 2], {'x': a} == {'x': b}, {'x': a} == {'y': b}]", **scope) == [
        *(same, False, same, False)
    ]
    assert evaluate("[a in more, a not in more, a is in(more)]", **scope) == [inside, not inside, inside]
    distinct = [place for place, each in enumerate(more) if codec.text(each) not in map(codec.text, more[:place])]
    assert evaluate("more | unique", more=more) == [more[place] for place in distinct]


@pytest.mark.parametrize(
    ("sought", "whole", "found"),
    [
        *(
            ([], {"a": 1}, False),
            ({}, {"a": 1}, False),
            ("a", {"a": None}, True),
            ("b", {"a": 1}, False),
            (1, {"1": 1}, False),
            (None, {"a": 1}, False),
        ),
        *(("", "", True), ("b", "abc", True), ("ac", "abc", False), ("B", "abc", False)),
        *((1, "1", None), (None, "a", None), ("a", None, None), (1, 1, None), ("a", True, None), (["a"], "a", None)),
    ],
)
def test_what_is_in_what(sought: Any, whole: Any, found: bool | None) -> None:
    if found is None:
        with pytest.raises(TemplateError, match="cannot be in"):
            evaluate("a in b", a=sought, b=whole)
    else:
        assert evaluate("[a in b, a not in b]", a=sought, b=whole) == [found, not found]


def test_a_value_is_described_in_the_words_of_json_and_a_long_text_is_counted() -> None:
    words = {
        **{"null": None, "true": True, "false": False, "the number 7": 7, "the number 0.5": 0.5},
        **{"the text ''": "", f"the text '{'x' * 40}'": "x" * 40, "a text of 41 characters": "x" * 41},
        **{"a list of 0": [], "a list of 1,000": [0] * 1_000, "an object of 1 fields": {"a": 1}},
    }
    assert {text: described(value) for text, value in words.items()} == {text: text for text in words}
    assert described(NodeOutput(1)) == "the output of a node"


LIMITS: list[tuple[str, str, str]] = [
    (f"('x' * {MAX_CHARACTERS}) | length", f"('x' * {MAX_CHARACTERS + 1}) | length", "characters"),
    (f"range({MAX_ITEMS}) | length", f"range({MAX_ITEMS + 1}) | length", "items"),
    (f"([0] * {MAX_ITEMS}) | length", f"([0] * {MAX_ITEMS + 1}) | length", "items"),
    (f"2 ** {MAX_BITS - 1} + (2 ** {MAX_BITS - 1} - 1)", f"2 ** {MAX_BITS - 1} + 2 ** {MAX_BITS - 1}", "bits"),
    (f"-(2 ** {MAX_BITS - 1}) - (2 ** {MAX_BITS - 1} - 1)", f"-(2 ** {MAX_BITS - 1}) * 2", "bits"),
    ("1 ** 10000 + (-1) ** 10001 + 0 ** 10000", "2 ** 10000", "too large"),
    ("2 ** 1000.5", "2 ** 1024.5", "larger than any number"),
    ("10 ** 38", "10 ** 39", "bits"),
    (f"{'9' * 38}", f"{'9' * 39}", "bits"),
    ("not " * (MAX_NESTING - 1) + "a", "not " * MAX_NESTING + "a", "nested deeper"),
    ("a" + ".a" * MAX_NESTING, "a" + ".a" * (MAX_NESTING + 1), "nested deeper"),
    (f"'{'x' * (MAX_TEMPLATE - 2)}'", f"'{'x' * (MAX_TEMPLATE - 1)}'", "characters"),
]


@pytest.mark.parametrize(("most", "more", "message"), LIMITS, ids=[f"{each[0][:30]} {each[2]}" for each in LIMITS])
def test_a_limit_allows_what_it_names_and_no_more(most: str, more: str, message: str) -> None:
    deep: Any = 0
    for _ in range(MAX_NESTING + 1):
        deep = {"a": deep}
    evaluate(most, a=deep)
    with pytest.raises(TemplateError, match=message):
        evaluate(more, a=deep)


@settings(max_examples=100)
@given(FEW, FEW)
def test_everything_that_a_value_holds_is_paid_for(one: Any, other: Any) -> None:
    def cost(value: Any) -> int:
        budget = Budget()
        budget.for_all_of(value)
        return MAX_WORK - budget.left

    more = cost(other)
    assert cost([one, other]) >= cost(one) + more
    assert cost({"a": one, "b": other}) >= cost(one) + more
    assert cost([one, "x" * 1_600]) >= cost(one) + 100
    assert cost({"x" * 1_600: one}) >= cost(one) + 100
    assert cost([one] * 1_000) >= 1_000 + 1_000 * cost(one)


TEXT, LIST = "ab" * 8_000, [*range(5_000)]
RECORDS = [{"a": number % 7} for number in LIST]
USES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("upper", "lower", "capitalize", "title", "trim", "truncate", "base64", "urlencode"), (TEXT,)),
    **dict.fromkeys(("first", "last", "sort", "min", "max", "sum", "unique", "reverse", "join", "tojson"), (LIST,)),
    **dict.fromkeys(("keys", "values", "items"), ({str(number): number for number in LIST},)),
    **{"replace": (TEXT, "a", "b"), "split": (TEXT, "a"), "lines": ("a\n" * 5_000,), "fromjson": (str(LIST),)},
    **{"map": (RECORDS, "a"), "selectattr": (RECORDS, "a"), "rejectattr": (RECORDS, "a", "eq", 3)},
}
FREE = {"length", "int", "float", "round", "abs", "date", "timestamp", "shift"}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_pays_for_what_it_reads(name: str) -> None:
    assert (name in USES) != (name in FREE)
    if name in USES:
        budget = Budget()
        FILTERS[name](budget, *USES[name])
        assert MAX_WORK - budget.left >= (1_000 if isinstance(USES[name][0], str) else 5_000)
        budget.left = 10
        with pytest.raises(TemplateError, match="it takes more than 1,000,000 steps"):
            FILTERS[name](budget, *USES[name])


@pytest.mark.parametrize("text", ["{{ n }}", "{{ n + 0 }}", "{{ (n) }}", "{{n}}", "{{ n\n}}"])
def test_what_is_exactly_one_expression_keeps_its_type_and_all_else_is_text(text: str) -> None:
    assert compile_template(text).render({"n": 1}) == 1
    for before, after in (("{# x #}", ""), ("", "{# x #}"), (" ", ""), ("", "\n"), ("{% if false %}{% endif %}", "")):
        made = compile_template(before + text + after).render({"n": 1})
        assert made == "".join(each for each in (before, "1", after) if not each.startswith("{"))
    assert compile_template(text + text).render({"n": 1}) == "11"


@pytest.mark.parametrize("text", ["", " ", "1 }}{{ 2", "1 }} {{ 2", "{# x #}", "1 }}x", "1 }}{# x #}{{ 2"])
def test_what_is_not_one_expression_is_told(text: str) -> None:
    with pytest.raises(TemplateError):
        compile_expression(text)


@pytest.mark.parametrize("text", ["{{-n}}", "{{n-}}", "{{-n-}}", "{{+n}}", "{{- n }}"])
def test_a_sign_at_the_braces_is_about_white_space(text: str) -> None:
    assert compile_template(text).render({"n": 1}) == 1


@pytest.mark.parametrize("text", ["n", "n.x", "n.list | first", "(n.x)", "n['x']"])
def test_null_is_a_result_of_a_template_only_where_it_is_written(text: str) -> None:
    scope = {"n": None if text == "n" else {"x": None, "list": [None]}}
    for compiled in (compile_template, template._parsed_template):
        with pytest.raises(TemplateError, match="is null: say what stands for it"):
            compiled("{{ " + text + " }}").render(scope)
        for written in (f"({text}) | default(none)", "none", "1 if false else none"):
            assert compiled("{{ " + written + " }}").render(scope) is None


REFUSED = {
    "a(*b)": "cannot be called",
    "a is startswith(*b)": "the test startswith cannot be used like this",
    "a is startswith(**b)": "the test startswith cannot be used like this",
    "a[1, 2:3]": "is not part of the language",
    "range(1, 5, 0)": "range cannot have steps of 0",
    "a.b['c'][d] + 1": "a.b['c'][...]",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_done_is_refused_in_these_words(text: str) -> None:
    with pytest.raises(TemplateError, match=re.escape(REFUSED[text])):
        compile_expression(text).render({"a": {"b": {"c": {}}}, "b": [], "d": "x"})


def test_statements_side_by_side_are_not_nested() -> None:
    many = "{% if a %}x{% endif %}" * (2 * MAX_NESTING)
    assert compile_template(many).render({"a": True}) == "x" * (2 * MAX_NESTING)


def test_the_pieces_of_a_text_are_paid_for_before_it_is_split() -> None:
    budget = Budget()
    FILTERS["split"](budget, "a" * 8_000, "a")
    assert MAX_WORK - budget.left >= 8_000


FILTERED: dict[str, Any] = {
    "'abcdef' | truncate(6)": "abcdef",
    "'abcdefg' | truncate(6)": "abc...",
    "'abcdefg' | truncate(2)": "..",
    "'abcdefg' | truncate(0)": "",
    "'abcdefg' | truncate(6, '')": "abcdef",
    "('x' * 256) | truncate | length": 255,
    "'a\\nb\\r\\nc\\n' | lines": ["a", "b", "c"],
    "'a\\n\\n' | lines": ["a", ""],
    "'' | lines": [],
    "'a b  c ' | split": ["a", "b", "c"],
    "'a,,b' | split(',')": ["a", "", "b"],
    "'a b&c/ü' | urlencode": "a%20b%26c%2F%C3%BC",
    "{'a b': 1, 'c': [true]} | urlencode": "a%20b=1&c=%5Btrue%5D",
    "'aXbX' | replace('X', '--')": "a--b--",
    "'hello wORLD' | title": "Hello World",
    "'hELLO' | capitalize": "Hello",
    "' a ' | trim": "a",
    "'ü' | base64": "w7w=",
    "'[1, {\"a\": null}]' | fromjson": [1, {"a": None}],
    "[3, 1, 2] | sort(true)": [3, 2, 1],
    "['b', 'a'] | sort": ["a", "b"],
    "rows | sort(attribute='n.m') | map('id')": [2, 1, 3],
    "rows | sort(reverse=true, attribute='n.m') | map('id')": [3, 1, 2],
    "[(rows | min('n.m')).id, (rows | max('n.m')).id]": [2, 3],
    "[[2, 1] | min, [1, 2] | max, ['b', 'a'] | min]": [1, 2, "a"],
    "rows | sum('n.m')": 12,
    "[1, 2] | sum(start=10)": 13,
    "[] | sum": 0,
    "rows | join('-', 'id')": "1-2-3",
    "[1, 'a', true, none, [2]] | map('x', 'none') | length": 5,
    "rows | map('tag', 'none')": ["a", "none", "b"],
    "rows | selectattr('tag') | map('id')": [1, 3],
    "rows | rejectattr('tag') | map('id')": [2],
    "rows | selectattr('tag', 'defined') | map('id')": [1, 3],
    "rows | selectattr('tag', 'undefined') | map('id')": [2],
    "rows | rejectattr('tag', 'undefined') | map('id')": [1, 3],
    "rows | selectattr('n.m', 'ge', 4) | map('id')": [1, 3],
    "rows | rejectattr('n.m', 'ge', 4) | map('id')": [2],
    "rows | selectattr('tag', 'in', ['b', 'c']) | map('id')": [3],
    "['a', 1, 'a', 1.0] | unique": ["a", 1, 1.0],
    "['abc' | reverse, [1, 2] | reverse]": ["cba", [2, 1]],
    "{'b': 1, 'a': 2} | keys": ["a", "b"],
    "{'b': 1, 'a': 2} | values": [2, 1],
    "{'b': 1, 'a': 2} | items": [["a", 2], ["b", 1]],
    "[[1, 2] | first, [1, 2] | last, [] | first | default(0)]": [1, 2, 0],
    "['7.9' | int, '-7.9' | int, ' 7 ' | int, 7.9 | int, 'x' | int(0), '1e3' | int]": [7, -7, 7, 7, 0, 1000],
    "['1.5' | float, 2 | float, 'x' | float(none)]": [1.5, 2.0, None],
    "[2.5 | round, -2.5 | round, 1.4 | round, 2 | round]": [3, -3, 1, 2],
    "[2.345 | round(2), 2.675 | round(2), 10 | round(1), 1.25 | round(1)]": [2.35, 2.68, 10.0, 1.3],
    "[(-3) | abs, 2.5 | abs]": [3, 2.5],
    "[true is boolean, 1 is boolean, 1 is number, 1.5 is number, true is number]": [True, False, True, True, False],
    "[1 is integer, 1.0 is integer, 'a' is string, [] is list, {} is mapping]": [True, False, True, True, True],
    "[2 is even, 3 is even, 3 is odd, 2 is odd, 2.0 is even, none is none, 0 is none]": [
        *(True, False, True, False, False, True, False)
    ],
    "['abc' is startswith('ab'), 'abc' is startswith('b'), 'abc' is endswith('bc'), 'abc' is endswith('b')]": [
        *(True, False, True, False)
    ],
    "[true is true, 1 is true, false is false, 0 is false]": [True, False, True, False],
    "[1 is lt(1), 1 is le(1), 1 is gt(1), 1 is ge(1), 1 is ne(1)]": [False, True, False, True, False],
    "[range(3), range(1, 3), range(5, 0, -2)]": [[0, 1, 2], [1, 2], [5, 3, 1]],
    "['abcd'[1:3], 'abcd'[::-1], 'abcd'[-1], [1, 2, 3][::2], [1, 2][-2]]": ["bc", "dcba", "d", [1, 3], 1],
    "['a' ~ 1 ~ true ~ [1], 1 < 2 < 3, 1 < 3 < 2, 3 > 2 > 2]": ["a1true[1]", True, False, False],
    "[0 or 'x', 1 and 'y', '' and 1, not '', not 1, 1 if [] else 2]": ["x", "y", "", True, False, 2],
    "[+1, -1, -(-1), 2 ** 3 ** 0]": [1, -1, 1, 1],
    "rows[0].n['m'] + rows[-1]['n'].m": 11,
}
DATES: dict[str, Any] = {
    "'2026-01-05T00:07:09.000042Z' | date('%Y|%y|%m|%d|%H|%I|%M|%S|%f|%p|%j|%A|%a|%B|%b|%V|%G|%z|%Z|%%|%%d')": (
        "2026|26|01|05|00|12|07|09|000042|AM|005|Monday|Mon|January|Jan|02|2026|+0000|UTC|%|%d"
    ),
    "'2026-12-31T12:30:00+02:00' | date('%I %p %H')": "10 AM 10",
    "'2024-12-30T12:00' | date('%I %p %G-%V')": "12 PM 2025-01",
    "'2026-03-01T23:00:00' | date": "2026-03-01",
    "'2026-01-15' | timestamp": 1_768_435_200,
    "'2026-01-15T00:00:00.5' | timestamp": 1_768_435_200.5,
    "0 | date('%d %b %Y')": "01 Jan 1970",
    "'2026-01-31' | shift(days=1, hours=-1, minutes=2, seconds=3)": "2026-01-31T23:02:03Z",
    "'2026-01-31' | shift(seconds=0.5)": "2026-01-31T00:00:00.500000Z",
}
ROWS = [{"id": 1, "n": {"m": 4}, "tag": "a"}, {"id": 2, "n": {"m": 1}}, {"id": 3, "n": {"m": 7}, "tag": "b"}]


@pytest.mark.parametrize("text", FILTERED | DATES)
def test_a_filter_gives_what_it_is_for(text: str) -> None:
    expected = (FILTERED | DATES)[text]
    assert codec.text(evaluate(text, rows=ROWS)) == codec.text(expected)


STATEMENTS: dict[str, str] = {
    "{% for x in rows %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}": (
        "10truefalse3;21falsefalse3;32falsetrue3;"
    ),
    "{% for x in rows if x.n.m > 1 %}{{ loop.index }}{{ x.id }}{{ loop.last }};{% endfor %}": "11false;23true;",
    "{% for x in rows if x.n.m > 9 %}x{% else %}none{% endfor %}": "none",
    "{% for k, v in {'b': 1, 'a': 2} | items %}{{ k }}{{ v }}{% endfor %}{% for k in {'b': 1, 'a': 2} %}{{ k }}{% endfor %}": (
        "a2b1ab"
    ),
    "{% if false %}a{% elif 0 %}b{% elif 1 %}c{% elif 1 %}d{% else %}e{% endif %}": "c",
    "{% if '' %}a{% else %}e{% endif %}{% if 1 %}{% endif %}": "e",
    "{% for x in [1, 2] %}{% for x in [3] %}{{ x }}{{ loop.length }}{% endfor %}{{ x }}{{ loop.length }};{% endfor %}": (
        "3112;3122;"
    ),
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_does_what_it_is_for(text: str) -> None:
    assert compile_template(text).render({"rows": ROWS}) == STATEMENTS[text]


@pytest.mark.parametrize("compile_text", [compile_template, compile_expression])
@pytest.mark.parametrize("marked", ["§nobody(1)", "a\n | §uper", "a is §evn", "1 + b.c\n  - §x.y(2)", "[1, a | §uper]"])
def test_what_is_wrong_is_told_where_it_stands(compile_text: Callable[[str], Any], marked: str) -> None:
    marked = marked if compile_text is compile_expression else "é\n{{ " + marked + " }}"
    before, _, after = marked.partition("§")
    with pytest.raises(TemplateError) as told:
        compile_text(before + after)
    assert (told.value.line, told.value.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))


CALLS = {
    **{"a.upper()": "write | upper", "a.b.join(',')": "write | join", "a.strip()": "write | trim"},
    **{"a.get('x')": "write | default", "'{}'.format(1)": "write | ~", "a.b()": "filters do it, as in x | upper"},
    "a()": "filters do it, as in x | upper",
}


@pytest.mark.parametrize("text", CALLS)
def test_a_call_is_told_what_stands_for_it(text: str) -> None:
    with pytest.raises(TemplateError, match=re.escape(f"cannot be called; the only function is range: {CALLS[text]}")):
        compile_expression(text)


def test_a_long_name_is_cut_in_messages_and_a_long_template_too() -> None:
    for length, shown in ((75, "a." + "b" * 75 + ".cc"), (76, "a." + "b" * 75 + "...")):
        with pytest.raises(TemplateError) as told:
            evaluate("a." + "b" * length + ".cc + 1", a={"b" * length: {}})
        assert told.value.problem.partition(":")[0] == shown
    for length in (80, 81):
        text = "{{ nobody }}" + "x" * (length - 12)
        with pytest.raises(TemplateError) as told:
            compile_template(text).render({})
        assert str(told.value).endswith(repr(text if length == 80 else text[:77] + "..."))
