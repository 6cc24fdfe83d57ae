"""`make prove` itself: it counts what happened, tells how far it is, stops early, and a finding can be seen again."""

from __future__ import annotations

import shlex
import sys

import pytest

from tests.simulation import prove
from tests.simulation.simulate.explore import commits, enumerate_faults, planned
from tests.simulation.simulate.faults import Fault
from tests.simulation.simulate.mutants import MUTANTS
from tests.simulation.simulate.share import Progress, make_pool, minutes, share
from tests.simulation.simulate.workload import shapes


def same(number: int) -> int:
    return number


def told(*words: str) -> list[str]:
    lines: list[str] = []
    progress = Progress(live=True, write=lines.append)
    for word in words:
        progress.tell(word, 0.25, 60)
    return lines


def test_progress_says_how_much_is_done_and_how_long_the_rest_takes() -> None:
    assert told("pairs") == ["\rpairs: 25%, 3 min 00 s left"]
    assert told("long name", "pairs")[1] == "\rpairs: 25%, 3 min 00 s left    "
    assert minutes(59.4) == "59 s"


def test_results_come_in_the_order_of_the_tasks_whatever_they_weigh() -> None:
    with make_pool(2) as pool:
        tasks = [(number, float(number % 7 + 1)) for number in range(50)]
        assert share(pool, "numbers", same, tasks, Progress(live=False)) == list(range(50))


def test_nothing_more_is_waited_for_when_it_is_enough() -> None:
    with make_pool(1) as pool:
        tasks = [(number, 1.0) for number in range(5_000)]
        assert len(share(pool, "numbers", same, tasks, Progress(live=False), enough=lambda _: True)) == 1


def test_a_second_fault_is_tried_at_every_commit_of_the_course_that_the_first_changed() -> None:
    chain = shapes()["chain"]
    seconds = {max(plan) for plan, _ in enumerate_faults(chain, 2, workers=1, first=5)}
    assert max(seconds) > commits(chain, workers=1)
    assert seconds == set(range(6, max(seconds) + 1))


def test_the_chunks_are_the_whole() -> None:
    chain = shapes()["chain"]
    whole = [plan for plan, _ in enumerate_faults(chain, 1, workers=1)]
    parts = [
        plan
        for first in range(1, commits(chain, workers=1) + 1)
        for plan, _ in enumerate_faults(chain, 1, workers=1, first=first)
    ]
    assert parts == whole


def test_a_fault_that_never_happened_is_not_counted_as_hit() -> None:
    life, _ = planned(shapes()["chain"], {4: Fault.TWICE, 999: Fault.TWICE}, workers=1)
    assert life.hits == 1
    result = prove.schedules_of(prove.Plans("chain", 1, 1, 4))
    assert (result.schedules, result.hit) == (len(Fault), len(Fault))


def test_a_finding_can_be_seen_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with MUTANTS["hints are the truth: nobody looks again"]():
        findings = prove.schedules_of(prove.Plans("chain", 1, 2, 7)).findings
        assert "'crash after' at commit 7" in findings[0].where
        monkeypatch.setattr(sys, "argv", ["prove", *shlex.split(findings[0].again)])
        assert prove.main() == 1
    story = capsys.readouterr().out
    assert findings[0].problem in story
    assert "1 of 1 planned faults happened" in story


def test_a_seed_is_told_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["prove", "--seed", "3"])
    assert prove.main() == 0
    assert capsys.readouterr().out.endswith("all is well\n")


def test_a_chunk_stops_when_enough_has_gone_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "ENOUGH", 3)
    with MUTANTS["a repeated settlement releases the children again"]():
        result = prove.schedules_of(prove.Plans("chain", 2, 1, 1))
    assert len(result.findings) == 3


def test_a_proof_is_over_when_enough_has_gone_wrong() -> None:
    finding = prove.Finding("seed 1", "broken", "--seed 1")
    with make_pool(1) as pool:
        proof = prove.Proof(pool, Progress(live=False))
        assert not proof._enough(prove.Schedules(1, 1, [finding] * (prove.ENOUGH - 1)))
        assert proof._enough(prove.Schedules(1, 1, [finding]))
        assert proof.over
