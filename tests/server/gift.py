"""A run that needs an input and a retry: its class has a new required input, and one of its nodes has failed."""

from __future__ import annotations

from typing import Any

from stepwell import Engine, Workflow, step

SERVED: dict[str, Any] = {"jobs": [__name__]}
"""What a server is started with that has the class."""


class Gift(Workflow, on_failure="pause"):
    ribbons: int

    @step
    def pack(self) -> int:
        return self.ribbons


def left_by_the_class_before(url: str) -> str:
    """The id of such a run."""

    def pack(self: Any) -> int:
        raise ConnectionError("no paper")

    names = {"__module__": __name__, "__qualname__": "Gift", "pack": step(pack)}
    before = type(Workflow)("Gift", (Workflow,), names, on_failure="pause")
    with Engine(url) as engine:
        run = engine.run(before(), run_id="gift", check=False)
        assert (run.status, run.row.reason) == ("PAUSED", "node_failed")
        return run.id
