"""How single values are read and written: numbers, texts, enums, Literals, types that people taught."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, get_args

from .foreign import registered
from .kinds import data_of, shown
from .leaves import LEAVES, needed, read_leaf
from .misfit import Wrong

if TYPE_CHECKING:
    from cattrs import Converter

Write = Callable[[Any], Any]
Read = Callable[[Any, Any], Any]


def read_scalar(data: Any, cls: Any) -> Any:
    """Also for classes derived from a scalar, such as an IntEnum, which cattrs finds by their base."""
    if issubclass(cls, Enum):
        return read_member(data, cls)
    if cls is float and type(data) is int:
        return float(data)
    if type(data) is cls or (cls is not bool and isinstance(data, cls) and not isinstance(data, bool)):
        return data
    raise needed(cls.__name__, data)


def read_as_leaf(data: Any, cls: Any) -> Any:
    return read_leaf(cls, data)


def write_text(made: Converter) -> Write:
    """Also for an Enum that is a str, and other classes derived from str."""

    def write(value: Any) -> Any:
        if type(value) is str:
            return value
        data = data_of(value)
        return str.__str__(data) if isinstance(data, str) else made.unstructure(data)

    return write


def read_number(_: Any, made: Converter) -> Read:
    return read_scalar


def write_number(_: Any, made: Converter) -> Write:
    """Always written as a float, so that it is the same JSON after it was read."""

    def write(value: Any) -> Any:
        if type(value) is int:
            return float(value)
        return value if isinstance(value, float) else made.unstructure(value)

    return write


def write_leaf(made: Converter) -> Write:
    def write(value: Any) -> Any:
        for cls in type(value).__mro__:
            if cls in LEAVES:
                return LEAVES[cls].write(value)
        return made.unstructure(value)

    return write


def read_none(_: Any, made: Converter) -> Read:
    def read(data: Any, _: Any) -> None:
        if data is not None:
            raise needed("None", data)

    return read


def read_anything(_: Any, made: Converter) -> Read:
    return lambda data, _: data


def write_anything(_: Any, made: Converter) -> Write:
    """Written by its own class. An `object()` is returned unchanged, to be refused."""
    return lambda value: value if type(value) is object or value is None else made.unstructure(value)


def read_member(data: Any, cls: Any) -> Any:
    data = data_of(data)  # a text or number that is an Enum is written as it is
    for member in cls:
        if member.value == data and type(member.value) is type(data):
            return member
    if type(data) is int:  # a Flag is made of several
        try:
            return cls(data)
        except ValueError:
            pass
    raise needed(f"{cls.__qualname__} ({', '.join(repr(member.value) for member in cls)})", data)


def read_enum(cls: Any, made: Converter) -> Read:
    return lambda data, _: read_member(data, cls)


def write_enum(_: Any, made: Converter) -> Write:
    return lambda value: made.unstructure(data_of(value))


def read_literal(annotation: Any, made: Converter) -> Read:
    choices = {(type(data), data): each for each in get_args(annotation) for data in [data_of(each)]}
    words = "one of " + ", ".join(repr(data) for _, data in choices)

    def read(data: Any, _: Any) -> Any:
        data = data_of(data)
        try:
            return choices[type(data), data]
        except (KeyError, TypeError):
            raise needed(words, data) from None

    return read


def read_foreign(annotation: Any, made: Converter) -> Read:
    decode = registered[annotation].decode

    def read(data: Any, _: Any) -> Any:
        try:
            return decode(data)
        except Exception as error:
            raise Wrong(f"{shown(annotation)} refuses it: {type(error).__name__}: {error}") from error

    return read


def write_foreign(annotation: Any, made: Converter) -> Write:
    encode = registered[annotation].encode
    return lambda value: made.unstructure(encode(value) if isinstance(value, annotation) else value)


def late_reader(annotation: Any, made: Converter) -> Callable[[Any], Any]:
    """Looked up when it is used: a class may contain itself."""
    return lambda data: made.structure(data, annotation)


def late_writer(annotation: Any, made: Converter) -> Write:
    return lambda value: made.unstructure(value, annotation)
