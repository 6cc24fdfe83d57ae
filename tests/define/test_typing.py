"""Type checkers understand what people write: what is right passes, what is wrong is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

WRITTEN = """
from stepwell import Delta, Run
from stepwell.define import PREVIOUS, Builder, Workflow, step, task
from stepwell.core.graph import Retry

class Order(Workflow, on_failure="pause", deadline=60):
    order_id: int
    express: bool = False

    @step
    def validate(self) -> int:
        return self.order_id

    @step(after_step=validate, retry=Retry(3))
    async def audit(self, validate: int) -> str:
        self.order_id = 4  # wrong
        return "audited"

    @task(depends_on=[validate, "audit"], isolation="process")
    def check(self) -> None: ...

    @task  # wrong
    def news(self) -> None: ...

    @task(depends_on=None, isolation="moon")  # wrong
    def weather(self) -> None: ...

    @step(depends_on=[PREVIOUS, check, "audit"], timeout=3, was=["bill", "invoice"])
    def charge(self) -> None: ...

    mail = step(job="shop.mail:send", also_depends_on=check, was="post")

    @task(depends_on=mail, was=7)  # wrong
    def thank(self) -> None: ...

    @step(also_depends_on=[mail])
    def ship(self) -> None: ...

number: int = Order(order_id=3, express=True).validate()
text: str = Order(order_id=3).validate()  # wrong
Order(order_id="3")  # wrong
Order()  # wrong
Order(order_id=3, expres=True)  # wrong

class Typed(Workflow):
    @step
    def plain(self) -> int:
        return 3

    @step
    async def later(self, plain: int) -> str:
        return str(plain)

    @step
    def counted(self) -> Delta[bytes]:
        return Delta(b"", count=1)

    @step
    async def counted_later(self) -> Delta[float]:
        return Delta(0.5)

    @step
    def unsaid(self) -> Delta:
        return Delta(count=1)

def read(run: Run) -> None:
    one: int = run.output(Typed.plain)
    two: str = run.output(Typed.later)
    three: bytes = run.output(Typed.counted)
    four: float = run.output(Typed.counted_later)
    five: list[int] = run.output("anything")
    six: str = run.output(Typed.plain)  # wrong
    seven: int = run.output(Typed.later)  # wrong
    eight: str = run.output(Typed.counted)  # wrong
    run.output(7)  # wrong
    print(run.result, run.outputs["plain"])

w = Builder("w")
parts = w.fan_out([1, 2], job=print, name=lambda item: f"{item:d}", args=lambda item: {"n": item + 1})
w.fan_out([1, 2], job=print, args=lambda item: item)  # wrong
w.node("join", job="shop.jobs:join", depends_on=[parts, w.node("first", job=print, depends_on=None)])
w.node("later", job=print, depends_on=parts, retry="often")  # wrong
"""


def test_what_is_right_passes_and_what_is_wrong_is_shown(tmp_path: Path) -> None:
    (tmp_path / "written.py").write_text(WRITTEN)
    # As strict as we are with ourselves, and with the cache of that, which `make lint` has just filled. In a process of its
    # own: mypy is compiled, and a process of tests in which it had run has died in the middle of others.
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", tmp_path / "written.py"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"MYPYPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stderr == ""
    found = {int(line) for line in re.findall(r"written\.py:(\d+): error:", checked.stdout)}
    expected = {number for number, line in enumerate(WRITTEN.splitlines(), start=1) if line.endswith("# wrong")}
    assert found == expected, checked.stdout
