"""Exceptions that `retry_on` names are looked up where a workflow is written: a name that leads nowhere is told there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepwell import Builder, DefinitionError, Retry, Workflow, step, task
from tests.define import shop


def retried_on(retry: Any) -> tuple[str, ...] | None:
    w = Builder("named")
    node = w.node("charge", job=shop.charge, retry=retry)
    found = w.graph().nodes[node].retry
    assert found is not None
    return found.names()


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("ConnectionError", "builtins.ConnectionError"),
        ("builtins.ConnectionError", "builtins.ConnectionError"),
        ("json.JSONDecodeError", "json.decoder.JSONDecodeError"),
        ("decimal.InvalidOperation", "decimal.InvalidOperation"),
        ("concurrent.futures.process.BrokenProcessPool", "concurrent.futures.process.BrokenProcessPool"),
    ],
)
def test_a_name_becomes_that_of_its_class(name: str, means: str) -> None:
    assert retried_on(Retry(2, retry_on=name)) == (means,)
    assert retried_on(Retry(2, retry_on=(OSError, name))) == ("builtins.OSError", means)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NoSuchErr", "there is no exception 'NoSuchErr' in Python"),
        ("json.NoSuchErr", "module 'json' has no 'NoSuchErr'"),
        ("no_such_shop.errors.Busy", "there is no module 'no_such_shop' to import"),
        ("json.loads", "which is no exception class"),
        ("int", "which is no exception class"),
        ("", "the form package.module.Name"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_where_it_is_written(name: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=f"retry_on={name!r}") as refused:
        Builder("named").node("charge", job=shop.charge, retry=Retry(2, retry_on=name))
    assert said in str(refused.value)
    assert f"{__file__}:" in str(refused.value)
    with pytest.raises(DefinitionError, match="retry_on="):

        class Order(Workflow):
            @step(retry=Retry(2, retry_on=(OSError, name)))
            def charge(self) -> None: ...

    with pytest.raises(DefinitionError, match="retry_on="):
        task(depends_on=None, retry=Retry(2, retry_on=name))


def test_a_class_is_taken_as_it_is() -> None:
    class Busy(Exception): ...

    (name,) = retried_on(Retry(2, retry_on=Busy)) or ()
    assert name.endswith("test_a_class_is_taken_as_it_is.<locals>.Busy")


def test_an_exception_of_the_script_has_the_name_that_other_processes_know_it_by(tmp_path: Path) -> None:
    """Or what `python orders.py` stored would never match what `stepwell resume` raises."""
    (tmp_path / "orders.py").write_text(
        "from stepwell import Retry\n"
        "class Busy(Exception): ...\n"
        "if __name__ == '__main__':\n"
        "    from stepwell.core.kernel.settling import Failure\n"
        "    from stepwell.engine.bodies.raised import Raised\n"
        "    print(Retry(2, retry_on=Busy).names()[0], Raised.of(Busy()).names[0])\n"
    )
    told = subprocess.run([sys.executable, "orders.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["orders.Busy", "orders.Busy"]


def is_busy(error: Exception) -> bool:
    return "busy" in str(error)


def test_a_function_by_name_is_looked_up_and_can_be_asked() -> None:
    assert retried_on(Retry(2, retry_on=(OSError, f"{__name__}:is_busy"))) == (
        "builtins.OSError",
        f"{__name__}:is_busy",
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_shop:is_busy", "there is no module 'no_such_shop'"),
        ("json:is_busy", "module 'json' has no 'is_busy'"),
        ("json:__doc__", "which is no function"),
        ("stepwell.base.ids:new_run_id", "one argument"),
        ("a b:c", "is not an address"),
    ],
)
def test_a_function_that_is_not_there_is_refused_where_it_is_written(name: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said) as refused:
        task(depends_on=None, retry=Retry(2, retry_on=name))
    assert f"{__file__}:" in str(refused.value)


def test_a_builder_takes_no_function_that_other_processes_cannot_find() -> None:
    with pytest.raises(DefinitionError, match="only its name is stored"):
        retried_on(Retry(2, retry_on=lambda error: True))

    def is_busy(error: Exception) -> bool: ...

    is_busy.__qualname__ = "is_busy"
    with pytest.raises(DefinitionError, match="leads to something else"):
        retried_on(Retry(2, retry_on=is_busy))


def test_the_retry_of_a_class_may_ask_a_lambda() -> None:
    class Order(Workflow):
        @step(retry=Retry(2, retry_on=lambda error: True))
        def charge(self) -> None: ...

    retry = Order.workflow_graph().nodes["charge"].retry
    assert retry is not None
    assert retry.predicates == retry.names()
