"""The JSON Schema of documents, for editors: all fields, and the config of every handler."""

from __future__ import annotations

from typing import Any, get_args

from ...base.schemas import KEYWORDS
from ...handlers import Handlers
from ..options import OnFailure
from .nodes import HANDLER_OPTIONS, MAX_ID, MEANS, OPTIONS

_SECONDS = {"type": "number", "exclusiveMinimum": 0}
_TEMPLATE = {"type": "string", "pattern": r"\{[{%]|^secret:", "description": "a template, or a secret"}


_TRIGGER: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$", "maxLength": 100},
        "cron": {"type": "string", "description": "minute, hour, day of month, month, day of week"},
        "timezone": {"type": "string", "default": "UTC"},
        "every": {"type": ["string", "number"], "description": "90s, 15m, 1h30m, 7d, or seconds"},
        "start": {"type": "string", "description": "from when `every` counts"},
        "webhook": {"type": "object", "required": ["secret"]},
        "run_finished": {"type": ["object", "string"]},
        "state": {"type": "object", "required": ["pipeline"]},
        "catch_up": {"enum": ["skip", "last", "all"], "default": "last"},
        "overlap": {"enum": ["allow", "skip", "queue"], "default": "allow"},
        "grace_seconds": {"type": "number", "minimum": 0, "default": 60},
        "input": {"type": ["object", "string"]},
        "priority": {"type": "integer"},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "description": {"type": "string"},
    },
}


def document_schema(handlers: Handlers) -> dict[str, Any]:
    """The schema of a document whose nodes name these handlers, or functions."""
    names = list(handlers)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Stepwell document",
        "type": "object",
        "required": ["nodes"],
        "additionalProperties": False,
        "properties": {
            "mode": {"enum": ["workflow"], "default": "workflow"},
            "name": {
                "type": "string",
                "pattern": "^[^@]+$",
                "description": "what it is started by; by default the name of the file",
            },
            "description": {"type": "string"},
            "input": {
                "$ref": "#/$defs/input",
                "description": "JSON Schema of the input of a run; defaults are applied",
            },
            "on_failure": {"enum": list(get_args(OnFailure)), "default": "fail_fast"},
            "deadline": {**_SECONDS, "description": "seconds that a whole run may take"},
            "tags": {
                "description": "a list for people; an object is what its runs are found by",
                "anyOf": [
                    {"type": "array", "items": {"type": "string"}},
                    {"type": "object", "additionalProperties": {"type": "string"}},
                ],
            },
            "triggers": {"type": "array", "items": _TRIGGER, "description": "what starts runs of it by itself"},
            "nodes": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/node"}},
        },
        "$defs": {"node": _node(names, handlers), "retry": _RETRY, "input": _INPUT},
    }


_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
    "propertyNames": {"enum": sorted(KEYWORDS)},
}
_RETRY: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "description": "attempts"},
        {
            "type": "object",
            "required": ["max_attempts"],
            "additionalProperties": False,
            "properties": {
                "max_attempts": {"type": "integer", "minimum": 1},
                "base_delay": {**_SECONDS, "default": 1},
                "max_delay": {"type": "number", "minimum": 0, "default": 60},
                "retry_on": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            },
        },
    ]
}


def _node(names: list[str], handlers: Handlers) -> dict[str, Any]:
    job = {"anyOf": [{"enum": names}, {"type": "string", "pattern": "^[^:]+:[^:]+$"}]}
    config = {"type": "object", "description": "what the handler is to do; strings may be templates"}
    dependencies = {
        "type": "array",
        "items": {"type": "string"},
        "description": "ids of nodes that must complete first",
    }
    properties = {
        "id": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "maxLength": MAX_ID},
        "handler": job,
        "config": config,
        "dependencies": dependencies,
        "name": {"type": "string", "minLength": 1},
        "description": {"type": "string"},
        **{
            field: {**option.schema, **({} if field in HANDLER_OPTIONS else {"default": option.default})}
            for field, option in OPTIONS.items()
        },
    }
    return {
        "type": "object",
        "required": ["id"],
        "additionalProperties": False,
        "properties": properties | {name: properties[field] for name, field in MEANS.items()},
        "allOf": [
            {
                "if": {"required": ["handler"], "properties": {"handler": {"const": name}}},
                "then": {"properties": {"config": _with_templates(handlers[name].config_schema())}},
            }
            for name in names
        ],
    }


def _with_templates(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a config in which any field may be a template instead. References are replaced by what they mean."""
    defined = schema.get("$defs", {})

    def inlined(each: Any, depth: int = 0) -> Any:
        if isinstance(each, list):
            return [inlined(item, depth) for item in each]
        if not isinstance(each, dict):
            return each
        if "$ref" in each and depth < 5:
            return inlined(defined.get(str(each["$ref"]).rpartition("/")[2], {}), depth + 1)
        if "$ref" in each:
            return {}
        return {key: inlined(value, depth) for key, value in each.items() if key != "$defs"}

    made: dict[str, Any] = inlined(schema)
    for name, field in made.get("properties", {}).items():
        about = {"description": field["description"]} if "description" in field else {}
        made["properties"][name] = {"anyOf": [field, _TEMPLATE]} | about
    return made
