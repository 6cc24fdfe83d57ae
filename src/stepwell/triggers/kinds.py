"""The kinds of triggers: one class each, with its fields, when it fires, and what templates of its input may name.

To add a kind, add a class here, a keyword to `Trigger`, and code that fires it. No other code knows a kind by its name: what
fires triggers asks for `scheduled` times, for the `hook` of requests, for the ended runs that are `followed` (`firing.py`,
`webhook.py`) and for the states that are `awaited` (builds of pipelines).

Importing this module loads pydantic: `definition.py` does when a trigger is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from annotated_types import Ge, Le, MaxLen
from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from ..base.clock import MAX_SECONDS, SECOND
from ..base.codec import encode_checked
from ..base.forms.problems import Misfit, Path, Problem
from ..base.forms.reading import Expected, Form, Line, Seconds, plain_number, printable
from ..base.secret_refs import SecretRef
from ..base.templates import Expression, TemplateError, compile_config
from ..base.words import shown
from ..core.model import RunStatus
from ..errors import InputError
from .filters import compile_filter
from .schedule import Cron, Every, Schedule, time_zone
from .schemes import SCHEMES
from .times import duration, moment, time_text

Kind = Literal["cron", "every", "webhook", "run_finished", "state"]
KIND_NAMES: tuple[Kind, ...] = get_args(Kind)
CatchUp = Literal["skip", "last", "all"]
Overlap = Literal["allow", "skip", "queue"]
ENDED = tuple(str(status) for status in RunStatus if status.terminal)
MAX_INPUT = 1024 * 1024
MAX_TAGS, MAX_TAG = 16, 100
_FIELDS_OF_NAMES: Mapping[str, tuple[str, ...]] = {
    "run": ("id", "workflow", "status", "input", "outputs"),
    "state": ("entity", "state_type", "path", "code_hash", "content_hash"),
    "fire": ("time", "local", "date", "previous"),
    "trigger": ("name", "version"),
}
"""What templates may read of these names. Of others they may read anything."""


def _template_problems(value: Any, names: Sequence[str], path: Path) -> Iterator[Problem]:
    wrong: list[tuple[Path, TemplateError]] = []
    compiled = compile_config(value, problems=wrong)
    for place, error in wrong:
        yield Problem((*path, *place), error.problem)
    for place, reference in compiled.references:
        known = _FIELDS_OF_NAMES.get(reference.name)
        if reference.name not in names:
            message = f"the template names {reference.name!r}; there are {', '.join(names)}"
            yield Problem((*path, *place), message)
        elif known is not None and reference.field is not None and reference.field not in known:
            message = f"{reference.name} has no {shown(reference.field)}; there are {', '.join(known)}"
            yield Problem((*path, *place), message)


def _input(value: Any) -> Any:
    if len(encode_checked(value)) > MAX_INPUT:
        raise ValueError(f"expected at most {MAX_INPUT:,} bytes")
    return value


def _tags(tags: dict[str, str]) -> dict[str, str]:
    for text in (*tags, *tags.values()):
        if len(printable(text)) > MAX_TAG:
            raise ValueError("too long")
    return tags


def _not_set_by_triggers(tags: dict[str, str]) -> dict[str, str]:
    if {"trigger", "fire"} & tags.keys():
        raise ValueError("the tags trigger and fire are set by the trigger itself")
    return tags


Name = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"), Expected("1 to 100 letters, digits or . _ -")
]
WorkflowName = Annotated[Line, MaxLen(1_000), Expected("the name of a stored document, or package.module:Class")]
Text = Annotated[Line, MaxLen(1_000), Expected("some text")]
Tags = Annotated[
    dict[str, str],
    MaxLen(MAX_TAGS),
    AfterValidator(_tags),
    Expected(f"at most {MAX_TAGS} texts by name"),
    AfterValidator(_not_set_by_triggers),
]
Input = Annotated[dict[str, Any] | str, Expected("an object, or a template that gives one"), AfterValidator(_input)]


INPUT = "the input of the run: an object, any string in it a [template](expressions.md), or one template that gives an object"


class TriggerForm(Form):
    """The fields of every trigger."""

    contents = f"an object with name, workflow and one of {', '.join(KIND_NAMES)}"
    scope: ClassVar[tuple[str, ...]] = ()
    """What templates of the input may name besides `fire` and `trigger`."""

    name: Name = Field(description="letters, digits, `.`, `_` and `-`; runs are named after it")
    workflow: WorkflowName = Field(description="a stored document, `report` or `report@3`, or `package.module:Class`")
    input: Input = Field({}, description=INPUT)
    priority: Annotated[
        int, Ge(-(2**31)), Le(2**31 - 1), Expected(f"a whole number from {-(2**31)} to {2**31 - 1}")
    ] = Field(0, description="of the runs")
    tags: Tags = Field({}, description="of the runs; `trigger` and `fire` are among their tags")
    description: Annotated[str, MaxLen(2_000), Expected("a text of at most 2,000 characters")] | None = Field(
        None, description="for people"
    )

    @model_validator(mode="after")
    def _check_templates(self) -> TriggerForm:
        names = (*self.scope, "fire", "trigger")
        if problems := list(_template_problems(self.input, names, ("input",))):
            raise Misfit(problems)
        return self

    @property
    def hook(self) -> Webhook | None:
        """The requests that it starts runs for."""
        return None

    @property
    def followed(self) -> RunFinished | None:
        """The runs whose ends it starts runs for."""
        return None

    @property
    def awaited(self) -> WantedStates | None:
        """The states that it starts runs for."""
        return None

    @classmethod
    def own_fields(cls) -> list[str]:
        """The fields that other kinds do not have."""
        return [name for name in cls.model_fields if name not in TriggerForm.model_fields]

    @property
    def occasion(self) -> dict[str, Any]:
        """When it fires, as data: with another occasion it begins anew."""
        return {name: getattr(self, name) for name in self.own_fields() if name not in Scheduled.model_fields}


class Scheduled(TriggerForm):
    """The fields of triggers that have times."""

    catch_up: CatchUp = Field(
        "last", description="what to do about times that were missed: `skip`, `last` (the default) or `all`"
    )
    overlap: Overlap = Field(
        "allow", description="what to do while the run before is active: `allow` (the default), `skip` or `queue`"
    )
    grace_seconds: Seconds = Field(60.0, description="how late a time may be before it counts as missed, 60 by default")

    def schedule(self, added_at: int) -> Schedule:
        """The times at which it fires."""
        raise NotImplementedError

    @property
    def grace(self) -> int:
        return int(self.grace_seconds * SECOND)


def _zone(name: str) -> str:
    try:
        time_zone(name)
    except InputError as error:
        raise ValueError(str(error)) from None
    return name


def _cron(text: str) -> str:
    try:
        Cron(text)
    except InputError as error:
        raise ValueError(str(error)) from None
    return " ".join(text.split())


class CronForm(Scheduled):
    """A schedule in the calendar of a place."""

    noun = "a trigger with cron"
    kind: ClassVar[Literal["cron"]] = "cron"
    cron: Annotated[str, AfterValidator(_cron)] = Field(
        description="minute, hour, day of month, month, day of week: see [Cron](#cron)"
    )
    timezone: Annotated[str, AfterValidator(_zone)] = Field("UTC", description="where; UTC by default")

    @cached_property
    def _schedule(self) -> Cron:
        return Cron(self.cron, self.timezone)

    def schedule(self, added_at: int) -> Schedule:
        return self._schedule

    @property
    def words(self) -> str:
        return f"{self.cron} {self.timezone}"


def _whole_microseconds(seconds: float) -> float:
    return int(seconds * SECOND) / SECOND


class EveryForm(Scheduled):
    """An interval of real time."""

    noun = "a trigger with every"
    kind: ClassVar[Literal["every"]] = "every"
    every: Annotated[
        float,
        Ge(1),
        Le(MAX_SECONDS),
        BeforeValidator(duration),
        AfterValidator(_whole_microseconds),
        Expected("a duration from 1 second to 10 years, as 90s, 15m, 1h30m or 7d"),
        PlainSerializer(plain_number),
        WithJsonSchema({"type": ["string", "number"]}),
    ] = Field(
        description="an interval of real time: `90s`, `15m`, `1h30m`, `7d`, or seconds; in Python also a `timedelta`"
    )
    start: (
        Annotated[
            int,
            BeforeValidator(moment),
            Expected("a time with its offset, as 2026-03-01T06:00:00Z"),
            PlainSerializer(time_text),
            WithJsonSchema({"type": "string", "format": "date-time"}),
        ]
        | None
    ) = Field(None, description="from when `every` counts; by default, from when the trigger was added")

    def schedule(self, added_at: int) -> Schedule:
        return Every(int(self.every * SECOND), added_at - added_at % SECOND if self.start is None else self.start)

    @property
    def words(self) -> str:
        return f"every {self.every:g} s"


class Webhook(Form):
    """What proves a request, and what identifies it."""

    noun = "a webhook"
    contents = "an object with scheme and secret"
    secret: Annotated[
        SecretRef,
        BeforeValidator(lambda value: SecretRef.of(value) or value),
        Expected("a reference, secret:NAME; the secret itself is never stored", secret=True),
        PlainSerializer(repr),
    ]
    scheme: Annotated[
        Literal[tuple(SCHEMES)],  # type: ignore[valid-type]  # the table is the one list of them
        Expected(f"one of {', '.join(SCHEMES)}"),
    ] = "hmac"
    header: (
        Annotated[
            str, Field(pattern="^[A-Za-z0-9-]{1,100}$"), Expected("the name of a header"), AfterValidator(str.lower)
        ]
        | None
    ) = None
    window_seconds: Seconds = 300.0
    delivery: Annotated[str, Expected("a template, as {{ body.id }}")] | None = None
    """A template of what tells one delivery from another."""
    rate_per_minute: Annotated[int, Ge(1), Le(100_000), Expected("a whole number from 1 to 100,000")] = 60

    @model_validator(mode="after")
    def _check(self) -> Webhook:
        scheme, problems = SCHEMES[self.scheme], list[Problem]()
        if self.header is not None and "header" not in scheme.settable:
            message = f"the scheme {self.scheme} has its own header, {scheme.header}"
            problems.append(Problem(("header",), message))
        if "window_seconds" in self.model_fields_set and not scheme.timed:
            message = f"the scheme {self.scheme} does not say when a request was sent"
            problems.append(Problem(("window_seconds",), message))
        if self.delivery is not None:
            problems += _template_problems(self.delivery, ("body", "headers", "query"), ("delivery",))
        if problems:
            raise Misfit(problems)
        return self


class WebhookForm(TriggerForm):
    """A request to `/hooks/NAME`, proved by a secret."""

    noun = "a trigger with webhook"
    kind: ClassVar[Literal["webhook"]] = "webhook"
    scope = ("body", "headers", "query")
    webhook: Webhook = Field(description="a request to `/hooks/NAME`: see [Webhooks](#webhooks)")
    input: Input = Field("{{ body }}", description=INPUT)

    @property
    def hook(self) -> Webhook:
        return self.webhook

    @property
    def words(self) -> str:
        return f"POST /hooks/{self.name} ({self.webhook.scheme})"


def _statuses(value: Any) -> Any:
    chosen = [value] if isinstance(value, str) else value
    if not isinstance(chosen, list) or not chosen or not all(each in ENDED for each in chosen):
        raise ValueError("not those of ended runs")
    return tuple(each for each in ENDED if each in chosen)


def _plain_name(name: str) -> str:
    if ":" in name or "@" in name:
        raise ValueError("a module or a version")
    return name


class RunFinished(Form):
    """Which runs it waits for."""

    noun = "run_finished"
    contents = "an object with workflow"
    workflow: Annotated[
        Line, MaxLen(1_000), AfterValidator(_plain_name), Expected("the name of a workflow, without module or version")
    ]
    status: Annotated[
        tuple[str, ...],
        BeforeValidator(_statuses),
        Expected(f"one or several of {', '.join(ENDED)}"),
        WithJsonSchema({"type": ["string", "array"], "items": {"enum": list(ENDED)}}),
    ] = ("COMPLETED",)


class RunFinishedForm(TriggerForm):
    """The end of a run of another workflow."""

    noun = "a trigger with run_finished"
    kind: ClassVar[Literal["run_finished"]] = "run_finished"
    scope = ("run",)
    run_finished: Annotated[
        RunFinished, BeforeValidator(lambda value: {"workflow": value} if isinstance(value, str) else value)
    ] = Field(
        description="`{workflow: report, status: [COMPLETED]}`: the end of a run of another workflow; or only its name"
    )

    @property
    def followed(self) -> RunFinished:
        return self.run_finished

    @model_validator(mode="after")
    def _check_workflow(self) -> RunFinishedForm:
        if self.run_finished and self.run_finished.workflow == self.workflow.rpartition(":")[2].partition("@")[0]:
            place = ("run_finished", "workflow")
            raise Misfit([Problem(place, "a workflow that starts itself would never stop")])
        return self

    @property
    def words(self) -> str:
        return f"after {self.run_finished.workflow} {'|'.join(self.run_finished.status)}"


def _filter(text: str) -> str:
    try:
        compile_filter(text)
    except TemplateError as error:
        raise ValueError(str(error)) from None
    return text


class WantedStates(Form):
    """Which states of a pipeline it waits for."""

    noun = "state"
    contents = "an object with pipeline and state_type or path"
    pipeline: Text
    state_type: Text | None = None
    """The stage that makes them, or the type of a state in the same root."""
    path: Text | None = None
    """A pattern of paths."""
    filter: Annotated[Text, AfterValidator(_filter)] | None = None
    """An expression over the names of `filters.NAMES`."""
    existing: bool = False
    """Whether states count that were fresh before the first build with the trigger."""

    @model_validator(mode="after")
    def _check(self) -> WantedStates:
        if (self.state_type is None) == (self.path is None):
            raise ValueError("expected state_type (a stage) or path (a pattern), one of them")
        return self

    @property
    def wanted(self) -> str:
        """The type or the pattern."""
        return self.state_type or self.path or ""

    @cached_property
    def condition(self) -> Expression | None:
        """Its filter, compiled."""
        return None if self.filter is None else compile_filter(self.filter)


class StateForm(TriggerForm):
    """A new state of a pipeline, or one with new content. A scan of the pipeline fires it."""

    noun = "a trigger with state"
    kind: ClassVar[Literal["state"]] = "state"
    scope = ("state",)
    state: WantedStates = Field(
        description="`{pipeline: auto-blog, state_type: digest}`, or `path`: a new state of a [pipeline](pipelines.md), or one "
        "with new content; the process that scans the pipeline fires it. `filter` is an expression; what was fresh before the "
        "first build with the trigger starts nothing unless `existing`: [the rule](pipelines.md#several-pipelines-and-triggers)"
    )
    input: Input = Field("{{ state }}", description=INPUT)

    @property
    def awaited(self) -> WantedStates:
        return self.state

    @property
    def words(self) -> str:
        return f"new {self.state.wanted} of {self.state.pipeline}"


AnyTrigger: TypeAlias = CronForm | EveryForm | WebhookForm | RunFinishedForm | StateForm
FORMS: Mapping[Kind, type[AnyTrigger]] = {form.kind: form for form in get_args(AnyTrigger)}
