"""Typed data in runs: what does not fit fails or pauses, nothing is lost, and plain JSON pays nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from stepwell import Builder, Context, DefinitionError, Delta, Document, Engine, InputError, Workflow, step, task
from stepwell.core.model import GateState
from stepwell.engine.code.versions import Versions
from stepwell.errors import RunConflict, RunPaused
from tests.engine import typed_jobs
from tests.engine.typed_jobs import SOLD, Cart, Line, Returning, Sold, first_line, tell, total
from tests.engine.waiting import eventually

CART = Cart([Line("a", Decimal("1.5")), Line("b", Decimal(2))], date(2026, 2, 3))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("thread", "list[Line]: expected str, got 3 (int) (at $[1].sku)"),
        ("loop", 'dict[str, Line]: this field is missing (at $["x y"].sku)'),
        ("process", "Cart: expected a date in ISO 8601, like '2026-01-31', got 'today' (str) (at $.day)"),
        ("plain", "dict[str, list[int]]: expected int, got '2' (str) (at $.a[1])"),
        ("nothing", "None: expected None, got 3 (int) (at $)"),
    ],
)
def test_an_output_that_does_not_fit_fails_the_attempt_with_its_path(engine: Engine, how: str, message: str) -> None:
    node = engine.run(Returning(how=how), check=False).node(how)
    assert node.status == "FAILED"
    assert str(node.error) == f"NotJson: node {how!r} returned what does not fit its annotation {message}"


def test_types_go_through_state_and_reducers_and_come_back(engine: Engine) -> None:
    run = engine.run(SOLD)
    assert run.result == {date(2026, 1, 1): Decimal("1.5"), date(2026, 1, 2): Decimal(7)}
    assert run.state["best"].line == Line("b", Decimal(2))
    assert run.state["levels"] == {typed_jobs.Level.LOW, typed_jobs.Level.HIGH}
    assert set(run.replay().executed) == {"open", "left", "right", "close"}
    assert run.checkpoint().state == {  # a view that every language reads
        "total": "3.5",
        "waited": "P1DT90S",
        "lines": [{"sku": "a", "price": "1.5"}, {"sku": "b", "price": "2"}, {"sku": "b", "price": "2"}],
        "points": [[1, 2], [3, 4], [5, 6]],
        "levels": [1, 2],
        "latest": "2026-01-02T00:00:00",
        "by_day": {"2026-01-01": "1.5", "2026-01-02": "7"},
        "best": {"line": {"sku": "b", "price": "2"}, "seen": 2},
    }
    assert run.audit() == []


def test_a_state_of_types_is_a_copy_and_a_change_of_it_is_told(engine: Engine) -> None:
    class Careless(Workflow):
        class State:
            best: typed_jobs.Best = typed_jobs.Best()

        @step
        def spoil(self, state: State) -> None:
            state.best.seen = 7

    error = engine.run(Careless(), check=False).node("spoil").error
    assert "changed state.best in place" in str(error)


def test_a_delta_that_does_not_fit_is_refused(engine: Engine) -> None:
    class Wrong(Workflow):
        class State:
            best: typed_jobs.Best = typed_jobs.Best()

        @step
        def spoil(self) -> Delta:
            return Delta(best=typed_jobs.Best("x"))  # type: ignore[arg-type]

    error = str(engine.run(Wrong(), check=False).node("spoil").error)
    assert "best.line: expected Line or None, got 'x' (str)" in error


def returning_lines(sku: str) -> type[Workflow]:
    """A version of a workflow whose second step asks for a Line."""

    class Shop(Workflow):
        @step
        def load(self) -> dict[str, Any]:
            return {"price": "1.5"}

        @step
        def ship(self, load: Line) -> str:
            return load.sku

    return Shop


def asking_for_less(default: str) -> type[Workflow]:
    """The version after it, in which what is missing has a default."""

    @dataclass
    class Line:
        price: Decimal
        sku: str = default

    class Shop(Workflow):
        @step
        def load(self) -> dict[str, Any]:
            raise AssertionError("it has completed")

        @step
        def ship(self, load: Line) -> str:
            return f"{load.sku} {load.price}"

    return Shop


def test_what_is_stored_and_does_not_fit_pauses_the_run_and_says_which(sqlite_url: str) -> None:
    older, newer = returning_lines("x"), asking_for_less("none")
    with Engine(sqlite_url, workflows=[older]) as engine:
        with pytest.raises(RunPaused) as caught:
            engine.run(older(), run_id="shop", wait=60)
        assert (
            "what is stored does not fit the code: node 'ship': its parameter 'load' asks for Line, and what is stored does "
            "not fit: $.sku: this field is missing"
        ) in str(caught.value)
        run = engine.get("shop")
        assert run.status == "PAUSED"
        eventually(lambda: run.node("ship").status in ("WAITING", "READY"), "its attempt was not settled")
        assert "give the missing field a default" in str(run.why())
    with Engine(sqlite_url, workflows=[newer]) as engine:
        run = engine.get("shop").resume().wait(60)
        assert run.result == "none 1.5"
        assert len(run.node("load").attempts) == 1
        assert run.audit() == []


def test_an_input_whose_type_has_grown_pauses_the_run_until_it_is_given(sqlite_url: str) -> None:
    def version(annotation: Any) -> type[Workflow]:
        def ship(self: Any) -> str:
            return str(self.line)

        body = {"__annotations__": {"line": annotation}, "ship": step(ship)}
        return type(Workflow)("Shop", (Workflow,), body)

    @dataclass
    class Longer:
        sku: str
        weight: Decimal

    with Engine(sqlite_url, runner=None) as engine:
        engine.start(version(Line)(line=Line("a")), run_id="shop")
    with Engine(sqlite_url, workflows=[version(Longer)]) as engine:
        with pytest.raises(Exception, match=r"line\.weight: this field is missing"):
            engine.adopt("shop")
        run = engine.get("shop").resume(input={"line": Longer("a", Decimal(2))}).wait(60)
        assert "weight=Decimal('2')" in run.result


def test_a_judgement_of_an_input_that_was_changed_since_pauses_nothing(sqlite_url: str) -> None:
    class Shop(Workflow):
        line: Line

        @step
        def ship(self) -> str:
            return self.line.sku

    with Engine(sqlite_url, runner=None, workflows=[Shop]) as engine:
        run = engine.start(Shop(line=Line("a")), run_id="shop")
        before = run.row._replace(input=b'{"line":{"amount":7}}')  # as it was read before `resume(input=...)`
        versions = Versions(engine.parts.store, engine.parts.code, None)
        with pytest.raises(RunConflict, match="its input was changed just now"):
            versions.check_input(before)
        assert run.status == "PENDING"
        assert run.row.gate is GateState.OPEN


def test_forks_take_typed_input(engine: Engine) -> None:
    class Day(Workflow):
        day: date
        days: int = 1

        @step
        def first(self) -> date:
            return self.day

        @step
        def second(self, first: date) -> tuple[date, date]:
            return first, self.day

    run = engine.run(Day(day=date(2026, 1, 1)))
    fork = run.fork("second", input={"day": date(2026, 1, 2)}).wait(60)
    assert fork.result == (date(2026, 1, 1), date(2026, 1, 2))
    again = run.fork("second", input={"day": "2026-01-03"}).wait(60)  # as the command line gives it
    assert again.result[1] == date(2026, 1, 3)
    with pytest.raises(InputError, match="day: expected a date in ISO 8601"):
        run.fork("second", input={"day": "tomorrow"})


def test_an_input_is_checked_when_it_is_given_and_copied() -> None:
    cart = Cart([Line("a")])
    sold = Sold(carts=[cart])
    cart.lines.clear()
    assert sold.carts == [Cart([Line("a")])]
    assert sold.workflow_input() == {"carts": [{"lines": [{"sku": "a", "price": "1"}], "day": "2026-01-01"}]}
    assert Sold(**sold.workflow_input()).workflow_input() == sold.workflow_input()
    with pytest.raises(InputError) as caught:
        Sold(carts=[{"lines": [{"price": "x"}]}])
    assert "carts[0].lines[0].sku: this field is missing" in str(caught.value)
    assert "carts[0].lines[0].price: expected a decimal number as text" in str(caught.value)


def test_a_skipped_parent_gives_none_whatever_the_annotation_says() -> None:
    class Late(Workflow):
        @step
        def load(self) -> Line:
            return Line("a")

        @step
        def ship(self, load: Line) -> Any:
            return load

    found = Late._compiled.methods["ship"].invoke({}, None, {})
    assert found is None


# Builders


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_jobs_of_a_builder_take_and_return_types(engine: Engine, isolation: Any) -> None:
    w = Builder("carts")
    w.node("total", job=total, args={"cart": CART, "factor": Decimal(2)}, isolation=isolation)
    w.node("first", job="tests.engine.typed_jobs:first_line", args={"cart": CART})
    run = engine.run(w)
    assert run.output(total) == Decimal("7.0")
    assert run.output("first") == run.result == Line("a", Decimal("1.5"))
    assert run.graph.in_order[0].args["cart"]["day"] == "2026-02-03"


@pytest.mark.parametrize(
    ("job", "args", "message"),
    [
        (total, {}, "the args of 'n' lack 'cart': tests.engine.typed_jobs:total takes cart, factor"),
        (
            total,
            {"cart": CART, "colour": 1},
            "the args of 'n' contain 'colour', but tests.engine.typed_jobs:total takes",
        ),
        (
            total,
            {"cart": {"lines": [{"sku": 3}]}},
            "do not fit tests.engine.typed_jobs:total: cart.lines[0].sku: expected str",
        ),
        ("tests.engine.typed_jobs:total", {"basket": 1}, "contain 'basket', but"),
        (tell, {"of": 3}, "of: expected str, got 3 (int)"),
        (tell, {"loud": "very"}, "loud: expected bool, got 'very' (str)"),
    ],
)
def test_args_are_held_against_the_signature_of_their_job(job: Any, args: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Builder("w").node("n", job=job, args=args)
    assert message in str(caught.value)
    assert "test_typed_data.py:" in str(caught.value)


def test_a_job_that_is_not_imported_is_not_imported_to_be_checked() -> None:
    Builder("w").node("n", job="no.such.module:job", args={"day": date(2026, 1, 1)})
    assert "no" not in sys.modules


def test_a_function_of_a_document_takes_and_returns_types(open_engine: Any) -> None:
    node = {"id": "first", "handler": "tests.engine.typed_jobs:first_line", "config": {"cart": "{{ input.cart }}"}}
    document = Document({"name": "sum", "nodes": [{**node, "dependencies": []}]})
    engine = open_engine(jobs=["tests.engine.typed_jobs"])
    run = engine.run(document, input={"cart": {"lines": [{"sku": "a", "price": "1.5"}]}})
    assert run.result == Line("a", Decimal("1.5"))
    paused = engine.run(document, input={"cart": {"lines": [{"price": "x"}]}}, check=False)
    assert paused.status == "PAUSED"
    assert "its parameter 'cart' asks for Cart" in (paused.row.reason or "")


def test_the_node_of_another_class_is_refused(engine: Engine) -> None:
    class Other(Workflow):
        @step
        def left(self) -> int:
            return 3

    run = engine.run(Other())
    with pytest.raises(InputError, match=r"Wide\.left is not a node of run .* of Other"):
        run.output(Wide.left)


# Outputs


class Wide(Workflow):
    @step
    def load(self) -> Cart:
        return CART

    @task(depends_on=load)
    def left(self, load: Cart) -> Line:
        return load.lines[0]

    @task(depends_on=load)
    async def right(self, load: Cart) -> Delta[date]:
        return Delta(load.day)

    class State:
        count: int = 0


def test_the_result_of_several_last_nodes_is_a_mapping(engine: Engine) -> None:
    run = engine.run(Wide())
    assert run.result == {"left": Line("a", Decimal("1.5")), "right": date(2026, 2, 3)}
    assert run.output(Wide.right) == date(2026, 2, 3)
    assert list(run.outputs) == [spec.name for spec in run.graph]


def test_outputs_come_in_the_order_of_declaration(engine: Engine) -> None:
    """A fan-out is in the order of its items, in the outputs and in the result; what runs first goes by the order key."""
    w = Builder("many")
    w.fan_out(range(20), job=first_line, args=lambda _: {"cart": CART})
    names = [f"first_line_{number}" for number in range(20)]
    run = engine.run(w)
    assert list(run.outputs) == list(run.result) == names
    assert [spec.name for spec in run.graph.in_order] != names


def test_outputs_of_a_builder_are_found_by_name_by_id_and_by_job(engine: Engine) -> None:
    w = Builder("carts")
    ids = w.fan_out([Decimal(1), Decimal(2)], job=total, name="part", args=lambda it: {"cart": CART, "factor": it})
    twins = [w.node("twin", job=first_line, args={"cart": CART}, depends_on=None) for _ in range(2)]
    end = w.node("end", job=tell, depends_on=[*ids, *twins])
    run = engine.run(w)
    assert set(run.outputs) == {"part_0", "part_1", *twins, "end"}
    assert run.outputs["part_1"] == run.outputs[ids[1]] == run.output("part_1") == run.output(ids[1]) == Decimal("7.0")
    assert run.outputs.get("nothing", 3) == 3
    assert ids[0] in run.outputs
    assert run.result == run.output("end") == run.output(end) == run.output(tell)
    for ask in (lambda: run.output("twin"), lambda: run.outputs["twin"], lambda: run.output(first_line)):
        with pytest.raises(KeyError, match=rf"has 2 nodes .*; give an id: {twins[0]}|{twins[1]}"):
            ask()
    with pytest.raises(KeyError, match="there are part_0"):
        run.outputs["nothing"]
    with pytest.raises(KeyError, match=r"no node with the job tests\.engine\.typed_jobs:better"):
        run.output(typed_jobs.better)
    with pytest.raises(KeyError, match="has no node 'left'"):
        run.output(Wide.left)
    with pytest.raises(InputError, match=r"expected the name or id of a node.*, got 7"):
        run.output(7)  # type: ignore[call-overload]


def test_a_run_that_has_not_completed_has_no_result(engine: Engine) -> None:
    class Broken(Workflow):
        @step
        def fine(self) -> date:
            return CART.day

        @step
        def broken(self) -> date:
            raise ValueError("no")

    run = engine.run(Broken(), check=False)
    with pytest.raises(Exception, match="ValueError: no"):
        run.result  # noqa: B018
    assert run.outputs == {"fine": CART.day}


def test_a_run_that_goes_on_says_so(sqlite_url: str) -> None:
    with Engine(sqlite_url, runner=None) as engine:
        run = engine.start(Wide())
        with pytest.raises(Exception, match="PENDING and has no result yet"):
            run.result  # noqa: B018


def test_where_the_code_is_not_imported_outputs_are_the_stored_json(sqlite_url: str) -> None:
    with Engine(sqlite_url) as engine:
        engine.run(Wide(), run_id="wide")
    program = f"""
