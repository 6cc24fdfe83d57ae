"""The inputs of a class as a JSON Schema, to check them without its code.

It accepts all that the class accepts: what JSON Schema cannot express is left to the class.
"""

from __future__ import annotations

import collections.abc
from dataclasses import MISSING
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from ...codec import encode
from ...errors import NotJson
from ...types.fields import unwrapped

if TYPE_CHECKING:
    from ..classes.workflow import Workflow

_SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null", None: "null"}
_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence)


def input_schema(cls: type[Workflow]) -> dict[str, Any]:
    """
    >>> from stepwell import Workflow, step
    >>> class Order(Workflow):
    ...     order_id: int
    ...     express: bool = False
    ...     @step
    ...     def ship(self): ...
    >>> input_schema(Order)["required"]
    ['order_id']
    """
    hints = get_type_hints(cls)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, each in cls._compiled.inputs.items():
        properties[name] = _schema(hints.get(name, Any))
        if each.default is MISSING:
            required.append(name)
        elif _is_json(each.default):
            properties[name] = {**properties[name], "default": each.default}
    made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | ({"required": required} if required else {})


def _is_json(value: Any) -> bool:
    try:
        encode(value)
    except NotJson:
        return False
    return True


def _schema(annotation: Any) -> dict[str, Any]:
    annotation = unwrapped(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is None or (isinstance(annotation, type) and annotation in _SCALARS):
        return {"type": _SCALARS[annotation]}
    if origin is Literal and all(_is_json(each) for each in arguments):
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(each) for each in arguments]}
    if origin in (list, collections.abc.Sequence) and len(arguments) == 1:
        return {"type": "array", "items": _schema(arguments[0])}
    if annotation in _LISTS or origin in _LISTS:
        return {"type": "array"}
    if annotation in (dict, collections.abc.Mapping) or origin in (dict, collections.abc.Mapping):
        rest = _schema(arguments[1]) if len(arguments) == 2 else {}
        return {"type": "object", **({"additionalProperties": rest} if rest else {})}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        values = [each.value for each in annotation]
        return {"enum": values} if all(_is_json(each) for each in values) else {}
    return {}
