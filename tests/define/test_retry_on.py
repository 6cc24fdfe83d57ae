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
        ("shop.errors:Busy", "the form package.module.Name"),
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
        "    from stepwell.kernel.settling import Failure\n"
        "    from stepwell.runner.bodies.raised import Raised\n"
        "    print(Retry(2, retry_on=Busy).names()[0], Raised.of(Busy()).names[0])\n"
    )
    told = subprocess.run([sys.executable, "orders.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["orders.Busy", "orders.Busy"]
