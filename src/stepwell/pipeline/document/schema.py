"""The JSON Schema of documents of both modes, for editors."""

from __future__ import annotations

from typing import Any

from ...base.forms.schema import schema_of
from ...define.document.schema import document_schema, handler_name
from ...handlers import Handlers
from .forms import DATA, ConnectionForm, PipelineForm, StateNodeForm


def any_schema(handlers: Handlers) -> dict[str, Any]:
    """The schema of a document that is a pipeline or a workflow, by its mode."""
    workflow = document_schema(handlers)
    definitions = workflow.pop("$defs")
    pipeline = schema_of(PipelineForm, definitions)
    pipeline["properties"]["nodes"]["items"] = {"$ref": "#/$defs/stateNode"}
    pipeline["properties"]["connections"]["items"] = schema_of(ConnectionForm, definitions)
    definitions["stateNode"] = _node(handlers, definitions)
    return {
        "$schema": workflow.pop("$schema"),
        "title": workflow.pop("title"),
        "if": {"required": ["mode"], "properties": {"mode": {"const": "pipeline"}}},
        "then": pipeline,
        "else": workflow,
        "$defs": definitions,
    }


def _node(handlers: Handlers, definitions: dict[str, Any]) -> dict[str, Any]:
    node = schema_of(StateNodeForm, definitions)
    node["properties"]["typeId"]["enum"] = list(DATA)
    data = {kind: schema_of(form, definitions) for kind, form in DATA.items()}
    data["state_transform"]["properties"]["transform"] = handler_name(handlers)
    node["allOf"] = [
        {
            "if": {"required": ["typeId"], "properties": {"typeId": {"const": kind}}},
            "then": {"properties": {"data": fields}},
        }
        for kind, fields in data.items()
    ]
    return node
