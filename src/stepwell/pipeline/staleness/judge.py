"""Judging one stage of one entity: a pure function of its files, its records and the present code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...base.clock import utc_text
from ...base.words import count, one_line
from ..states.records import MANY_INPUTS, Record, StageFailure, inputs_hash
from .standing import FRESH, Cause, Standing


class Current(NamedTuple):
    """The present code and checks of a stage."""

    code_hash: str
    config_hash: str
    check_hash: str
    min_size: int


class OutputFacts(NamedTuple):
    """One output: its record and its present content."""

    address: str
    record: Record | None
    content_hash: str | None
    """None if it does not exist."""
    size: int
    valid: bool = True
    publishing: bool = False
    """It is recorded, and about to be renamed to its name."""


class Upstream(NamedTuple):
    """An input made by another stage that is not fresh."""

    path: str
    stage: str
    standing: Standing


class UnitFacts(NamedTuple):
    current: Current
    outputs: Sequence[OutputFacts]
    inputs: Mapping[str, str | None]
    """Content hashes by path; None for those that do not exist (yet). Empty for a unit without records and failure."""
    missing_inputs: Sequence[str]
    """Patterns shared by all entities that nothing matches."""
    upstream: Sequence[Upstream]
    failure: StageFailure | None
    quiet_until: float | None
    newest_input: str
    clash: str | None


def judge(facts: UnitFacts, now: float) -> Standing:
    """Return the standing of one stage of one entity."""
    if facts.clash is not None:
        text = f"another system could not tell it from {facts.clash}: the names differ in case or form of Unicode only"
        return Standing("blocked", (Cause("name_clash", text, facts.clash),))
    unrecorded = [each.address for each in facts.outputs if each.record is None and each.content_hash is not None]
    if unrecorded:
        message = "nobody recorded it: `accept` takes it as it is, `invalidate` lets it be replaced"
        return Standing("unrecorded", tuple(Cause("unrecorded", f"{each}: {message}", each) for each in unrecorded))
    if facts.missing_inputs:
        missing = (Cause("input_missing", f"{path} is not there", path) for path in facts.missing_inputs)
        return Standing("blocked", tuple(missing))
    causes = [cause for output in facts.outputs for cause in _output_causes(output, facts)]
    behind = [each for each in facts.upstream if each.standing.status in ("failed", "blocked", "unrecorded")]
    if behind:
        return Standing("blocked", tuple(map(_blocked, behind)), _first_due(facts.upstream))
    stale_above = [each for each in facts.upstream if each.standing.status in ("stale", "waiting")]
    if not causes and not stale_above:
        return FRESH
    failure = facts.failure
    if failure is not None and failure.identity == identity(facts.current, facts.inputs) and not stale_above:
        if failure.next_retry_at is None or failure.next_retry_at > now:
            return Standing("failed", (_failed(failure), *causes), failure.next_retry_at)
        text = f"it failed {count(failure.attempts, 'time')} in a row, and may be tried again"
        causes.append(Cause("retry_due", text))
    if stale_above:
        causes += [
            Cause("upstream_stale", f"{each.path} is {each.standing.status} ({each.stage})", each.path)
            for each in stale_above
        ]
        if all(each.standing.status == "waiting" for each in stale_above):
            return Standing("waiting", tuple(causes), _first_due(stale_above))
    elif facts.quiet_until is not None and facts.quiet_until > now:
        text = f"{facts.newest_input} changed a moment ago and may still be written"
        return Standing("waiting", (Cause("still_written", text, facts.newest_input), *causes), facts.quiet_until)
    return Standing("stale", tuple(causes))


def identity(current: Current, inputs: Mapping[str, str | None]) -> str:
    """Identify what failed: with other code, config or inputs it may succeed."""
    return f"{current.code_hash}:{current.config_hash}:{_hash_of(inputs)}"


def _hash_of(inputs: Mapping[str, str | None]) -> str:
    return inputs_hash({path: digest or "" for path, digest in inputs.items()})


def _output_causes(output: OutputFacts, facts: UnitFacts) -> list[Cause]:
    record, address = output.record, output.address
    if record is None:
        return [Cause("missing", f"{address} is not there", address)]
    causes = []
    if output.content_hash is None and not output.publishing:
        causes.append(Cause("missing", f"{address} is not there", address))
    elif output.content_hash != record.content_hash and not output.publishing:
        causes.append(Cause("output_changed", f"{address} is not as it was written: somebody changed it", address))
    elif not output.valid or output.size < facts.current.min_size:
        why = "its validation refuses it"
        if output.size < facts.current.min_size:
            why = f"it has {count(output.size, 'byte')}: expected at least {facts.current.min_size:,}"
        causes.append(Cause("invalid", f"{address}: {why}", address))
    if record.stale:
        causes.append(Cause("invalidated", record.stale, address))
    if record.code_hash != facts.current.code_hash:
        causes.append(Cause("code_changed", "its code changed", record.code_hash))
    if record.config_hash != facts.current.config_hash:
        causes.append(Cause("config_changed", "its config changed", record.config_hash))
    if not facts.upstream:  # otherwise the inputs may still change
        causes += _input_causes(record, facts.inputs)
    return causes


def _input_causes(record: Record, inputs: Mapping[str, str | None]) -> list[Cause]:
    known = record.inputs  # empty where there were many: then only their hash is recorded
    if known == inputs or ((len(inputs) > MANY_INPUTS or not known) and record.inputs_hash == _hash_of(inputs)):
        return []
    changes = [
        *(("added", path) for path in inputs if path not in known),
        *(("removed", path) for path in known if path not in inputs),
        *(("changed", path) for path in inputs if path in known and inputs[path] != known[path]),
    ]
    if not changes or len(inputs) > MANY_INPUTS or (not known and record.inputs_hash):
        return [Cause("input_changed", "its inputs changed")]
    listed = "; ".join(f"{path} was {what}" for what, path in changes[:3])
    more = f" and {count(len(changes) - 3, 'more change')}" if len(changes) > 3 else ""
    return [Cause("input_changed", listed + more, changes[0][1])]


def _blocked(upstream: Upstream) -> Cause:
    root = upstream.standing.causes[0] if upstream.standing.causes else None
    if root is not None and root.code == "blocked":
        return root  # the first cause is what people want to know
    reason = f": {root.text}" if root is not None else ""
    text = f"it waits for {upstream.path} ({upstream.stage}, {upstream.standing.status}){reason}"
    return Cause("blocked", text, upstream.path)


def _failed(failure: StageFailure) -> Cause:
    error = one_line(f"{failure.error_type}: {failure.error}")
    due = failure.next_retry_at
    again = "it stays failed until `retry`" if due is None else f"it is tried again at {utc_text(due)}"
    return Cause("failed", f"{error} ({count(failure.attempts, 'failure')} in a row; {again})", failure.run_id)


def _first_due(upstream: Sequence[Upstream]) -> float | None:
    due = [each.standing.due_at for each in upstream if each.standing.due_at is not None]
    return min(due, default=None)
