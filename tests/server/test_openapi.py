"""The OpenAPI document, from which a user interface is made: nothing twice, nothing unnamed, nothing undescribed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from stepwell.answers import triggers
from stepwell.server.problems import MEDIA_TYPE
from stepwell.triggers.kinds import RunFinished, WantedStates, Webhook

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
    assert [name for name in schemas if not re.fullmatch(r"[A-Z][A-Za-z]+", name)] == []
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


def test_every_field_says_what_it_is(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert "description" in schema or name.startswith("PageOf"), name
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


def schemas_in(value: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of the document, and those in it, with its place."""
    match value:
        case dict():
            if {"type", "anyOf", "oneOf", "enum", "$ref"} & value.keys():
                yield place, value
            for name, inner in value.items():
                if name not in ("example", "examples"):
                    yield from schemas_in(inner, f"{place}.{name}")
        case list():
            for number, inner in enumerate(value):
                yield from schemas_in(inner, f"{place}[{number}]")


def test_every_object_says_what_is_in_it(document: dict[str, Any]) -> None:
    """A bare `object` is one without keys to generators of clients."""
    objects = [(place, schema) for place, schema in schemas_in(document) if schema.get("type") == "object"]
    assert len(objects) > 100
    assert [place for place, schema in objects if not {"properties", "additionalProperties"} & schema.keys()] == []
    lists = [place for place, schema in schemas_in(document) if schema.get("type") == "array" and not schema["items"]]
    assert lists == [".components.schemas.Answers.properties.answers"]  # whatever the store answers


def test_what_may_be_left_out_of_a_request_is_not_null(document: dict[str, Any]) -> None:
    for place, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            assert parameter["description"].endswith("."), (place, parameter["name"])
            assert "null" not in str(parameter["schema"]), (place, parameter["name"])
        if "requestBody" in operation:
            body = operation["requestBody"]
            assert isinstance(body["required"], bool), place
            assert all("null" not in str(content["schema"]) for content in body["content"].values()), place
            assert body["content"]["application/json"]["schema"] or place == "post /hooks/{name}"


def test_every_field_of_an_answer_is_there_unless_its_record_says_that_it_may_be_left_out(
    document: dict[str, Any],
) -> None:
    left_out = {
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        if name.endswith(("Record", "Detail", "Message", "Node", "Summary", "Change", "Run", "States", "Failures"))
        for field in schema.get("properties", {}).keys() - set(schema.get("required", ()))
    }
    definition = {
        "TriggerRecord",
        "WantedStates",
        "WebhookRecord",
        "RunFinishedRecord",
        "WantedStatesRecord",
        "FrozenNode",
    }
    others = {each for each in left_out if each.partition(".")[0] not in definition}
    assert others == {
        *(f"ProblemRecord.{field}" for field in ("instance", "error", "run_id", "missing", "command", "problems")),
        *(f"EffectErrorRecord.{field}" for field in ("args", "attributes", "exceptions")),
        "ResetMessage.id",
    }


def test_every_stream_describes_its_messages(document: dict[str, Any]) -> None:
    found = {}
    for _, operation in operations(document):
        content = operation["responses"].get("200", {}).get("content", {})
        if "text/event-stream" in content:
            schema = content["text/event-stream"]["schema"]
            assert "type" not in schema
            found[operation["operationId"]] = {*schema["discriminator"]["mapping"]}
    assert found == {
        "follow_run": {"journal", "reset", "end"},
        "follow_all": {"run", "reset"},
        "follow_logs": {"log", "end"},
        "follow_pipeline": {"state", "gone"},
    }


@pytest.mark.parametrize(
    ("form", "record"),
    [
        (Webhook, triggers.WebhookRecord),
        (RunFinished, triggers.RunFinishedRecord),
        (WantedStates, triggers.WantedStatesRecord),
    ],
)
def test_what_a_trigger_waits_for_is_answered_as_it_is_written(form: Any, record: Any) -> None:
    answered, written = TypeAdapter(record).json_schema(), form.model_json_schema()
    assert answered["properties"].keys() == written["properties"].keys()
    assert answered["required"] == written["required"]
