"""The conformance suite itself: complete, and only loaded by who asks for it."""

import inspect
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from typing import get_args

import pytest

from stepwell.core import model
from tests.conformance import ops
from tests.conformance import suite as conformance


def sources() -> str:
    modules = [
        import_module(f"{conformance.__name__}.{info.name}") for info in pkgutil.iter_modules(conformance.__path__)
    ]
    return "".join(inspect.getsource(module) for module in (ops, *modules))


@pytest.mark.parametrize("record", [*get_args(model.Op), *get_args(model.Receipt), *get_args(model.Query)])
def test_every_op_receipt_and_query_is_asked_for(record: type) -> None:
    assert re.search(rf"\b{record.__name__}\b", sources())


@pytest.mark.parametrize("reason", list(model.Refusal))
def test_every_reason_to_refuse_is_met(reason: model.Refusal) -> None:
    assert f"Refusal.{reason.name}" in sources()


def test_every_part_of_the_suite_is_taken_in() -> None:
    for info in pkgutil.iter_modules(conformance.__path__):
        module = import_module(f"{conformance.__name__}.{info.name}")
        own = {name: value for name, value in vars(module).items() if name.startswith("test_")}
        assert own
        for name, function in own.items():
            assert getattr(conformance, name) is function, f"two tests are named {name}"


def test_stepwell_does_not_load_pytest() -> None:
    code = "import sys, tests.conformance.ops, tests.conformance.audit; print('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "False\n"
