"""What is fuzzed: readers, patterns, schemas, templates, requests, manifests, links, names of functions, masking, cassettes,
stores that go away. Each target has seeds, one at least for each way in which it once failed, and what Hypothesis draws.

A target returns, or raises an error of ours, which it catches: anything else is a finding.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from hypothesis import strategies as st

from stepwell import Document
from stepwell.base.codec import text
from stepwell.base.schemas import check_schema, problems_of, with_defaults
from stepwell.base.templates import NodeOutput, compile_config, compile_template
from stepwell.define.document.problems import Unreadable
from stepwell.define.document.text import read_text
from stepwell.errors import StepwellError
from stepwell.handlers import Handlers
from stepwell.pipeline.patterns.pattern import Pattern

from . import masks, names
from .cassettes import CASSETTES, CHANGES, read_changed
from .drawing import LONG, PLAIN, READ, document, node, repeated
from .files import KINDS, PLACES, follow_link, read_manifest
from .requests import GRAPHS, QUERY, REQUESTS, VERSION, ask, request, show_graph
from .stores import lose_postgres, lose_redis, lose_store

LETTERS = str.maketrans("01234567", "ghijklmn")


class Target(NamedTuple):
    run: Callable[[Any], None]
    seeds: list[Any]
    draw: st.SearchStrategy[Any]
    quick: int = 100
    """How many of the seeds, those that take little time, `make test` tries."""
    drawn: int = 5
    """How many drawn inputs `make test` tries."""


# Readers


def read_json(given: str) -> None:
    with suppress(Unreadable):
        read_text(given, "json")


def read_yaml(given: str) -> None:
    with suppress(Unreadable):
        read_text(given, "yaml")


def check_document(given: Any) -> None:
    with suppress(StepwellError):
        Document.parse(given if isinstance(given, str) else json.dumps(given), Handlers())


NODES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["a", "b", "c"]) | PLAIN,
        "handler": st.sampled_from([*Handlers(), "os:system"]) | PLAIN,
        "config": st.dictionaries(st.sampled_from(["template", "expression", "url", "schema", "x"]), PLAIN, max_size=3),
        "dependencies": st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=3),
        "retry": PLAIN,
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {"name": st.just("x"), "nodes": st.lists(NODES, max_size=4)}, optional={"input": PLAIN, "triggers": PLAIN}
)


# Patterns and schemas


def match_pattern(given: list[str]) -> None:
    pattern, value = given
    if not check_schema({"pattern": pattern}):
        problems_of({"pattern": pattern}, value)
    for form in (pattern, f"{{a:{pattern}}}"):
        with suppress(StepwellError):
            made = Pattern(form)
            made.match(value[:255])
            made.overlaps(Pattern("{x}-{y}/*"))


def check_values(given: list[Any]) -> None:
    schema, value = given
    if not check_schema(schema):
        with suppress(StepwellError):
            problems_of(schema, with_defaults(schema, value))


SELF = {"$ref": "#/$defs/a"}
SCHEMAS = st.recursive(
    st.sampled_from(
        [True, False, SELF, {"type": "string"}, {"pattern": "(a|a)*b"}, {"default": [1]}, {"uniqueItems": True}]
    ),
    lambda inner: st.one_of(
        st.builds(lambda word, each: {word: each}, st.sampled_from(["items", "not", "additionalProperties"]), inner),
        st.builds(
            lambda word, each: {word: each},
            st.sampled_from(["anyOf", "allOf", "oneOf"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda each: {"properties": {"a": each, "b": each}}, inner),
    ),
    max_leaves=8,
)


# Templates


def render(given: Any) -> None:
    scope = {
        "input": {"n": 7, "text": "ß" * 100_000, "list": [*range(5_000)]},
        "a": NodeOutput({"x": LONG}),
        "run": {"id": "r"},
    }
    with suppress(StepwellError):
        if isinstance(given, str):
            compile_template(given).render(scope)
        else:
            text(compile_config(given).render(scope))


TAGS = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "\r",
    "'",
    '"',
    "\\",
    "(",
    ")",
    "[",
    "]",
    " ",
    "a",
    ".x",
    "|upper",
    "~a",
    "1_",
    " if ",
    " for ",
]
EXPRESSION = st.sampled_from(
    ["a.x", "input.text", "input.list", "'x' * 9999999", "range(99999)", "input.text * 99", "[input.list] * 999"]
)
FILTER = st.sampled_from(
    [
        "upper",
        "urlencode",
        "base64",
        "tojson",
        "join",
        "list",
        "split('ß')",
        "replace('ß', input.text)",
        "unique",
        "sort",
    ]
)
CONFIGS = st.lists(
    st.builds(
        lambda value, name, before: f"{before}{{{{ {value} | {name} }}}}",
        EXPRESSION,
        FILTER,
        st.sampled_from(["", "x"]),
    ),
    max_size=30,
)


TARGETS: dict[str, Target] = {
    "json": Target(
        read_json,
        [
            '{"a": ' + "/* " * 300_000,
            '{ //\n"' + '\\"' * 300_000,
            "[" * 100_000,
            '{"a":' * 50_000,
            "1" * 99_999,
            "[" + "[]," * 11_000_000 + "1]",
        ],
        repeated(*READ, most=200_000),
        quick=5,
    ),
    "yaml": Target(
        read_yaml,
        ["? " * 99_999, "- " * 99_999, '"a\n' * 99_999, "a: [" + "[]," * 3_000_000 + "1]"],
        repeated(*READ),
        quick=3,
    ),
    "document": Target(
        check_document,
        [
            document(*(node(n, dependencies=[f"nn{n}x"]) for n in range(5_000))),
            document(node(0), triggers=[{"cron": "* * * * *", **{f"workfow{n}": 1 for n in range(50_000)}}]),
            document(node(0), input={"properties": {"a": {"pattern": "a*a*a*a*a*a*a*a*b", "default": LONG}}}),
            document(node(0, config={f"expresion{n}": 1 for n in range(90_000)})),
            document(
                {"id": "a", "handler": "transform", "config": {"template": ["x{{ 1" + "~1" * 45_000 + " }}"] * 20}}
            ),
            document({"id": "a", "handler": "transform", "config": {"template": ["x{{ z }}" * 11_000] * 50}}),
        ],
        DOCUMENTS,
        quick=3,
    ),
    "pattern": Target(
        match_pattern,
        [
            ["a*a*a*a*a*a*a*a*b", LONG],
            ["(a+)+b", LONG],
            ["(.{0,100}){9}z", LONG],
            ["{a}-{b}-{c}-{d}-{e}-{f}!", "-" * 255],
            ["[z-a]", "a"],
        ],
        st.tuples(
            repeated(
                "a", "*", "+", "(", ")", "|", "?", "{2}", "{0,50}", "[a-b]", ".", "\\w", "{a}", "{b}", "-", most=30
            ),
            repeated("a", "-", "b", most=5_000),
        ),
    ),
    "schema": Target(
        check_values,
        [
            [{**SELF, "$defs": {"a": {"anyOf": [{"not": SELF}, {"not": SELF}]}}}, 1],
            [{"additionalProperties": False, "properties": {"ab" * 30: {}}}, {f"{n}" * 9: 1 for n in range(20_000)}],
            [{"items": {"enum": [[n] for n in range(20_000)]}}, [[-1]] * 20_000],
            [{"items": {"properties": {"x": {"default": [0] * 10_000}}}}, [{}] * 10_000],
        ],
        st.tuples(
            st.builds(lambda one, other: {**SELF, "$defs": {"a": {"anyOf": [one, other]}}}, SCHEMAS, SCHEMAS), PLAIN
        ),
    ),
    "template": Target(
        render,
        [
            "\r" + "{{" * 49_990,
            "\r{{ a" + ".a" * 49_000 + " }}",
            ["{{ 'x' * 9999999 }}"] * 40,
            ["{{ {'a': 'ß' * 9999999} | urlencode }}"] * 9,
            ["{{ a.x }}"] * 90_000,
        ],
        repeated(*TAGS, most=9_000) | CONFIGS,
        quick=4,
    ),
    "read": Target(
        ask,
        [
            [VERSION] * 500,
            [{"query": "ListRuns", "limit": -5}],
            "[" + "[]," * 11_000_000 + "1]",
            '{"a": ' + "/* " * 300_000,
        ],
        st.lists(QUERY, max_size=6) | repeated(*READ),
    ),
    "manifest": Target(
        read_manifest,
        [
            "[]",
            '{"a.txt": 1}',
            '{"a.txt": {}}',
            "[" * 100_000,
            '{"key":"' + "\\" * 99_999,
            '{"key":"a.txt","value":' * 9_999,
        ],
        PLAIN | st.dictionaries(st.just("a.txt"), PLAIN) | repeated('{"key":"a.txt","value":', *READ),
    ),
    "link": Target(
        follow_link,
        [[place, kind] for place in PLACES for kind in KINDS],
        st.tuples(st.sampled_from(PLACES), st.sampled_from(KINDS)),
        quick=8,
    ),
    "name": Target(names.start_named, names.SEEDS, names.DRAWN),
    "mask": Target(masks.mask, masks.SEEDS, masks.DRAWN),
    "store": Target(
        lose_store,
        [
            ["start", "move", "start", "start", "start", "back", "start"],
            ["start", "wal", "start", "start", "back", "start"],
        ],
        st.lists(st.sampled_from(["start", "start", "move", "wal", "back"]), max_size=9),
    ),
    "graph": Target(
        show_graph,
        [
            [[["_" * 490 + format(n, "o").translate(LETTERS), []] for n in range(4_000)], []],
            [[[f"part_{n}", [0]] for n in range(5_000)], ["fan:1:part"]],
            [[[f"{'ab' * (n % 9)}{n}", [n - 1]] for n in range(3_000)], ["level:1"]],
        ],
        GRAPHS,
        quick=2,
    ),
    "request": Target(
        request,
        [
            ["/runs/talk/logs", [["q", "ab%_(" * 30], ["level", "error"]]],
            ["/runs/talk/logs", [["q", "a" * 199 + "b"], ["tail", "1000"]]],
            ["/runs", [["q", "%" * 2_000], ["cursor", "e" * 2_000]]],
            ["/runs/talk/graph", [["open", "fan:1:" + "_" * 3_000], ["at", "1"]]],
        ],
        REQUESTS,
    ),
    "cassette": Target(
        read_changed,
        [
            *([name, [[0, "[" * 1_000]]] for name in CASSETTES),
            [CASSETTES[0], [[n, {"": [[]]}] for n in range(0, 60, 7)]],
        ],
        CHANGES,
    ),
    "server": Target(
        lose_redis,
        [
            ["start", "kill", "start", "start", "back", "start"],
            ["start", "flush", "start", "kill", "start", "back", "start"],
        ],
        st.lists(st.sampled_from(["start", "start", "kill", "back", "flush"]), max_size=9),
    ),
    "postgres": Target(
        lose_postgres,
        [
            ["start", "kill", "start", "back", "start"],
            ["start", "end", "start", "start", "back", "start", "kill", "back", "start"],
        ],
        st.lists(st.sampled_from(["start", "start", "kill", "back", "end"]), max_size=7),
        quick=1,
        drawn=0,
    ),
}
