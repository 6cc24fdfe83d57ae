"""What a schedule does now. Pure: (trigger, state, now, whether the run before is active) -> the state that follows.

A time is decided once: the next state has it in `pending`, and is stored by compare-and-set before anything is started. So only
one of several processes decides, and any process starts pending times, under an id made of the trigger and the time, so that
starting twice is harmless.
"""

from __future__ import annotations

from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from ..base.clock import SECOND
from .definition import Trigger
from .schedule import Schedule
from .state import TriggerState

if TYPE_CHECKING:
    from .kinds import Scheduled

AT_ONCE = 100
"""Times that are decided and started together."""
MAX_QUEUE = 1_000
"""Times that may wait for the run before; more are left out, and counted."""
CLOCK_SET_BACK = 300 * SECOND
"""A mark that lies further in the future was made by a clock that was wrong."""
RETRY_AFTER = 30 * SECOND
"""How long after a failed start it is tried again."""
BUSY_AGAIN = 1 * SECOND
"""How soon to look whether the run before has ended."""


class Decision(NamedTuple):
    state: TriggerState
    """The next state; the same object if there is nothing to decide."""
    missed: tuple[int, int] | None = None
    """The first and the last time that was left out because it was missed."""
    skipped: int = 0
    """Times that were left out because the run before was active, or too many waited for it."""
    clock_moved: bool = False


def decide(trigger: Trigger, state: TriggerState, now: int, *, busy: bool) -> Decision:
    """Which times fire. `busy`: the run that it started last has not ended."""
    scheduled = trigger.scheduled
    if scheduled is None or state.paused or state.pending:
        return Decision(state)
    schedule = scheduled.schedule(state.added_at)
    if state.mark > now + CLOCK_SET_BACK:
        return Decision(state.changed(mark=now), clock_moved=True)
    due, missed = _due(scheduled, schedule, state.mark, now)
    mark = max(state.mark, due[-1] if due else 0, missed[1] if missed else 0)
    made = state.changed(mark=mark) if mark != state.mark else state
    match scheduled.overlap:
        case "allow":
            return Decision(_with_backfill(made.changed(pending=tuple(due)) if due else made, schedule), missed)
        case "skip":
            starts = due[: 0 if busy else 1]
            left = len(due) - len(starts)
            made = made.changed(pending=tuple(starts), left_out=made.left_out + left) if due else made
            return Decision(_next_in_turn(made, schedule, busy), missed, left)
        case "queue":
            room = MAX_QUEUE - len(made.queue)
            left = max(0, len(due) - room)
            made = made.changed(queue=(*made.queue, *due[:room]), left_out=made.left_out + left) if due else made
            return Decision(_next_in_turn(made, schedule, busy), missed, left)


def _due(policy: Scheduled, schedule: Schedule, mark: int, now: int) -> tuple[list[int], tuple[int, int] | None]:
    """The times after the mark that fire now, as `catch_up` says, and the first and last that are left out."""
    if policy.catch_up == "all":
        return list(islice(takewhile(lambda time: time <= now, schedule.after(mark)), AT_ONCE)), None
    first = next(iter(schedule.after(mark)), None)
    if first is None or first > now:
        return [], None
    on_time = max(mark, now - policy.grace - 1)  # a grace of 60 s includes what was due 60 s ago
    due = list(islice(takewhile(lambda time: time <= now, schedule.after(on_time)), AT_ONCE))
    last = schedule.latest(on_time, mark)  # the last of those that were missed
    if last is None:
        return due, None
    if policy.catch_up == "last" and not due:
        before = schedule.latest(last - 1, mark)
        return [last], None if before is None else (first, before)
    return due, (first, last)


def _with_backfill(state: TriggerState, schedule: Schedule) -> TriggerState:
    """Add times of backfills, as many as there is room for."""
    room = AT_ONCE - len(state.pending)
    while state.backfills and room > 0:
        state, times = _of_backfill(state, schedule, room)
        state = state.changed(pending=(*state.pending, *times))
        room = AT_ONCE - len(state.pending)
    return state


def _next_in_turn(state: TriggerState, schedule: Schedule, busy: bool) -> TriggerState:
    """The next waiting time, one at a time. Backfills wait for their turn, also with `skip`."""
    if busy or state.pending:
        return state
    if state.queue:
        return state.changed(pending=state.queue[:1], queue=state.queue[1:])
    while state.backfills:
        state, times = _of_backfill(state, schedule, 1)
        if times:
            return state.changed(pending=tuple(times))
    return state


def _of_backfill(state: TriggerState, schedule: Schedule, count: int) -> tuple[TriggerState, list[int]]:
    first = state.backfills[0]
    times = list(islice(takewhile(lambda time: time <= first.until, schedule.after(first.after)), count))
    rest = state.backfills[1:] if len(times) < count else (first._replace(after=times[-1]), *state.backfills[1:])
    return state.changed(backfills=rest), times


def next_look(trigger: Trigger, state: TriggerState, now: int, *, busy: bool) -> int | None:
    """When there is something to do again; None: not before something changes."""
    schedule = trigger.schedule(state.added_at)
    if state.pending:
        return state.tried_at + RETRY_AFTER if state.error else now
    if schedule is None or state.paused:
        return None
    if state.queue or state.backfills:
        return now + BUSY_AGAIN if busy else now
    return next(iter(schedule.after(state.mark)), None)