import sys
from stepwell import Engine
with Engine({sqlite_url!r}, runner=None) as engine:
    run = engine.get("wide")
    assert run.output("left") == {{"sku": "a", "price": "1.5"}}, run.output("left")
    assert run.result["right"] == "2026-02-03"
    assert "tests.engine.typed_jobs" not in sys.modules
    from tests.engine.test_typed_data import CART, Wide
    assert run.output("left") == CART.lines[0]
    assert run.output(Wide.load) == CART
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr


def test_plain_json_loads_nothing_that_converts() -> None:
    program = """
import sys
from stepwell import Builder, Engine, Workflow, step
class Plain(Workflow):
    number: int
    names: list[str] = []
    @step
    def first(self) -> dict[str, int]:
        return {"a": self.number}
    @step
    def second(self, first: dict[str, int]) -> list[int]:
        return [*first.values()]
with Engine("memory://") as engine:
    run = engine.run(Plain(number=3))
    assert run.result == [3]
    assert run.outputs["first"] == {"a": 3}
for name in ("cattrs", "attr", "pydantic"):
    assert name not in sys.modules, name
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr


def test_large_bytes_are_kept(engine: Engine) -> None:
    class Large(Workflow):
        @step
        def make(self) -> bytes:
            return b"\x00\x01" * 500_000

        @step
        def count(self, make: bytes, ctx: Context) -> int:
            return len(make)

    run = engine.run(Large())
    assert run.result == 1_000_000
    assert run.output(Large.make)[:2] == b"\x00\x01"


def test_a_job_that_is_given_as_text_is_held_against_its_args_when_it_is_started(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts it here would import it in a moment, and find out when the body is called."""
    (tmp_path / "late_jobs.py").write_text("def pack(count: int, note: str = ''): return count\n")
    monkeypatch.syspath_prepend(tmp_path)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"counts": 1}, "the args of 'pack' contain 'counts', but late_jobs:pack takes count, note"),
        ({}, "the args of 'pack' lack 'count'"),
        ({"count": "1"}, "count: expected int, got '1'"),
    ]
    for args, told in wrong:
        sys.modules.pop("late_jobs", None)
        w = Builder("late")
        w.node("pack", job="late_jobs:pack", args=args)
        assert "late_jobs" not in sys.modules
        for _ in range(2):  # it is not forgotten
            with pytest.raises(DefinitionError, match=re.escape(told)):
                engine.start(w)
        assert engine.runs() == []
    sys.modules.pop("late_jobs", None)
    right = Builder("late")
    right.fan_out([1, 2], job="late_jobs:pack", args=lambda count: {"count": count})
    right.node("nowhere", job="no_such_module:job", depends_on=None)  # left to whoever runs it
    assert engine.run(right, check=False).node("nowhere").status == "FAILED"
    del sys.modules["late_jobs"]
