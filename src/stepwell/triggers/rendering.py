"""Renders the input of runs that triggers start."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ..base.clock import SECOND
from ..base.words import shown
from ..errors import InputError
from .deciding import schedule_of
from .definition import Trigger
from .schedule import Cron, time_zone
from .state import TriggerState

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Start(NamedTuple):
    """A run to start. The same id is the same run, however often it is started."""

    run_id: str
    workflow: str
    input: dict[str, Any]
    priority: int
    tags: dict[str, str]


def time_text(time: int) -> str:
    """
    >>> time_text(1_768_473_000_000_000), time_text(1_768_473_000_500_000)
    ('2026-01-15T10:30:00Z', '2026-01-15T10:30:00.500000Z')
    """
    moment = _EPOCH + timedelta(microseconds=time)
    return moment.isoformat(timespec="microseconds" if time % SECOND else "seconds").replace("+00:00", "Z")


def run_id_at(trigger: str, time: int) -> str:
    """The id of the run of a trigger for a time. It does not depend on the version of the trigger."""
    return f"{trigger}:{time_text(time)}"


def make_start(
    trigger: Trigger, state: TriggerState, run_id: str, time: int, names: Mapping[str, Any] | None = None
) -> Start:
    """What to start, its input rendered. `names`: what the input may name besides `fire` and `trigger`."""
    scope: dict[str, Any] = {
        "trigger": {"name": trigger.name, "version": state.version},
        "fire": _fire(trigger, state, time),
        **(names or {}),
    }
    given = trigger.template.render(scope, make_secret=lambda name: f"secret:{name}")
    if not isinstance(given, dict):
        raise InputError(f"the input of trigger {trigger.name!r} is {shown(given)}; an object is needed")
    return Start(run_id, trigger.workflow, given, trigger.priority, tags_of(trigger, time))


def tags_of(trigger: Trigger, time: int) -> dict[str, str]:
    return {**trigger.tags, "trigger": trigger.name, "fire": time_text(time)}


def _fire(trigger: Trigger, state: TriggerState, time: int) -> dict[str, Any]:
    """When it fired: `time` in UTC, `local` and `date` where the schedule is, `previous` the time before it."""
    when = trigger.when
    local = (_EPOCH + timedelta(microseconds=time)).astimezone(
        time_zone(when.timezone if isinstance(when, Cron) else "UTC")
    )
    made = {"time": time_text(time), "local": local.isoformat(), "date": local.date().isoformat()}
    schedule = schedule_of(trigger, state)
    if schedule is not None and trigger.reads("fire", "previous"):
        before = schedule.latest(time - 1, max(0, time - 40 * 366 * 86_400 * SECOND))
        made["previous"] = made["time"] if before is None else time_text(before)
    return made
