"""How pipelines are shown: tables, a matrix, plans, explanations, the progress of a build."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...answers.staleness import STATUSES, Status
from ...base.words import count, duration
from .words import plain

SHOWN_UP_TO = 50
CAUSES_UP_TO = 5
"""Of one state on one line: what collects states has a cause for each of them."""


def show_status(told: Mapping[str, Any]) -> None:
    from rich.text import Text

    from .screen import console, table

    screen = console()
    screen.print(f"{plain(told['pipeline'])}: {count(told['entities'], 'entity').replace('entitys', 'entities')}")
    used = [status for status in STATUSES if told.get(status) or status in ("fresh", "stale")]
    stages = table("stage", *used, right=used)
    for name, counts in told["stages"].items():
        stages.add_row(
            name,
            *(
                Text(f"{counts.get(each, 0):,}", style=STATUSES[each].style if counts.get(each) else "dim")
                for each in used
            ),
        )
    screen.print(stages)
    if told["states"]:
        listed = table("status", "state", "cause", wrapped=("cause",))
        for state in told["states"][:SHOWN_UP_TO]:
            causes = _causes([f"{cause['cause']}: {cause['text']}" for cause in state["causes"]])
            listed.add_row(
                Text(state["status"], style=STATUSES[state["status"]].style),
                plain(", ".join(state["outputs"])),
                plain(causes),
            )
        screen.print(listed)
        if len(told["states"]) > SHOWN_UP_TO:
            screen.print(f"and {len(told['states']) - SHOWN_UP_TO:,} more; --json has all of them", style="dim")
    problems = [f"problem: {plain(each['path'])}: {plain(each['problem'])}" for each in told["problems"]]
    for line in _first_lines(problems):
        screen.print(Text(line, style="yellow"))


def show_matrix(stages: Sequence[str], states: Iterable[Mapping[str, Any]]) -> None:
    """Entities and stages: a letter for each status."""
    from rich.text import Text

    from .screen import console, table

    rows: dict[str, dict[str, Status]] = {}
    for state in states:
        rows.setdefault(state["entity"], {})[state["stage"]] = state["status"]
    shown = table("entity", *stages)
    for entity in sorted(rows):
        cells = [rows[entity].get(stage) for stage in stages]
        shown.add_row(
            plain(entity) or "(all)",
            *(Text(STATUSES[each].symbol, style=STATUSES[each].style) if each else "" for each in cells),
        )
    screen = console()
    screen.print(shown)
    screen.print(Text("  ".join(f"{look.symbol} {status}" for status, look in STATUSES.items()), style="dim"))


def plan_text(plan: Mapping[str, Any]) -> str:
    lines = []
    for title, states in (("will run", plan["will_run"]), ("may run", plan["may_run"])):
        lines.append(f"{title}: {count(len(states), 'state') if states else 'nothing'}")
        lines += _first_lines([f"  {_named(state)}  {_texts(state)}" for state in states])
    if plan["may_appear"]:
        lines.append(f"  and whatever may appear for {', '.join(plan['may_appear'])}")
    return plain("\n".join(lines))


def _named(state: Mapping[str, Any]) -> str:
    return f"{state['stage']} {state['entity']}".rstrip()


def _texts(state: Mapping[str, Any]) -> str:
    return _causes([cause["text"] for cause in state["causes"]])


def _causes(causes: Sequence[str]) -> str:
    more = [f"and {len(causes) - CAUSES_UP_TO:,} more"] if len(causes) > CAUSES_UP_TO else []
    return "; ".join([*causes[:CAUSES_UP_TO], *more])


def _first_lines(lines: Sequence[str]) -> list[str]:
    more = [f"  and {len(lines) - SHOWN_UP_TO:,} more; --json has all of them"] if len(lines) > SHOWN_UP_TO else []
    return [*lines[:SHOWN_UP_TO], *more]


def explanation(answer: Mapping[str, Any]) -> str:
    stage = f"made by {_named(answer)}" if answer["stage"] else "a source: no stage makes it"
    lines = [f"{answer['state']} is {answer['status']} ({stage})"]
    causes = []
    for cause in answer["causes"]:
        causes.append(f"  {cause['cause']}: {cause['text']}")
        if cause["cause"] == "code_changed":
            causes += [f"    {part}" for part in answer["changed_code"]]
    lines += _first_lines(causes)
    above = [f"  above it: {_named(state)} is {state['status']}: {_texts(state)}" for state in answer["upstream"]]
    lines += _first_lines(above)
    record = answer["record"]
    if record is not None:
        lines.append(f"  produced at {record['produced_at']} from {count(len(record['inputs']), 'input')}:")
        lines += [f"    {path}" for path in list(record["inputs"])[:10]]
    if answer["not_followed"]:
        lines.append("  changes of this are not noticed, unless it is declared (uses=, version=):")
        lines += [f"    {what}{f' ({where})' if where else ''}" for what, where in answer["not_followed"].items()]
    return plain("\n".join(lines))


def report_text(report: Mapping[str, Any]) -> str:
    parts = [f"{len(report['produced']):,} produced"]
    if report["unchanged"]:
        parts.append(f"{len(report['unchanged']):,} of them unchanged")
    if report["failed"]:
        parts.append(f"{len(report['failed']):,} failed")
    if not report["produced"] and not report["failed"]:
        parts = ["nothing to do" if not report["left"] else "nothing ran"]
    lines = [f"{report['pipeline']}: {', '.join(parts)} in {duration(report['seconds'])}"]
    lines += _first_lines([f"  failed: {unit}: {error}" for unit, error in report["failed"].items()])
    if report["left"]:
        counted = ", ".join(f"{number:,} {status}" for status, number in Counter(report["left"].values()).items())
        lines.append(f"  left: {counted}; `stepwell pipeline status` says why")
    return plain("\n".join(lines))


def failure_text(unit: str, failure: Mapping[str, Any]) -> str:
    due = failure["next_retry_at"]
    again = "stays failed until `retry`" if due is None else f"again at {due}"
    return plain(
        f"{unit}  {failure['error_type']}: {failure['error']}  "
        f"({failure['attempts']} in a row; {again}; run {failure['run_id']})"
    )


class BuildProgress:
    """A bar with rate and remaining time, on a terminal."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        self._name = name
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._began = time.monotonic()

    def __enter__(self) -> BuildProgress:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, tally: Mapping[str, int]) -> None:
        """`done`, `failed`, `running` and `ready`."""
        total = sum(tally.values())
        if self._quiet or not total:
            return
        if self._bar is None:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            from .screen import console

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
            )
            self._bar = Progress(
                *columns, console=console(err=True), transient=True, redirect_stdout=sys.stdout.isatty()
            )
            self._task = self._bar.add_task(self._name, total=total, rate="")
            self._bar.start()
        done = tally["done"] + tally["failed"]
        rate = done / max(time.monotonic() - self._began, 0.001)
        self._bar.update(self._task, completed=done, total=total, rate=f"{rate:,.0f}/s")
