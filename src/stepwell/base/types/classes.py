"""How classes with fields are read and written: dataclasses, attrs classes, TypedDicts, NamedTuples, pydantic models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_origin

from ..codec import encode_checked
from ..forms.problems import Misfit, Problem
from ..forms.refusals import ModelRefusal, refusals
from .containers import as_list, in_order
from .fields import fields_of
from .kinds import shown
from .leaves import needed
from .misfit import Wrong
from .scalars import Read, Write, late_reader, late_writer

if TYPE_CHECKING:
    from cattrs import Converter


def _as_object(data: Any, words: str) -> Any:
    if not isinstance(data, dict):
        raise needed(words, data)
    return data


def read_class(annotation: Any, made: Converter) -> Read:
    read, words = made.gen_structure_attrs_fromdict(annotation), shown(annotation)
    return lambda data, _: read(_as_object(data, words), annotation)


def write_class(annotation: Any, made: Converter) -> Write:
    write = made.gen_unstructure_attrs_fromdict(annotation)
    cls = get_origin(annotation) or annotation
    return lambda value: write(value) if isinstance(value, cls) else made.unstructure(value)


def read_typed_dict(annotation: Any, made: Converter) -> Read:
    """Not by cattrs, which would keep unknown fields."""
    from cattrs.errors import AttributeValidationNote, ClassValidationError

    fields, words = fields_of(annotation), shown(annotation)
    readers = {field.name: late_reader(field.annotation, made) for field in fields}
    required = {field.name for field in fields if field.required}

    def read(data: Any, _: Any) -> Any:
        known = {name for name in readers if name in _as_object(data, words)}
        fields_read: dict[str, Any] = {}
        errors: list[Exception] = []
        for name, read_field in readers.items():
            try:
                if name in known:
                    fields_read[name] = read_field(data[name])
                elif name in required:
                    raise KeyError(name)
            except Exception as error:
                error.add_note(AttributeValidationNote("", name, None))
                errors.append(error)
        if errors:
            raise ClassValidationError(f"While reading {words}", errors, annotation)
        return fields_read

    return read


def write_typed_dict(annotation: Any, made: Converter) -> Write:
    writers = {field.name: late_writer(field.annotation, made) for field in fields_of(annotation)}

    def write(value: Any) -> Any:
        if not isinstance(value, dict):
            return made.unstructure(value)
        return {key: writers.get(key, made.unstructure)(item) for key, item in value.items()}

    return write


def read_named_tuple(annotation: Any, made: Converter) -> Read:
    """Missing items get their default, unknown items are left out."""
    from cattrs.errors import IterableValidationError, IterableValidationNote

    fields, words = fields_of(annotation), shown(annotation)
    cls = get_origin(annotation) or annotation
    required = sum(field.required for field in fields)
    readers = [late_reader(field.annotation, made) for field in fields]

    def read(data: Any, _: Any) -> Any:
        items: list[Any] = []
        errors: list[Exception] = []
        if len(as_list(data, words)) < required:
            raise Wrong(f"expected {words}, and its item {fields[len(data)].name!r} is missing")
        for place, (read_item, each) in enumerate(zip(readers, data, strict=False)):
            try:
                items.append(read_item(each))
            except Exception as error:
                error.add_note(IterableValidationNote("", place, None))
                errors.append(error)
        if errors:
            raise IterableValidationError(f"While reading {words}", errors, annotation)
        return cls(*items)

    return read


def write_named_tuple(annotation: Any, made: Converter) -> Write:
    writers = [late_writer(field.annotation, made) for field in fields_of(annotation)]

    def write(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return made.unstructure(value)
        return [write(each) for write, each in zip(writers, value, strict=False)]

    return write


def read_model(annotation: Any, made: Converter) -> Read:
    """By pydantic, from JSON: what its own settings say of bytes, aliases and unknown fields counts."""
    from pydantic import ValidationError

    def read(data: Any, _: Any) -> Any:
        try:
            return annotation.model_validate_json(encode_checked(data))
        except ValidationError as error:
            raise Misfit([_problem(each) for each in refusals(error.errors(include_url=False), data)]) from None

    return read


def _problem(refusal: ModelRefusal) -> Problem:
    expected, message = refusal.expected, refusal.message
    return Problem(refusal.place, message if expected is None else str(needed(expected, refusal.value)))


def write_model(annotation: Any, made: Converter) -> Write:
    def write(value: Any) -> Any:
        if not isinstance(value, annotation):
            return made.unstructure(value)
        data = value.model_dump(mode="json", by_alias=True, round_trip=True)
        return _with_sets_in_order(data, value.model_dump(by_alias=True, round_trip=True))

    return write


def _with_sets_in_order(data: Any, live: Any) -> Any:
    """pydantic writes sets in the order of their hashes, which is another in every process."""
    if isinstance(live, set | frozenset) and isinstance(data, list):
        return in_order(data)
    if isinstance(live, dict) and isinstance(data, dict) and len(live) == len(data):
        pairs = zip(data.items(), live.values(), strict=True)
        return {key: _with_sets_in_order(item, each) for (key, item), each in pairs}
    if isinstance(live, list | tuple) and isinstance(data, list) and len(live) == len(data):
        return [_with_sets_in_order(item, each) for item, each in zip(data, live, strict=True)]
    return data
