"""The texts of causes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, tzinfo
from typing import Any, NamedTuple, assert_never

from ...answers.causes import CauseKind
from ...base.clock import SECOND
from ...base.words import count, duration, error_line, one_line, ways_out
from ...core.kernel.healing import REMOVED
from ...core.model import (
    CONDITION,
    HEALED_LATE,
    PARENT_SKIPPED,
    PARENTS_SKIPPED,
    NodeStatus,
    RunRow,
)
from .pauses import PAUSE_REASONS, pause_of
from .records import WhyCause

K = CauseKind

_PURPOSES = {
    "retry": "the run was retried (run.retry())",
    "reattempt": "the node was run again on request (run.reattempt())",
    "heal": "the code of the workflow changed and the run switched to it",
    "cancel": "the run was cancelled",
    "pause": "the run was paused",
    "resume": "the run was resumed",
    "import": "the run was given another graph (run.import_graph())",
    "freeze": "the graph of the run was frozen (run.freeze())",
    "failed": "the run failed",
}
_HELD_FOR = {
    "load": "its nodes are still being stored",
    "failed": "the consequences of a failure are being recorded",
    "cancel": "it is being cancelled",
    "retry": "it is being retried",
    "reattempt": "a node is being run again",
    "heal": "it switches to changed code",
    "import": "it is given another graph",
    "freeze": "its graph is being frozen",
    "fork": "it waits for what it shares with the run it was forked from",
    "pause": "it is being paused",
    "resume": "it is being resumed",
    "delete": "it is being deleted",
}
_CANCELLED = {
    "run_failed": "because the run failed",
    "run_cancelled": "because the run was cancelled",
    "deadline": "because the time of the run was up",
    REMOVED: "because the workflow no longer has it",
    "origin_deleted": "because the run it was forked from was deleted before it could begin",
    "worker_lost": "because the run was stopping when its worker was lost",
}
_SKIPPED = {
    CONDITION: "its condition did not hold",
    PARENTS_SKIPPED: "all of its parents were skipped",
    PARENT_SKIPPED: 'one of its parents was skipped, and with join="all" it runs only after all of them',
    HEALED_LATE: "it joined the run when nodes after it had already started",
}


class StoreTimes(NamedTuple):
    """Times of the store, as people read them."""

    now: int
    zone: tzinfo | None = None
    """None: that of this machine."""

    def at(self, time: int) -> str:
        """`12:03:20`, on another day with the date."""
        there, here = (datetime.fromtimestamp(moment / SECOND, self.zone) for moment in (time, self.now))
        return there.strftime("%H:%M:%S" if there.date() == here.date() else "%Y-%m-%d %H:%M:%S")

    def past(self, time: int | None) -> str:
        """` at 12:03:20`, or nothing when it is not known."""
        return "" if time is None else f" at {self.at(time)}"

    def until(self, time: int) -> str:
        """`12:03:20 (in 14 s)`"""
        return f"{self.at(time)} (in {_rough(time - self.now)})" if time > self.now else self.at(time)

    def since(self, time: int | None) -> str:
        """` since 12:03:20 (4 s)`"""
        return "" if time is None else f" since {self.at(time)} ({_rough(self.now - time)})"


def _rough(time: int) -> str:
    seconds = max(0, time) / SECOND
    return f"{round(seconds)} s" if 10 <= seconds < 60 else duration(seconds)


def shown(line: str) -> str:
    """A line without control characters."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in line)


def lines(causes: Iterable[WhyCause], times: StoreTimes, depth: int = 0) -> list[str]:
    """Each cause in a line, the ones behind it indented below."""
    texts = []
    for cause in causes:
        texts.append("  " * depth + sentence(cause, times))
        error, message = (str(cause.detail.get(key) or "") for key in ("type", "message"))
        texts += ["  " * (depth + 1) + line for line in ways_out(error, message)]
        texts += lines(cause.because, times, depth + 1)
    return texts


