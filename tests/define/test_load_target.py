"""A stored address leads to its class, or to one clear error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stepwell.define import Workflow, bodies_for, load_target, step
from stepwell.errors import DefinitionError
from tests.define import shop


def test_a_class_and_a_function_that_makes_a_builder_can_be_loaded() -> None:
    assert load_target("tests.define.shop:ShopWorkflow") is shop.ShopWorkflow
    assert load_target("tests.define.shop:nightly") is shop.nightly


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module:Order", "there is no module 'no_such_module' to import from here"),
        ("tests.no_such_module:Order", "there is no module 'tests.no_such_module'"),
        ("tests.define.shop:Gone", "module 'tests.define.shop' has no 'Gone'; was it renamed or removed"),
        ("tests.define.shop:ShopWorkflow.Gone", "has no 'Gone'"),
        ("tests.define.shop:not_a_function", "expected a Workflow class or a function that returns a Builder, got 7"),
        ("tests.define.shop:Register", "expected a Workflow class"),
        ("tests.define.shop", "is not an address"),
        ("tests/define/shop.py:ShopWorkflow", "is not an address"),
        ("shop:f.<locals>.Order", "is defined inside a function"),
    ],
)
def test_what_cannot_be_loaded_is_explained(target: str, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        load_target(target)
    assert message in str(caught.value)
    assert target in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", "importing broken_module raised ZeroDivisionError: division by zero"),
        ("def (", "importing broken_module raised SyntaxError"),
        ("import a_missing_dependency", "importing broken_module raised ModuleNotFoundError: No module named"),
    ],
)
def test_a_module_that_cannot_be_imported_is_explained(
    source: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_module.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DefinitionError) as caught:
        load_target("broken_module:Order")
    assert message in str(caught.value)
    assert caught.value.__cause__ is not None
    assert "broken_module" not in sys.modules


def test_a_class_inside_a_function_can_be_run_here_but_not_elsewhere() -> None:
    class Order(Workflow):
        @step
        def work(self) -> None: ...

    with pytest.raises(DefinitionError, match="move it to the top level"):
        bodies_for(Order.workflow_target)
