"""A workflow has a name for people and an address for other processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stepwell.define import Builder, Workflow, definition_of, load_target, step
from stepwell.errors import DefinitionError
from tests.define import shop
from tests.define.lines import place

SCRIPT = """
from stepwell.define import Builder, Workflow, load_target, step

class Nightly(Workflow):
    day: int = 1

    @step
    def work(self): ...

def job(): ...

if __name__ == "__main__":
    w = Builder("w")
    w.node("a", job=job)
    print(Nightly.workflow_target, *w._functions)
    print(load_target(Nightly.workflow_target) is Nightly)
"""


SPAWNING = """
import multiprocessing
import sys
from stepwell.define import Workflow, bodies_for, step

class Nightly(Workflow):
    @step
    def work(self):
        return type(self) is Nightly, Nightly.workflow_target

def child(target):
    print(bodies_for(target).find(Nightly.workflow_graph().nodes["work"]).invoke({}, None, {}), sys.modules.get("nightly"))

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=child, args=(Nightly.workflow_target,))
    process.start()
    process.join()
"""


def python(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={"PYTHONPATH": f"{Path(sys.modules['stepwell'].__path__[0]).parent}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "orders.py").write_text(SCRIPT)
    (tmp_path / "nightly.py").write_text(SCRIPT)
    (tmp_path / "2-nightly.py").write_text(SCRIPT)
    return tmp_path


def test_the_name_is_that_of_the_class_unless_one_is_given() -> None:
    class Order(Workflow, name="order"):
        @step
        def work(self) -> None: ...

    assert Order.workflow_name == "order"
    assert shop.ShopWorkflow.workflow_name == "ShopWorkflow"


def test_the_target_is_the_address_of_the_class() -> None:
    assert shop.ShopWorkflow.workflow_target == "tests.define.shop:ShopWorkflow"
    assert load_target(shop.ShopWorkflow.workflow_target) is shop.ShopWorkflow


def test_a_module_run_by_name_is_addressed_by_that_name(folder: Path) -> None:
    assert python(folder, "-m", "shop.orders") == "shop.orders:Nightly shop.orders:job\nTrue\n"
    assert python(folder, "-c", "from stepwell.define import load_target as l; print(l('shop.orders:Nightly'))") == (
        "<class 'shop.orders.Nightly'>\n"
    )


def test_a_script_is_addressed_by_the_name_it_can_be_imported_by(folder: Path) -> None:
    assert python(folder, "nightly.py") == "nightly:Nightly nightly:job\nTrue\n"
    assert python(folder, "-c", "from stepwell.define import load_target as l; print(l('nightly:Nightly'))") == (
        "<class 'nightly.Nightly'>\n"
    )


@pytest.mark.parametrize("started", [["nightly.py"], ["-m", "nightly"]])
def test_a_process_that_multiprocessing_spawned_does_not_import_the_script_twice(
    folder: Path, started: list[str]
) -> None:
    (folder / "nightly.py").write_text(SPAWNING)
    assert python(folder, *started) == "(True, 'nightly:Nightly') None\n"


def test_a_script_that_nobody_can_import_keeps_main(folder: Path) -> None:
    assert python(folder, "2-nightly.py") == "__main__:Nightly __main__:job\nTrue\n"
    code = SCRIPT.replace('if __name__ == "__main__"', "if True")
    assert python(folder, "-c", code).startswith("__main__:Nightly")


def test_another_process_says_why_it_cannot_import_from_main() -> None:
    with pytest.raises(DefinitionError, match="a session that no other process can import"):
        load_target("__main__:NightlyThatWasTypedAtAPrompt")


@pytest.mark.parametrize("wrong", ["", "  ", 7, "\ud800"])
def test_a_name_is_some_text(wrong: str) -> None:
    with pytest.raises(DefinitionError, match="cannot be a name") as caught:

        class Order(Workflow, name=wrong):  # named
            @step
            def work(self) -> None: ...

    assert caught.value.where == place(__file__, "named")
    with pytest.raises(DefinitionError, match="cannot be a name"):
        Builder(wrong)


def test_wrong_class_keywords_are_refused_with_the_line_of_the_class() -> None:
    with pytest.raises(
        DefinitionError, match="on_failure='explode': expected one of fail_fast, finish, pause"
    ) as caught:

        class Order(Workflow, on_failure="explode"):  # explode
            ...

    assert caught.value.where == place(__file__, "explode")
    with pytest.raises(DefinitionError, match="deadline=0"):

        class Late(Workflow, deadline=0): ...

    with pytest.raises(DefinitionError, match="on_failure='explode'"):
        Builder("x", on_failure="explode")
    with pytest.raises(
        DefinitionError, match=r"Tried: retry= is no keyword .* there are name, on_failure, deadline, node_timeout"
    ):

        class Tried(Workflow, retry=3): ...


@pytest.mark.parametrize("on_failure", ["fail_fast", "finish", "pause"])
def test_what_happens_on_failure_is_one_of_three(on_failure: str) -> None:
    class Order(Workflow, on_failure=on_failure):
        @step
        def work(self) -> None: ...

    assert definition_of(Order()).on_failure == on_failure
    w = Builder("order", on_failure=on_failure)
    w.node("work", job=shop.no_parameters)
    assert definition_of(w).on_failure == on_failure


def test_the_graph_is_compiled_once() -> None:
    assert shop.ShopWorkflow.workflow_graph() is shop.ShopWorkflow.workflow_graph()