def sentence(cause: WhyCause, times: StoreTimes) -> str:
    """One cause, without what is behind it."""
    name, detail, number = cause.name, cause.detail, cause.attempt
    match cause.kind:
        case K.WAITS_FOR_PARENTS:
            return _waits_for_parents(name, detail)
        case K.READY:
            return f"{name} is ready to run{times.since(cause.at)}"
        case K.RUNNING:
            return _running(cause, times)
        case K.WAITS_UNTIL:
            return _waits_until(cause, times)
        case K.WAITS_FOR_RUN:
            of = (
                f" of {detail['workflow']}, which is {detail['status'].lower()}"
                if detail["workflow"]
                else ", which is gone"
            )
            return f"{name} waits{times.since(cause.at)} for run {detail['run']}{of}"
        case K.CHILD_RUN:
            return f"run {detail['run']} of {detail['workflow']} {detail['status'].lower()}{times.past(cause.at)}"
        case K.COMPLETED:
            took = detail.get("seconds")
            tries = f", in attempt {number}" if number is not None and number > 1 else ""
            if detail.get("run"):
                return f"{name} completed{times.past(cause.at)}: run {detail['run']} performed it"
            return f"{name} completed{times.past(cause.at)}{tries}{'' if took is None else f' ({duration(took)})'}"
        case K.FAILED:
            return f"{name} failed for good: {_verdict(detail)}"
        case K.UPSTREAM_FAILED:
            way = "" if detail["direct"] else " through other nodes"
            on = f"it depends on {detail['root']}{way}" if detail["root"] else "something it depends on failed"
            return f"{name} did not run: {on}"
        case K.SKIPPED:
            reason, when = detail.get("reason"), detail.get("when")
            condition = f" ({when})" if reason == CONDITION and when not in (None, "<lambda>") else ""
            return f"{name} was skipped: {_SKIPPED.get(str(reason), reason)}{condition}"
        case K.CANCELLED:
            reason = _CANCELLED.get(detail["reason"], f"reason: {detail['reason']}")
            if detail["stopped"]:
                return f"{name} was stopped while it ran{times.past(cause.at)}, {reason}"
            return f"{name} was cancelled {'' if number else 'before it began, '}{reason}"
        case K.INTERRUPTED:
            return f"{name} was interrupted: it may have done part of its work, and is not run again by itself"
        case K.ATTEMPT_FAILED | K.ATTEMPT_POSTPONED | K.ATTEMPT_TIMED_OUT | K.ATTEMPT_LOST:
            return _attempt(cause, times)
        case K.ATTEMPT_RELEASED | K.ATTEMPT_CANCELLED | K.ATTEMPT_SUPERSEDED:
            return _attempt(cause, times)
        case K.PARENTS_DONE:
            parents = detail["parents"]
            last = "" if parents == 1 else f", the last of its {parents:,} parents,"
            return f"{name}{last} completed{times.past(cause.at)}"
        case K.RUN_STARTED:
            return f"the run was started{times.past(cause.at)}"
        case K.ASKED:
            purpose = str(detail.get("purpose"))
            return f"{_PURPOSES.get(purpose, f'the run was changed: {purpose}')}{times.past(cause.at)}"
        case K.NO_WORKER:
            return "no worker is alive"
        case K.NOT_SERVED:
            return _not_served(detail)
        case K.QUEUE_NOT_SERVED:
            alive, queues = _alive(detail["workers"], "take"), ", ".join(map(repr, detail["queues"]))
            return f"no worker serves its queue {detail['queue']!r}: {alive} only {queues}"
        case K.LACKING:
            workers = detail["workers"]
            alive = "the 1 worker that is alive" if workers == 1 else f"none of the {workers:,} workers that are alive"
            return f"{alive} {'cannot' if workers == 1 else 'can'} run it: {'; '.join(detail['reasons'])}"
        case K.BUSY:
            alive = "worker is alive and takes" if detail["workers"] == 1 else "workers are alive and take"
            return f"{detail['workers']} {alive} it when there is room"
        case K.ALONE:
            losses = count(detail["losses"], "worker")
            return f"{losses} died while running it, so it runs alone, when its worker has nothing else to do"
        case K.WORKER_GONE:
            what = "interrupts it" if detail["on_lost"] == "interrupt" else "runs it again"
            return f"the worker of attempt {number} is gone; the next sweep {what}"
        case K.HELD:
            return f"the run is held for a moment: {_HELD_FOR.get(detail['purpose'], detail['purpose'])}"
        case K.PAUSED:
            reason = detail.get("reason") or "paused"
            return f"the run is paused{times.since(cause.at)}: {PAUSE_REASONS.get(reason, reason)}"
        case K.DEADLINE:
            return (
                f"the run had to end by {times.at(cause.at)}" if cause.at is not None else "the time of the run was up"
            )
        case K.REASON:
            return f"reason: {detail.get('reason') or 'unknown'}"
        case K.NOTHING_TO_DO:
            return "there was nothing to do: every last node was skipped"
        case _:
            assert_never(cause.kind)


