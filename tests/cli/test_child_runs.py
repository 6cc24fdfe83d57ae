"""Child runs on the command line: listed when asked for, found by what begins the id of their root, collected with it."""

from __future__ import annotations

import pytest

from stepwell import Engine
from tests.cli.conftest import Shop
from tests.engine.nightly import Nightly


@pytest.fixture
def night(shop: Shop) -> str:
    """A shop with a run one node of which was performed by another run, whose id this is."""
    (shop.folder / ".stepwell").mkdir()
    with Engine(f"sqlite:///{shop.folder}/.stepwell/stepwell.db") as engine:
        (child,) = engine.run(Nightly(file="broken"), run_id="night-1", check=False).children()
    return child.id


def listed(shop: Shop, *words: str) -> list[str]:
    return [run["id"] for run in shop("ls", "--json", *words).json]


def test_ls_has_child_runs_when_they_are_asked_for(shop: Shop, night: str) -> None:
    assert listed(shop) == ["night-1"]
    assert listed(shop, "--parent", "night-1") == [night]
    assert listed(shop, "--children") == [night, "night-1"]
    assert shop("ls", "--count", "status").out.split() == ["FAILED", "1"]
    assert shop("ls", "--count", "status", "--children").out.split() == ["FAILED", "2"]
    assert listed(shop, "--parent", "night-1", "--workflow", "Nightly") == []


def test_bulk_requests_are_about_roots(shop: Shop, night: str) -> None:
    def asked(*words: str) -> list[str]:
        return [run["run"] for run in shop("bulk", "retry", "--dry-run", "--json", *words).json["runs"]]

    assert asked() == ["night-1"]
    assert asked("--parent", "night-1") == [night]
    assert asked("--children") == [night, "night-1"]


def test_the_beginning_of_an_id_names_the_root(shop: Shop, night: str) -> None:
    assert shop("show", "night", "--json").json["id"] == "night-1"
    assert shop("show", night[:-2], "--json").json["path"] == "night-1/imported"
    assert f"run  {night} performs it" in shop("show", "night", "imported").out
    assert f"run {night} of Import failed" in shop("why", "night", "imported").out


def test_gc_deletes_the_whole_tree(shop: Shop, night: str) -> None:
    assert shop("gc", "--older-than", "0s", "--json").json["deleted"] == 1
    assert listed(shop, "--children") == []
