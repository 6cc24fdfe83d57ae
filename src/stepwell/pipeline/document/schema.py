"""The JSON Schema of documents of both modes, for editors."""

from __future__ import annotations

from typing import Any

from ...define.document.schema import document_schema
from ...handlers import Handlers
from ..stage import FILTERS

STORES = ("filesystem", "files", "database")
_SECONDS = {"type": "number", "minimum": 0}
_COUNT = {"type": "integer", "minimum": 0}
_PATTERN = {"type": "string", "minLength": 1, "description": "a path with {variables}, globs and {{ $.name.path }}"}
_STATE = {"path": _PATTERN, "stateType": {"type": "string", "minLength": 1, "description": "the node that makes it"}}
_COLLECT = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_INPUT = {"anyOf": [_PATTERN, {"type": "object", "additionalProperties": _PATTERN}]}


_ID = {"type": "string", "minLength": 1}
DATA: dict[str, dict[str, Any]] = {
    "state_scan": {"pattern": _PATTERN, "filter": {"enum": list(FILTERS)}, "scan_interval": _SECONDS},
    "state_read": _STATE,
    "state_check": _STATE,
    "state_gate": _STATE,
    "state_transform": {
        "input": _INPUT,
        "output": _PATTERN,
        "transform": {},
        "config": {"type": "object", "description": "what the handler is to do; strings may be templates"},
        "minSize": _COUNT,
        "collect": _COLLECT,
        "quiet": _SECONDS,
        "priority": {"type": "integer"},
        "limit": {"type": "integer", "minimum": 1},
        "timeout": {"type": "number", "exclusiveMinimum": 0},
        "retry": {"$ref": "#/$defs/retry"},
        "version": {"type": "string", "description": "stands for the code: another one makes its states stale"},
    },
    "state_write": {**_STATE, "content": {}, "minSize": _COUNT, "collect": _COLLECT, "input": _INPUT},
    "state_trigger": {
        **_STATE,
        "workflow": {"type": "string", "minLength": 1, "description": "the name of a saved workflow"},
        "filter": {"type": "string", "description": "an expression, as in codeHash == currentCodeHash"},
        "existing": {"type": "boolean", "default": False},
    },
}
"""The types of nodes, and the fields of `data` of each."""
NODE_FIELDS = {
    "id": _ID,
    "typeId": {"enum": list(DATA)},
    "name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "description": "what others call it by"},
    "position": {"description": "where an editor draws it"},
    "data": {"type": "object"},
}
FIELDS = {
    "mode": {"const": "pipeline"},
    "name": {"type": "string", "minLength": 1, "description": "by default the name of the file"},
    "description": {"type": "string"},
    "stateStore": {"enum": list(STORES), "default": STORES[0]},
    "stateRoot": {"type": "string", "minLength": 1, "description": "a folder, sqlite:///... or postgresql://..."},
    "scanInterval": {"type": "number", "exclusiveMinimum": 0, "default": 60},
    "maxConcurrentEntities": {"type": "integer", "minimum": 1},
    "retryPolicy": {
        "type": "object",
        "required": ["backoffSeconds"],
        "properties": {
            "backoffSeconds": {"type": "array", "items": _SECONDS},
            "maxAttempts": {"type": "integer", "minimum": 1},
        },
    },
    "nodes": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/stateNode"}},
    "connections": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["sourceNodeId", "targetNodeId"],
            "properties": {"sourceNodeId": _ID, "targetNodeId": _ID},
        },
    },
}


def any_schema(handlers: Handlers) -> dict[str, Any]:
    """The schema of a document that is a pipeline or a workflow, by its mode."""
    workflow = document_schema(handlers)
    definitions = workflow.pop("$defs")
    return {
        "$schema": workflow.pop("$schema"),
        "title": workflow.pop("title"),
        "if": {"required": ["mode"], "properties": {"mode": {"const": "pipeline"}}},
        "then": {"type": "object", "required": ["mode", "nodes"], "additionalProperties": False, "properties": FIELDS},
        "else": workflow,
        "$defs": {**definitions, "stateNode": _node(handlers)},
    }


def _node(handlers: Handlers) -> dict[str, Any]:
    handler = {"anyOf": [{"enum": list(handlers)}, {"type": "string", "pattern": "^[^:]+:[^:]+$"}]}
    data = DATA | {"state_transform": DATA["state_transform"] | {"transform": handler}}
    return {
        "type": "object",
        "required": ["id", "typeId"],
        "additionalProperties": False,
        "properties": NODE_FIELDS,
        "allOf": [
            {
                "if": {"required": ["typeId"], "properties": {"typeId": {"const": kind}}},
                "then": {
                    "properties": {"data": {"type": "object", "additionalProperties": False, "properties": fields}}
                },
            }
            for kind, fields in data.items()
        ],
    }