def _waits_for_parents(name: str | None, detail: Mapping[str, Any]) -> str:
    names = ", ".join(detail["names"])
    waiting, parents = detail.get("waiting"), detail.get("parents")
    begin = f"{name} can no longer run: it needs" if detail.get("doomed") else f"{name} waits for"
    if waiting == 0:
        return f"{name} waits{', though all its parents are done' if parents else ' to begin'}"
    if detail.get("skipped"):
        return f"{begin} {names}, {count(detail['skipped'] + 1, 'step')} further up"
    if waiting is None or parents is None or (waiting <= 1 and names):
        return f"{begin} {names}"
    of = f"all of its {parents:,}" if waiting == parents else f"{waiting:,} of its {parents:,}"
    first = "" if not names else f": {names}" if waiting <= len(detail["names"]) else f"; among them {names}"
    return f"{begin} {of} parents{first}"


def _running(cause: WhyCause, times: StoreTimes) -> str:
    detail = cause.detail
    where = f", process {detail['pid']} on {detail['host']}" if detail.get("pid") and detail.get("host") else ""
    tries = f", attempt {cause.attempt}" if (cause.attempt or 1) > 1 else ""
    limit = ""
    if detail.get("timeout") is not None and cause.at is not None:
        limit = f"; it has until {times.until(cause.at + int(detail['timeout'] * SECOND))}"
    stop = "; it was told to stop" if detail.get("stopping") else ""
    running = "recorded as running" if detail.get("gone") else "running"
    return f"{cause.name} is {running}{times.since(cause.at)}{tries}{where}{stop or limit}"


def _waits_until(cause: WhyCause, times: StoreTimes) -> str:
    detail = cause.detail
    due = "" if cause.at is None else f" until {times.until(cause.at)}"
    if detail["overdue"] and cause.at is not None:
        due = f", due since {times.at(cause.at)},"
    purpose = ""
    if detail["tries"] is not None:
        of = "" if detail["of"] is None else f" of {detail['of']}"
        same = cause.attempt == detail["tries"]
        purpose = f" for attempt {cause.attempt}" + (of if same else f" (try {detail['tries']}{of})")
    elif detail.get("reason"):
        purpose = f" for {detail['reason']}"
    return f"{cause.name} waits{due}{purpose}"


def _verdict(detail: Mapping[str, Any]) -> str:
    match detail["verdict"]:
        case "not_retried":
            return "it has no retry="
        case "child_run":
            return "the run that performs it did not complete"
        case "used_up":
            return f"all {detail['of']} attempts are used up" if detail["of"] > 1 else "its only attempt is used up"
        case "not_retryable":
            names = [
                f"errors that {name} accepts" if ":" in name else name.removeprefix("builtins.")
                for name in detail["retry_on"]
            ]
            return f"it is retried only after {' or '.join(names) or 'other errors'}"
        case "postponed":
            return f"it was postponed {count(detail['postponed'], 'time')}, which is its limit"
        case "worker_lost":
            return f"{count(detail['losses'], 'worker')} died while running it"
        case unknown:
            return str(unknown)


def _attempt(cause: WhyCause, times: StoreTimes) -> str:
    number, at = cause.attempt, times.past(cause.at)
    error, message = (str(cause.detail.get(key) or "") for key in ("type", "message"))
    endings = {
        K.ATTEMPT_LOST: f"was lost{at}: its worker died or did not answer in time",
        K.ATTEMPT_RELEASED: f"was given back{at} before it began",
        K.ATTEMPT_CANCELLED: f"was stopped{at}",
        K.ATTEMPT_SUPERSEDED: f"had completed{at}",
        K.ATTEMPT_TIMED_OUT: f"took too long{at}: {one_line(message)}",
        K.ATTEMPT_POSTPONED: f"was postponed{at} by {duration(float(cause.detail.get('later') or 0))}: "
        f"{one_line(message) or error}",
        K.ATTEMPT_FAILED: f"failed{at}: {error_line(error, message) if error else 'its error cannot be read'}",
    }
    return f"attempt {number} {endings[cause.kind]}"


def _not_served(detail: Mapping[str, Any]) -> str:
    alive, workflow = _alive(detail["workers"], "serve"), detail["workflow"]
    if detail["other_versions"]:
        return f"{alive} other versions of {workflow}, not that of this run ({detail['digest'][:12]})"
    others = f", only {', '.join(detail['serving'])}" if detail["serving"] else ""
    return f"{alive} no {workflow}{others}"


