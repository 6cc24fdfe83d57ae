"""Workflows with a typed state, at addresses that other processes can import."""

from __future__ import annotations

from typing import Annotated, Any

from stepwell import Builder, Delta, Workflow, step, task
from stepwell.reducers import add, append, maximum, merge, union


def longest(current: str, new: str) -> str:
    return new if len(new) > len(current) else current


class Research(Workflow):
    topic: str

    class State:
        notes: Annotated[list[str], append]
        pages: Annotated[int, add] = 0
        best: Annotated[float | None, maximum] = None
        tags: Annotated[list[str], union]
        links: Annotated[dict[str, str], merge]
        title: Annotated[str, longest] = ""
        author: str = ""

        def summary(self) -> str:
            return f"{self.pages} pages: {', '.join(self.notes)}"

    @step
    def plan(self) -> Delta:
        return Delta({"topic": self.topic}, notes=f"plan {self.topic}", tags=["b"], author="plan")

    @task(depends_on=plan)
    def web(self, state: State) -> Delta:
        return Delta(notes=["web", *state.notes], pages=3, best=0.5, links={"a": "web"}, title="Web", author="web")

    @task(depends_on=plan)
    async def books(self, ctx: Any) -> Delta:
        return Delta(notes=f"books after {ctx.outputs['plan']['topic']}", pages=40, best=0.25, tags=["a", "b"])

    @task(depends_on=plan, isolation="process")
    def people(self, plan: dict[str, str], state: State) -> Delta:
        return Delta(
            {"asked": plan["topic"]}, notes=f"people {len(state.notes)}", links={"a": "people"}, title="People"
        )

    @step(depends_on=[web, books, people])
    def write(self, state: State, people: dict[str, str]) -> dict[str, Any]:
        return {"text": state.summary(), "asked": people["asked"]}


class Notes:
    notes: Annotated[list[str], append]
    count: Annotated[int, add] = 0


def note(text: str = "", **more: Any) -> Delta:
    return Delta(text, notes=text, count=1)


def read(state: Notes) -> list[str]:
    return state.notes


def dynamic() -> Builder:
    w = Builder("dynamic-notes", state=Notes)
    w.fan_out(["a", "b", "c"], job=note, args=lambda text: {"text": text}, depends_on=None)
    w.node("read", job=read)
    return w
