"""The JSON Schema of a form, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema


class _Plain(GenerateJsonSchema):
    """Without titles, and without defaults that only say that a field may be left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def schema_of(form: type[BaseModel], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a form under all names of its fields. What it refers to is added to the `definitions`."""
    schema = form.model_json_schema(schema_generator=_Plain)
    definitions.update(schema.pop("$defs", {}))
    fields, required = schema["properties"], schema.get("required", [])
    for other, name in getattr(form, "other_names", {}).items():
        fields[other] = fields[name]
        if name in required:
            required.remove(name)
    return schema
