"""Triggers that follow the end of runs: each end once, and none is lost."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from stepwell.errors import InputError
from stepwell.triggers import firing as firing_room
from stepwell.triggers.rendering import Start
from tests.conformance import ops
from tests.triggers.processes import Killed, World, end


class Ending:
    """Runs that end, and what follows them."""

    def __init__(self, **options: Any) -> None:
        self.world = World()
        self.world.add("then", run_finished={"workflow": "w", **options})
        self.count = 0

    def end_one(self) -> None:
        self.count += 1
        ops.start(self.world.store, ops.graph(a=""), f"source-{self.count}", workflow="w")
        end(self.world, f"source-{self.count}")

    @property
    def followed(self) -> int:
        return len(self.world.runs.times("then"))


def test_each_end_of_a_run_is_followed_once_by_however_many() -> None:
    ending = Ending()
    first, second = ending.world.process(), ending.world.process()
    for count in range(1, 6):
        ending.end_one()
        ending.world.clock.advance(1)
        first.fire_due()
        second.fire_due()
        assert ending.followed == count
    ending.world.clock.advance(100)
    settled_at = ending.world.process()
    settled_at.fire_due()
    assert ending.followed == 5
    assert ending.world.triggers.get("then").state.fired == 5


def test_what_ended_before_it_was_added_or_while_it_was_paused_is_not_followed() -> None:
    ending = Ending()
    ending.world.triggers.remove("then")
    ending.end_one()
    ending.world.clock.advance(1)
    ending.world.add("then", run_finished={"workflow": "w"})
    ending.world.process().fire_due()
    assert ending.followed == 0
    ending.world.triggers.pause("then")
    ending.world.clock.advance(1)
    ending.end_one()
    ending.world.clock.advance(1)
    ending.world.process().fire_due()
    ending.world.triggers.resume("then")
    ending.world.process().fire_due()
    assert ending.followed == 0
    ending.world.clock.advance(1)
    ending.end_one()
    ending.world.process().fire_due()
    assert ending.followed == 1


@pytest.mark.parametrize("reads", [False, True])
def test_outputs_are_read_only_if_the_input_names_them(reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(firing_room, "_outputs", lambda store, run_id: read.append(run_id) or {"a": 1})
    ending = Ending()
    ending.world.add(
        "then", run_finished={"workflow": "w"}, input={"a": "{{ run.outputs }}" if reads else "{{ run.id }}"}
    )
    ending.world.clock.advance(1)
    ending.end_one()
    ending.world.process().fire_due()
    assert ending.followed == 1
    assert read == ["source-1"] * reads


def test_only_ends_of_the_chosen_kind_are_followed() -> None:
    ending = Ending(status=["FAILED"])
    ending.end_one()
    ending.world.clock.advance(1)
    ending.world.process().fire_due()
    assert ending.followed == 0


def test_an_end_that_could_not_be_followed_is_tried_again_and_the_others_go_on() -> None:
    ending = Ending()
    broken = {"source-1"}

    def start(asked: Start) -> bool:
        if asked.input["of"] in broken:
            raise InputError("it does not fit")
        return ending.world.runs.start(asked)

    ending.world.triggers.remove("then")
    ending.world.add("then", run_finished={"workflow": "w"}, input={"of": "{{ run.id }}"})
    process = firing_room.Firing(ending.world.store, start)
    ending.world.clock.advance(1)
    ending.end_one()
    ending.end_one()
    process.fire_due()
    assert ending.followed == 1
    assert "source-1: it does not fit" in (ending.world.triggers.get("then").error or "")
    broken.clear()
    ending.world.clock.advance(60)
    firing_room.Firing(ending.world.store, start).fire_due()
    assert ending.followed == 2
    assert ending.world.triggers.get("then").error is None


def test_an_end_that_cannot_be_followed_for_a_day_is_left_out() -> None:
    ending = Ending()

    def refuse(asked: Start) -> bool:
        raise InputError("it does not fit")

    ending.world.clock.advance(1)
    ending.end_one()
    for seconds, left_out in ((0, 0), (86_000, 0), (500, 1)):
        ending.world.clock.advance(seconds)
        firing_room.Firing(ending.world.store, refuse).fire_due()
        assert ending.world.triggers.get("then").state.left_out == left_out
    assert ending.world.triggers.get("then").error is None


@pytest.mark.parametrize("after", [False, True])
def test_a_process_killed_while_it_follows_ends_loses_and_doubles_nothing(after: bool) -> None:
    for kill_at in range(1, 8):
        ending = Ending()
        ending.world.clock.advance(1)
        ending.end_one()
        ending.end_one()
        with contextlib.suppress(Killed):
            ending.world.process(kill_at, after=after).fire_due()
        ending.world.process().fire_due()
        assert ending.followed == 2
