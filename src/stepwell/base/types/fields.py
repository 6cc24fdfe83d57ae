"""The fields of classes that are JSON objects (or, of NamedTuples, lists): dataclasses, attrs, TypedDicts, pydantic models."""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, Required, TypeVar, get_args, get_origin

from .misfit import Unsupported

Kind = Literal["dataclass", "attrs", "TypedDict", "NamedTuple", "pydantic"]


class Field(NamedTuple):
    name: str
    """Its name in JSON."""
    annotation: Any
    required: bool


def kind_of(annotation: Any) -> Kind | None:
    """Which kind of class an annotation names, perhaps with arguments; None if it is no class with fields."""
    cls = get_origin(annotation) or annotation
    if not isinstance(cls, type):
        return None
    model = getattr(sys.modules.get("pydantic"), "BaseModel", None)  # a model exists only if pydantic is imported
    if model is not None and issubclass(cls, model):
        return "pydantic"
    if dataclasses.is_dataclass(cls):
        return "dataclass"
    if "__attrs_attrs__" in dir(cls):
        return "attrs"
    if typing.is_typeddict(cls):
        return "TypedDict"
    return "NamedTuple" if issubclass(cls, tuple) and hasattr(cls, "_fields") else None


def fields_of(annotation: Any) -> list[Field]:
    """The fields of a class that `kind_of` knows."""
    cls: Any = get_origin(annotation) or annotation
    match kind_of(annotation):
        case "pydantic":
            return [
                Field(info.alias or name, info.annotation, info.is_required())
                for name, info in cls.model_fields.items()
            ]
        case "dataclass":
            hints = _hints(annotation)
            if any(isinstance(hint, dataclasses.InitVar) for hint in hints.values()):
                raise Unsupported(f"{cls.__qualname__}: an InitVar is not kept by the dataclass and cannot be stored")
            return [
                Field(each.name, hints[each.name], each.default is each.default_factory is dataclasses.MISSING)
                for each in dataclasses.fields(cls)
                if each.init
            ]
        case "attrs":
            hints = _hints(annotation)
            nothing = sys.modules["attr"].NOTHING
            return [
                Field(each.name, hints.get(each.name, Any if each.type is None else each.type), each.default is nothing)
                for each in cls.__attrs_attrs__
                if each.init
            ]
        case "NamedTuple":
            hints = _hints(annotation)
            return [Field(name, hints.get(name, Any), name not in cls._field_defaults) for name in cls._fields]
        case _:
            required = cls.__required_keys__
            return [_typed_dict_field(name, hint, name in required) for name, hint in _hints(annotation).items()]


def _typed_dict_field(name: str, hint: Any, required: bool) -> Field:
    """`__required_keys__` is wrong for annotations that are strings, before Python 3.14."""
    while get_origin(hint) in (Required, NotRequired):
        required = get_origin(hint) is Required
        (hint,) = get_args(hint)
    return Field(name, hint, required)


def _hints(annotation: Any) -> dict[str, Any]:
    """The annotations of a class, those of its type parameters filled in."""
    cls = get_origin(annotation) or annotation
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        raise Unsupported(
            f"{cls.__qualname__}: an annotation of it cannot be read ({type(error).__name__}: {error}); what fields are "
            f"annotated with is read at run time too, so import it at the top of the module"
        ) from None
    variables = _variables(annotation)
    return {name: filled_in(hint, variables) for name, hint in hints.items()}


def _variables(annotation: Any) -> dict[Any, Any]:
    """The value of each type variable of the class and its bases."""
    cls = get_origin(annotation) or annotation
    arguments: dict[Any, Any] = dict(zip(getattr(cls, "__parameters__", ()), get_args(annotation), strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        if get_origin(base) not in (None, typing.Generic):
            own = filled_in(base, arguments)
            arguments = {**_variables(own), **arguments}
    return arguments


def filled_in(annotation: Any, variables: Mapping[Any, Any]) -> Any:
    """An annotation with its type variables replaced."""
    if isinstance(annotation, TypeVar):
        return variables.get(annotation, annotation)
    own = getattr(annotation, "__parameters__", ())
    if isinstance(annotation, type) or not any(each in variables for each in own):
        return annotation
    return annotation[tuple(variables.get(each, each) for each in own)]


def unwrapped(annotation: Any) -> Any:
    """An annotation without what says nothing about the type: Annotated, Final, NewType, names of types."""
    while True:
        if get_origin(annotation) in (Annotated, Final, typing.ClassVar, Required, NotRequired):
            annotation = get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif hasattr(get_origin(annotation), "__type_params__") and hasattr(get_origin(annotation), "__value__"):
            name: Any = get_origin(annotation)  # `type Pair[T] = ...`, from Python 3.12 on
            annotation = filled_in(name.__value__, dict(zip(name.__type_params__, get_args(annotation), strict=False)))
        elif hasattr(annotation, "__value__") and not isinstance(annotation, type):  # `type Name = ...`
            annotation = annotation.__value__
        elif isinstance(annotation, TypeVar):
            annotation = annotation.__bound__ or Any
        else:
            return annotation
