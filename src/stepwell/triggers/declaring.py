"""Triggers that a document or a class declares for itself: data without the workflow, which is the one around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..words import shown
from .definition import Trigger
from .kinds import Path, TriggerError

MAX_DECLARED = 100


def read_declared(given: Any, workflow: str, named: str, report: Callable[[Path, str], None]) -> tuple[Trigger, ...]:
    """The triggers that somebody declares for a workflow. The only one may go without a name: it has that of the workflow."""
    if not isinstance(given, list | tuple) or len(given) > MAX_DECLARED:
        report((), f"a list of at most {MAX_DECLARED} triggers is needed, not {shown(given)}")
        return ()
    found: list[Trigger] = []
    for place, each in enumerate(given):
        if not isinstance(each, Mapping):
            report(
                (place,), f"an object is needed, with cron, every, webhook, run_finished or state, not {shown(each)}"
            )
            continue
        if "workflow" in each:
            report((place, "workflow"), "it starts the workflow that declares it: leave this out")
            continue
        data = {**each, "workflow": workflow}
        if len(given) == 1 and "name" not in each:
            data["name"] = re.sub(r"[^A-Za-z0-9._-]+", "-", named).strip("-._")[:100]
        try:
            trigger = Trigger.of(data)
        except TriggerError as error:
            for problem in error.problems:
                report((place, *problem.path), problem.message)
            continue
        if any(trigger.name == other.name for other in found):
            report((place, "name"), f"{trigger.name!r} is the name of another one already")
        found.append(trigger)
    return tuple(found)


def declared_form(trigger: Trigger) -> dict[str, Any]:
    """A trigger as the document that declares it has it."""
    return {name: value for name, value in trigger.canonical.items() if name != "workflow"}
