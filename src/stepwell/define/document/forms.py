"""The forms of a document: the whole, and one node. The options of nodes are those of `core.graph.NODE_OPTIONS`.

Importing this module loads pydantic.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from annotated_types import MaxLen, MinLen
from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, WithJsonSchema, create_model

from ...base.forms.problems import Misfit, Path, Problem, shown
from ...base.forms.reading import Expected, Form, Omittable, PositiveSeconds
from ...base.schemas import KEYWORDS, check_schema
from ...core.graph import MAX_NAME, NODE_OPTIONS, Option, is_name
from ...handlers import Handler
from ..options import OnFailure
from .retry import AnyRetry, retry_of

OPTIONS = {option.in_documents: option for option in NODE_OPTIONS if option.in_documents is not None}
"""The options of nodes by the names of their fields."""
HANDLER_OPTIONS = {name: option for name, option in OPTIONS.items() if option.name in Handler.__dataclass_fields__}
"""Those whose default is what the handler says."""
MEANS = {"job": "handler", "args": "config", "depends_on": "dependencies"} | {
    option.name: field for field, option in OPTIONS.items() if option.name != field
}
"""The names of dynamic workflows for fields of a node. Both are accepted."""
MAX_ID = 100
MAX_DESCRIPTION = 10_000
MAX_TAGS = 20
MAX_TAG = 100
RESERVED = frozenset(
    {
        *("input", "run", "loop", "range", "self", "secret", "caller", "context", "varargs", "kwargs"),
        *("true", "false", "none", "null", "elif", "endif", "endfor", "raw", "endraw", "recursive", "ignore"),
        *dir(dict),
        *map(str.lower, keyword.kwlist),
        *keyword.kwlist,
    }
)
"""Words that mean something else in a template, or are methods of an object."""


def _checked(fits: Callable[[Any], bool]) -> AfterValidator:
    def check(value: Any) -> Any:
        if not fits(value):
            raise ValueError
        return value

    return AfterValidator(check)


def _not_reserved(name: str) -> str:
    if name in RESERVED or name.startswith("__"):
        raise ValueError(f"{name!r} is reserved: it means something else in a template")
    return name


def _list_of_ids(value: Any) -> Any:
    if not isinstance(value, list):
        advice = f": write [{value!r}]" if isinstance(value, str) else ""
        raise ValueError(f"expected a list of ids, got {shown(value)}{advice}")
    return value


def _unique(names: Any) -> Any:
    return list(dict.fromkeys(names)) if isinstance(names, list) else names or []


def _input_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type", "object") != "object":
        raise Misfit([Problem(("type",), f"expected object, which the input of a run is, got {shown(schema['type'])}")])
    if problems := check_schema(schema):
        raise Misfit(problems)
    return schema


_NAME = f"a name of 1 to {MAX_NAME} printable characters"
_ID = (
    f"an id of letters, digits and _ that begins with no digit, at most {MAX_ID} characters "
    "(a hyphen would be a minus in a template)"
)
Description = Annotated[str, MaxLen(MAX_DESCRIPTION), Expected(f"a text of at most {MAX_DESCRIPTION:,} characters")]
Tag = Annotated[str, MaxLen(MAX_TAG), _checked(lambda text: text.strip() != "" and text.isprintable())]


class PlainNode(Form):
    """The fields of a node that are no options."""

    noun = "a node"
    other_names = MEANS
    id: Annotated[
        Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=MAX_ID), Expected(_ID)],
        AfterValidator(_not_reserved),
    ] = Field(
        description="letters, digits and `_`; its name in templates. Words that mean something in a template are reserved"
    )
    handler: Annotated[str, _checked(str.strip), Expected("some text")] = Field(
        description="what it does: the name of a [handler](handlers.md), or `package.module:function` of an allowed module"
    )
    config: Annotated[dict[str, Any], Expected("an object")] = Field(
        {}, description="what the handler is to do; any string in it may be a template, keys never are"
    )
    dependencies: Annotated[
        list[Annotated[str, Expected("the id of a node")]], BeforeValidator(_list_of_ids), AfterValidator(_unique)
    ] = Field([], description="ids of the nodes that must complete first; repetitions do not matter")
    name: Omittable[Annotated[str, MinLen(1), _checked(is_name), Expected(_NAME)]] = Field(
        None, description="for people; by default its id"
    )
    description: Omittable[Description] = Field(None, description="for people")

    _place: int = PrivateAttr(0)
    _written: Mapping[str, Any] = PrivateAttr({})

    def read_from(self, written: Mapping[str, Any], place: int) -> None:
        """Note what it was read from: its fields as written, and its place in the document."""
        self._written, self._place = written, place

    @property
    def place(self) -> int:
        return self._place

    def path(self, field: str, *below: str | int) -> Path:
        """The path of a field, under the name that was written."""
        names = (field, *(other for other, name in MEANS.items() if name == field))
        return ("nodes", self._place, next((name for name in names if name in self._written), field), *below)

    @property
    def lacks_config(self) -> bool:
        """Whether it has a config that could not be read, so that nothing more can be said about it."""
        return "config" not in self.model_fields_set and self.path("config")[-1] in self._written

    @property
    def options(self) -> dict[str, Any]:
        """The options that are written, as fields of a NodeSpec."""
        written = (
            (option, getattr(self, field)) for field, option in OPTIONS.items() if field in self.model_fields_set
        )
        return {
            option.name: option.of_code(retry_of(value) if option.name == "retry" else value)
            for option, value in written
        }

    @property
    def canonical(self) -> dict[str, Any]:
        """Its canonical form: the names of documents, without defaults."""
        fields = self.written_fields
        if fields.get("name") == self.id:
            del fields["name"]
        return fields


_EXPRESSION = Annotated[
    str, Field(pattern=r"^\{\{(.|\n)*\}\}$"), Expected("exactly one expression in {{ }}, as in {{ check.result }}")
]
_OWN_FORMS: Mapping[str, Any] = {"retry": AnyRetry, "timeout": PositiveSeconds, "when": _EXPRESSION}


def _option(field: str, option: Option) -> tuple[Any, Any]:
    """The type and the default of the field for an option. Without a default, that of the handler applies."""
    kind = Annotated[str, MinLen(1)] if option.type is str else option.type
    form = _OWN_FORMS.get(option.name) or Annotated[kind, _checked(option.fits), Expected(option.expected)]
    if field in HANDLER_OPTIONS or option.name == "when":
        return Omittable[form], Field(None, description=option.about)  # type: ignore[misc, valid-type]
    return form, Field(option.default, description=option.about)


_OPTION_FIELDS: Any = {field: _option(field, option) for field, option in OPTIONS.items()}
NodeForm = create_model("NodeForm", __base__=PlainNode, **_OPTION_FIELDS)
"""A node of a document."""


class DocumentForm(Form):
    """A workflow as JSON or YAML."""

    noun = "a document"
    contents = "an object with name and nodes"
    name: Annotated[
        str, Field(pattern="^[^@]+$"), _checked(lambda name: is_name(name, without="@")), Expected(f"{_NAME} without @")
    ] = Field(description="the name by which it is started; without `@`. By default that of the file")
    nodes: Annotated[list[Any], MinLen(1), Expected("a list of one or more nodes, each an object with its id")] = Field(
        description="see below"
    )
    description: Omittable[Description] = Field(None, description="for people")
    tags: Annotated[
        list[Tag] | Annotated[dict[Tag, Tag], MaxLen(MAX_TAGS)],
        AfterValidator(_unique),
        Expected(f"a list of texts, or an object of at most {MAX_TAGS} texts, each of at most {MAX_TAG} characters"),
    ] = Field([], description="a list for people, or an object, `{team: web}`, by which its runs are found")
    input: Omittable[
        Annotated[
            dict[str, Any],
            Expected("a JSON Schema of an object"),
            AfterValidator(_input_schema),
            WithJsonSchema(
                {
                    "type": "object",
                    "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
                    "propertyNames": {"enum": sorted(KEYWORDS)},
                }
            ),
        ]
    ] = Field(
        None,
        description="JSON Schema of the input; defaults are applied; a field that it does not name is refused, unless "
        "`additionalProperties` says otherwise. A `pattern` is matched in linear time "
        "([RE2](https://github.com/google/re2/wiki/Syntax)): no lookaround, no references to groups",
    )
    on_failure: OnFailure = Field(
        "fail_fast", description="`fail_fast` (default), `finish` or `pause` ([control.md](control.md))"
    )
    deadline: Omittable[PositiveSeconds] = Field(None, description="how many seconds a whole run may take")
    triggers: list[Any] = Field(
        [],
        description='a list of triggers that start runs of it, such as `{cron: "30 2 * * *"}` ([triggers.md](triggers.md))',
    )
    mode: Annotated[Literal["workflow"], Expected("one of workflow, pipeline")] = Field(
        "workflow", description="`workflow` (default); a `pipeline` is read by the rules of pipelines"
    )
