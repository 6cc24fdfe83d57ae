"""`on_failure="finish"`: independent branches go on, and the run fails when nothing is left to do."""

from __future__ import annotations

from stepwell import Context, Engine, Retry, Workflow, step, task


class Report(Workflow, on_failure="finish"):
    @step
    def load(self) -> int:
        return 1

    @task(depends_on=load)
    def breaks(self, ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ValueError("no data")
        return 2

    @task(depends_on=breaks)
    def below(self, breaks: int) -> int:
        return breaks

    @task(depends_on=load, retry=Retry(2, base_delay=0.05))
    def beside(self, ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ConnectionError
        return 3

    @task(depends_on=beside)
    def beside_too(self, beside: int) -> int:
        return beside

    @task(depends_on=[below, beside_too])
    def join(self, below: int, beside_too: int) -> int:
        return below + beside_too


def test_independent_branches_are_finished_before_the_run_fails(engine: Engine) -> None:
    run = engine.run(Report(), check=False)
    assert run.status == "FAILED"
    assert {node.id: node.status for node in run.nodes()} == {
        "load": "COMPLETED",
        "breaks": "FAILED",
        "below": "UPSTREAM_FAILED",
        "beside": "COMPLETED",
        "beside_too": "COMPLETED",
        "join": "UPSTREAM_FAILED",
    }
    assert run.node("join").reason == "upstream: breaks"


def test_a_retry_then_runs_only_what_is_left(engine: Engine) -> None:
    run = engine.run(Report(), check=False).retry().wait(10)
    assert run.output("join") == 5
    tried = {node.id: len(node.attempts) for node in run.nodes()}
    assert tried == {"load": 1, "breaks": 2, "below": 1, "beside": 2, "beside_too": 1, "join": 1}
