"""What becomes of an attempt that did not complete."""

from __future__ import annotations

import pytest

from stepwell.base.clock import SECOND
from stepwell.base.ids import NodeId
from stepwell.core.graph import NodeSpec, Retry
from stepwell.core.kernel.settling import Failure, Later, after_failure, delay_seconds, lost, stopped
from stepwell.core.model import AttemptStatus, NodeStatus

NAMES = ["builtins.ConnectionResetError", "builtins.ConnectionError", "builtins.OSError"]


def spec(**options: object) -> NodeSpec:
    return NodeSpec(NodeId("charge"), "charge", **options)  # type: ignore[arg-type]


def verdict(of: NodeSpec, failures: int = 0, postponed: int = 0, **failure: object) -> tuple[str, str, int | None]:
    found = after_failure(of, Failure(NAMES, **failure), failures=failures, postponed=postponed, seed=7)  # type: ignore[arg-type]
    return str(found.status), str(found.node), found.delay


@pytest.mark.parametrize(
    ("retry", "failures", "again"),
    [
        (None, 0, False),
        (Retry(1), 0, False),
        (Retry(2), 0, True),
        (Retry(2), 1, False),
        (Retry(3), 1, True),
        (Retry(3), 2, False),
        (Retry(3), 9, False),
        (Retry(3, retry_on=ConnectionError), 0, True),
        (Retry(3, retry_on=(KeyError, OSError)), 0, True),
        (Retry(3, retry_on=(KeyError, ValueError)), 0, False),
    ],
)
def test_it_is_tried_as_often_as_its_retry_allows(retry: Retry | None, failures: int, again: bool) -> None:
    status, node, delay = verdict(spec(retry=retry), failures)
    assert status == "FAILED"
    assert (node, delay is not None) == (("WAITING", True) if again else ("FAILED", False))


def test_what_timed_out_is_tried_again_unless_it_may_run_once_only() -> None:
    assert verdict(spec(retry=Retry.stored(2, 0, 0, None)), timed_out=True) == ("TIMED_OUT", "WAITING", 0)
    assert verdict(spec(), timed_out=True) == ("TIMED_OUT", "FAILED", None)
    careful = spec(retry=Retry(2), on_lost="interrupt")
    assert verdict(careful, timed_out=True) == ("TIMED_OUT", "INTERRUPTED", None)
    assert verdict(careful)[:2] == ("FAILED", "WAITING")


@pytest.mark.parametrize("retry", [None, Retry(1), Retry(3, retry_on=KeyError)])
def test_what_asks_to_be_tried_later_is_within_a_limit_of_its_own(retry: Retry | None) -> None:
    of = spec(retry=retry)
    assert verdict(of, later=Later(2.5, 3)) == ("FAILED", "WAITING", 2_500_000)
    assert verdict(of, failures=99, postponed=2, later=Later(-1, 3)) == ("FAILED", "WAITING", 0)
    assert verdict(of, postponed=3, later=Later(2.5, 3)) == ("FAILED", "FAILED", None)
    found = after_failure(of, Failure(NAMES, later=Later(1, 3)), failures=0, postponed=0, seed=7)
    assert found.postponed
    assert not after_failure(spec(retry=Retry(2)), Failure(NAMES), failures=0, postponed=0, seed=7).postponed


def test_a_permanent_failure_is_not_tried_again_whatever_its_retry_says() -> None:
    assert verdict(spec(retry=Retry(5)), permanent=True) == ("FAILED", "FAILED", None)
    assert verdict(spec(retry=Retry(5, retry_on=OSError)), permanent=True) == ("FAILED", "FAILED", None)


def test_a_transient_failure_counts_and_waits_as_long_as_it_was_told() -> None:
    of = spec(retry=Retry(3, base_delay=1, max_delay=2))
    assert verdict(of, retry_after=90) == ("FAILED", "WAITING", 90 * SECOND)
    assert verdict(of, 1, retry_after=0.5) == ("FAILED", "WAITING", 2 * SECOND)  # the back-off is longer
    assert verdict(of, 2, retry_after=90) == ("FAILED", "FAILED", None)
    assert verdict(spec(), retry_after=90) == ("FAILED", "FAILED", None)
    found = after_failure(of, Failure(NAMES, retry_after=1), failures=0, postponed=0, seed=7)
    assert not found.postponed


def test_what_was_asked_to_stop_or_was_lost() -> None:
    assert stopped(spec()) == (AttemptStatus.CANCELLED, NodeStatus.CANCELLED, None, False, None)
    assert stopped(spec(on_lost="interrupt")) == (AttemptStatus.CANCELLED, NodeStatus.INTERRUPTED, None, False, None)
    assert lost(spec())[:2] == (AttemptStatus.LOST, NodeStatus.READY)
    assert lost(spec(on_lost="interrupt"))[:2] == (AttemptStatus.LOST, NodeStatus.INTERRUPTED)


def test_delays_double_with_some_jitter_up_to_the_longest() -> None:
    retry = Retry(99, base_delay=2.0, max_delay=100.0)
    delays = [delay_seconds(retry, attempt, seed=7, node="charge") for attempt in range(1, 9)]
    for attempt, delay in enumerate(delays[:5]):
        assert 2.0 * 2**attempt <= delay < 2.0 * 2**attempt + 2.0
    assert delays[6:] == [100.0, 100.0]
    assert delay_seconds(retry, 5_000, seed=7, node="charge") == 100.0
    assert len({delay_seconds(retry, 1, seed=seed, node=node) for seed in (1, 2) for node in ("a", "b")}) == 4
    assert delays == [delay_seconds(retry, attempt, seed=7, node="charge") for attempt in range(1, 9)]
    assert verdict(spec(retry=retry), failures=1)[2] == int(delays[1] * SECOND)
