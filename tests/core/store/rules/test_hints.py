"""Who looks when work is heard of, and who need not."""

import json

from hypothesis import given
from hypothesis import strategies as st

from stepwell.base.ids import RunId, WorkerId
from stepwell.core.model import Hint
from stepwell.core.store.rules.hints import LONGEST_SPREAD_SECONDS, Heard, Looking, hint_of, spread, together

ME, OTHER = WorkerId("me"), WorkerId("other")
FIRST, SECOND = RunId("r-1"), RunId("r-2")


def heard(*hints: Hint, within: float = 1.0) -> Looking:
    looking = Looking(chance=lambda: 0.5)
    for hint in hints:
        looking.hear(hint, ("default",), (FIRST,), ME, 10.0, within)
    return looking


def test_of_those_who_hear_of_work_each_looks_at_another_time() -> None:
    looking = heard(Hint(("default",)))
    assert looking.at == 10.5
    assert not looking.is_due(10.4)
    assert looking.is_due(10.5)
    assert not looking.is_due(99.0), "it has looked"


def test_what_concerns_a_run_that_is_waited_for_or_the_worker_itself_is_looked_at_at_once() -> None:
    for hint in (Hint(runs=(FIRST,)), Hint(workers=(ME,)), Hint()):
        assert heard(hint).is_due(10.0)
    assert heard(Hint(("other queue",), (SECOND,), (OTHER,))).at is None


def test_nobody_looks_for_runs_that_another_has_taken() -> None:
    assert heard(Hint(("default",), started=(FIRST,)), Hint(taken=(FIRST,))).at is None
    both = Hint(("default",), started=(FIRST, SECOND))
    assert heard(both, Hint(taken=(FIRST,))).at == 10.5, "the second may still be there"
    assert heard(both, Hint(taken=(FIRST,)), Hint(taken=(SECOND,))).at is None
    assert heard(Hint(taken=(FIRST,)), Hint(("default",), started=(FIRST,))).at == 10.5


def test_work_that_is_not_of_named_runs_is_always_looked_for() -> None:
    surplus = Hint(("default",))
    assert heard(surplus, Hint(taken=(FIRST,))).at == 10.5
    assert heard(surplus, Hint(("default",), started=(FIRST,)), Hint(taken=(FIRST,))).at == 10.5
    assert heard(Hint(("default",), started=(FIRST,)), surplus, Hint(taken=(FIRST,))).at == 10.5


def test_a_worker_does_not_hear_of_what_it_told_itself() -> None:
    assert heard(Hint(("default",), (FIRST,), senders=(ME,))).at is None
    assert heard(Hint(("default",), senders=(OTHER,))).at == 10.5


def test_hints_are_sent_together() -> None:
    started, surplus = Hint(("a",), started=(FIRST,), senders=(ME,)), Hint(("b",), senders=(OTHER,))
    assert together([started, surplus]) == Hint(("a", "b")), "what may be more than one run cannot be taken"
    assert together([started, Hint(taken=(SECOND,), senders=(ME,))]) == Hint(
        ("a",), started=(FIRST,), taken=(SECOND,), senders=(ME,)
    )
    assert together([started, Hint()]) == Hint()


def test_the_more_workers_and_the_slower_the_store_the_longer_they_wait_for_each_other() -> None:
    assert spread(1, 0.1) == 0.0
    assert 0 < spread(2, 0.0) < spread(10, 0.0) < spread(10, 0.01)
    assert spread(1_000, 1.0) == LONGEST_SPREAD_SECONDS


PARTS = st.lists(st.sampled_from(["default", FIRST, ME, 7, None, ["default"], {}]), max_size=3)


@given(st.lists(PARTS, max_size=7))
def test_whatever_is_sent_in_place_of_a_hint_harms_no_one_who_waits(parts: list[object]) -> None:
    heard = Heard()
    heard.wait(("default",), (FIRST,), ME, 0)
    hint = hint_of(json.dumps(parts))
    if hint is not None:
        heard.note(hint)
    heard.wait(("default",), (FIRST,), ME, 0)
    if hint is not None:
        assert hint_of(json.dumps(hint)) == hint


def test_what_is_no_json_is_no_hint() -> None:
    for text in ("", "not json", "7", "null", b"\xff", "[" * 100_000, '[["a"],[[1]]]'):
        assert hint_of(text) is None, text
