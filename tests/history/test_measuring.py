"""A run in numbers, from its row and journal alone."""

from __future__ import annotations

from stepwell.base.clock import SECOND
from stepwell.core.kernel.healing import arrange
from stepwell.core.model import JournalRow, NodeStatus
from stepwell.history.measuring import Latency, RunMetrics, measure
from tests.core.kernel.facts import NOW, graph, run_row

OF = graph(a="", b="a", c="a b")
A, B, C = (OF.index[name] for name in "abc")


def told(*entries: tuple[float, str, int | None, str | None]) -> list[JournalRow]:
    """(seconds since the beginning, kind, node, status): numbered as they come."""
    began = NOW - 100 * SECOND
    return [
        JournalRow(seq, began + int(at * SECOND), kind, index, None, status)
        for seq, (at, kind, index, status) in enumerate(entries, 1)
    ]


def metrics(
    *entries: tuple[float, str, int | None, str | None], status: str = "RUNNING", now: float = 100
) -> RunMetrics:
    journal = told((0, "created", None, None), *entries)
    claims = [entry.at for entry in journal if entry.kind == "claimed"]
    row = run_row(OF, status, seq=len(journal), started_at=claims[0] if claims else None)
    row = row._replace(ended_at=journal[-1].at if row.status.terminal else None)
    return measure(
        row, lambda _: OF, {NodeStatus.RUNNING: 1, NodeStatus.READY: 2}, journal, NOW + int((now - 100) * SECOND)
    )


CHAIN = (
    (1.0, "claimed", A, None),
    (3.0, "completed", A, "COMPLETED"),
    (3.5, "claimed", B, None),
    (4.5, "completed", B, "COMPLETED"),
    (4.5, "claimed", C, None),
    (10.5, "completed", C, "COMPLETED"),
    (11.0, "run", None, "COMPLETED"),
)


def test_a_run_that_completed_is_measured_exactly() -> None:
    found = metrics(*CHAIN, status="COMPLETED")
    assert (found.steps, found.nodes, found.executed, found.attempts) == (8, 3, 3, 3)
    assert (found.retries, found.lost, found.released, found.heals) == (0, 0, 0, 0)
    assert (found.wall_seconds, found.most_active, found.average_active) == (10.0, 1, 0.9)
    assert found.step_latency == Latency(3, 9.0, 3.0, 2.0, 6.0, 6.0)
    assert found.queue_latency == Latency(3, 1.5, 0.5, 0.5, 1.0, 1.0)


def test_a_node_waits_from_the_end_of_its_last_parent() -> None:
    found = metrics(
        (0, "claimed", A, None),
        (5, "completed", A, "COMPLETED"),
        (5, "claimed", B, None),
        (9, "completed", B, "COMPLETED"),
        (12, "claimed", C, None),
    )
    assert found.queue_latency.most == 3.0


def test_what_fails_is_tried_again_and_waits_only_since_it_was_due() -> None:
    found = metrics(
        (0, "claimed", A, None),
        (2, "failed", A, "WAITING"),
        (30, "woken", A, "READY"),
        (31, "claimed", A, None),
        (33, "timed_out", A, "WAITING"),
        (60, "woken", A, "READY"),
        (60, "claimed", A, None),
    )
    assert (found.executed, found.attempts, found.retries) == (1, 3, 2)
    assert (found.queue_latency.total, found.queue_latency.most) == (1.0, 1.0)
    assert found.step_latency.samples == 2


def test_what_was_lost_or_given_back_is_no_retry_and_no_step() -> None:
    found = metrics(
        (0, "claimed", A, None),
        (50, "lost", A, "READY"),
        (51, "claimed", A, None),
        (52, "released", A, "READY"),
        (52, "claimed", A, None),
        (53, "completed", A, "COMPLETED"),
    )
    assert (found.lost, found.released, found.retries) == (1, 1, 0)
    assert (found.attempts, found.executed, found.step_latency.samples) == (3, 1, 1)


def test_a_node_that_is_skipped_is_not_given_back() -> None:
    found = metrics((0, "claimed", A, None), (1, "released", A, "SKIPPED"))
    assert (found.attempts, found.executed, found.released) == (1, 0, 0)


def test_what_runs_now_counts_until_now() -> None:
    found = metrics((0, "claimed", A, None), now=8)
    assert (found.wall_seconds, found.average_active, found.most_active) == (8.0, 1.0, 1)
    assert (found.active, found.queued, found.executed) == (1, 2, 0)


def test_behind_a_closed_gate_nothing_waits_for_a_worker() -> None:
    found = metrics(
        (0, "claimed", A, None),
        (1, "completed", A, "COMPLETED"),
        (1, "gate", None, "pause"),
        (1, "run", None, "PAUSED"),
        (90, "run", None, "RUNNING"),
        (92, "claimed", B, None),
    )
    assert found.queue_latency.most == 2.0


