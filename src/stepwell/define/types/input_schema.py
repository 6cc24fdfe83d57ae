"""The inputs of a class as a JSON Schema, to check them without its code.

It accepts all that the class accepts: what JSON Schema cannot express is left to the class.
"""

from __future__ import annotations

import collections.abc
from dataclasses import MISSING
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from ...base.codec import encode
from ...base.types.fields import fields_of, kind_of, unwrapped
from ...base.types.foreign import registered
from ...errors import NotJson

if TYPE_CHECKING:
    from ..classes.workflow import Workflow

_SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null", None: "null"}
_OBJECTS = ("dataclass", "TypedDict", "pydantic")
"""Kinds of classes whose fields say what they take; attrs classes may convert what they get."""
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


def _schema(annotation: Any, inside: tuple[Any, ...] = ()) -> dict[str, Any]:
    """`inside` are the classes around it: of one that holds itself, the inner one may be anything."""
    annotation = unwrapped(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is None or (isinstance(annotation, type) and annotation in _SCALARS):
        return {} if _is_lax(inside) else {"type": _SCALARS[annotation]}
    if annotation in inside or (isinstance(annotation, type) and annotation in registered):
        return {}
    if kind_of(annotation) in _OBJECTS:
        return _class(annotation, inside)
    if origin is Literal and all(_is_json(each) for each in arguments):
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(each, inside) for each in arguments]}
    if origin in (list, collections.abc.Sequence) and len(arguments) == 1:
        return {"type": "array", "items": _schema(arguments[0], inside)}
    if annotation in _LISTS or origin in _LISTS:
        return {"type": "array"}
    if annotation in (dict, collections.abc.Mapping) or origin in (dict, collections.abc.Mapping):
        rest = _schema(arguments[1], inside) if len(arguments) == 2 else {}
        return {"type": "object", **({"additionalProperties": rest} if rest else {})}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        values = [each.value for each in annotation]
        return {"enum": values} if all(_is_json(each) for each in values) else {}
    return {}


def _is_lax(inside: tuple[Any, ...]) -> bool:
    """Whether the class around it takes other scalars too: a pydantic model reads "7" as a number."""
    return bool(inside) and kind_of(inside[-1]) == "pydantic"


def _class(annotation: Any, inside: tuple[Any, ...]) -> dict[str, Any]:
    cls: Any = get_origin(annotation) or annotation
    renames = False
    if kind_of(annotation) == "pydantic":
        decorators = cls.__pydantic_decorators__
        validates = decorators.model_validators or decorators.field_validators or decorators.validators
        if validates or any(each.metadata for each in cls.model_fields.values()) or hasattr(cls, "root"):
            return {}  # what these take only they know
        renames = any(each.validation_alias is not None for each in cls.model_fields.values())
    fields = fields_of(annotation)
    made = {
        "type": "object",
        "properties": {each.name: _schema(each.annotation, (*inside, annotation)) for each in fields},
    }
    required = [] if renames else [each.name for each in fields if each.required]
    return made | ({"required": required} if required else {})
