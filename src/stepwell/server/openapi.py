"""The OpenAPI document. Answers are the records of `answers`, whose attribute docstrings describe their fields."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter

from .. import answers
from ..answers.problem import ProblemRecord
from ..answers.reports import ReplayOutcome
from ..history.audit_log import MAX_REASON, REASON
from ..triggers.kinds import AnyTrigger
from .routes import SCOPE

_REFERENCE = "#/components/schemas/{model}"
_PARAMETERS = {
    "runs": "The id of a run.",
    "diff": "The id of another run.",
    "checkpoints": "A `seq`, a label, or the key of a checkpoint.",
    "scans": "The id of a scan.",
    "workflows": "The name of a document, or of a class that workers have.",
    "triggers": "The name of a trigger.",
    "hooks": "The name of a trigger with `webhook`.",
    "pipelines": "The name of a pipeline that this server was started with.",
    "bulk": "What to request.",
    "node": "Only of this node, by id or name.",
    "attempt": "Only of the attempts with this number.",
    "status": "Only with one of these.",
    "kind": "Only of one of these kinds.",
    "version": "Of a document: which version; by default the active one.",
    "format": "As JSON, or drawn.",
    "entity": "Only of this entity.",
    "stage": "Only of this stage.",
    "state": "The path of a state.",
    "name": "Only of the pipelines with these names.",
}
"""What parameters are whose routes do not say it: those of paths by the part before, those of queries by name."""


_REASON = {
    "name": REASON,
    "in": "header",
    "required": False,
    "description": "Why; it is kept in the audit log. UTF-8, as percent-encoding writes it or plain.",
    "schema": {"type": "string", "maxLength": MAX_REASON},
}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: made once."""
    if app.openapi_schema is None:
        document = app.openapi()
        components = document.setdefault("components", {})
        schemas: dict[str, Any] = components.setdefault("schemas", {})
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        # No route answers with these alone: all may answer with the first; the second is the result of the run of a replay.
        for record in (ProblemRecord, ReplayOutcome):
            schema = TypeAdapter(record).json_schema(ref_template=_REFERENCE)
            schemas |= {**schema.pop("$defs"), record.__name__: schema}
        schemas |= _of_triggers()
        components["schemas"] = dict(sorted(schemas.items()))
        _describe(schemas)
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if method != "get" and SCOPE in operation:
                    operation.setdefault("parameters", []).append(dict(_REASON))
                _clean_operation(path, operation)
        _drop_titles(document)
        document = _with_plain_names(document)
        components = document["components"]
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": "stepwell_session"},
        }
        document["security"] = [{"token": []}, {"session": []}]
        app.openapi_schema = document
    return app.openapi_schema


def _of_triggers() -> dict[str, Any]:
    """What a trigger is written as: one schema for each kind."""
    schemas = TypeAdapter(AnyTrigger).json_schema(ref_template=_REFERENCE)["$defs"]
    assert isinstance(schemas, dict)
    return schemas


def _clean_operation(path: str, operation: dict[str, Any]) -> None:
    """Say what generators of clients read: a parameter or a body is left out instead of null, and text is text."""
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
        name = parameter["name"]
        if parameter["in"] == "path":
            name = path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
        parameter.setdefault("description", _PARAMETERS.get(name, ""))
    contents = [response.get("content", {}) for response in operation["responses"].values()]
    if "requestBody" in operation:
        body = operation["requestBody"]
        contents.append(body["content"])
        body["required"] = body.get("required", False)
    for media_type, content in (each for every in contents for each in every.items()):
        schema = _without_null(content.get("schema", {}))
        if not media_type.endswith("json"):
            schema = {name: value for name, value in schema.items() if name != "type"} if "oneOf" in schema else schema
            content["schema"] = schema or {"type": "string"}
        elif schema:
            content["schema"] = schema


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**choices[0], **rest} if len(choices) == 1 else {**rest, "anyOf": choices} if choices else schema


def _with_plain_names(value: Any) -> Any:
    """`PageOf_RunRecord_`, as pydantic calls it, is `PageOfRunRecord`."""
    match value:
        case dict():
            return {_plain(name): _with_plain_names(each) for name, each in value.items()}
        case list():
            return list(map(_with_plain_names, value))
        case str():
            return _plain(value)
        case _:
            return value


def _plain(text: str) -> str:
    return re.sub(r"\bPageOf_(\w+)_\b", r"PageOf\1", text)


def _describe(schemas: dict[str, Any]) -> None:
    """Give each field of a record its docstring. pydantic reads only those of the class itself, not of its bases.

    What a trigger waits for is answered as it is written: `RunFinished` has the fields of `RunFinishedRecord`.
    """
    fields: dict[str, dict[str, str]] = {}
    for module in pkgutil.iter_modules(answers.__path__, f"{answers.__name__}."):
        for record in ast.parse(inspect.getsource(import_module(module.name))).body:
            if isinstance(record, ast.ClassDef):
                inherited = [fields.get(base.id, {}) for base in record.bases if isinstance(base, ast.Name)]
                fields[record.name] = {name: text for own in inherited for name, text in own.items()}
                fields[record.name] |= dict(_docstrings(record))
    for name, schema in schemas.items():  # a page of runs is `PageOf_RunRecord_`
        plain = name.partition("_")[0]
        for field, words in fields.get(plain, fields.get(f"{plain}Record", {})).items():
            schema["properties"][field]["description"] = words


def _docstrings(record: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(record.body, record.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, inspect.cleandoc(words)
            case _:
                pass


def _drop_titles(node: Any) -> None:
    """A title repeats the name of a field, a parameter or a schema."""
    if isinstance(node, list):
        for item in node:
            _drop_titles(item)
    elif isinstance(node, dict):
        for name, value in list(node.items()):
            if name == "title" and isinstance(value, str) and not node.keys() & {"version", "openapi"}:
                del node[name]
            elif name not in ("example", "examples", "enum", "const", "default"):
                _drop_titles(value)
