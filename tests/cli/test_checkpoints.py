"""`stepwell checkpoints`: how a run stood, by name or by number."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shop

IMPORT = """
from typing import Annotated
from stepwell import Context, Delta, Workflow, step, task
from stepwell.reducers import add

class Import(Workflow):
    class State:
        rows: Annotated[int, add] = 0

    @step
    def load(self, ctx: Context) -> Delta:
        ctx.checkpoint("prices loaded")
        return Delta(rows=ctx.effect("count", lambda: 40))

    @task(depends_on=load)
    def convert(self) -> None: ...

    @task(depends_on=load)
    def index(self) -> None: ...
"""


@pytest.fixture
def imported(shop: Shop) -> Shop:
    shop.write("imports.py", IMPORT)
    shop("run", "imports:Import", "--run-id", "import-7")
    return shop


def test_labels_are_listed(imported: Shop) -> None:
    shown = imported("checkpoints", "import-7").out
    assert all(word in shown for word in ("prices loaded", "load"))
    (label,) = imported("checkpoints", "import-7", "--json").json
    assert (label["label"], label["step"], label["node"], label["attempt"]) == ("prices loaded", 3, "load", 1)


def test_one_is_shown_by_label_number_and_key(imported: Shop) -> None:
    shown = imported("checkpoints", "import-7", "prices loaded").out
    assert "run import-7 at 3, 'prices loaded'" in shown
    assert 'state    {"rows":40}' in shown
    assert "1 effect recorded" in shown
    assert shown.count("READY") == 2
    found = imported("checkpoints", "import-7", "3", "--json").json
    assert [item["node"] for item in found["frontier"]] == imported_frontier(imported)
    again = imported("checkpoints", "import-7", found["idempotency_key"], "--json").json
    assert again == found


def imported_frontier(shop: Shop) -> list[str]:
    data = shop("checkpoints", "import-7", "prices loaded", "--json").json
    assert sorted(item["node"] for item in data["frontier"]) == ["convert", "index"]
    return [item["node"] for item in data["frontier"]]


def test_a_run_at_its_end_and_one_without_names(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=1", "--run-id", "order-1")
    assert "has given a checkpoint a name" in shop("checkpoints", "order-1").out
    assert shop("checkpoints", "order-1", "--json").json == []
    assert "at 1," in shop("checkpoints", "order-1", "1").out


@pytest.mark.parametrize("at", ["none", "0", "9999", "sha256:00"])
def test_what_is_not_there_is_one_clear_line(imported: Shop, at: str) -> None:
    ended = imported("checkpoints", "import-7", at, code=2)
    assert "checkpoint" in ended.err
    assert "Traceback" not in ended.err
    assert imported("checkpoints", "import-8", code=3).err.count("\n") <= 3


YEARS = """
from stepwell import Context, Workflow, step

class Years(Workflow):
    @step
    def load(self, ctx: Context) -> None:
        ctx.checkpoint("2024")
        ctx.checkpoint("1")

    @step
    def index(self) -> None: ...
"""


def test_a_label_of_digits_wins_over_the_number(shop: Shop) -> None:
    shop.write("years.py", YEARS)
    shop("run", "years:Years", "--run-id", "years-7")
    assert "run years-7 at 3" in shop("checkpoints", "years-7", "2024").out
    assert "run years-7 at 3" in shop("checkpoints", "years-7", "1").out
    assert "run years-7 at 2" in shop("checkpoints", "years-7", "2").out
    assert "forked from years-7 at 3:" in shop("fork", "years-7", "--no-wait", "--at", "2024").err
    assert "forked from years-7 at 2:" in shop("fork", "years-7", "--no-wait", "--at", "2").err
    for odd in ("9" * 5_000, "\u0663"):  # too many digits, and one that is not ours
        shop("checkpoints", "years-7", odd, code=2)
        shop("fork", "years-7", "--no-wait", "--at", odd, code=2)


def test_a_name_that_is_too_long_for_a_file_is_no_run(shop: Shop) -> None:
    shop("replay", "x" * 3_000, code=3)


BROKEN = """
import sys
from typing import Annotated
from stepwell import Delta, Workflow, step

def refuse(rows: list[int], more: list[int]) -> list[int]:
    raise ValueError("no more rows")

def leave(rows: list[int], more: list[int]) -> list[int]:
    sys.exit(0)

class Refuses(Workflow):
    class State:
        rows: Annotated[list[int], refuse] = []

    @step
    def load(self) -> Delta:
        return Delta(rows=[1])

class Leaves(Workflow):
    class State:
        rows: Annotated[list[int], leave] = []

    @step
    def load(self) -> Delta:
        return Delta(rows=[1])
"""


@pytest.mark.parametrize(("workflow", "raised"), [("Refuses", "ValueError: no more rows"), ("Leaves", "SystemExit: 0")])
def test_a_reducer_that_raises_is_broken_code_and_no_error_of_ours(shop: Shop, workflow: str, raised: str) -> None:
    shop.write("broken.py", BROKEN)
    shop("run", f"broken:{workflow}", "--run-id", "r")
    told = shop("checkpoints", "r", "4", code=2).err
    assert told.startswith("error: the state of run r cannot be folded: the reducer of ")
    assert raised in told
    assert "this is an error in Stepwell" not in told
