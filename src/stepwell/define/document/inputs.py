"""The input of a document: its JSON Schema, the check of values, defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.codec import decode
from ...base.schemas import problems_of, with_defaults
from ...base.types.codecs import encoded_by_type
from ...errors import InputError


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema, which refuses fields that it does not name unless it allows them: a typo would be ignored."""
    made = {"type": "object", **schema}
    if "properties" in made and not {"additionalProperties", "$ref", "anyOf", "oneOf", "allOf"} & made.keys():
        made["additionalProperties"] = False
    return made


def checked_input(workflow: str, schema: Mapping[str, Any] | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """The input of a run with defaults; InputError lists everything that does not fit. Without a schema everything does."""
    if not isinstance(values, Mapping):
        raise InputError(f"the input of {workflow}: expected an object, got {values!r}")
    given: dict[str, Any] = decode(encoded_by_type(dict(values)))
    if schema is None:
        return given
    filled: dict[str, Any] = with_defaults(schema, given)
    misfits = problems_of(closed(schema), filled)
    if misfits:
        lines = "\n".join(f"  - {misfit.below('$.input')}" for misfit in misfits)
        raise InputError(f"the input of {workflow} does not fit:\n{lines}")
    return filled
