"""A trigger is checked whole when it is made: everything that is wrong with it, each with its place, and one canonical form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell import Trigger, Workflow, step
from stepwell.base.clock import MAX_SECONDS
from stepwell.base.templates import TemplateError
from stepwell.errors import TriggerError
from stepwell.triggers.filters import compile_filter, passes
from stepwell.triggers.kinds import FORMS
from stepwell.triggers.state import Backfill, TriggerState
from stepwell.triggers.times import duration, moment


class Greeting(Workflow, name="hello"):
    @step
    def greet(self) -> None: ...


RIGHT: list[dict[str, Any]] = [
    {"cron": "30 2 * * *"},
    {"cron": "@daily", "timezone": "Europe/Berlin", "catch_up": "all", "overlap": "queue", "grace_seconds": 5},
    {"every": "1h30m", "start": "2026-03-01T06:00:00+01:00", "priority": 7, "tags": {"team": "a"}},
    {"every": 1.5, "description": "often", "input": {"at": "{{ fire.time }}", "n": [1, {"x": "{{ trigger.name }}"}]}},
    {"webhook": {"secret": "secret:HOOK"}},
    {"webhook": {"secret": "secret:HOOK", "scheme": "bearer", "header": "X-Token", "rate_per_minute": 5}},
    {"webhook": {"secret": "secret:HOOK", "scheme": "slack", "window_seconds": 60, "delivery": "{{ body.id }}"}},
    {"run_finished": "other"},
    {"run_finished": {"workflow": "other", "status": ["FAILED", "COMPLETED"]}, "input": {"x": "{{ run.outputs }}"}},
    {"state": {"pipeline": "p", "state_type": "summary"}},
    {"state": {"pipeline": "p", "path": "out/{x}.txt", "filter": "codeHash == currentCodeHash"}},
    {
        "state": {"pipeline": "p", "state_type": "s", "filter": '$.entity.id == "d5"'},
        "input": {"x": "{{ state.path }}"},
    },
]


@pytest.mark.parametrize("fields", RIGHT, ids=range(len(RIGHT)))
def test_what_it_says_is_kept_in_one_form(fields: dict[str, Any]) -> None:
    made = Trigger.of({"name": "a", "workflow": "w", **fields})
    assert told_by(Trigger.stored(made.content)) == told_by(made)
    assert told_by(Trigger("a", "w", **fields)) == told_by(made)


def told_by(trigger: Trigger) -> dict[str, Any]:
    """Everything it says, not only its one form."""
    return {name: getattr(trigger, name) for name in ("form", "kind", "canonical", "digest")}


def test_what_is_at_its_default_is_not_kept() -> None:
    made = Trigger(
        "a", "w", cron=" 0  0 * * * ", timezone="UTC", catch_up="last", overlap="allow", grace_seconds=60, tags={}
    )
    assert made.canonical == {"name": "a", "workflow": "w", "cron": "0 0 * * *"}


def test_a_class_is_kept_by_its_address_and_followed_by_its_name() -> None:
    assert Trigger("a", Greeting, every=5).workflow == Greeting.workflow_target
    follows = Trigger("a", "w", run_finished=Greeting)
    assert follows.canonical["run_finished"] == {"workflow": "hello"}
    with pytest.raises(TriggerError, match="would never stop"):
        Trigger("a", "hello@3", run_finished=Greeting)


WRONG: list[tuple[Any, list[str]]] = [
    (7, ["$: expected an object with name"]),
    ({}, ["$: expected one of cron, every"]),
    ({"cron": "0 0 * * *", "every": 5}, ["$: expected one of cron, every"]),
    ({"cron": "0 0 * * *"}, ["needs its name", "needs its workflow"]),
    ({"name": "../x", "workflow": "w", "every": 5}, ["$.name:"]),
    ({"name": "a", "workflow": "w", "every": "0s"}, ["$.every:"]),
    ({"name": "a", "workflow": "w", "every": 10**12}, ["$.every:"]),
    ({"name": "a", "workflow": "w", "every": True}, ["$.every:"]),
    ({"name": "a", "workflow": "w", "every": 5, "start": "2026-03-01"}, ["$.start:"]),
    ({"name": "a", "workflow": "w", "every": 5, "timezone": "UTC"}, ["$.timezone: a trigger with every has no field"]),
    (
        {"name": "a", "workflow": "w", "cron": "x", "timezone": "y", "overlap": 1},
        ["$.timezone:", "$.cron:", "$.overlap:"],
    ),
    ({"name": "a", "workflow": "w", "every": 5, "overlpa": "skip"}, ["did you mean 'overlap'?"]),
    ({"name": "a", "workflow": "w", "every": 5, "tags": {"trigger": "b"}}, ["set by the trigger itself"]),
    (
        {"name": "a", "workflow": "w", "every": 5, "input": {"x": "{{ body }}"}},
        ["$.input.x: the template names 'body'"],
    ),
    ({"name": "a", "workflow": "w", "every": 5, "input": {"x": "{{ 1 +"}}, ["$.input.x:"]),
    ({"name": "a", "workflow": "w", "webhook": {"secret": "hunter2"}}, ["$.webhook.secret: expected a reference"]),
    (
        {"name": "a", "workflow": "w", "webhook": {"secret": "secret:A", "scheme": "github", "header": "X"}},
        ["its own header"],
    ),
    ({"name": "a", "workflow": "w", "webhook": {"secret": "secret:A", "rate_per_minute": 0}}, ["rate_per_minute"]),
    ({"name": "a", "workflow": "w", "run_finished": {"workflow": "m:C"}}, ["without module or version"]),
    ({"name": "a", "workflow": "w", "run_finished": {"workflow": "x", "status": []}}, ["$.run_finished.status"]),
    ({"name": "a", "workflow": "w", "run_finished": 7}, ["$.run_finished: expected an object with workflow"]),
    ({"name": "a", "workflow": "w", "run_finished": "w"}, ["starts itself"]),
    ({"name": "a", "workflow": "w", "webhook": "hunter"}, ["$.webhook: expected an object with scheme and secret"]),
    ({"name": "a", "workflow": "w", "webhook": {"secret": "secret:A", "delivery": 7}}, ["$.webhook.delivery"]),
    (
        {"name": "a", "workflow": "w", "webhook": {"secret": "secret:A", "delivery": "{{ fire.time }}"}},
        ["$.webhook.delivery: the template names 'fire'"],
    ),
    ({"name": "a", "workflow": "w", "webhook": {"secret": "secret:A", "window_seconds": 7}}, ["does not say when"]),
    (
        {"name": "a", "workflow": "w", "webhook": {"secret": "secret:A", "scheme": "no", "sceret": 7}},
        ["did you mean 'secret'?", "$.webhook.scheme"],
    ),
    ({"name": "a", "workflow": "w", "state": "p"}, ["$.state: expected an object with pipeline"]),
    ({"name": "a", "workflow": "w", "state": {}}, ["$.state: state needs its pipeline"]),
    ({"name": "a", "workflow": "w", "state": {"pipeline": "p"}}, ["state_type (a stage) or path"]),
    ({"name": "a", "workflow": "w", "state": {"pipeline": "p", "state_type": "s", "path": "x"}}, ["one of them"]),
    ({"name": "a", "workflow": "w", "state": {"pipeline": 7, "path": "x"}}, ["$.state.pipeline: expected some text"]),
    ({"name": "a", "workflow": "w", "every": 5, "input": 7}, ["$.input: expected an object, or a template"]),
    ({"name": "a", "workflow": "w", "every": 5, "input": {"x": "{{ fire.day }}"}}, ["fire has no 'day'"]),
    *(
        ({"name": "a", "workflow": "w", "state": {"pipeline": "p", "path": "x", "filter": text}}, [told])
        for text, told in {
            "": "$.state.filter: expected some text",
            "$.nonsense == 3": "a filter cannot name 'nonsense'",
            "state_typ": "did you mean 'state_type'?",
            "path.name": "path is a text and has no field 'name'",
            "path ==": "$.state.filter:",
        }.items()
    ),
]


@pytest.mark.parametrize(("data", "told"), WRONG, ids=range(len(WRONG)))
def test_everything_that_is_wrong_is_told_with_its_place(data: Any, told: list[str]) -> None:
    with pytest.raises(TriggerError) as refused:
        Trigger.of(data)
    assert len(refused.value.problems) == len(told)
    for each in told:
        assert each in str(refused.value)
    assert "hunter2" not in str(refused.value)


LIMITS: dict[str, tuple[Any, Any]] = {
    "priority": (2**31 - 1, 2**31),
    "priority ": (-(2**31), -(2**31) - 1),
    "every": (1, 0.999),
    "every ": (MAX_SECONDS, MAX_SECONDS + 1),
    "name": ("n" * 100, "n" * 101),
    "workflow": ("w" * 1_000, "w" * 1_001),
    "description": ("d" * 2_000, "d" * 2_001),
    "description ": ("", 7),
    "tags": ({str(number): "t" for number in range(16)}, {str(number): "t" for number in range(17)}),
    "tags ": ({"k" * 100: "v" * 100}, {"k": "v" * 101}),
    "tags  ": ({"team": "a"}, {"fire": "a"}),
    "grace_seconds": (0, -1),
    "start": ("1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z"),
    "start ": ("9899-12-31T00:00:00Z", "9900-01-01T00:00:00Z"),
    "input": ({"x": "y" * (1024 * 1024 - 8)}, {"x": "y" * (1024 * 1024 - 7)}),
}


@pytest.mark.parametrize("field", LIMITS)
def test_a_field_takes_what_is_at_its_limit_and_nothing_beyond(field: str) -> None:
    most, beyond = LIMITS[field]
    made = Trigger.of({"name": "a", "workflow": "w", "every": 5, field.strip(): most})
    assert told_by(Trigger.stored(made.content)) == told_by(made)
    assert made.canonical.get(field.strip()) in (most, None)
    with pytest.raises(TriggerError) as refused:
        Trigger.of({"name": "a", "workflow": "w", "every": 5, field.strip(): beyond})
    assert f"$.{field.strip()}" in str(refused.value)
    assert len(refused.value.problems) == 1


def test_triggers_are_equal_if_they_say_the_same() -> None:
    made = Trigger("a", "w", every="1m")
    assert made == Trigger("a", "w", every=60, priority=0)
    assert hash(made) == hash(Trigger("a", "w", every=60))
    assert made != Trigger("a", "w", every=61)
    assert made != "a"


STATE = {"state_type": "s", "path": "out/d5.txt", "entity": "d5", "code_hash": "c", "content_hash": "h"}


@pytest.mark.parametrize(
    ("condition", "lets_through"),
    {
        "codeHash == currentCodeHash": True,
        '$.entity == "d5"': True,
        '$.entity.id == "d6"': False,
        'entity.path == "out/d5.txt"': True,
        'entity.day == "5"': True,
        'stateType != "s" or contentHash == "x"': False,
    }.items(),
)
def test_a_filter_sees_a_state(condition: str, lets_through: bool) -> None:
    assert passes(compile_filter(condition, ["day"]), STATE, "c", {"day": "5"}) is lets_through
    assert passes(None, STATE, "c", {})


def test_a_filter_names_only_the_variables_of_its_entity() -> None:
    assert compile_filter("entity.month")  # of a pipeline that is not known here
    for variables in ([], ["day"]):
        with pytest.raises(TemplateError, match=r"the entity has no 'month'; .*id"):
            compile_filter("entity.month", variables)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = sorted({name for form in FORMS.values() for name in form.model_fields})


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(NAMES), ANYTHING, max_size=6), st.sampled_from(list(FORMS)), ANYTHING)
def test_any_data_is_a_trigger_or_a_clear_error(data: dict[str, Any], kind: str, value: Any) -> None:
    try:
        made = Trigger.of({"name": "a", "workflow": "w", **data, kind: value})
    except TriggerError as refused:
        told = refused
    else:
        assert told_by(Trigger.stored(made.content)) == told_by(made)
        return
    assert told.problems
    assert len(str(told)) < 20_000


def test_durations_and_moments() -> None:
    assert [duration(each) for each in ("90s", "2d", "1w1d", "1 h 5 m", 7, "", "h", "1h1h", "-5s")] == [
        *(90, 172_800, 691_200, 3_900, 7),
        *(None, None, None, None),
    ]
    assert moment("2026-01-01T01:00:00+01:00") == moment("2026-01-01T00:00:00Z") == 1_767_225_600_000_000
    assert [moment(each) for each in ("2026-01-01T00:00:00", "soon", 5, "x" * 99, "9999-12-31T23:59:59-23:00")] == [
        None
    ] * 5


def test_a_state_keeps_what_a_newer_stepwell_wrote() -> None:
    state = TriggerState(1, "d", 2, 3, 4, pending=(5,), queue=(6, 7), backfills=(Backfill(8, 9),), error="no")
    assert TriggerState.decoded(state.encoded()) == state
    newer = state.changed(extra={"colour": "blue"})
    assert TriggerState.decoded(newer.encoded()) == newer


def test_times_and_durations_may_be_those_of_python() -> None:
    every = timedelta(hours=1, minutes=30)
    made = Trigger(
        "t", Greeting, every=every, start=datetime(2026, 3, 1, 6, tzinfo=UTC), grace_seconds=timedelta(seconds=90)
    )
    told = Trigger("t", Greeting, every="1h30m", start="2026-03-01T06:00:00Z", grace_seconds=90)
    assert made.canonical == told.canonical
    stripe = {"scheme": "stripe", "secret": "secret:HOOK"}
    hook = Trigger("t", Greeting, webhook={**stripe, "window_seconds": timedelta(minutes=1)})
    assert hook.canonical == Trigger("t", Greeting, webhook={**stripe, "window_seconds": 60}).canonical
    with pytest.raises(TriggerError, match="a duration from 1 second"):
        Trigger("t", Greeting, every=timedelta(0))
