"""What each fact about one stage of one entity makes of its standing: the whole table, without files."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.pipeline.staleness.judge import Current, OutputFacts, UnitFacts, Upstream, identity, judge
from stepwell.pipeline.staleness.standing import FRESH, Cause, Standing
from stepwell.pipeline.states.records import MANY_INPUTS, Record, StageFailure, inputs_hash

NOW = 1_000.0
CURRENT = Current("code", "config", "check", 10)
INPUTS: dict[str, str | None] = {"in/a": "1", "in/b": "2"}
KNOWN = {path: digest or "" for path, digest in INPUTS.items()}
RECORD = Record("code", "config", "content", inputs_hash(KNOWN), "then", "p#stage", "a", KNOWN)


def output(
    address: str = "out/a", record: Record | None = RECORD, content: str | None = "content", **more: Any
) -> OutputFacts:
    return OutputFacts(address, record, content, more.pop("size", 10), **more)


def facts(**changed: Any) -> UnitFacts:
    given: dict[str, Any] = {
        "current": CURRENT, "outputs": [output()], "inputs": INPUTS, "missing_inputs": (), "upstream": (), "failure": None,
        "quiet_until": None, "newest_input": "", "clash": None,
    }  # fmt: skip
    return UnitFacts(**given | changed)


def failure(due: float | None, what: str = identity(CURRENT, INPUTS)) -> StageFailure:
    return StageFailure("boom\nand more", "ValueError", 2, 1.0, 2.0, due, what, "run-7")


def above(status: Any, due: float | None = None, *causes: Cause) -> Upstream:
    return Upstream(f"in/{status}", f"{status} a", Standing(status, causes, due))


GONE = output(content=None)
OTHER_INPUTS = {**KNOWN, "in/b": "changed"}
REMOVED_INPUTS = {**KNOWN, "in/c": "3"}
MANY: dict[str, str | None] = {f"in/{number}": "1" for number in range(MANY_INPUTS + 1)}
NOT_LISTED = RECORD._replace(inputs={})

TABLE: dict[str, tuple[dict[str, Any], str, str, float | None]] = {
    # what is other than in a fresh state: the status, the causes in their order, and when it changes by itself
    "nothing": ({}, "fresh", "", None),
    "the clash comes first": ({"clash": "OUT/a", "missing_inputs": ("in/*",)}, "blocked", "name_clash", None),
    "unrecorded": ({"outputs": [output(record=None)], "missing_inputs": ("x",)}, "unrecorded", "unrecorded", None),
    "one of two is unrecorded": ({"outputs": [output(), output("b", None)]}, "unrecorded", "unrecorded", None),
    "missing input": ({"missing_inputs": ("x", "y"), "outputs": [GONE]}, "blocked", "input_missing input_missing", None),
    "never made": ({"outputs": [output(record=None, content=None)]}, "stale", "missing", None),
    "one of two was never made": ({"outputs": [output(), output("b", None, None)]}, "stale", "missing", None),
    "deleted": ({"outputs": [GONE]}, "stale", "missing", None),
    "about to be renamed": ({"outputs": [output(content=None, publishing=True)]}, "fresh", "", None),
    "about to be replaced": ({"outputs": [output(content="old", publishing=True)]}, "fresh", "", None),
    "edited by hand": ({"outputs": [output(content="other")]}, "stale", "output_changed", None),
    "too small": ({"outputs": [output(size=9)]}, "stale", "invalid", None),
    "just large enough": ({"outputs": [output(size=10)]}, "fresh", "", None),
    "refused": ({"outputs": [output(valid=False)]}, "stale", "invalid", None),
    "edited, so not validated": ({"outputs": [output(content="other", valid=False)]}, "stale", "output_changed", None),
    "invalidated": ({"outputs": [output(record=RECORD._replace(stale="asked"))]}, "stale", "invalidated", None),
    "code": ({"current": CURRENT._replace(code_hash="new")}, "stale", "code_changed", None),
    "config": ({"current": CURRENT._replace(config_hash="new")}, "stale", "config_changed", None),
    "all of it": (
        {"current": Current("x", "y", "z", 10), "outputs": [output(content="other")], "inputs": OTHER_INPUTS},
        "stale", "output_changed code_changed config_changed input_changed", None,
    ),
    "an input changed": ({"inputs": OTHER_INPUTS}, "stale", "input_changed", None),
    "an input is gone": ({"inputs": {**INPUTS, "in/b": None}}, "stale", "input_changed", None),
    "inputs that are not listed": ({"outputs": [output(record=NOT_LISTED)]}, "fresh", "", None),
    "others that are not listed": (
        {"outputs": [output(record=NOT_LISTED)], "inputs": OTHER_INPUTS}, "stale", "input_changed", None,
    ),
    "listed inputs count, not their hash": (
        {"outputs": [output(record=RECORD._replace(inputs={"in/a": "1"}))]}, "stale", "input_changed", None,
    ),
    "many inputs": (
        {"inputs": MANY, "outputs": [output(record=NOT_LISTED._replace(inputs_hash=inputs_hash(dict.fromkeys(MANY, "1"))))]},
        "fresh", "", None,
    ),
    "many others": ({"inputs": MANY}, "stale", "input_changed", None),
    "above is stale": ({"upstream": [above("stale")]}, "stale", "upstream_stale", None),
    "inputs that may still change": ({"upstream": [above("stale")], "inputs": OTHER_INPUTS}, "stale", "upstream_stale", None),
    "above waits": ({"upstream": [above("waiting", 9.0), above("waiting", 8.0)]}, "waiting", "upstream_stale " * 2, 8.0),
    "one waits, one is stale": ({"upstream": [above("waiting", 9.0), above("stale")]}, "stale", "upstream_stale " * 2, None),
    "above failed": ({"upstream": [above("failed", 9.0), above("stale")]}, "blocked", "blocked", 9.0),
    "above is blocked": ({"upstream": [above("blocked")]}, "blocked", "blocked", None),
    "above is unrecorded": ({"upstream": [above("unrecorded")]}, "blocked", "blocked", None),
    "backs off": ({"outputs": [GONE], "failure": failure(NOW + 1)}, "failed", "failed missing", NOW + 1),
    "backs off until it is due": ({"outputs": [GONE], "failure": failure(NOW)}, "stale", "missing retry_due", None),
    "not before retry": ({"outputs": [GONE], "failure": failure(None)}, "failed", "failed missing", None),
    "failed with other code": ({"outputs": [GONE], "failure": failure(None, "x")}, "stale", "missing", None),
    "failed, and is fresh": ({"failure": failure(None)}, "fresh", "", None),
    "failed, and above is stale": (
        {"outputs": [GONE], "failure": failure(None), "upstream": [above("stale")]}, "stale", "missing upstream_stale", None,
    ),
    "still written": (
        {"outputs": [GONE], "quiet_until": NOW + 1, "newest_input": "in/b"}, "waiting", "still_written missing", NOW + 1,
    ),
    "quiet for long enough": ({"outputs": [GONE], "quiet_until": NOW, "newest_input": "in/b"}, "stale", "missing", None),
    "still written, and fresh": ({"quiet_until": NOW + 1, "newest_input": "in/b"}, "fresh", "", None),
    "above is stale, and others are written": (
        {"quiet_until": NOW + 1, "newest_input": "in/b", "upstream": [above("stale")]}, "stale", "upstream_stale", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_each_fact_has_its_status_its_causes_and_its_time(name: str) -> None:
    changed, status, causes, due = TABLE[name]
    found = judge(facts(**changed), NOW)
    assert (found.status, [cause.code for cause in found.causes], found.due_at) == (status, causes.split(), due)
    assert (found is FRESH) == (status == "fresh")


CAUSES: dict[str, tuple[dict[str, Any], str, str]] = {
    "name_clash": ({"clash": "OUT/a"}, "could not tell it from OUT/a", "OUT/a"),
    "unrecorded": ({"outputs": [output("o", None)]}, "o: nobody recorded it", "o"),
    "input_missing": ({"missing_inputs": ("in/x",)}, "in/x is not there", "in/x"),
    "missing": ({"outputs": [GONE]}, "out/a is not there", "out/a"),
    "output_changed": ({"outputs": [output(content="other")]}, "somebody changed it", "out/a"),
    "invalid": ({"outputs": [output(size=1)]}, "it has 1 byte: expected at least 10", "out/a"),
    "code_changed": ({"current": CURRENT._replace(code_hash="new")}, "its code changed", "code"),
    "config_changed": ({"current": CURRENT._replace(config_hash="new")}, "its config changed", "config"),
    "failed": ({"outputs": [GONE], "failure": failure(None)}, "ValueError: boom and more (2 failures in a row; it", "run-7"),
    "upstream_stale": ({"upstream": [above("stale")]}, "in/stale is stale (stale a)", "in/stale"),
    "still_written": ({"outputs": [GONE], "quiet_until": NOW + 1, "newest_input": "in/b"}, "in/b changed a moment ago", "in/b"),
    "blocked": ({"upstream": [above("failed", None, Cause("failed", "why"))]}, "in/failed (failed a, failed): w", "in/failed"),
}  # fmt: skip


@pytest.mark.parametrize("code", CAUSES)
def test_each_cause_names_what_it_is_about(code: str) -> None:
    changed, text, subject = CAUSES[code]
    cause = judge(facts(**changed), NOW).causes[0]
    assert (cause.code, cause.subject) == (code, subject)
    assert text in cause.text


def test_what_became_of_inputs_is_listed_up_to_three() -> None:
    def told(known: dict[str, str], now: dict[str, str | None]) -> str:
        (cause,) = judge(facts(outputs=[output(record=RECORD._replace(inputs=known))], inputs=now), NOW).causes
        return f"{cause.subject}: {cause.text}"

    assert told(KNOWN, OTHER_INPUTS) == "in/b: in/b was changed"
    assert told(REMOVED_INPUTS, INPUTS) == "in/c: in/c was removed"
    assert told(KNOWN, {**REMOVED_INPUTS, "in/a": "9"}) == "in/c: in/c was added; in/a was changed"
    most = {f"in/{number}": "1" for number in range(5)}
    assert told(KNOWN, dict(most)) == "in/0: in/0 was added; in/1 was added; in/2 was added and 4 more changes"


def test_the_first_cause_is_passed_on_to_all_below() -> None:
    root = Cause("blocked", "it waits for in/x", "in/x")
    assert judge(facts(upstream=[above("blocked", None, root)]), NOW).causes == (root,)


@pytest.mark.parametrize(
    "changed", [{"code_hash": "x"}, {"config_hash": "x"}, {"check_hash": "x"}, {"min_size": 1}, {}]
)
def test_a_back_off_ends_when_code_config_or_inputs_change(changed: dict[str, Any]) -> None:
    """A check is not asked before there is an output, so that it decides nothing about a failure."""
    other = identity(CURRENT._replace(**changed), INPUTS)
    assert (other == identity(CURRENT, INPUTS)) == (not changed.keys() & {"code_hash", "config_hash"})
    assert other != identity(CURRENT._replace(**changed), OTHER_INPUTS)
    assert other != identity(CURRENT._replace(**changed), {**INPUTS, "in/b": None})
