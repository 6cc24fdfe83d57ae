"""Whose version of a workflow is newer, told by what is stored and by which workers are alive."""

from __future__ import annotations

import math
import os
from typing import Any

import pytest

from stepwell import Workflow, step
from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.codec import encode
from stepwell.base.ids import WorkerId, machine
from stepwell.core.kernel.healing import arrange
from stepwell.core.kernel.layout import add_graph
from stepwell.core.model import Enlist, RunStatus
from stepwell.core.store import reader
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.code.code import Code
from stepwell.engine.code.versions import Versions, changes
from stepwell.errors import RunConflict
from tests.conformance.ops import RUN, finish, hold, start
from tests.core.kernel.facts import graph


def version(*steps: str, name: str = "Deployed") -> type[Workflow]:
    def body(each: str) -> Any:
        def run(self: Workflow) -> None: ...

        run.__name__ = run.__qualname__ = each
        return run

    return type(Workflow)(name, (Workflow,), {each: step(body(each)) for each in steps})


OLD, NEW, NEWEST = version("a"), version("a", "b"), version("a", "b", "c")


class Place:
    """A store with three versions, stored one after another, a run of one of them, and workers that come and go."""

    def __init__(self, *stored: type[Workflow]) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(clock=self.clock)
        for each in stored:
            for op in add_graph(each.workflow_graph(), "Deployed"):
                self.store.commit([op])
            self.clock.advance(1)

    def worker(self, name: str, serves: Any, **info: Any) -> None:
        told = {"machine": machine(), "pid": os.getpid(), "serves": serves, **info}
        self.store.commit([Enlist(WorkerId(name), 10 * SECOND, encode(told))])

    def judge(self, mine: type[Workflow], follows: type[Workflow], worker: str | None = "me") -> str:
        versions = Versions(self.store, Code(self.store, [mine]), None if worker is None else WorkerId(worker))
        return versions.judge("Deployed", None, follows.workflow_graph())


def serves(version: type[Workflow], name: str = "Deployed") -> list[list[str]]:
    return [[name, version.workflow_graph().digest]]


def test_newer_code_heals_and_older_heals_back() -> None:
    place = Place(OLD, NEW)
    assert place.judge(NEW, follows=NEW) == "serve"
    assert place.judge(NEW, follows=OLD) == "heal"
    assert place.judge(OLD, follows=NEW) == "roll back"


def test_a_version_that_nobody_had_is_stored_before_it_is_judged_and_is_the_newest() -> None:
    place = Place(OLD)
    assert place.judge(NEW, follows=OLD) == "heal"
    ages = reader.get_graph_ages(place.store, NEW.workflow_graph().digest, OLD.workflow_graph().digest)
    assert ages[NEW.workflow_graph().digest] > ages[OLD.workflow_graph().digest]
    place.clock.advance(5)
    assert place.judge(NEW, follows=OLD) == "heal"
    assert reader.get_graph_ages(place.store, NEW.workflow_graph().digest, OLD.workflow_graph().digest) == ages, (
        "stored once"
    )


def test_older_code_yields_while_somebody_with_newer_is_alive() -> None:
    place = Place(OLD, NEW, NEWEST)
    place.worker("other", serves(NEWEST))
    assert place.judge(OLD, follows=NEW) == "yield"
    assert place.judge(NEW, follows=OLD) == "yield"
    assert place.judge(NEWEST, follows=OLD) == "heal"
    place.clock.advance(11)
    assert place.judge(NEW, follows=OLD) == "heal"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("me", {"serves": serves(NEWEST)}),
        ("other", {"serves": serves(NEWEST, "Another")}),
        ("other", {"serves": []}),
        ("other", {"serves": serves(NEW)}),
        ("other", {"serves": serves(OLD)}),
    ],
)
def test_neither_oneself_nor_who_serves_something_else_or_older_is_yielded_to(name: str, what: Any) -> None:
    place = Place(OLD, NEW, NEWEST)
    place.worker(name, **what)
    assert place.judge(NEW, follows=OLD) == "heal"


def test_a_process_that_is_gone_is_not_yielded_to_though_its_lease_runs_on() -> None:
    place = Place(OLD, NEW, NEWEST)
    place.worker("gone", serves(NEWEST), pid=2**22 + 1)
    assert place.judge(NEW, follows=OLD) == "heal"
    place.worker("elsewhere", serves(NEWEST), pid=2**22 + 1, machine="another machine")
    assert place.judge(NEW, follows=OLD) == "yield"


def test_one_engine_without_a_worker_yields_to_every_newer_one() -> None:
    place = Place(OLD, NEW, NEWEST)
    place.worker("other", serves(NEWEST))
    assert place.judge(NEW, OLD, worker=None) == "yield"


def test_a_run_is_left_to_the_newer_one_with_a_word() -> None:
    place = Place(OLD, NEW, NEWEST)
    start(place.store, OLD.workflow_graph(), workflow="Deployed")
    place.worker("other", serves(NEWEST))
    versions = Versions(place.store, Code(place.store, [NEW]), None)
    with pytest.raises(RunConflict, match="is left to a live worker that has a newer version of Deployed"):
        versions.up_to_date(reader.require_run(place.store, RUN))
    place.clock.advance(11)
    healed = versions.up_to_date(reader.require_run(place.store, RUN))
    assert healed.heals == 1
    assert versions.up_to_date(healed) == healed


def test_a_run_that_somebody_was_just_changing_is_healed_the_next_time() -> None:
    place = Place(OLD, NEW)
    start(place.store, OLD.workflow_graph(), workflow="Deployed")
    versions = Versions(place.store, Code(place.store, [NEW]), None)
    (of,) = reader.list_unfinished(place.store)
    hold(place.store, purpose="pause")
    assert not versions.heal_all(of, "heal", math.inf)
    finish(place.store, RunStatus.PENDING, open_gate=True)
    assert versions.heal_all(of, "heal", math.inf)
    assert reader.require_run(place.store, RUN).heals == 1


@pytest.mark.parametrize(
    ("graphs", "told"),
    [
        ((graph(a=""), graph(a="", b="a")), "1 new: b"),
        ((graph(a="", b="a"), graph(a="")), "1 gone: b"),
        ((graph(a="", b="a"), graph(b="", c="")), "1 new: c; 1 gone: a"),
        ((graph(a=""), graph(a="", b="a", c="a", d="a")), "3 new: b, c, d"),
        ((graph(a=""), graph(a="", b="a", c="a", d="a", e="a")), "4 new: b, c, d and 1 more"),
        ((graph(a="", b=""), graph(a="", b="a")), "the same nodes, otherwise connected or with other options"),
        ((graph(a="", b="a"), graph(a=""), graph(a="", b="a")), "1 new: b"),
        ((graph(a="", b="a"), graph(a=""), graph(a="", c="a")), "1 new: c"),
    ],
)
def test_what_a_heal_changes_in_a_few_words(graphs: Any, told: str) -> None:
    *former, new = graphs
    old = former[0]
    for each in former[1:]:
        old = arrange(old, each)
    assert changes(old, arrange(old, new)) == told
