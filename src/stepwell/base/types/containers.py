"""How lists, sets, tuples, dicts and unions are read and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin
from typing import Union as TypingUnion

from ..codec import text
from .fields import unwrapped
from .kinds import DICTS, FORMS, LISTS, SETS, Kind, examine
from .leaves import key_data, key_text, needed
from .misfit import Wrong
from .scalars import Read, Write, late_reader, late_writer

if TYPE_CHECKING:
    from cattrs import Converter


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
        if not fitting:
            raise needed(self.text, data)
        return [member for member, _ in fitting]

    def member_written(self, value: Any) -> Any:
        """The member that a value is an instance of; None if it is of none."""
        for member in self.members:
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
    if origin is Any:  # no class to be an instance of: a value is written by its own
        return ()
    if origin in LISTS:
        return (list, tuple)
    if origin in SETS:
        return (set, frozenset)
    if origin in DICTS:
        return dict
    return origin if isinstance(origin, type) and not hasattr(origin, "__required_keys__") else ()


def union_of(annotation: Any) -> Union:
    """Python holds `int | float` for equal to `float | int`, so the order of writing must not count. A float may be written as
    an int is: it comes last.
    """
    kinds = [(member, examine(member)) for member in get_args(annotation)]
    kinds.sort(key=lambda each: ("float" in each[1].text, each[1].text))
    members, own = zip(*kinds, strict=True)
    return Union(members, own, examine(annotation).text)


def _item(annotation: Any) -> Any:
    arguments = get_args(annotation)
    return arguments[0] if arguments else Any


def as_list(data: Any, words: str) -> Any:
    if not isinstance(data, list | tuple):
        raise needed(words, data)
    return data


def read_list(annotation: Any, made: Converter) -> Read:
    from cattrs.cols import list_structure_factory

    items: Any = list[_item(annotation)]  # type: ignore[misc]
    words, read = examine(annotation).text, list_structure_factory(items, made)
    return lambda data, _: read(as_list(data, words), list)


def write_list(annotation: Any, made: Converter) -> Write:
    write = late_writer(_item(annotation), made)
    return lambda value: [write(each) for each in value] if isinstance(value, list | tuple) else made.unstructure(value)


def read_set(annotation: Any, made: Converter) -> Read:
    words, read = examine(annotation).text, read_list(annotation, made)
    make = frozenset if frozenset in (get_origin(annotation), annotation) else set

    def read_items(data: Any, _: Any) -> Any:
        try:
            return make(read(data, None))
        except TypeError:
            raise Wrong(f"expected {words}, and an item of it cannot be in a set") from None

    return read_items


def write_set(annotation: Any, made: Converter) -> Write:
    write = late_writer(_item(annotation), made)

    def write_items(value: Any) -> Any:
        if not isinstance(value, set | frozenset):
            return made.unstructure(value)
        return in_order([write(each) for each in value])

    return write_items


def in_order(items: list[Any]) -> list[Any]:
    """The items of a set in an order that does not depend on the process: numbers by size, all else by its text."""
    kinds = set(map(type, items))
    if kinds <= {int, float} or kinds == {str}:
        return sorted(items)
    try:
        return sorted(items, key=text)
    except Exception:  # an item is not JSON and will be refused
        return items


def read_tuple(annotation: Any, made: Converter) -> Read:
    arguments = get_args(annotation)
    if annotation is tuple or Ellipsis in arguments:
        several = read_list(annotation, made)
        return lambda data, _: tuple(several(data, None))
    from cattrs.gen import make_hetero_tuple_structure_fn

    words = examine(annotation).text
    read = make_hetero_tuple_structure_fn(annotation, made)

    def read_items(data: Any, _: Any) -> Any:
        if len(as_list(data, words)) != len(arguments):
            raise needed(f"{words}, which has {len(arguments)} items", data)
        return read(data, annotation)

    return read_items


def write_tuple(annotation: Any, made: Converter) -> Write:
    arguments = get_args(annotation)
    if annotation is tuple or Ellipsis in arguments:
        return write_list(annotation, made)
    writers = [late_writer(each, made) for each in arguments]

    def write(value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(writers):
            return made.unstructure(value)
        return [write(each) for write, each in zip(writers, value, strict=True)]

    return write


def read_dict(annotation: Any, made: Converter) -> Read:
    from cattrs.gen import mapping_structure_factory

    key, item = get_args(annotation) or (str, Any)
    words = examine(annotation).text
    read = mapping_structure_factory(dict[str, item], made)  # type: ignore[valid-type]
    read_key = None if unwrapped(key) is str else _key_reader(key, made)

    def read_items(data: Any, _: Any) -> Any:
        if not isinstance(data, dict):
            raise needed(words, data)
        for each in data:
            if not isinstance(each, str):
                raise Wrong(f"the key {each!r} is not a string" if read_key is None else _wrong_key(key, each))
        items = read(data, dict)
        return items if read_key is None else {read_key(each): value for each, value in items.items()}

    return read_items


def write_dict(annotation: Any, made: Converter) -> Write:
    key, item = get_args(annotation) or (str, Any)
    write = late_writer(item, made)
    read_key = None if unwrapped(key) is str else _key_reader(key, made)

    def write_items(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return made.unstructure(value)
        if read_key is None:
            return {each: write(item) for each, item in value.items()}
        return {_written_key(each, read_key): write(item) for each, item in value.items()}

    return write_items


def _key_reader(annotation: Any, made: Converter) -> Callable[[str], Any]:
    def read(key: str) -> Any:
        for data in key_data(key):
            try:
                return made.structure(data, annotation)
            except Exception:  # try the next meaning
                continue
        raise Wrong(_wrong_key(annotation, key))

    return read


def _wrong_key(annotation: Any, key: Any) -> str:
    return f"expected a key that is {examine(annotation).text}, got {key!r}"


def _written_key(key: Any, read: Callable[[str], Any]) -> Any:
    """A key as text, if it is read back as the same key; else unchanged, to be refused."""
    written = key_text(key)
    if isinstance(written, str) and not isinstance(key, str):
        try:
            return written if read(written) == key else key
        except Wrong:
            return key
    return written


def read_union(annotation: Any, made: Converter) -> Read:
    union = union_of(annotation)
    readers = {member: late_reader(member, made) for member in union.members}

    def read(data: Any, _: Any) -> Any:
        *others, last = union.members_of(data)
        for member in others:
            try:
                return readers[member](data)
            except Exception:  # it may be the next: `list[int] | list[str]`
                continue
        return readers[last](data)

    return read


def write_union(annotation: Any, made: Converter) -> Write:
    union = union_of(annotation)
    writers = {member: late_writer(member, made) for member in union.members}

    def write(value: Any) -> Any:
        member = union.member_written(value)
        return made.unstructure(value) if member is None else writers[member](value)

    return write
