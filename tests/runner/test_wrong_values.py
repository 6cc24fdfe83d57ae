"""A value that makes no sense is refused where it is given, in words, before anything is stored."""

from __future__ import annotations

import math
from typing import Any

import pytest

from stepwell import Engine, Workflow, step
from stepwell.errors import InputError
from stepwell.store import open_store, reader

NAN = math.nan
NO_SECONDS = [NAN, math.inf, -math.inf, 1e300, 10**30, 10**5_000, "1", -1, True, None, 2**40]


class Small(Workflow):
    @step
    def only(self) -> None: ...


@pytest.fixture
def looking() -> Any:
    with Engine("memory://", runner=None) as engine:
        yield engine


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("value", NO_SECONDS, ids=range(len(NO_SECONDS)))
def test_the_grace_of_a_cancel(looking: Engine, value: Any, dry_run: bool) -> None:
    run = looking.start(Small())
    with pytest.raises(InputError, match=r"grace_seconds=.*: a number of seconds from 0 below 2\*\*40 is needed"):
        run.cancel(grace_seconds=value, dry_run=dry_run)
    assert run.status == "PENDING"


@pytest.mark.parametrize("value", [each for each in NO_SECONDS if each is not None], ids=range(len(NO_SECONDS) - 1))
def test_how_long_to_wait(looking: Engine, value: Any) -> None:
    run = looking.start(Small())
    with pytest.raises(InputError, match=r"timeout=.*: a number of seconds from 0 below 2\*\*40 is needed"):
        run.wait(timeout=value)


def test_waiting_for_thousands_of_years_is_allowed() -> None:
    with Engine("memory://") as engine:
        assert engine.start(Small()).wait(2**40 - 1).status == "COMPLETED"


@pytest.mark.parametrize(
    "options",
    [
        {"runner": "zz"},
        {"url": 5},
        {"url": ["memory://"]},
        {"workflows": [int]},
        {"workflows": [Small()]},
        {"workflows": Small},
        {"workflows": 5},
        {"workflows": "Small"},
        {"lease_seconds": NAN},
        {"lease_seconds": 0},
        {"lease_seconds": "30"},
        {"close_seconds": NAN},
        {"max_concurrent_nodes": "x"},
        {"max_concurrent_nodes": 1.5},
        {"max_concurrent_nodes": True},
        {"max_async_nodes": 0},
        {"queue_depth": -1},
        {"queue_depth": None},
    ],
    ids=str,
)
def test_an_engine(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="needed"):
        Engine(**{"url": "memory://"} | options)


def test_an_engine_takes_a_store() -> None:
    Engine(open_store("memory://"), workflows={Small}, runner=None).close()


@pytest.mark.parametrize("wrong", [[5], 5, [Small()], Small])
def test_what_is_served(wrong: Any) -> None:
    with Engine("memory://") as engine, pytest.raises(InputError, match="no list of Workflow classes"):
        engine.serve(wrong)


@pytest.mark.parametrize(
    "options",
    [
        *({"priority": value} for value in (1.5, True, "x", None, 2**31)),
        *({"idempotency_key": value} for value in (5, "", "k" * 1_000_000, b"k", "\ud800")),
        *({"timeout": value} for value in ("x", NAN, 0, True)),
        *({"seed": value} for value in ("x", 1.5, -1, 2**64, True)),
    ],
    ids=lambda options: str(options)[:40],
)
def test_how_a_run_is_started(looking: Engine, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=f"{name}=.* is needed") as refused:
        looking.start(Small(), **options)
    assert len(str(refused.value)) < 300
    assert list(reader.all_runs(looking.store)) == []


def test_listeners(looking: Engine) -> None:
    with pytest.raises(InputError, match="a function of one argument is needed"):
        looking.on("run", None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="there are: run, node"):
        looking.on("nodes", print)  # type: ignore[arg-type]


@pytest.mark.parametrize("attempt", ["x", 0, 1.0, True])
def test_the_number_of_an_attempt(looking: Engine, attempt: Any) -> None:
    run = looking.start(Small())
    for ask in (run.logs, run.effects):
        with pytest.raises(InputError, match=r"attempt=.*: a whole number from 1 is needed"):
            ask(attempt=attempt)
