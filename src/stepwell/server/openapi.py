"""The OpenAPI document. Answers are the records of `answers`, whose attribute docstrings describe their fields."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter

from .. import answers
from ..answers.problem import ProblemRecord

_REFERENCE = "#/components/schemas/{model}"


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: made once."""
    if app.openapi_schema is None:
        document = app.openapi()
        components = document.setdefault("components", {})
        schemas: dict[str, Any] = components.setdefault("schemas", {})
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        problem = TypeAdapter(ProblemRecord).json_schema(ref_template=_REFERENCE)
        schemas |= {**problem.pop("$defs"), "ProblemRecord": problem}
        components["schemas"] = dict(sorted(schemas.items()))
        _describe(schemas)
        _drop_titles(document)
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": "stepwell_session"},
        }
        document["security"] = [{"token": []}, {"session": []}]
        app.openapi_schema = document
    return app.openapi_schema


def _describe(schemas: dict[str, Any]) -> None:
    """Give each field of a record its docstring. pydantic reads only those of the class itself, not of its bases."""
    fields: dict[str, dict[str, str]] = {}
    for module in pkgutil.iter_modules(answers.__path__, f"{answers.__name__}."):
        for record in ast.parse(inspect.getsource(import_module(module.name))).body:
            if isinstance(record, ast.ClassDef):
                inherited = [fields.get(base.id, {}) for base in record.bases if isinstance(base, ast.Name)]
                fields[record.name] = {name: text for own in inherited for name, text in own.items()}
                fields[record.name] |= dict(_docstrings(record))
    for name, schema in schemas.items():  # a page of runs is `PageOf_RunRecord_`
        for field, words in fields.get(name.partition("_")[0], {}).items():
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
