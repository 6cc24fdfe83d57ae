"""Errors say what happened, to which run and node and what to do next; the facts are attributes too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stepwell import errors
from stepwell.errors import (
    DataMisfit,
    GraphError,
    MissingJob,
    ReplayMismatch,
    RetryLater,
    RunFailed,
    RunNotFound,
    RunPaused,
    StepwellError,
    TransientError,
    UnrecordedCall,
)

FACTS: dict[str, Any] = {
    **dict.fromkeys(("attempt", "status", "effect", "frozen_at", "limit"), 3),
    **dict.fromkeys(("seconds", "retry_after"), 2.0),
    **dict.fromkeys(("problems", "others", "diff", "names"), ("a", "b")),
    **{"failure": None, "lacking": True, "attempted": False},
}
FAILURE = RunFailed("r-1", node="pack", attempt=2, error_type="KeyError", error_message="'x'", others=1)


def _all(kind: type[StepwellError] = StepwellError) -> Iterator[type[StepwellError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _all(below)


KINDS = sorted({kind for kind in _all() if inspect.isfunction(kind.__init__)}, key=lambda kind: kind.__name__)
NOT_KEPT = {
    "message",
    "what",
    "store",
    "hint",
    "failure",
    "workflow",
    "name",
    "instead",
    "through",
    "where",
    "others",
    "told",
}
"""What is in the text only, in some of them."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_an_error_is_made_with_is_an_attribute(kind: type[StepwellError]) -> None:
    named = inspect.signature(kind).parameters.values()
    given = {each.name: FACTS.get(each.name, f"the {each.name}") for each in named}
    if kind is RunFailed:
        given["others"] = 3
    positional = [given[each.name] for each in named if each.kind is not each.KEYWORD_ONLY]
    error = kind(*positional, **{each.name: given[each.name] for each in named if each.kind is each.KEYWORD_ONLY})
    kept = {name: vars(error).get(name, "not kept") for name in given if name in vars(error) or name not in NOT_KEPT}
    assert kept == {name: given[name] for name in kept}
    text = str(error)
    for each in named:
        if (
            each.kind is not each.KEYWORD_ONLY
            and isinstance(given[each.name], str)
            and each.name not in ("store", "name")
        ):
            assert given[each.name] in text
    assert error.public_message
    assert "the store" not in error.public_message


