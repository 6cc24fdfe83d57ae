"""A workflow one node of which is performed by another workflow."""

from __future__ import annotations

from typing import Any

from stepwell import Engine, Retry, Run, Workflow, step


class Import(Workflow):
    file: str

    @step
    def read(self) -> int:
        if self.file == "broken":
            raise ValueError("the file is broken")
        return len(self.file)

    @step
    def load(self, read: int) -> dict[str, int]:
        return {"rows": read * 10}


class Nightly(Workflow):
    file: str = "abc.csv"

    @step
    def find(self) -> str:
        return self.file

    @step
    def imported(self, find: str) -> Any:
        return Import(file=find)

    @step
    def report(self, imported: dict[str, int]) -> int:
        return imported["rows"] + 1


def child_of(engine: Engine, run: Run) -> Run:
    """The only child run of a run."""
    (child,) = engine.runs(parent=run.id)
    return child


class Stops(Nightly, name="Stops", on_failure="pause"):
    """It pauses after the node that a child run performs."""

    @step
    def report(self, imported: dict[str, int]) -> int:
        raise ValueError("no report today")


class Weekly(Workflow):
    @step
    def sunday(self) -> Any:
        return Nightly(file="sunday.csv")


class Picky(Workflow, on_failure="pause"):
    """It waits for a decision."""

    @step
    def read(self) -> None:
        raise ValueError("too many rows")


class Patient(Workflow):
    """It tries again in a minute."""

    @step(retry=Retry(max_attempts=3, base_delay=60))
    def read(self) -> None:
        raise ValueError("not there yet")


class Outer(Workflow):
    """One node is performed by another workflow, and one waits for it."""

    child: str

    @step
    def inner(self) -> Any:
        return {"picky": Picky, "patient": Patient}[self.child]()

    @step
    def last(self, inner: Any) -> None: ...
