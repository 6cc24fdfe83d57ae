"""Planted bugs in conditions and in what follows from skipped nodes; see `mutants`."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from stepwell.core.kernel import healing, plans, settling
from stepwell.core.model import HEALED_LATE, NodeStatus
from stepwell.core.store.memory import running
from stepwell.engine.procedures import forking
from stepwell.engine.scheduling import scheduler
from tests.simulation.simulate.planted import planted


@planted("a skipped node does not release its children")
def _keeps_children() -> Any:
    original = running.lower

    def lower(run: Any, child: Any, *, skipped: bool) -> None:
        if not skipped:
            original(run, child, skipped=skipped)

    return patch.object(running, "lower", lower)


@planted("a skip counts as a failure")
def _skip_fails() -> Any:
    original = running._settled_as

    def settled_as(asked: NodeStatus, run: Any, node: Any) -> NodeStatus:
        status = original(asked, run, node)
        return NodeStatus.FAILED if status is NodeStatus.SKIPPED else status

    return patch.object(running, "_settled_as", settled_as)


@planted("skipped parents are not counted")
def _uncounted() -> Any:
    original = running.lower
    return patch.object(running, "lower", lambda run, child, skipped: original(run, child, skipped=False))


@planted("skipped parents are not counted when a gate opens")
def _not_derived() -> Any:
    return patch.object(running, "was_skipped", lambda status, reason: False)


@planted("a parent that a heal added too late skips its child")
def _late_skips() -> Any:
    return patch.object(running, "was_skipped", lambda status, reason: status is NodeStatus.SKIPPED)


@planted("a node runs although all its parents were skipped")
def _runs_anyway() -> Any:
    return patch.object(scheduler, "after_parents", lambda spec, parents, skipped: None)


@planted("join=all is taken for join=any")
def _any_join() -> Any:
    original = settling.after_parents
    return patch.object(scheduler, "after_parents", lambda spec, *counts: original(spec._replace(join="any"), *counts))


@planted("one skipped parent skips its child")
def _all_join() -> Any:
    original = settling.after_parents
    return patch.object(scheduler, "after_parents", lambda spec, *counts: original(spec._replace(join="all"), *counts))


@planted("a retry runs skipped nodes")
def _retries_skipped() -> Any:
    return patch.object(plans, "RETRIED", plans.RETRIED | {NodeStatus.SKIPPED})


@planted("a fork says that skipped nodes came too late")
def _forgets_reasons() -> Any:
    def reasons(nodes: Any, entries: Any) -> dict[int, str]:
        return {row.index: HEALED_LATE for row in nodes}

    return patch.object(forking, "_reasons", reasons)


@planted("a heal takes every skipped node for one that came too late")
def _every_skip_is_late() -> Any:
    original = healing._late

    def late(nodes: Any, graph: Any, joining: Any) -> set[int]:
        changed = [row._replace(reason=HEALED_LATE) if row.status is NodeStatus.SKIPPED else row for row in nodes]
        return original(changed, graph, joining)

    return patch.object(healing, "_late", late)
