"""The JSON Schema of documents, for editors: made from their forms and the configs of all handlers."""

from __future__ import annotations

from typing import Any

from ...base.forms.schema import schema_of
from ...handlers import Handlers
from ...triggers.kinds import FORMS as TRIGGER_FORMS
from .forms import DocumentForm, NodeForm

_TEMPLATE = {"type": "string", "pattern": r"\{[{%]|^secret:", "description": "a template, or a secret"}


def document_schema(handlers: Handlers) -> dict[str, Any]:
    """The schema of a document whose nodes name these handlers, or functions."""
    definitions: dict[str, Any] = {}
    document = schema_of(DocumentForm, definitions)
    document["required"].remove("name")  # by default it is that of the file
    document["properties"]["nodes"]["items"] = {"$ref": "#/$defs/node"}
    document["properties"]["triggers"]["items"] = {
        "anyOf": [_declared(schema_of(form, definitions)) for form in TRIGGER_FORMS.values()]
    }
    definitions["node"] = _node(handlers, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Stepwell document",
        **document,
        "$defs": definitions,
    }


def handler_name(handlers: Handlers) -> dict[str, Any]:
    """The schema of the name of a handler or a function."""
    return {"anyOf": [{"enum": list(handlers)}, {"type": "string", "pattern": "^[^:]+:[^:]+$"}]}


def _declared(trigger: dict[str, Any]) -> dict[str, Any]:
    """A trigger in the document whose runs it starts: without `workflow`, and a single one may have no name."""
    del trigger["properties"]["workflow"]
    trigger["required"] = [name for name in trigger["required"] if name not in ("name", "workflow")]
    return trigger


def _node(handlers: Handlers, definitions: dict[str, Any]) -> dict[str, Any]:
    node = schema_of(NodeForm, definitions)
    node["required"] = ["id"]  # the handler may be called `job`
    node["properties"] |= dict.fromkeys(("handler", "job"), handler_name(handlers))
    node["allOf"] = [
        {
            "if": {"required": ["handler"], "properties": {"handler": {"const": name}}},
            "then": {"properties": {"config": _with_templates(handlers[name].config_schema())}},
        }
        for name in handlers
    ]
    return node


def _with_templates(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a config in which any field may be a template instead. References are replaced by what they mean."""
    defined = schema.get("$defs", {})

    def inlined(value: Any, depth: int = 0) -> Any:
        if isinstance(value, list):
            return [inlined(item, depth) for item in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value and depth < 5:
            return inlined(defined.get(str(value["$ref"]).rpartition("/")[2], {}), depth + 1)
        if "$ref" in value:
            return {}
        return {key: inlined(item, depth) for key, item in value.items() if key != "$defs"}

    config: dict[str, Any] = inlined(schema)
    for name, field in config.get("properties", {}).items():
        about = {"description": field["description"]} if "description" in field else {}
        config["properties"][name] = {"anyOf": [field, _TEMPLATE]} | about
    return config
