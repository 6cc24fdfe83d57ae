"""A run that was healed is replayed with what each attempt was given when it began."""

from __future__ import annotations

from stepwell import Context, Workflow, step, task
from tests.runner.conftest import OpenEngine

BROKEN: set[str] = set()


def before() -> type[Workflow]:
    class Healed(Workflow):
        @step(side_effects="recordable")
        def fetch(self, ctx: Context) -> list[object]:
            return [ctx.effect("page", lambda: "page"), str(ctx.uuid())]

        @step(side_effects="pure")
        def count(self, ctx: Context, fetch: list[object]) -> list[object]:
            return [len(fetch), sorted(ctx.outputs), ctx.idempotency_key]

        @task(depends_on=None, side_effects="pure")
        def aside(self) -> int:
            return 1

        @step(side_effects="pure")
        def publish(self) -> str:
            if "publish" in BROKEN:
                raise ValueError("broken for now")
            return "published"

    return Healed


def after() -> type[Workflow]:
    class Healed(Workflow):
        @step(side_effects="recordable")
        def fetch(self, ctx: Context) -> list[object]:
            return [ctx.effect("page", lambda: "page"), str(ctx.uuid())]

        @task(depends_on=None, side_effects="pure")
        def licence(self) -> str:
            return "MIT"

        @step(side_effects="pure", was="count", also_depends_on=licence)
        def measure(self, ctx: Context, fetch: list[object], licence: str | None = None) -> list[object]:
            """It was `count`, which knew nothing of a licence."""
            return [len(fetch) if licence is None else 0, sorted(ctx.outputs), ctx.idempotency_key]

        @step(side_effects="pure")
        def publish(self) -> str:
            return "published"

    return Healed


def test_a_healed_run_is_replayed(open_sqlite: OpenEngine) -> None:
    BROKEN.add("publish")
    old, new = before(), after()
    engine = open_sqlite(workflows=[old])
    run = engine.run(old(), check=False)
    assert run.status == "FAILED"
    engine.close()
    BROKEN.clear()
    healed = open_sqlite(workflows=[new]).get(run.id).retry(accept=True).wait(60).check()
    assert healed.row.heals == 1
    assert healed.output("measure") == [2, ["fetch"], f"{run.id}:count"]
    report = healed.replay()
    assert sorted(report.executed) == ["fetch", "measure", "publish"]
    assert report.stubbed == {"aside": "removed from the graph since"}
    assert report.effects == 1
