"""What pages take for granted that show parts of programs: their blocks are run after this."""

from __future__ import annotations

COMMON = """
import json
from datetime import timedelta
from stepwell import Context, Engine, Retry, Workflow, step, task

engine = Engine("memory://")
"""

PRELUDES = {
    "workflows.md": "",
    "expressions.md": "",
    "triggers.md": "",
    "running.md": """
class OrderWorkflow(Workflow):
    order_id: int
    @step
    def ship(self) -> str: return f"shipped {self.order_id}"
""",
    "metrics.md": """
class Import(Workflow):
    @step
    def load(self) -> None: ...

engine.run(Import(), run_id="import-7")
""",
    "why.md": """
class Order(Workflow):
    @step
    def charge(self) -> None: raise TimeoutError("no answer")
    @step
    def ship(self) -> None: ...

run = engine.run(Order(), check=False)
""",
    "logs.md": """
import os

os.environ["SUPPLIER_TOKEN"] = "supplier-token-7f3a91"
class Load(Workflow):
    @step(retry=Retry(3, base_delay=0.001))
    def load(self, ctx: Context) -> None:
        ctx.progress(412, 1000, "rows")
        print("loading")
        if ctx.attempt < 3: raise ConnectionError

run = engine.run(Load())
""",
}
