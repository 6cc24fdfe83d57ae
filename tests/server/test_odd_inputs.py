"""Whatever a caller puts wherever a route reads something: the answer is never an error of the server."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi.routing import APIRoute
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell import Document, Engine
from stepwell.base.schemas import KEYWORDS, check_schema
from stepwell.base.templates import compile_template
from stepwell.core.model import wire
from stepwell.core.store import Store
from stepwell.core.store.memory import MemoryStore
from stepwell.define.document.inputs import checked_input
from stepwell.errors import StepwellError
from stepwell.handlers import Handlers
from stepwell.server.api.reading import MAX_ROWS
from stepwell.server.serving import Serving
from tests.server.running import ADD, client, ended, running

TEXTS = [
    "",
    "a",
    "\x00",
    "\u2028",
    "é",
    "½",
    "💩",
    "x" * 5_000,
    "[",
    "{{",
    "{{ a",
    "in",
    "{{ é }}",
    "{{ or }}",
    "http://[",
    "-1",
]
TEXTS += [
    "../..",
    "nan",
    "1e400",
    "²",
    "0000-00-00",
    "9999-12-31T23:59:59-14:00",
    "__class__",
    "b!",
    "t\x00",
    "#/title",
]
NUMBERS = [0, -1, 1, 1.5, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 1e308, -1e308, 5e-324, 10**309]
NESTED = [
    [],
    [[]],
    [None],
    [1],
    [2**63],
    ["a"],
    [{}],
    {},
    {"": 1},
    {"a": {"b": []}},
    {"$ref": "#/title"},
    {"format": []},
]
ODD = [None, True, *TEXTS, *NUMBERS, *NESTED]
PER_PLACE = 4

SCHEMA = {
    "type": "object",
    "title": "order",
    "properties": {
        "a": {"type": "integer", "default": 2, "minimum": 0, "multipleOf": 2},
        "s": {"type": "string", "format": "date", "pattern": "^[0-9]"},
        "n": {"type": "number", "multipleOf": 5e-324},
        "l": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/q"}},
    },
    "$defs": {"q": {"anyOf": [{"enum": [1, 2]}, {"type": "null"}]}},
}
_X = {"id": "x", "handler": "transform", "config": {"template": "{{ input.a }}"}, "timeout": 5, "queue": "q"}
_Z = {"id": "z", "handler": "compute", "config": {"expression": "x.result + 1"}, "dependencies": ["x"], "retry": 2}
_CRON = {"name": "t", "cron": "* * * * *", "timezone": "UTC", "input": {"a": 2}}
DOCUMENT = {"name": "odd", "input": SCHEMA, "nodes": [_X, _Z], "triggers": [_CRON], "tags": {"a": "b"}, "deadline": 5}
START = {"input": {"a": 1}, "run_id": "r1", "priority": 0, "deadline": 5, "seed": 1, "tags": {"a": "b"}}
FILTER = {"status": ["COMPLETED"], "workflow": "add", "tag": ["a=b"], "since": "2026-01-01T00:00:00Z", "prefix": "k"}
HOOK = {
    "webhook": {"scheme": "bearer", "secret": "secret:PUSH", "delivery": "{{ body.id }}", "rate_per_minute": 60_000}
}
KINDS = ({"cron": "* * * * *", "timezone": "UTC"}, {"every": "1h"}, HOOK, {"run_finished": {"workflow": "add"}})
SAMPLES = {
    "run_id": "known",
    "limit": 5,
    "index": 0,
    "digests": [],
    "digest": "0" * 64,
    "name": "add",
    "kind": "document",
}
VERBS: dict[str, dict[str, Any]] = {
    "retry": {"accept": True},
    "resume": {"input": {"a": 1}, "accept": True},
    "cancel": {"grace_seconds": 1},
    "pause": {},
    "fork": {"at": "y", "input": {"a": 2}, "run_id": "f"},
    "nodes/y/reattempt": {"cascade": True},
}

Asked = tuple[str, str, Any]


def bodies(graph: dict[str, Any]) -> Iterator[Asked]:
    """A good request of every route that reads a body."""
    yield from (("POST", path, DOCUMENT) for path in ("/workflows", "/workflows/check"))
    yield "POST", "/workflows/odd-input/runs", {"input": {"a": 2, "s": "2026-01-01", "n": 1, "l": [1]}}
    yield "POST", "/workflows/add/runs", START
    yield "POST", "/workflows/add/activate", {"version": 1}
    yield "POST", "/runs", START | {"document": ADD}
    yield "POST", "/runs", {"workflow": "w", "graph": graph}
    yield "PUT", "/runs/known/graph/frozen", graph
    for verb, more in VERBS.items():
        yield "POST", f"/runs/known/{verb}", {"dry_run": True, **more}
    bulk = {"filter": FILTER, "limit": 1, "cursor": None, "dry_run": True, "at": "y", "input": {}, "key": "k"}
    yield from (("POST", f"/bulk/{verb}", bulk) for verb in ("retry", "fork"))
    run = {"run": "known", "created_at": "2026-01-15T10:30:00.000000Z", "status": "FAILED", "seq": 7}
    yield "POST", "/bulk/retry", {"preview": [run], "dry_run": False}
    yield from (("POST", "/triggers", {"name": "tr", "workflow": "add", "input": {"a": 1}, **kind}) for kind in KINDS)
    yield "POST", "/triggers/nightly/fire", {"input": {"a": 1}, "key": "k"}
    day = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}
    yield "POST", "/triggers/nightly/backfill", {**day, "dry_run": True}
    for name, (kind, _) in wire._asked().items():
        yield "POST", "/read", {"queries": [{"query": name, **query_of(kind)}]}


def query_of(kind: Any) -> dict[str, Any]:
    """Every field of a query, with a value that is read."""
    return {field: SAMPLES.get(field, wire.to_wire(kind._field_defaults.get(field))) for field in kind._fields}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, (*path, key))


def with_odd(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    made = at = copy.deepcopy(value)
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = odd
    return made


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    handlers = Handlers(secrets={"PUSH": "a-secret-of-the-sender"})
    with running(f"sqlite:///{tmp_path_factory.mktemp('odd')}/odd.db", worker={}, handlers=handlers) as found:
        with client(found) as api:
            document = {"name": "odd-input", "input": SCHEMA, "nodes": [_X]}
            trigger = {"name": "nightly", "workflow": "add", "cron": "0 2 * * *", "input": {"a": 1}}
            hook = {"name": "push", "workflow": "add", "input": {"a": "{{ body.a }}"}, **HOOK}
            for path, body in (
                ("/workflows", ADD),
                ("/workflows", document),
                ("/workflows/add/runs", {"input": {"a": 1}, "run_id": "known"}),
                ("/triggers", trigger),
                ("/triggers", hook),
            ):
                answer = api.post(f"/api/v1{path}", json=body)
                assert answer.status_code == 201, answer.text
            ended(api, "known")
        yield found


def test_no_odd_value_anywhere_in_a_body_is_an_error_of_the_server(serving: Serving) -> None:
    chance = random.Random(28)
    asked = 0
    with client(serving) as api:
        graph = api.get("/api/v1/runs/known/graph/frozen").json()
        for method, path, body in bodies(graph):
            for place in places(body):
                for odd in chance.sample(ODD, PER_PLACE):
                    content = json.dumps(with_odd(body, place, odd)).encode()
                    headers = {"Content-Type": "application/json"}
                    answer = api.request(method, f"/api/v1{path}", content=content, headers=headers)
                    assert answer.status_code < 500, (path, place, odd, answer.text)
                    asked += 1
    assert asked > 1_000


def check_queries(store: Store) -> None:
    read = 0
    for name, (kind, _) in wire._asked().items():
        good = query_of(kind)
        for field in kind._fields:
            for odd in ODD + [[number] for number in NUMBERS] + [[0, number] for number in NUMBERS]:
                try:
                    query = wire.query_from_wire({"query": name, **good, field: odd})
                except wire.WireError:
                    continue
                limits = {"limit": min(query.limit, MAX_ROWS)} if hasattr(query, "limit") else {}
                wire.answer_to_wire(*store.read([query._replace(**limits)]))
                read += 1
    assert read > 500


def test_every_query_that_is_read_is_answered(serving: Serving) -> None:
    check_queries(serving.service.store)
    check_queries(MemoryStore())


def test_every_query_that_is_read_is_answered_by_a_server_store(server_url: str) -> None:
    with Engine(server_url) as engine:
        engine.run(Document(ADD), input={"a": 1}, run_id="known")
        check_queries(engine.store)


def test_no_odd_path_query_or_header_is_an_error_of_the_server(serving: Serving) -> None:
    guard: Any = serving._server.config.app
    good = {"run_id": "known", "node": "y", "name": "add", "at": "2", "other": "known", "verb": "retry"}
    chance = random.Random(28)
    headers = ["Origin", "Host", "Authorization", "Cookie", "Content-Type", "Range", "Last-Event-ID", "Idempotency-Key"]
    asked = 0

    def ask(api: httpx.Client, method: str, path: str, **options: Any) -> None:
        nonlocal asked
        asked += 1
        with api.stream(method, path, **options) as answer:
            assert answer.status_code < 500, (method, path, options)

    with client(serving) as api:
        for route in guard.app.app.routes:
            assert isinstance(route, APIRoute)
            (method,) = route.methods
            parts = {name: good.get(name, "x") for name in route.param_convertors}
            if method == "DELETE":
                parts = dict.fromkeys(parts, "nobody")
            flat = [
                each for each in route.dependant.query_params if not hasattr(each.field_info.annotation, "model_fields")
            ]
            for name in parts:
                for odd in chance.sample(TEXTS, 4):
                    filled = {key: quote(value, safe="") for key, value in (parts | {name: odd}).items()}
                    ask(api, method, route.path.format(**filled))
            for query in (*(each.alias for each in flat), "cursor", "since", "tag", "limit"):
                for odd in chance.sample(TEXTS, 2):
                    ask(api, method, route.path.format(**parts), params={query: odd})
            for header in headers:
                odd = chance.choice([text for text in TEXTS if text.isprintable() and len(text) < 100])
                ask(api, method, route.path.format(**parts), headers={header: odd.encode()})
            ask(api, method, route.path.format(**parts), headers={"Origin": "http://["})
    assert asked > 1_000


RAW = [b"", b"\xff", b"\x00", b"[", b'"', b"null", b"1", b"- &a [*a]", b"&a {b: *a}", b"!!python/object:os.system {}"]
RAW += [b"? {a: b}\n: c", b"a: .nan", b"a: 1e999999", b"{a: 1, a: 2}", b"--- a\n--- b", b"\xef\xbb\xbf{}", b"<<: [a]"]
RAW += [b"%YAML 9.9\n---\na", b"a: !!binary x", b"a: \x01", b"[1]: 2", b"a: !!timestamp 2026-99-99", b"9" * 5_000]
TYPES = ["application/json", "application/yaml", "application/x-www-form-urlencoded", "text/plain", "é", ""]


def test_no_odd_bytes_are_an_error_of_the_server(serving: Serving) -> None:
    paths = ("/api/v1/workflows", "/api/v1/workflows/check", "/api/v1/triggers", "/api/v1/read", "/hooks/push")
    with client(serving) as api:
        for path in paths:
            token = {"Authorization": "Bearer a-secret-of-the-sender"} if path.startswith("/hooks") else {}
            for content in RAW:
                for kind in TYPES:
                    answer = api.post(path, content=content, headers={b"Content-Type": kind.encode(), **token})  # type: ignore[arg-type]
                    assert answer.status_code < 500, (path, content, kind, answer.text)


_LEAVES = st.sampled_from([*NUMBERS, *TEXTS, None, True, False])
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner)
)
_SCHEMAS = st.recursive(
    st.booleans() | st.dictionaries(st.sampled_from(sorted(KEYWORDS)), _VALUES, max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from(["items", "not", "additionalProperties"]), inner, max_size=2
    ) | st.dictionaries(st.just("properties"), st.dictionaries(st.sampled_from("ab"), inner)),
    max_leaves=5,
)  # fmt: skip


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(schema=_SCHEMAS, more=st.sampled_from([{}, {"$ref": "#/title", "title": "t"}, {"format": []}]), value=_VALUES)
def test_a_schema_that_is_accepted_judges_every_value(schema: Any, more: Any, value: Any) -> None:
    wanted = {"properties": {"value": schema, "more": more, "n": {"multipleOf": 5e-324}}}
    if not check_schema(wanted):
        with suppress(StepwellError):
            checked_input("odd", wanted, {"value": value, "more": value, "n": 1e308})


_PIECES = [
    "in",
    "or",
    "é",
    "½",
    "a",
    ".",
    " ",
    "(",
    ")",
    "[",
    "]",
    "|",
    "+",
    "not",
    "1",
    "'",
    "'é'",
    "if",
    "٣",
    "{",
    "}",
]


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(pieces=st.lists(st.sampled_from(_PIECES), min_size=1, max_size=5))
def test_a_template_is_read_or_refused(pieces: list[str]) -> None:
    with suppress(StepwellError):
        compile_template("{{ " + "".join(pieces) + " }}")


def test_a_name_of_any_letters_is_one_name() -> None:
    assert compile_template("{{ a.éb + ñ }}").render({"a": {"éb": 1}, "ñ": 2}) == 3