WAYS = "`run.export_graph()`, give the node another job, `run.import_graph(...)`"
TEXTS: list[tuple[Callable[[], StepwellError], str]] = [
    (lambda: GraphError(["one"]), "the graph has 1 problem:\n  - one"),
    (
        lambda: GraphError(["one", "two"], what="x", where="f:1"),
        "x has 2 problems:\n  - one\n  - two\n  defined at f:1",
    ),
    (
        lambda: GraphError(["p"] * (errors.MAX_SHOWN + 1)),
        f"the graph has {errors.MAX_SHOWN + 1:,} problems:\n"
        + "  - p\n" * errors.MAX_SHOWN
        + "  - and 1 more, in `problems` of this error",
    ),
    (
        lambda: GraphError(["p"] * errors.MAX_SHOWN),
        f"the graph has {errors.MAX_SHOWN:,} problems:\n" + "\n".join(["  - p"] * errors.MAX_SHOWN),
    ),
    (
        lambda: DataMisfit("b", "int", ["p"] * (errors.MAX_SHOWN + 1)),
        f"b asks for int, and what is stored does not fit: {'; '.join(['p'] * errors.MAX_SHOWN)}",
    ),
    (
        lambda: MissingJob("gone", node="a", node_id="a", job="m:f", run_id="r", frozen_at=0),
        "the job of node 'a' of run r is missing: gone\n"
        "  the graph of the run, which was frozen at 1970-01-01T00:00:00Z, names it, so there are three ways out:\n"
        "  - restore m:f where this worker runs, and `run.retry()`\n"
        "  - give up: `run.cancel()`, if other nodes of it still run\n"
        f"  - edit the graph: {WAYS}, `run.retry()`",
    ),
    (
        lambda: MissingJob("gone", node="a", node_id="n1", job=None, attempted=False, others=list("bcdef")),
        "the job of node 'a' (n1) is missing: gone (also missing: b, c, d, e, f)\n  nothing was run",
    ),
    (
        lambda: MissingJob("gone", job=None, frozen_at=0, attempted=False, others=list("bcdefg")),
        "the code is missing: gone (also missing: b, c, d, e, f and 1 more)\n  nothing was attempted and the run is as it was; "
        f"its graph, which was frozen at 1970-01-01T00:00:00Z, can be edited: {WAYS}",
    ),
    (
        lambda: MissingJob("no secret", node="a", node_id="a", job="m:f", attempted=False, lacking=True),
        "node 'a' cannot run here: no secret\n  nothing was run",
    ),
    (
        lambda: RunNotFound("r", store="memory://"),
        "no run 'r' in this store; `engine.runs()` lists the runs there are",
    ),
    (
        lambda: RunNotFound("r", "did you mean q?", store="sqlite:///x.db"),
        "no run 'r' in this store; `stepwell ls --store sqlite:///x.db` lists the runs there are; did you mean q?",
    ),
    (
        lambda: FAILURE,
        "run r-1 failed at node 'pack', attempt 2: KeyError: 'x' (and 1 more failed)\n"
        "  completed nodes are kept; `run.retry()` runs only what did not complete",
    ),
    (
        lambda: RunFailed("r", node="(run)", attempt=0, error_type="deadline", error_message="too late"),
        "run r failed: too late\n  completed nodes are kept; `run.retry()` runs only what did not complete",
    ),
    (
        lambda: RunPaused("r-1", "node_failed", failure=FAILURE),
        "run r-1 is paused: node 'pack' failed, attempt 2: KeyError: 'x' (and 1 more failed)\n"
        "  `run.retry()` runs again what failed, `run.resume()` goes on without it; `run.why()` says more",
    ),
    (
        lambda: RunPaused("r", "node_failed"),
        "run r is paused: a node failed\n"
        "  `run.retry()` runs again what failed, `run.resume()` goes on without it; `run.why()` says more",
    ),
    (lambda: RunPaused("r", "requested"), "run r is paused: requested\n  `run.why()` says more"),
    (lambda: ReplayMismatch("more", run_id="r"), "the replay of run r differs: more"),
    (
        lambda: ReplayMismatch("x", run_id="r", node="a", attempt=2, effect=0, diff=["d", "e"]),
        "the replay of run r differs at node 'a', attempt 2, effect 0: x\n  d\n  e",
    ),
    (
        lambda: ReplayMismatch("x", run_id="r", node="a", attempt=2, effect=-1),
        "the replay of run r differs at node 'a', attempt 2, ctx.now(): x",
    ),
    (
        lambda: UnrecordedCall("time.time", node="a", where="f:1", instead="use ctx.now()", through="lib"),
        "node 'a' called time.time at f:1, through lib, and its answer is not recorded, so a replay could not repeat it: "
        "use ctx.now()",
    ),
    (lambda: RetryLater(0), "asked to be retried in 0 s"),
    (lambda: RetryLater(2, "busy"), "busy"),
]


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_an_error_says_what_happened_and_what_to_do(number: int) -> None:
    make, text = TEXTS[number]
    assert str(make()) == text


@pytest.mark.parametrize(
    "make",
    [
        *(lambda: RetryLater(-1), lambda: RetryLater(float("nan")), lambda: RetryLater(1, limit=0)),
        *(lambda: RetryLater(1, limit=1.5), lambda: TransientError("x", retry_after=-0.1)),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_waited_for_is_refused(make: Callable[[], StepwellError]) -> None:
    with pytest.raises(ValueError, match=r"expected a (whole )?number"):
        make()
    assert (RetryLater(1, limit=1).limit, TransientError("x", retry_after=0).retry_after) == (1, 0.0)
