"""JSON and YAML: the same document, YAML by the rules of 1.2, bad files with one clear message, soon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell import Document, Graph
from stepwell.define.document import text as reading
from stepwell.define.document import yaml_text
from stepwell.define.document.problems import Unreadable
from stepwell.define.document.text import read_text
from stepwell.define.document.yaml_text import read_yaml
from stepwell.errors import DocumentError
from stepwell.handlers import Handlers
from tests import processor_time

HANDLERS = Handlers()
YAML = """
name: greet        # a comment
nodes:
  - id: hello
    handler: transform
    config:
      template:
        no: no
        on: on
        yes: yes
        date: 2026-01-15
        time: 12:30:45
        octal: 012
        new_octal: 0o12
        hex: 0x1F
        number: 1_000
        exponent: 1e3
        point: .5
        nothing: ~
        truth: true
        text: |
          two
          lines
        folded: >-
          one
          line
        quoted: "7"
"""


def test_yaml_means_what_version_1_2_says() -> None:
    made: Any = Document.parse(YAML, HANDLERS).nodes[0].config["template"]
    assert made == {
        "no": "no",
        "on": "on",
        "yes": "yes",
        "date": "2026-01-15",
        "time": "12:30:45",
        "octal": 12,
        "new_octal": 10,
        "hex": 31,
        "number": "1_000",
        "exponent": 1000.0,
        "point": 0.5,
        "nothing": None,
        "truth": True,
        "text": "two\nlines\n",
        "folded": "one line",
        "quoted": "7",
    }


WORDS: dict[str, Any] = {
    **dict.fromkeys(("~", "null", "Null", "NULL", "")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{
        word: word
        for word in ("y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF")
    },
    **{word: word for word in ("nULL", "tRUE", "fALSE", "None", "nil", "none", "undefined")},
    **{"0": 0, "-0": 0, "+7": 7, "007": 7, "-12": -12, "0o17": 15, "0x1f": 31, "0xFF": 255},
    **{"1.": 1.0, ".5": 0.5, "-.5": -0.5, "1e3": 1000.0, "1E-2": 0.01, "+1.5": 1.5, "0.0": 0.0},
    **{
        word: word for word in ("1_000", "0b1", "0o8", "0xg", "1e", "e3", ".", "+", "+-1", "1.2.3", "1:30", "190:20:30")
    },
    **{
        word: word
        for word in ("2026-01-15", "12:30", "1,5", "1 2", "0o", "0x", "-0x1", "inf", "nan", "NaN", "Infinity")
    },
}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_yaml_means_one_thing_and_in_quotes_a_text(word: str) -> None:
    def read(text: str) -> Any:
        repeated: list[Any] = []
        return read_yaml(text, repeated)[0]

    found = read(f"value: {word}")["value"]
    assert (type(found), found) == (type(WORDS[word]), WORDS[word])
    if word:
        assert read(f"- {word}\n- {word}") == [found, found]
    assert read(f'value: "{word}"') == read(f"value: '{word}'") == {"value": word}
    if isinstance(found, str):
        assert read(f"{word}: 1") == {word: 1}
    elif word:
        with pytest.raises(Unreadable, match="a key must be a text: write"):
            read(f"{word}: 1")
        assert read(f'"{word}": 1') == {word: 1}


@pytest.mark.parametrize("word", [".inf", "-.inf", "+.Inf", ".INF", ".nan", ".NaN", ".NAN", "1e999", "-1e999"])
def test_a_number_that_json_does_not_have_is_refused_unless_it_is_a_text(word: str) -> None:
    with pytest.raises(Unreadable, match="JSON number"):
        read_yaml(f"value: {word}", [])
    assert read_yaml(f"value: '{word}'", [])[0] == {"value": word}


@pytest.mark.parametrize("digits", [4_001, 5_000])
def test_a_number_with_very_many_digits_is_refused_unless_it_is_a_text(digits: int) -> None:
    number = "7" * digits
    with pytest.raises(Unreadable, match="a number of more than 4,000 digits"):
        read_yaml(f"value: {number}", [])
    assert read_yaml(f"value: '{number}'", [])[0] == {"value": number}
    assert read_yaml(f"value: {number[:4_000]}", [])[0] == {"value": int(number[:4_000])}


# libyaml reads no pairs of escapes, and a key of YAML has at most 1,024 characters, escapes counted.
TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=100)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**9), 10**9),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXT,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_json_is_read_as_json_has_it_and_yaml_reads_json_too(value: Any) -> None:
    text = json.dumps({"x": value})
    assert read_text(text, "json").data == {"x": value}
    assert read_text(text, "yaml").data == {"x": value}


@settings(max_examples=100, deadline=None)
@given(VALUES, st.integers(0, 3))
def test_every_value_is_found_at_its_line(value: Any, indent: int) -> None:
    text = json.dumps({"first": 1, "x": value}, indent=indent)
    read = read_text(text, "json")

    def check(value: Any, path: tuple[str | int, ...]) -> None:
        line, column = read.marks().at(path)
        rest = "\n".join(text.split("\n")[line - 1 :])[column - 1 :]
        found, _ = json.JSONDecoder().raw_decode(rest)
        assert found == value
        children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, each in children:
            check(each, (*path, key))

    check(json.loads(text), ())


BAD: list[tuple[str, bytes, str, int]] = [
    ("empty", b"", "it is empty", 1),
    ("spaces", b" \n ", "it is empty", 1),
    ("x.json", b'{"name": "x",}', "it is not JSON", 1),
    ("x.json", b'{"name": "x"', "it is not JSON", 1),
    ("x.json", b'{"a": 1}\n{"b": 2}', "it is not JSON: Extra data", 2),
    ("x.json", b"name: x", "it is not JSON", 1),
    ("x.yaml", b"name: x\n  y: [", "it is not YAML", 2),
    ("x.yaml", b"a: 1\nb: c: d", "it is not YAML", 2),
    ("x.yaml", b"\tname: x", "it is not YAML", 1),
    ("x.yaml", b"a: \x01", "it is not YAML", 1),
    ("x.json", b'{"name": "\xff"}', "it is not UTF-8", 1),
    ("x.json", b'{\n"a": NaN}', "NaN is no JSON number", 2),
    ("x.json", b'{"a": -Infinity}', "-Infinity is no JSON number", 1),
    ("x.json", b'{"a": 1e999}', "1e999 is no JSON number", 1),
    ("x.yaml", b"a: .nan", ".nan is no JSON number", 1),
    ("x.yaml", b"a: 1e999", "larger than any JSON number", 1),
    ("x.json", b'{"a": "\\ud800"}', "half of a surrogate pair", 1),
    ("x.json", b'{"a": ' + b"9" * 5_000 + b"}", "it is not JSON", 1),
    ("x.json", b"[" * 10_000 + b"]" * 10_000, "nested deeper than 200 levels", 1),
    ("x.json", b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested deeper than 200 levels", 1),
    ("x.yaml", b"[" * 10_000 + b"]" * 10_000, "nested deeper than 200 levels", 1),
    ("x.yaml", b"a: " + b"- " * 10_000 + b"1", "", 1),
    ("x.yaml", b"a: &a [1]\nb: *a", "anchors are not read", 1),
    ("x.yaml", b"b: *a", "aliases are not read", 1),
    ("x.yaml", b"a: !!python/object/apply:os.system [id]", "tags are not read", 1),
    ("x.yaml", b"a: !!set {x}", "tags are not read", 1),
    ("x.yaml", b"a: 1\n---\nb: 2", "expected one document", 2),
    ("x.yaml", b"1: a", 'a key must be a text: write "1"', 1),
    ("x.yaml", b"? [a]\n: b", "a key must be a text", 1),
    ("x.json", b'{"a": "' + b"x" * (33 * 1024 * 1024) + b'"}', "at most 33,554,432 are allowed", 1),
]


@pytest.mark.parametrize(("name", "data", "message", "line"), BAD, ids=[f"{each[0]} {each[1][:30]!r}" for each in BAD])
def test_a_bad_file_gets_one_clear_message_soon(
    tmp_path: Path, name: str, data: bytes, message: str, line: int
) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with processor_time.at_most(processor_time.SECOND), pytest.raises(DocumentError) as told:
        Document.load(file, HANDLERS)
    first = told.value.problems[0]
    assert message in str(first)
    assert first.line == line  # type: ignore[attr-defined]
    assert len(str(told.value)) < 3_000


MARKED: list[tuple[str, str]] = [
    ("json", '{\n "a": §NaN}'),
    ("json", '{"x": 1,\n\n  "a": §-Infinity}'),
    ("json", '{"x": 1, "a": §1e999}'),
    ("json", '{"a": 1}\n §{"b": 2}'),
    ("json", '{"a": 1 §2}'),
    ("json", '{"b": 1,\n "a": [1, §"\\ud800"]}'),
    ("json", '[{"a": 1}§'),
    ("yaml", "b: 1\na: §&a [1]"),
    ("yaml", "b: §*a"),
    ("yaml", "a:\n  - §!!set {x}"),
    ("yaml", "a: 1\n§---\nb: 2"),
    ("yaml", "b: 1\n§1: a"),
    ("yaml", "x:\n  ? §[a]\n  : b"),
    ("yaml", "a: [1, §1e999]"),
    ("yaml", "a: §.nan"),
    ("yaml", "a: 1\nb: x§\x01"),
    ("yaml", "a: 1\nb: \t\xa0\xad§\x02"),
    ("yaml", "§   "),
]


@pytest.mark.parametrize(("form", "marked"), MARKED, ids=[repr(each[1]) for each in MARKED])
def test_what_cannot_be_read_is_told_where_it_stands(form: Any, marked: str) -> None:
    before = marked.partition("§")[0]
    with pytest.raises(Unreadable) as told:
        read_text(marked.replace("§", ""), form)
    assert (told.value.line, told.value.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))
    with pytest.raises(Unreadable) as told:
        read_text(b"a: 1\nb: x\xff", form)
    assert (told.value.line, told.value.column) == (2, 5)


def test_a_text_may_hold_as_many_values_as_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_VALUES", 6)
    monkeypatch.setattr(reading, "MAX_CONTAINERS", 3)
    assert read_text('[1, 2, 3, {"a": []}]', "json").data == [1, 2, 3, {"a": []}]
    for text in ("[1, 2, 3, 4, 5, 6, 7, 8]", "[[], [], []]"):
        with pytest.raises(Unreadable, match="it holds too many values"):
            read_text(text, "json")
    text = "a: [1, 2]\nb: 1\n"
    events = len(list(yaml.parse(text)))
    for most in range(events + 1):
        monkeypatch.setattr(yaml_text, "MAX_EVENTS", most)
        if most < events - 1:
            with pytest.raises(Unreadable, match=f"it has more than {most} values"):
                read_text(text, "yaml")
        else:
            assert read_text(text, "yaml").data == {"a": [1, 2], "b": 1}


def test_a_file_of_100_megabytes_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    with file.open("wb") as opened:
        opened.truncate(100 * 1024 * 1024)
    with (
        processor_time.at_most(processor_time.SECOND / 2),
        pytest.raises(DocumentError, match="104,857,600 bytes; at most"),
    ):
        Document.load(file, HANDLERS)


def test_a_file_may_be_as_large_as_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(YAML)
    monkeypatch.setattr(reading, "MAX_BYTES", len(YAML))
    assert Document.load(file, HANDLERS).name == "greet"
    file.write_text(YAML + "#")
    with pytest.raises(DocumentError, match=f"{len(YAML) + 1} bytes; at most {len(YAML)} are allowed"):
        Document.load(file, HANDLERS)


def test_a_file_that_is_not_there_or_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(DocumentError, match="it cannot be read"):
            Document.load(path, HANDLERS)


def test_a_key_that_is_there_twice_is_told_in_both_languages() -> None:
    node = '{"id": "a", "handler": "transform", "config": {"template": 1}}'
    for text, form in (
        (f'{{"name": "x",\n "name": "y", "nodes": [{node}]}}', "json"),
        (f"name: x\nname: y\nnodes: [{node}]", "yaml"),
    ):
        with pytest.raises(DocumentError) as told:
            Document.parse(text, HANDLERS, form=form)  # type: ignore[arg-type]
        (found,) = told.value.problems
        assert "this key is there more than once" in str(found)
        assert found.line == 2  # type: ignore[attr-defined]


def test_a_template_of_a_megabyte_is_refused_soon() -> None:
    config = {"template": "{{ input.x }}" + "x" * 1_000_000}
    with (
        processor_time.at_most(processor_time.SECOND),
        pytest.raises(DocumentError, match="at most 100,000 are allowed"),
    ):
        Document({"name": "x", "nodes": [{"id": "a", "handler": "transform", "config": config}]}, HANDLERS)


def test_json_and_yaml_are_the_same_document() -> None:
    first = Document.parse(YAML, HANDLERS)
    again = Document.parse(first.content, HANDLERS)
    assert (again.digest, again.canonical) == (first.digest, first.canonical)


def test_both_names_of_a_field_are_one_and_defaults_are_not_written() -> None:
    one = {"id": "a", "handler": "transform", "config": {"template": 1}, "dependencies": [], "timeout_seconds": 5}
    other = {
        "id": "a",
        "job": "transform",
        "args": {"template": 1},
        "depends_on": [],
        "timeout": 5.0,
        "on_lost": "rerun",
    }
    defaults: dict[str, Any] = {"mode": "workflow", "on_failure": "fail_fast", "tags": []}
    document = Document({"name": "x", "nodes": [one]}, HANDLERS)
    same = Document({"name": "x", "nodes": [other], **defaults}, HANDLERS)
    assert document == same
    assert len({document, same}) == 1
    assert "on_failure" not in document.canonical
    assert document.canonical["nodes"] == [
        {"id": "a", "handler": "transform", "config": {"template": 1}, "timeout_seconds": 5}
    ]
    twice = {**one, "id": "b", "dependencies": ["a", "a"]}
    chain = Document({"name": "x", "nodes": [one, twice]}, HANDLERS)
    assert chain.graph.nodes["b"].depends_on == ("a",)
    assert chain.canonical["nodes"][1]["dependencies"] == ["a"]


def test_a_document_without_a_name_has_that_of_its_file(tmp_path: Path) -> None:
    nodes = [{"id": "a", "handler": "transform", "config": {"template": 1}}]
    file = tmp_path / "weekly-report.json"
    file.write_text(json.dumps({"nodes": nodes}))
    document = Document.load(file, HANDLERS)
    assert document == Document({"name": "weekly-report", "nodes": nodes}, HANDLERS)
    file.write_text(json.dumps({"name": "monthly", "nodes": nodes}))
    assert Document.load(file, HANDLERS).name == "monthly"
    file.with_name("a@b.json").write_text(json.dumps({"nodes": nodes}))
    with pytest.raises(DocumentError, match="without @"):
        Document.load(file.with_name("a@b.json"), HANDLERS)


def test_the_graph_of_a_document_is_the_same_when_it_is_loaded_again() -> None:
    config = {"template": {"z": 1, "a": [{"y": 2, "b": "{{ input.x }}"}]}}
    graph = Document({"name": "x", "nodes": [{"id": "a", "handler": "transform", "config": config}]}, HANDLERS).graph
    again = Graph.load(graph.document)
    assert (again.digest, again.source, again.trusted) == (graph.digest, graph.source, False)
    assert str(again.nodes["a"]) == str(graph.nodes["a"]), "also the order of keys, which a request may follow"


def test_checking_is_fast_enough() -> None:
    nodes = [
        {
            "id": f"n{i}",
            "handler": "transform",
            "config": {"template": f"Item {{{{ n{i - 1}.result }}}} of {{{{ input.x }}}}" if i else "{{ input.x }}"},
            "dependencies": [f"n{i - 1}"] if i else [],
        }
        for i in range(10_000)
    ]
    text = json.dumps({"name": "long", "nodes": nodes})
    with processor_time.at_most(2 * processor_time.SECOND):  # a quarter of it is usual
        document = Document.parse(text, HANDLERS)
    assert len(document.graph) == 10_000
