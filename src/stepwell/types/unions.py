"""Unions: which member a JSON value is, and as which member a value is written."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin
from typing import Union as TypingUnion

from .fields import unwrapped
from .kinds import DICTS, FORMS, LISTS, SETS, Kind, examine
from .leaves import needed


def is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (TypingUnion, UnionType)


class Union(NamedTuple):
    """A union whose members JSON tells apart, or of which there is nothing to tell."""

    members: tuple[Any, ...]
    kinds: tuple[Kind, ...]
    text: str

    def members_of(self, data: Any) -> list[Any]:
        """The member that JSON is one of; Wrong if it is none. Of several that are plain JSON, all that it may be."""
        form = next((form for kind, form in FORMS.items() if isinstance(data, kind)), None)
        fitting = [
            (member, kind)
            for member, kind in zip(self.members, self.kinds, strict=True)
            if form in kind.forms and (kind.values is None or _is_among(data, kind.values))
        ]
        if form == "object" and len(fitting) > 1:
            fitting = [each for each in fitting if _can_be(data, each[1], [kind for _, kind in fitting])]
        if form == "int" and len(fitting) > 1:  # also a float is written so
            fitting.sort(key=lambda each: "float" in each[1].forms)
        if not fitting:
            raise needed(self.text, data)
        return [member for member, _ in fitting]

    def member_written(self, value: Any) -> Any:
        """The member that a value is an instance of; None if it is of none."""
        for member in self.members:
            if isinstance(value, Enum) and _is_among(value, frozenset(get_args(unwrapped(member)))):
                return member  # of a Literal
            if isinstance(value, _class_of(member)) and not (isinstance(value, bool) and member is not bool):
                return member
        if type(value) is int:  # an int is a float if the union has no int
            return next((member for member in self.members if unwrapped(member) is float), None)
        return None


def _is_among(data: Any, values: frozenset[Any]) -> bool:
    return any(type(data) is type(each) and data == each for each in values)


def _can_be(data: Mapping[str, Any], kind: Kind, others: list[Kind]) -> bool:
    """Whether an object has all that this class requires, and nothing that only another one would have."""
    if kind.object is None:
        return False
    own = kind.object
    if any(name in data and not _is_among(data[name], values) for name, values in own.tags.items()):
        return False
    if not all(name in data for name in own.required):
        return False
    foreign = (other.object.required - own.fields for other in others if other.object is not None)
    return not any(name in data for names in foreign for name in names)


@cache
def _class_of(member: Any) -> Any:
    """What values of a member are instances of."""
    plain = unwrapped(member)
    origin = get_origin(plain) or plain
    if origin is None:
        return NoneType
    if origin in LISTS:
        return (list, tuple)
    if origin in SETS:
        return (set, frozenset)
    if origin in DICTS:
        return dict
    return origin if isinstance(origin, type) and not hasattr(origin, "__required_keys__") else ()


def union_of(annotation: Any) -> Union:
    members = get_args(annotation)
    return Union(members, tuple(map(examine, members)), examine(annotation).text)