def _alive(workers: int, do: str) -> str:
    return f"the 1 worker that is alive {do}s" if workers == 1 else f"the {workers:,} workers that are alive {do}"


def heading(run: RunRow, counts: Mapping[NodeStatus, int], times: StoreTimes) -> str:
    """The status of a run in a line."""
    began = f"run {run.id} of {run.workflow}"
    nodes = _counted(counts)
    if run.status.terminal:
        began += f" {run.status.lower()}{times.past(run.ended_at)}"
    else:
        began += f" is {run.status.lower()}"
        if run.deadline_at is not None:
            nodes += f"; it must end by {times.until(run.deadline_at)}"
    return f"{began}: {nodes}"


def _counted(counts: Mapping[NodeStatus, int]) -> str:
    present = [(status, counts[status]) for status in NodeStatus if counts.get(status)]
    total = sum(number for _, number in present)
    if len(present) == 1:
        return (
            f"{count(total, 'node')}, all {_status(present[0][0])}"
            if total > 1
            else f"1 node, {_status(present[0][0])}"
        )
    return f"{count(total, 'node')}, {', '.join(f'{number:,} {_status(status)}' for status, number in present)}"


def _status(status: NodeStatus) -> str:
    return status.lower().replace("_", " ")


def advice(run: RunRow, causes: Iterable[WhyCause], command: Callable[[str], str | None]) -> list[str]:
    """What to do about it: sentences with code to write or a command to type."""
    kinds: dict[CauseKind, WhyCause] = {}
    for cause in _all(causes):
        kinds.setdefault(cause.kind, cause)
    sentences = [
        f"{_either(f'engine.get({child!r}).why()', command(f'why {child}'))} says what gets that run going again"
        for child in _paused_children(causes)
    ]
    if K.PAUSED in kinds:
        sentences += _resuming(run, command)
    elif K.QUEUE_NOT_SERVED in kinds:
        detail = kinds[K.QUEUE_NOT_SERVED].detail
        work = command(f"work{_module(detail)} --queues {detail['queue']}")
        engine = f"Engine(queues=[{detail['queue']!r}])"
        sentences.append(f"{_either(engine, work)} takes nodes from this queue")
    elif K.NO_WORKER in kinds or K.NOT_SERVED in kinds:
        module = _module((kinds.get(K.NO_WORKER) or kinds[K.NOT_SERVED]).detail)
        work, resume = command(f"work{module}"), command(f"resume {run.id}")
        typed = f"`{work}` works on it, or `{resume}` on this run alone"
        call = f"`engine.adopt({run.id!r})` works on it, in an engine with a runner"
        sentences.append(call if work is None or resume is None else typed)
    was_removed = K.CANCELLED in kinds and kinds[K.CANCELLED].detail.get("reason") == REMOVED
    needs_nothing = was_removed or kinds.keys() & {K.COMPLETED, K.SKIPPED}
    if run.status.terminal and not run.status.completed and not needs_nothing:
        if K.INTERRUPTED in kinds:
            sentences.append(f"see whether {kinds[K.INTERRUPTED].name} did its work: a retry runs it once more")
        sentences.append(f"{_either('run.retry()', command(f'retry {run.id}'))} runs only what did not complete")
    return sentences


def _module(detail: Mapping[str, Any]) -> str:
    """The module to start a worker with, after a space; empty if it needs none."""
    module = detail.get("module")
    return " MODULE" if module is None else f" {module}" if module else ""


def _either(call: str, typed: str | None) -> str:
    return f"`{call}`" if typed is None else f"`{call}` or `{typed}`"


def _resuming(run: RunRow, command: Callable[[str], str | None]) -> list[str]:
    pause = pause_of(run)
    steps = [f"{_either(step.call, command(step.command))} {step.effect}" for step in pause.steps]
    return steps if pause.hint is None else [pause.hint, *steps]


def _all(causes: Iterable[WhyCause]) -> Iterable[WhyCause]:
    """All causes, without those of child runs that are paused: what helps them is not said of this run."""
    for cause in causes:
        yield cause
        if not _is_paused_child(cause):
            yield from _all(cause.because)


def _is_paused_child(cause: WhyCause) -> bool:
    return cause.kind is K.WAITS_FOR_RUN and bool(cause.detail["paused"])


def _paused_children(causes: Iterable[WhyCause]) -> list[str]:
    """The child runs that are paused for a reason of their own."""
    return [cause.detail["run"] for cause in _all(causes) if _is_paused_child(cause)]
