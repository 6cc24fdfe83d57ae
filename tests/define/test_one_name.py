"""Two workflows of one name would be taken for two versions of one: they are refused."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from stepwell import Engine
from stepwell.define import Workflow, step
from stepwell.errors import DefinitionError
from tests.define.lines import place

SOURCE = """
from stepwell.define import Workflow, step

class Order(Workflow):
    @step
    def work(self): ...
"""


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine("memory://") as engine:
        yield engine


def module(folder: Path, name: str) -> ModuleType:
    """A module made anew each time it is asked for, as a reload makes it."""
    (folder / f"{name}.py").write_text(SOURCE)
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_two_classes_of_one_name_in_one_place_are_refused_with_both_lines() -> None:
    class Purchase(Workflow, name="order"):  # first
        @step
        def work(self) -> None: ...

    with pytest.raises(DefinitionError, match=r"two workflows are named 'order': .*\.Sale and .*\.Purchase") as caught:

        class Sale(Workflow, name="order"):  # second
            @step
            def work(self) -> None: ...

    assert caught.value.where == place(__file__, "second")
    assert place(__file__, "first") in str(caught.value)
    assert "class Sale(Workflow, name=...)" in str(caught.value)


def test_a_class_that_is_written_anew_takes_the_place_of_the_first() -> None:
    for _ in range(2):

        class Order(Workflow):
            @step
            def work(self) -> None: ...

    assert Order.workflow_name == "Order"


def test_a_base_without_steps_has_no_runs_and_may_share_its_name() -> None:
    class Order(Workflow):
        order_id: int

    class Child(Order, name="Order"):
        @step
        def work(self) -> None: ...

    assert Child.workflow_name == Order.workflow_name


def test_an_engine_refuses_the_second_class_of_one_name(engine: Engine, tmp_path: Path) -> None:
    first, second = module(tmp_path, "first_shop").Order, module(tmp_path, "second_shop").Order
    engine.run(first())
    with pytest.raises(DefinitionError, match="two workflows are named 'Order'") as caught:
        engine.start(second())
    assert str(tmp_path / "first_shop.py") in str(caught.value)
    assert caught.value.where == f"{tmp_path / 'second_shop.py'}:4"
    with pytest.raises(DefinitionError, match="two workflows are named 'Order'"):
        engine.start_many([first(), second()])
    with pytest.raises(DefinitionError, match="two workflows are named 'Order'"):
        Engine("memory://", workflows=[first, second])


def test_a_class_that_is_imported_twice_is_one(engine: Engine, tmp_path: Path) -> None:
    first, second = module(tmp_path, "one_shop").Order, module(tmp_path, "one_shop").Order
    assert first is not second
    engine.run(first())
    engine.run(second())


def test_a_class_run_as_a_script_and_imported_is_one(tmp_path: Path) -> None:
    from tests.define.test_names import python

    (tmp_path / "orders.py").write_text(
        SOURCE + "\nif __name__ == '__main__':\n    import helper\n    helper.go(Order)\n"
    )
    (tmp_path / "helper.py").write_text(
        "import orders\n"
        "from stepwell import Engine\n"
        "def go(main):\n"
        "    assert main is not orders.Order\n"
        "    with Engine('memory://') as engine:\n"
        "        print(engine.run(main()).status, engine.run(orders.Order()).status)\n"
    )
    assert python(tmp_path, "orders.py").split() == ["COMPLETED", "COMPLETED"]
    assert "orders" not in sys.modules
