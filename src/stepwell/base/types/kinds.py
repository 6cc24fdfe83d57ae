"""What an annotation asks for: which JSON it is, and whether it can be stored. Examined once, when a workflow is defined.

Nothing is converted here, so cattrs need not be loaded.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Mapping
from enum import Enum, Flag
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from .fields import Field, fields_of, kind_of, unwrapped
from .foreign import registered
from .leaves import LEAVES
from .misfit import Unsupported

Form = Literal["null", "bool", "int", "float", "text", "list", "object"]
EVERY_FORM: frozenset[Form] = frozenset({"null", "bool", "int", "float", "text", "list", "object"})

LISTS = (list, *(getattr(collections.abc, name) for name in ("Sequence", "MutableSequence", "Collection", "Iterable")))
SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
FORMS: Mapping[type, Form] = {
    NoneType: "null",
    bool: "bool",
    int: "int",
    float: "float",
    str: "text",
    list: "list",
    tuple: "list",
    dict: "object",
}


class Object(NamedTuple):
    """A class that is a JSON object: what distinguishes it from others."""

    name: str
    fields: frozenset[str]
    required: frozenset[str]
    """Fields that are in every JSON object of it."""
    tags: Mapping[str, frozenset[Any]]
    """Fields that can have a few values only, and which."""

    def differs_from(self, other: Object) -> bool:
        tags = self.tags.keys() & other.tags.keys()
        if any(not self.tags[name] & other.tags[name] for name in tags):
            return True
        return bool(self.required - other.fields or other.required - self.fields)


class Kind(NamedTuple):
    """What an annotation asks for."""

    text: str
    """For people."""
    forms: frozenset[Form]
    """The JSON that it can be."""
    plain: bool = False
    """The JSON itself is the value: there is nothing to convert."""
    values: frozenset[Any] | None = None
    """The only texts and numbers that it can be; None: any."""
    object: Object | None = None

    def __or__(self, other: Kind) -> Kind:
        values = None if self.values is None or other.values is None else self.values | other.values
        return Kind(f"{self.text} or {other.text}", self.forms | other.forms, self.plain and other.plain, values)


_SCALARS: dict[Any, Kind] = {
    int: Kind("int", frozenset({"int"}), plain=True),
    float: Kind("float", frozenset({"float", "int"}), plain=True),
    str: Kind("str", frozenset({"text"}), plain=True),
    bool: Kind("bool", frozenset({"bool"}), plain=True),
    NoneType: Kind("None", frozenset({"null"}), plain=True),
    None: Kind("None", frozenset({"null"}), plain=True),
    Any: Kind("anything", EVERY_FORM, plain=True),
    object: Kind("anything", EVERY_FORM, plain=True),
}


def examine(annotation: Any, open_classes: Mapping[Any, Kind] | None = None) -> Kind:
    """The kind of an annotation; Unsupported if it cannot be stored. `open_classes` are being examined already."""
    seen = {} if open_classes is None else open_classes
    annotation = unwrapped(annotation)
    if isinstance(annotation, type) and annotation in registered:
        return Kind(annotation.__qualname__, EVERY_FORM - {"null"})
    if annotation is None or annotation is Any or (isinstance(annotation, type) and annotation in _SCALARS):
        return _SCALARS[annotation]
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Union or origin is UnionType:
        return _union(annotation, [examine(each, seen) for each in arguments])
    if origin is Literal:
        return _literal(annotation, arguments)
    if kind_of(annotation) is not None:
        return _class(annotation, seen)
    if origin in LISTS:
        item = examine(arguments[0] if arguments else Any, seen)
        return Kind(f"list[{item.text}]" if arguments else "list", frozenset({"list"}), item.plain)
    if origin in SETS:
        item = examine(arguments[0] if arguments else Any, seen)
        return Kind(f"{_name(origin)}[{item.text}]" if arguments else _name(origin), frozenset({"list"}))
    if origin is tuple:
        items = [examine(each, seen).text for each in arguments if each is not Ellipsis]
        more = [*items, "..."] if Ellipsis in arguments else items
        return Kind(f"tuple[{', '.join(more)}]" if arguments else "tuple", frozenset({"list"}))
    if origin in DICTS:
        return _dict(annotation, arguments, seen)
    if isinstance(origin, type) and issubclass(origin, Enum):
        return _enum(origin)
    if isinstance(origin, type) and origin in LEAVES:
        return Kind(LEAVES[origin].name, frozenset({"text"}))
    raise Unsupported(f"{shown(annotation)}: {ADVICE.format(name=_name(origin))}")


ADVICE = (
    "it is kept as JSON, and nothing says how. There are int, float, str, bool, None, datetime, date, time, timedelta, "
    "Decimal, UUID, Path, bytes, enums, list, tuple, set, dict, dataclasses, attrs classes, pydantic models, TypedDict, "
    "NamedTuple, unions of these, Literal and Any; any other is taught with stepwell.types.register({name}, encode, decode)"
)


def _class(annotation: Any, seen: Mapping[Any, Kind]) -> Kind:
    if annotation in seen:
        return seen[annotation]
    fields = fields_of(annotation)
    form: Form = "list" if kind_of(annotation) == "NamedTuple" else "object"
    is_root_model = getattr(get_origin(annotation) or annotation, "__pydantic_root_model__", False)
    forms = EVERY_FORM if is_root_model else frozenset({form})  # a root model is written as its root
    kind = Kind(shown(annotation), forms, object=_object(annotation, fields) if form == "object" else None)
    if kind_of(annotation) != "pydantic":  # which looks after its own fields
        inside = {**seen, annotation: kind}
        for field in fields:
            try:
                examine(field.annotation, inside)
            except Unsupported as error:
                message = str(error)
                raise Unsupported(f"{shown(annotation)}: its field {field.name!r} cannot be {message}") from None
    return kind


def _object(annotation: Any, fields: list[Field]) -> Object:
    # A stored dataclass has all its fields; a TypedDict, or a model that leaves some out, has the required ones.
    all_there = kind_of(annotation) in ("dataclass", "attrs")
    tags = {
        field.name: frozenset(map(data_of, get_args(unwrapped(field.annotation))))
        for field in fields
        if get_origin(unwrapped(field.annotation)) is Literal and (field.required or all_there)
    }
    required = frozenset(field.name for field in fields if field.required)
    return Object(shown(annotation), frozenset(field.name for field in fields), required, tags)


def data_of(value: Any) -> Any:
    """The value of a member of an Enum, which is what is stored."""
    return value.value if isinstance(value, Enum) else value


def _literal(annotation: Any, choices: tuple[Any, ...]) -> Kind:
    values = frozenset(map(data_of, choices))
    if any(type(each) not in (str, int, bool, NoneType) for each in values):
        raise Unsupported(f"{shown(annotation)}: a Literal of JSON has strings, ints, bools and None")
    plain = not any(isinstance(each, Enum) for each in choices)
    text = "one of " + ", ".join(map(repr, choices))
    return Kind(text, frozenset(FORMS[type(each)] for each in values), plain, values)


def _enum(cls: type[Enum]) -> Kind:
    if issubclass(cls, Flag):
        return Kind(cls.__qualname__, frozenset({"int"}))
    values = [member.value for member in cls]
    wrong = next((value for value in values if not isinstance(value, str | int | float | NoneType)), None)
    if wrong is not None:
        reason = "its members are kept by their values"
        raise Unsupported(f"{cls.__qualname__}: {reason}, and {wrong!r} is no JSON: use texts or numbers")
    kinds = {base for value in values for base in (bool, int, float, str, NoneType) if isinstance(value, base)}
    if bool in kinds and not any(type(value) is int for value in values):
        kinds -= {int}
    return Kind(cls.__qualname__, frozenset(FORMS[kind] for kind in kinds), values=frozenset(values))


def _dict(annotation: Any, arguments: tuple[Any, ...], seen: Mapping[Any, Kind]) -> Kind:
    key = examine(arguments[0], seen) if arguments else _SCALARS[str]
    item = examine(arguments[1] if arguments else Any, seen)
    can_be_text = key.forms <= {"text", "int", "float", "bool"} and (len(key.forms - {"int"}) <= 1)
    if not can_be_text or (" or " in key.text and key.values is None):
        raise Unsupported(
            f"{shown(annotation)}: the keys of a JSON object are texts, so a key can be str, int, float, bool, an enum, "
            f"a date, a datetime, a time, a timedelta, a Decimal, a UUID, a Path or bytes, and one of these only"
        )
    text = f"dict[{key.text}, {item.text}]" if arguments else "dict"
    return Kind(text, frozenset({"object"}), key == _SCALARS[str] and item.plain)


def _union(annotation: Any, kinds: list[Kind]) -> Kind:
    for place, one in enumerate(kinds):
        for other in kinds[place + 1 :]:
            reason = _indistinct(one, other)
            if reason is not None:
                raise Unsupported(f"{shown(annotation)}: {reason}")
    joined = kinds[0]
    for kind in kinds[1:]:
        joined |= kind
    return joined


def _indistinct(one: Kind, other: Kind) -> str | None:
    """Why JSON does not tell two types apart; None if it does, or if there is nothing to tell because both are plain."""
    shared = one.forms & other.forms
    if not shared or (one.plain and other.plain):
        return None
    if one.values is not None and other.values is not None and not one.values & other.values:
        return None
    if one.object is not None and other.object is not None and shared == {"object"}:
        if one.object.differs_from(other.object):
            return None
        return (
            f"{one.text} and {other.text} have the same required fields, and what is stored has no tags: give one of them a "
            f"required field that the other has not, or each a field with a Literal of its own"
        )
    words = {"text": "text", "list": "a list", "object": "an object", "int": "a number", "float": "a number"}
    form = next((words[each] for each in ("text", "list", "object", "int", "float") if each in shared), "the same")
    return (
        f"{one.text} and {other.text} are both {form} in JSON, which has no tags to tell them apart: use one of them, or put "
        f"each into a class with a field of its own"
    )


def shown(annotation: Any) -> str:
    """An annotation as people write it."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__qualname__
    origin = get_origin(annotation)
    if isinstance(origin, type) and origin.__module__ not in ("builtins", "typing", "types", "collections.abc"):
        return f"{origin.__qualname__}[{', '.join(map(shown, get_args(annotation)))}]"
    if origin is Union or origin is UnionType:
        return " | ".join("None" if each is NoneType else shown(each) for each in get_args(annotation))
    return str(annotation)


def _name(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", None) or thing)
