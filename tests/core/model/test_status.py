"""The tables of statuses are complete, agree with each other, and keep the numbers that files hold."""

from __future__ import annotations

from enum import StrEnum

import pytest

from stepwell.core.model.status import LOOKS, RUN_MOVES, RUN_VERBS, AttemptStatus, NodeStatus, RunStatus, may_become

STORED: dict[type[StrEnum], str] = {
    RunStatus: "PENDING RUNNING PAUSED CANCELLING COMPLETED FAILED CANCELLED",
    NodeStatus: "PENDING READY RUNNING WAITING COMPLETED FAILED UPSTREAM_FAILED SKIPPED CANCELLED INTERRUPTED",
    AttemptStatus: "RUNNING COMPLETED FAILED TIMED_OUT LOST RELEASED CANCELLED SUPERSEDED",
}
"""By number, from 0 on. Files keep these numbers: names are only added at the end."""
LATER = {AttemptStatus: {"PARKED": 20}}
"""Those that are numbered by hand; see `core/store/rules/codes.py`."""


@pytest.mark.parametrize("statuses", STORED)
def test_the_numbers_in_files_stay_what_they_are(statuses: type[StrEnum]) -> None:
    assert {status.value: status.code for status in statuses} == {  # type: ignore[attr-defined]
        name: code for code, name in enumerate(STORED[statuses].split())
    } | LATER.get(statuses, {})


def test_every_status_has_a_look_and_no_two_nodes_the_same() -> None:
    assert LOOKS.keys() == {*RunStatus, *NodeStatus}
    assert len({LOOKS[status].symbol for status in NodeStatus}) == len(NodeStatus)
    assert len({LOOKS[status][2:] for status in NodeStatus}) == len(NodeStatus)


def test_a_run_is_in_exactly_one_phase() -> None:
    for status in RunStatus:
        assert [status.moving, status.paused, status.stopping, status.terminal].count(True) == 1
        assert status.resting is (status.paused or status.terminal)


def test_traits_of_nodes_exclude_each_other() -> None:
    for status in NodeStatus:
        assert not (status.active and status.terminal)
        assert not (status.satisfies and status.broken)
        assert status.terminal or not (status.satisfies or status.broken)


@pytest.mark.parametrize("verb", RUN_VERBS)
def test_a_verb_is_allowed_where_its_move_is_legal(verb: str) -> None:
    allowed, becomes, done, *_ = RUN_VERBS[verb]
    assert not set(allowed) & set(done)
    if verb != "fork" and becomes is not None:  # a fork is another run
        assert all(may_become(status, becomes) for status in allowed)


def test_only_requests_leave_a_run_that_has_ended() -> None:
    for status in RunStatus:
        if status.terminal:
            assert RUN_MOVES[status] == {RunStatus.RUNNING}
