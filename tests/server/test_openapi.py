"""The OpenAPI document, from which a user interface is made: nothing twice, nothing unnamed, nothing undescribed."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from stepwell.server import pipeline_models
from stepwell.server.problems import MEDIA_TYPE

METHODS = {"get", "post", "put", "delete"}
NO_CONTENT = {"204", "304"}
NOT_JSON = {"metrics", "follow_run", "follow_all", "follow_logs", "follow_pipeline", "get_output"}
"""Text, streams, and the bytes of an output as they are."""


@pytest.fixture
def document(api: httpx.Client) -> dict[str, Any]:
    answer: dict[str, Any] = api.get("/api/v1/openapi.json").json()
    return answer


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        assert methods.keys() <= METHODS, path
        yield from ((f"{method} {path}", operation) for method, operation in methods.items())


def references(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                if name == "$ref":
                    yield inner.removeprefix("#/components/schemas/")
                else:
                    yield from references(inner)
        case list():
            for inner in value:
                yield from references(inner)


def test_every_schema_has_one_name_and_is_used(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    # pydantic puts the module before the name of a class whose name another one has.
    assert [name for name in schemas if "__" in name] == []
    assert [name for name in schemas if not re.fullmatch(r"[A-Z][A-Za-z]+(_[A-Z][A-Za-z]+_)?", name)] == []
    assert set(references(document)) == schemas.keys()


def test_every_operation_has_a_name_of_its_own_and_a_summary(document: dict[str, Any]) -> None:
    names = Counter(operation["operationId"] for _, operation in operations(document))
    assert {name: count for name, count in names.items() if count > 1} == {}
    for place, operation in operations(document):
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", operation["operationId"]), place
        assert operation["tags"], place
        summary = operation["summary"]
        assert summary[0].isupper(), (place, summary)
        assert not summary.endswith("."), (place, summary)
        assert len(summary) <= 120, (place, summary)


def test_every_answer_has_a_schema_and_every_refusal_is_a_problem(document: dict[str, Any]) -> None:
    for place, operation in operations(document):
        for status, response in operation["responses"].items():
            if status in NO_CONTENT:
                assert "content" not in response, (place, status)
            elif status.startswith("2"):
                content = response["content"]
                assert operation["operationId"] in NOT_JSON or content["application/json"]["schema"], (place, status)
            else:
                (kind,) = response["content"]
                assert kind == MEDIA_TYPE, (place, status)
                assert [*references(response)] == ["ProblemRecord"], (place, status)


def test_every_field_of_an_answer_says_what_it_is(document: dict[str, Any]) -> None:
    pipelines = {
        node.name for node in ast.parse(inspect.getsource(pipeline_models)).body if isinstance(node, ast.ClassDef)
    }
    for name, schema in document["components"]["schemas"].items():
        if name in pipelines:
            continue
        assert "description" in schema or name.startswith("PageOf_"), name
        for field, about in schema.get("properties", {}).items():
            assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", field), (name, field)
            assert about.get("description"), (name, field)
            assert "title" not in about, (name, field)


def test_statuses_are_enumerations(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        for field, about in schema.get("properties", {}).items():
            if field in ("status", "becomes", "run_status") and name.endswith(
                ("Record", "Detail", "Summary", "Run", "Node")
            ):
                assert (
                    name in ("JournalRecord", "ProblemRecord")
                    or "enum" in str(about)
                    or any("enum" in schemas[reference] for reference in references(about))
                ), (name, field)
