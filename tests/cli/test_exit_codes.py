"""Every error has its exit code, which scripts rely on."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import errors
from stepwell.cli.exits import ExitCode, code_for

CODES = {
    errors.DefinitionError: 2,
    errors.GraphError: 2,
    errors.MissingJob: 2,
    errors.InputError: 2,
    errors.NotJson: 2,
    errors.BadCassette: 2,
    errors.UnsafePath: 2,
    errors.NodeNotFound: 2,
    errors.DataMisfit: 2,
    errors.MissingSecret: 2,
    errors.StoreError: 4,
    errors.StoreBusy: 4,
    errors.StoreFull: 4,
    errors.StoreReadOnly: 4,
    errors.SchemaTooNew: 4,
    errors.StoreCorrupt: 4,
    errors.NotStored: 4,
    errors.RunNotFound: 3,
    errors.RunConflict: 6,
    errors.RunBusy: 6,
    errors.RunFailed: 1,
    errors.RunCancelled: 5,
    errors.RunPaused: 6,
    errors.ReplayMismatch: 1,
    KeyboardInterrupt: 130,
    ZeroDivisionError: 70,
}


@pytest.mark.parametrize(("kind", "code"), CODES.items(), ids=lambda value: getattr(value, "__name__", None))
def test_an_error_has_its_code(kind: type[BaseException], code: int) -> None:
    assert code_for(_made(kind)) == code


def test_every_code_is_given_and_means_something() -> None:
    assert {*CODES.values(), 0} == set(ExitCode)


def _made(kind: type[Any]) -> Any:
    """An error of this class, whatever it wants to be told."""
    return kind.__new__(kind)
