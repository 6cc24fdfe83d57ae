"""The one reader of forms: JSON that people write, described by pydantic models.

    class Retry(Form):
        noun = "retry"
        max_attempts: Annotated[int, Field(ge=1), Expected("a whole number of at least 1")]
        base_delay: PositiveSeconds = 1.0

    problems = Problems()
    retry = read_form(Retry, data, problems)

The same model gives the JSON Schema for editors (`Retry.model_json_schema()`) and the table in the docs. Everything that is
wrong is added to `problems`, with its path. If something is wrong, the result has defaults in its place, so that the rest
can be checked as well; it is None if nothing could be read. `Problems.placed(marks)` adds lines and columns of a text.

Importing this module loads pydantic: import it where something is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    PlainSerializer,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from ..clock import MAX_SECONDS, POSITIVE_SECONDS_NEEDED, SECONDS_NEEDED
from .problems import Path, Problems, shown
from .refusals import EXPECTED, MISSING, SECRET, UNKNOWN, ModelRefusal, refusals

MAX_REPORTED = 1_000
"""Problems of one form."""


class Expected:
    """Metadata of a field: what it expects, in words. `secret`: a wrong value is not shown."""

    def __init__(self, words: str, *, secret: bool = False) -> None:
        self.words, self._kind = words, SECRET if secret else EXPECTED

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.custom_error_schema(
            handler(source), custom_error_type=self._kind, custom_error_message=self.words
        )


class Form(BaseModel):
    """A description of one JSON form. Unknown fields are refused, and no value is converted to another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    noun: ClassVar[str] = "it"
    """What it is called in messages: `a node`."""
    contents: ClassVar[str] = "an object"
    """What is expected where it stands: `an object with id and handler`."""
    shows_values: ClassVar[bool] = True
    """Whether messages show what was there instead: not where one may be a secret."""
    other_names: ClassVar[Mapping[str, str]] = {}
    """Other names of fields, with the name that each stands for."""

    @property
    def written_fields(self) -> dict[str, Any]:
        """What differs from its default, as JSON."""
        return self.model_dump(exclude_defaults=True, by_alias=True)


AnyForm = TypeVar("AnyForm", bound=BaseModel)


def plain_number(value: float) -> float | int:
    return int(value) if value == int(value) else value


_PLAIN = PlainSerializer(plain_number)
Seconds = Annotated[float, Ge(0), Le(MAX_SECONDS), Expected(SECONDS_NEEDED), _PLAIN]
PositiveSeconds = Annotated[float, Gt(0), Le(MAX_SECONDS), Expected(POSITIVE_SECONDS_NEEDED), _PLAIN]


def printable(text: str) -> str:
    """The text, unless it is blank or could command a terminal."""
    if not text.strip() or not text.isprintable():
        raise ValueError("expected printable text")
    return text


Line = Annotated[str, MinLen(1), AfterValidator(printable)]
"""One line of text. `Line` with an upper bound and words: `Annotated[Line, MaxLen(100), Expected("a name")]`."""


class _NotNull:
    """Metadata of a field that may be left out, and is None then, but not written as null."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: Any = handler(source)
        inner: CoreSchema = schema["schema"]
        return inner


T = TypeVar("T")
Omittable: TypeAlias = Annotated[T | None, _NotNull()]


def read_form(form: type[AnyForm], data: Any, problems: Problems, path: Path = ()) -> AnyForm | None:
    """An object read as a form. `path` is where it stands; see the module for what comes back if there are problems."""
    if not isinstance(data, dict):
        problems.expected(path, getattr(form, "contents", "an object"), data)
        return None
    fields, names = _renamed(form, data, problems, path)
    for is_lenient in (False, True):
        try:
            read: AnyForm = (_lenient(form) if is_lenient else form).model_validate(fields)
            return read
        except ValidationError as error:
            refused = refusals(error.errors(include_url=False), fields)
        order = {name: position for position, name in enumerate(fields)}
        refused.sort(key=lambda each: order.get(str(each.place[0]), -1) if each.place else -1)
        for each in islice(refused, MAX_REPORTED):
            first, rest = each.place[:1], each.place[1:]
            _report(form, each, (*(names.get(str(name), name) for name in first), *rest), problems, path)
        wrong = {each.place[0] for each in refused if each.place}
        if not wrong:
            break
        fields = {name: value for name, value in fields.items() if name not in wrong}
    return None


def _renamed(
    form: type[BaseModel], data: dict[str, Any], problems: Problems, path: Path
) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields under their own names, and the names under which they are written if those are others."""
    other: Mapping[str, str] = getattr(form, "other_names", {})
    if not other or other.keys().isdisjoint(data):
        return data, {}
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for key, value in data.items():
        name = other.get(key, key)
        if name in fields:
            problems.add((*path, key), f"{key} means {name}, which is there already: say it once", found=key)
            continue
        fields[name] = value
        if key != name:
            names[name] = key
    return fields, names


@cache
def _lenient(form: type[AnyForm]) -> type[AnyForm]:
    """The same form without required fields: an empty value stands for what could not be read."""
    required = {name: info for name, info in form.model_fields.items() if info.is_required()}
    defaults: Any = {
        name: (
            info.annotation,
            FieldInfo.merge_field_infos(info, default=_EMPTY.get(get_origin(info.annotation) or info.annotation)),
        )
        for name, info in required.items()
    }
    return create_model(form.__name__, __base__=form, **defaults) if required else form


_EMPTY: dict[Any, Any] = {str: "", dict: {}, list: [], int: 0}


def _report(form: type[BaseModel], refusal: ModelRefusal, place: Path, problems: Problems, path: Path) -> None:
    at = (*path, *place)
    target, owner = _form_at(form, place), _form_at(form, place[:-1])
    shows_value = refusal.kind != SECRET and getattr(target, "shows_values", True)
    value = refusal.value if shows_value else ...
    if refusal.kind == MISSING:
        problems.add(at[:-1], f"{_noun(owner)} needs its {place[-1]}", expected=str(place[-1]))
    elif refusal.kind == UNKNOWN:
        name = str(place[-1])
        names = [*_names(owner), *getattr(owner, "other_names", ())]
        problems.unknown(at, f"{_noun(owner)} has no field {shown(name)}", name, names)
    elif refusal.misfit is not None:
        for problem in refusal.misfit.problems:
            problems.add((*at, *problem.place), problem.message, expected=problem.expected, nearest=problem.nearest)
    elif refusal.kind in ("model_type", "model_attributes_type"):
        problems.expected(at, getattr(target, "contents", "an object"), value)
    elif refusal.expected is not None:
        problems.expected(at, refusal.expected, value)
    else:
        problems.add(at, refusal.message, found=value)


def _noun(form: Any) -> str:
    return str(getattr(form, "noun", "it"))


def _names(form: Any) -> list[str]:
    return [info.alias or name for name, info in form.model_fields.items()]


def _form_at(form: type[BaseModel], place: Path) -> type[BaseModel]:
    """The model of the object at a place of a form."""
    model: type[BaseModel] = form
    for step in place:
        info = next((info for name, info in model.model_fields.items() if step in (name, info.alias)), None)
        if info is not None:
            model = next(_models_in((info.annotation, *info.metadata)), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in annotation if isinstance(annotation, tuple) else get_args(annotation):
        yield from _models_in(each)
