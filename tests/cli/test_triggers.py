"""`stepwell trigger`: what starts runs by itself, from the command line."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.cli.conftest import Shop

REPORT = """
name: report
input: {properties: {day: {type: string}}, required: [day]}
nodes:
  - {id: a, handler: transform, config: {template: "{{ input.day }}"}}
"""


def wait_for(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline, "it did not happen within 60 s"
        time.sleep(0.1)


def test_a_trigger_is_added_listed_fired_and_removed(shop: Shop) -> None:
    nightly = ("trigger", "add", "nightly", "report", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
    assert "no document 'report'" in shop(*nightly).err
    (shop.folder / "report.yaml").write_text(REPORT)
    shop("save", "report.yaml")
    assert "day" in shop(*nightly, code=2).err  # the input does not fit, and that is told before it fires
    assert shop(*nightly, "-i", "day={{ fire.date }}", "--overlap", "skip").out.startswith("nightly@2 active, next 20")
    assert "30 2 * * * Europe/Berlin" in shop("trigger", "ls").out
    shown = shop("trigger", "show", "nightly", "--next", 3, "--json").json
    assert (shown["name"], shown["overlap"], len(shown["next"])) == ("nightly", "skip", 3)
    assert shop("trigger", "fire", "nightly", "--key", "now").out == "nightly:now\n"


def test_a_trigger_is_paused_resumed_and_removed(shop: Shop) -> None:
    assert shop("trigger", "add", "nightly", "shop:Again", "--cron", "30 2 * * *").out.startswith("nightly@1 active")
    assert shop("trigger", "fire", "nightly", "--key", "now", "--jobs", "shop").out == "nightly:now\n"
    assert shop("ls", "--json").json[0]["tags"]["trigger"] == "nightly"
    assert shop("trigger", "pause", "nightly").out == "nightly is paused\n"
    assert shop("trigger", "resume", "nightly").out.startswith("nightly is active, next 20")
    assert shop("trigger", "rm", "nightly").out == "nightly is removed; its runs stay\n"
    assert "no trigger 'nightly'" in shop("trigger", "rm", "nightly", code=2).err


def test_what_is_wrong_is_told_all_at_once(shop: Shop) -> None:
    told = shop("trigger", "add", "a b", "report", "--cron", "61 * * * *", "--timezone", "Berlin", code=2).err
    assert "3 problems" in told
    assert "did you mean 'Europe/Berlin'?" in told
    assert "name a workflow, as" in shop("trigger", "add", "nightly", code=2).err
    assert "expected a time" in shop("trigger", "backfill", "nightly", "soon", "later", code=2).err


def test_the_orchestrator_fires_and_backfills_what_others_added(shop: Shop) -> None:
    (shop.folder / "report.yaml").write_text(REPORT)
    shop("save", "report.yaml")
    (shop.folder / "triggers.yaml").write_text(
        """
triggers:
  - {name: tick, workflow: report, every: 1s, input: {day: "{{ fire.time }}"}}
  - {name: daily, workflow: report, cron: "0 6 * * *", input: {day: "{{ fire.date }}"}}
"""
    )
    assert shop("trigger", "add", "triggers.yaml").out.count(" active, next ") == 2
    assert shop("trigger", "backfill", "daily", "2026-01-01", "2026-01-03").out.startswith("2 times")
    process = shop.start("orchestrator")
    try:
        wait_for(lambda: len(shop("ls", "--tag", "trigger=tick", "--json").json) >= 2)
        wait_for(lambda: len(shop("ls", "--tag", "trigger=daily", "--json").json) >= 2)
    finally:
        process.terminate()
        process.wait(30)
    found = [run["id"] for run in shop("ls", "--tag", "trigger=daily", "--json").json]
    assert sorted(found) == ["daily:2026-01-01T06:00:00Z", "daily:2026-01-02T06:00:00Z"]
