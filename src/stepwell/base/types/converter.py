"""The converter: cattrs, configured to be strict, to write sets in order, and to distinguish the members of unions.

cattrs makes a function for each class and container once. Reading is strict: only what the annotation says fits. Writing
accepts anything that can be written; whether it fits is checked by reading it back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_origin

from . import classes, containers, scalars
from .containers import is_union
from .fields import kind_of
from .foreign import registered, when_registered
from .kinds import DICTS, LISTS, SETS
from .leaves import LEAVES
from .scalars import Read, Write

if TYPE_CHECKING:
    from cattrs import Converter

_DERIVED = (int, float, str, *LEAVES)
_making = threading.RLock()
"""Functions are made by one thread at a time: classes that refer to each other are half made in between."""


@cache
def converter() -> Converter:
    from cattrs import Converter

    made = Converter(detailed_validation=True)
    plain: tuple[type, ...] = (int, float, str, bool)
    for cls in plain:
        made.register_structure_hook(cls, scalars.read_scalar)
    made.register_unstructure_hook(str, scalars.write_text(made))
    for cls in LEAVES:
        made.register_structure_hook(cls, scalars.read_as_leaf)
        made.register_unstructure_hook(cls, scalars.write_leaf(made))
    for cls in registered:
        if issubclass(cls, _DERIVED):  # or cattrs would ask its base
            made.register_structure_hook(cls, scalars.read_foreign(cls, made))
            made.register_unstructure_hook(cls, scalars.write_foreign(cls, made))
    for is_this, reading, writing in _TABLE:
        made.register_structure_hook_factory(is_this, reading)
        made.register_unstructure_hook_factory(is_this, writing)
    return made


def forget() -> None:
    """Drop the cached functions: a newly registered type may be part of them."""
    with _making:
        converter.cache_clear()
        reader.cache_clear()
        writer.cache_clear()


when_registered(forget)


@cache
def reader(annotation: Any) -> Callable[[Any], Any]:
    """Reads JSON as what an annotation asks for. Raises what cattrs raises, or Wrong."""
    with _making:
        read = converter().get_structure_hook(annotation)
    return lambda data: read(data, annotation)


@cache
def writer(annotation: Any) -> Write:
    """Writes a value as JSON. Parts that do not fit the annotation are written by their own type."""
    with _making:
        return converter().get_unstructure_hook(annotation)


def _origin_in(*kinds: Any) -> Callable[[Any], bool]:
    return lambda annotation: (get_origin(annotation) or annotation) in kinds


def _is_class(fits: Callable[[type], bool]) -> Callable[[Any], bool]:
    return lambda annotation: isinstance(annotation, type) and fits(annotation)


def _is_kind(*kinds: str) -> Callable[[Any], bool]:
    return lambda annotation: kind_of(annotation) in kinds


_TABLE: list[tuple[Callable[[Any], bool], Callable[[Any, Converter], Read], Callable[[Any, Converter], Write]]] = [
    (_origin_in(None, type(None)), scalars.read_none, scalars.write_anything),
    (_origin_in(Any, object), scalars.read_anything, scalars.write_anything),
    (_origin_in(float), scalars.read_number, scalars.write_number),
    (lambda annotation: isinstance(annotation, TypeVar), scalars.read_anything, scalars.write_anything),
    (_origin_in(Literal), scalars.read_literal, scalars.write_enum),
    (_is_class(lambda cls: issubclass(cls, Enum)), scalars.read_enum, scalars.write_enum),
    (_origin_in(*LISTS), containers.read_list, containers.write_list),
    (_origin_in(*SETS), containers.read_set, containers.write_set),
    (_origin_in(tuple), containers.read_tuple, containers.write_tuple),
    (_origin_in(*DICTS), containers.read_dict, containers.write_dict),
    (is_union, containers.read_union, containers.write_union),
    (_is_kind("dataclass", "attrs"), classes.read_class, classes.write_class),
    (_is_kind("TypedDict"), classes.read_typed_dict, classes.write_typed_dict),
    (_is_kind("NamedTuple"), classes.read_named_tuple, classes.write_named_tuple),
    (_is_kind("pydantic"), classes.read_model, classes.write_model),
    (_is_class(registered.__contains__), scalars.read_foreign, scalars.write_foreign),
]
"""By annotation, how it is read and written. Where several fit, the last counts."""
