"""Renders the input of runs that triggers start."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, timedelta
from typing import Any, NamedTuple

from ..base.clock import SECOND
from ..base.words import shown
from ..errors import InputError
from .definition import Trigger
from .schedule import Cron
from .state import TriggerState
from .times import EPOCH, time_text


class Start(NamedTuple):
    """A run to start. The same id is the same run, however often it is started."""

    run_id: str
    workflow: str
    input: dict[str, Any]
    priority: int
    tags: dict[str, str]


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
    rendered = trigger.template.render(scope, make_secret=lambda name: f"secret:{name}")
    if not isinstance(rendered, dict):
        raise InputError(f"the input of trigger {trigger.name!r}: expected an object, got {shown(rendered)}")
    return Start(run_id, trigger.workflow, rendered, trigger.priority, tags_of(trigger, time))


def tags_of(trigger: Trigger, time: int) -> dict[str, str]:
    return {**trigger.tags, "trigger": trigger.name, "fire": time_text(time)}


def _fire(trigger: Trigger, state: TriggerState, time: int) -> dict[str, Any]:
    """When it fired: `time` in UTC, `local` and `date` where the schedule is, `previous` the time before it."""
    schedule = trigger.schedule(state.added_at)
    zone = schedule.zone if isinstance(schedule, Cron) else UTC
    local = (EPOCH + timedelta(microseconds=time)).astimezone(zone)
    fire = {"time": time_text(time), "local": local.isoformat(), "date": local.date().isoformat()}
    if schedule is not None and trigger.reads("fire", "previous"):
        before = schedule.latest(time - 1, max(0, time - 40 * 366 * 86_400 * SECOND))
        fire["previous"] = fire["time"] if before is None else time_text(before)
    return fire