def test_the_queue_was_longest_before_somebody_took_from_it() -> None:
    wide = graph(a="", b="", c="", d="a b", e="a", f="d e")
    index = wide.index
    journal = told(
        (0, "created", None, None),
        (1, "claimed", index["a"], None),
        (2, "completed", index["a"], "COMPLETED"),
        (3, "failed", index["b"], "WAITING"),
        (4, "claimed", index["c"], None),
        (5, "woken", index["b"], "READY"),
        (6, "claimed", index["b"], None),
        (7, "completed", index["b"], "COMPLETED"),
        (8, "claimed", index["d"], None),
    )

    def most(length: int) -> int:
        found = measure(run_row(wide, "RUNNING", seq=length), lambda _: wide, {}, journal[:length], NOW)
        return found.most_queued

    assert [most(length) for length in range(1, len(journal) + 1)] == [3] * len(journal)
    assert metrics(*CHAIN, status="COMPLETED").most_queued == 1


def test_what_runs_is_not_queued() -> None:
    of = graph(a="", b="", x="b", y="b", z="b")
    index = of.index
    journal = told(
        (0, "created", None, None),
        (1, "claimed", index["a"], None),
        (1, "claimed", index["b"], None),
        (2, "completed", index["b"], "COMPLETED"),
    )
    found = measure(run_row(of, "RUNNING", seq=4), lambda _: of, {}, journal, NOW)
    assert (found.most_queued, found.most_active) == (3, 2)


def test_nodes_that_a_heal_removed_are_not_counted_and_new_ones_are_queued_when_the_gate_opens() -> None:
    before = graph(a="", b="a", c="a")
    after = arrange(before, graph(a="", c="a", d="a", e="a", f="a"))
    index = after.index
    journal = [
        *told(
            (0, "created", None, None),
            (1, "claimed", index["a"], None),
            (2, "gate", None, "heal"),
            (3, "healed", None, f"{before.digest} {after.digest}"),
            (4, "rewrote", index["b"], "CANCELLED"),
            (5, "run", None, "RUNNING"),
            (6, "completed", index["a"], "COMPLETED"),
        )
    ]
    graphs = {before.digest: before, after.digest: after}
    row = run_row(after, "RUNNING", seq=7, digest=after.digest, nodes=len(after.order), heals=1)
    found = measure(row, lambda digest: graphs[digest], {}, journal, NOW)
    assert (found.nodes, found.heals, found.most_queued) == (5, 1, 4)


def test_what_was_taken_is_not_queued_again_by_a_second_heal() -> None:
    first, second = graph(a="", b="a"), graph(a="", b="a", c="a")
    healed = arrange(first, second)
    twice = arrange(healed, graph(a="", b="a", c="a", d="a"))
    graphs = {each.digest: each for each in (first, healed, twice)}
    journal = told(
        (0, "created", None, None),
        (1, "gate", None, "heal"),
        (1, "healed", None, f"{first.digest} {healed.digest}"),
        (1, "run", None, "RUNNING"),
        (2, "claimed", twice.index["a"], None),
        (3, "completed", twice.index["a"], "COMPLETED"),
        (4, "claimed", twice.index["c"], None),
        (5, "gate", None, "heal"),
        (5, "healed", None, f"{healed.digest} {twice.digest}"),
        (5, "run", None, "RUNNING"),
    )
    row = run_row(twice, "RUNNING", seq=len(journal), digest=twice.digest, nodes=4, heals=2)
    assert measure(row, lambda digest: graphs[digest], {}, journal, NOW).most_queued == 2


def test_what_a_gate_holds_back_is_not_queued() -> None:
    of = graph(a="", b="a", c="a", d="a")
    index = of.index
    journal = told(
        (0, "created", None, None),
        (1, "claimed", index["a"], None),
        (2, "gate", None, "pause"),
        (3, "run", None, "PAUSED"),
        (4, "completed", index["a"], "COMPLETED"),
        (5, "run", None, "RUNNING"),
    )
    found = [
        measure(run_row(of, "RUNNING", seq=n), lambda _: of, {}, journal[:n], NOW).most_queued for n in range(1, 7)
    ]
    assert found == [1, 1, 1, 1, 1, 3]


def test_a_run_that_has_not_begun_has_no_time() -> None:
    found = metrics()
    assert (found.wall_seconds, found.average_active, found.attempts, found.most_active) == (0.0, 0.0, 0, 0)
    assert found.step_latency == found.queue_latency == Latency.of([]) == Latency(0, 0, 0, 0, 0, 0)


def test_a_clock_that_goes_back_makes_nothing_negative() -> None:
    found = metrics((5, "claimed", A, None), (4, "completed", A, "COMPLETED"), (3, "claimed", B, None), now=2)
    assert (found.wall_seconds, found.step_latency.total, found.average_active) == (0.0, 0.0, 0.0)
    assert found.queue_latency.most == 5.0


def test_percentiles_are_values_that_occurred() -> None:
    found = Latency.of(number * SECOND for number in range(100, 0, -1))
    assert (found.p50, found.p95, found.most, found.average) == (50.0, 95.0, 100.0, 50.5)


def test_the_form_for_json_has_every_number() -> None:
    found = metrics(*CHAIN, status="COMPLETED").to_dict()
    assert set(found) == set(RunMetrics._fields)
    assert found["step_latency"] == {"samples": 3, "total": 9.0, "average": 3.0, "p50": 2.0, "p95": 6.0, "most": 6.0}
