"""A frozen form that cannot be a graph is refused with everything that is wrong with it, each with its JSON path."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.core.graph import Graph, from_frozen, parse, to_frozen
from stepwell.core.graph.frozen_node import FIELDS
from stepwell.errors import GraphError
from tests.core.graph.dags import ARGS, graphs
from tests.core.graph.test_frozen_form import node


def refused(data: Any) -> list[str]:
    with pytest.raises(GraphError) as caught:
        from_frozen(data)
    assert caught.value.problems
    assert all(problem.path.startswith("$") for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def nodes(**nodes: Any) -> list[str]:
    return refused({"version": 1, "nodes": nodes})


def test_every_problem_is_reported_at_once() -> None:
    form = {
        "version": 2,
        "signature": 3,
        "graph": [],
        "nodes": {
            "": node(),
            "a": node(depends_on=["ghost", "some"], queue="x/y", on_lost="never"),
            "b": {"job": "shop.jobs.charge", "args": [1], "timeout_seconds": 3, "depends_on": "a"},
            "c": node(depends_on=["d", "d"], timeout=0, body="moon", kind="leap", needs=["b"]),
            "d": node(depends_on=["c"], retry={"attempts": 3, "base_delay": "1", "retry_on": ["x", 3]}, position="1"),
            "e": node(args={"when": math.nan}, retry=3, name=" "),
            "f": 7,
            "g": node(on_lost="interrupt", retry={"max_attempts": 3}, timeout=True),
        },
    }
    assert refused(form) == [
        "$.graph: there is no such field; there are version, signature, frozen_at, state, nodes",
        "$.version: the version of the form is 2; this Stepwell reads version 1",
        "$.signature: expected a string, got 3",
        "$.nodes[\"\"]: expected an id of 1 to 500 printable characters, got ''",
        "$.nodes.a.queue: expected a name without '/', got 'x/y'",
        "$.nodes.a.on_lost: expected one of rerun, interrupt, got 'never'",
        "$.nodes.b.job: expected a job of the form package.module:function, got 'shop.jobs.charge'",
        "$.nodes.b.args: expected an object, got [1]",
        f"$.nodes.b.timeout_seconds: there is no such field; there are {', '.join(FIELDS)}",
        "$.nodes.b.depends_on: expected a list of strings, got 'a'",
        "$.nodes.b.name: this field is missing",
        "$.nodes.c.timeout: expected a positive number of seconds up to 315,360,000 (ten years), got 0",
        "$.nodes.d.retry.attempts: there is no such field; there are max_attempts, base_delay, max_delay, retry_on",
        "$.nodes.d.retry.base_delay: expected a number of seconds from 0 to 315,360,000 (ten years), got '1'",
        "$.nodes.d.retry.retry_on[1]: expected some text, got 3",
        "$.nodes.d.retry.max_attempts: this field is missing",
        "$.nodes.d.position: expected a whole number, not negative, got '1'",
        "$.nodes.e.name: expected some text, got ' '",
        "$.nodes.e.args.when: nan is not a JSON number",
        "$.nodes.e.retry: expected an object with max_attempts, got 3",
        "$.nodes.f: expected an object, got 7",
        "$.nodes.g.timeout: expected a positive number of seconds up to 315,360,000 (ten years), got true",
        "$.nodes.c.kind: kind='leap': expected 'step' or 'task'",
        "$.nodes.c.body: body='moon': expected one of thread, loop, process",
        "$.nodes.g.retry: on_lost=interrupt promises at most one run per request; a retry needs an explicit retry_on",
        "$.nodes.a.depends_on[0]: depends on 'ghost', which does not exist",
        "$.nodes.a.depends_on[1]: depends on 'some', which does not exist; expected an id, and this is "
        "the name of a, c, d",
        "$.nodes.c.depends_on: names a dependency twice",
        "$.nodes: it contains a cycle: d -> c -> d",
    ]


def test_outputs_are_taken_from_ancestors_only() -> None:
    assert nodes(a=node(), b=node(needs=["a"])) == [
        "$.nodes.b: takes the output of 'a', which is not one of its ancestors"
    ]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("", "$: it is not JSON: Expecting value (line 1, column 1)"),
        ("{'version': 1}", "$: it is not JSON: Expecting property name enclosed in double quotes (line 1, column 2)"),
        ('{"version": 1,\n "nodes": {}', "$: it is not JSON: Expecting ',' delimiter (line 2, column 13)"),
        ('"half', "$: it is not JSON: Unterminated string starting at (line 1, column 1)"),
        (b'{"\xff": 1}', "$: it is not JSON: 'utf-8' codec can't decode byte 0xff in position 2: invalid start byte"),
        ("[]", "$: expected an object with version and nodes, got []"),
        ("null", "$: expected an object with version and nodes, got null"),
        ({"version": 1}, "$.nodes: expected an object of nodes by id, got nothing"),
        ({"version": 1, "nodes": [1]}, "$.nodes: expected an object of nodes by id, got [1]"),
        ({"version": 1, "nodes": {}}, "$.nodes: it has no nodes"),
        ({"nodes": {"a": node()}}, "$.version: the version of the form is missing; this Stepwell reads version 1"),
        (
            {"version": True, "nodes": {"a": node()}},
            "$.version: the version of the form is true; this Stepwell reads version 1",
        ),
        ({"version": 1, "nodes": {3: node()}}, '$.nodes["3"]: expected an id of 1 to 500 printable characters, got 3'),
    ],
)
def test_what_is_no_form_at_all_is_told_as_such(data: Any, says: str) -> None:
    assert refused(data) == [says]


def test_a_number_without_end_is_refused() -> None:
    (problem,) = refused('{"version": ' + "9" * 5_000 + "}")
    assert problem.startswith("$: it is not JSON: Exceeds the limit")


def test_a_node_that_is_written_twice_is_not_dropped() -> None:
    text = json.dumps({"version": 1, "nodes": {"a": node(args={"x": [{}, {"y": 1, "z": 2}]}), "b": node()}})
    assert refused(text.replace('"b"', '"a"')) == ["$.nodes.a: this key is there more than once"]
    assert refused(text.replace('"z"', '"y"')) == ["$.nodes.a.args.x[1].y: this key is there more than once"]
    assert refused(text.replace('{"version"', '{"version": 1, "version": 1, "version"')) == [
        "$.version: this key is there more than once"
    ]


@pytest.mark.parametrize("id", ["a\0b", "a\nb", "\ud800", "x" * 501])
def test_ids_are_text_that_every_store_and_screen_can_carry(id: str) -> None:
    (problem,) = nodes(**{id: node()})
    assert "expected an id of 1 to 500 printable characters" in problem


def test_half_a_surrogate_is_found_wherever_it_hides() -> None:
    text = json.dumps(
        {"version": 1, "nodes": {"a": node(name="\udc00", args={"x": "\ud800"}), "b": node(depends_on=["\ud800"])}}
    )
    problems = refused(text)
    assert [problem.partition(": ")[0] for problem in problems] == [
        "$.nodes.a.name",
        "$.nodes.a.args",
        "$.nodes.b.depends_on[0]",
    ]


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf, "3", True, 10**10, 10**400, [3], None])
def test_delays_are_seconds(seconds: Any) -> None:
    (problem,) = nodes(a=node(retry={"max_attempts": 2, "max_delay": seconds}))
    assert problem.startswith(
        "$.nodes.a.retry.max_delay: expected a number of seconds from 0 to 315,360,000 (ten years)"
    )


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf, "3", True, 10**10, 10**400, [3], 0])
def test_a_timeout_is_seconds(seconds: Any) -> None:
    (problem,) = nodes(a=node(timeout=seconds))
    assert problem.startswith("$.nodes.a.timeout: ")


@pytest.mark.parametrize(
    "job", ["", "shop.charge", "shop:", ":charge", "shop:charge()", "a b:c", "os.path:join\n", 3, {}]
)
def test_a_job_is_an_address(job: Any) -> None:
    (problem,) = nodes(a=node(job=job))
    assert problem.startswith("$.nodes.a.job: expected a job of the form package.module:function")


def test_the_context_cannot_be_an_arg() -> None:
    assert nodes(a=node(args={"ctx": 1})) == ["$.nodes.a.args.ctx: a job gets its context by itself"]


# Limits, looked at before anything is parsed deeply.


def test_too_many_bytes_are_refused_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MAX_BYTES", 10)
    assert refused("[1,2,3,4,5,6") == ["$: it has 12 bytes; at most 10 are allowed"]


def test_too_many_nodes_are_refused_before_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepwell.core.graph.frozen.MAX_NODES", 2)
    assert nodes(a=1, b=2, c=3) == ["$.nodes: it has 3 nodes; at most 2 are allowed"]


@pytest.mark.parametrize("open", ["[", '{"a":', '[{"a":'])
def test_nesting_is_refused_before_it_is_parsed(open: str) -> None:
    started = time.perf_counter()
    assert refused(open * 3_000_000) == ["$: it is nested deeper than 200 levels"]
    assert time.perf_counter() - started < 20


def test_brackets_inside_of_strings_are_no_nesting() -> None:
    text = '[{"\\\\' * 300 + '\\"'
    form = {"version": 1, "nodes": {"a": node(name=text[:500], args={text: text})}}
    assert from_frozen(json.dumps(form)).nodes["a"].args == {text: text}


def test_a_string_that_never_ends_is_looked_at_once() -> None:
    started = time.perf_counter()
    (problem,) = refused('"' + '\\"' * 2_000_000)
    assert "it is not JSON: Unterminated string" in problem
    assert time.perf_counter() - started < 20


def test_data_that_contains_itself_is_refused() -> None:
    args: dict[str, Any] = {}
    args["self"] = args
    (problem,) = nodes(a=node(args=args))
    assert problem.startswith("$.nodes.a.args.self.self")
    assert ": nested deeper than 200 levels, or containing itself" in problem


def test_a_message_stays_readable_when_everything_is_wrong() -> None:
    with pytest.raises(GraphError) as caught:
        from_frozen({"version": 1, "nodes": {f"n{i}": node(timeout=-1) for i in range(5_000)}})
    assert len(caught.value.problems) == 5_000
    assert str(caught.value).startswith("the graph has 5,000 problems:\n  - $.nodes.n0.timeout: ")
    assert str(caught.value).endswith("\n  - and 4,900 more, in `problems` of this error")


# Whatever is done to a form, it becomes a graph or is refused with paths; nothing else.


@settings(deadline=None)  # busy machines are slow
@given(graphs(), st.data())
def test_a_form_with_anything_in_it_is_loaded_or_refused(graph: Graph, data: st.DataObject) -> None:
    form = to_frozen(graph, 0)
    for _ in range(data.draw(st.integers(1, 3))):
        _spoil(form, data)
    text = json.dumps(form)
    try:
        assert from_frozen(text).digest
    except GraphError:
        assert refused(text)


def _spoil(form: dict[str, Any], data: st.DataObject) -> None:
    """Put something anywhere."""
    at: Any = form
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans()):
            at = at[key]
            continue
        if isinstance(at, dict) and data.draw(st.booleans()):
            key = data.draw(
                st.sampled_from(["version", "name", "job", "retry", "needs", "timeout", "max_attempts", "x"])
            )
        at[key] = data.draw(ARGS)
        return


@settings(deadline=None)  # busy machines are slow
@given(st.text() | st.binary())
def test_rubbish_is_refused(rubbish: str | bytes) -> None:
    assert refused(rubbish)


@pytest.mark.parametrize("job", ["nope", "shop.jobs", "shop:", ":work", "shop:work:more", "shop work"])
def test_a_job_is_a_module_and_a_function(job: str) -> None:
    (problem,) = refused({"version": 1, "nodes": {"a": node(job=job)}})
    assert problem.startswith("$.nodes.a.job: expected a job of the form package.module:function, got ")
