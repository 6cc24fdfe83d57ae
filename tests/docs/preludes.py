"""What pages take for granted that show parts of programs: their blocks are run after this.

A page has one prelude, for its first block, or several: by the number of the block that each comes before.
"""

from __future__ import annotations

COMMON = """
import json
from datetime import timedelta
from stepwell import Context, Engine, Retry, Workflow, step, task

engine = Engine("memory://")
"""

_STEERED = """
import threading

class Steered(Workflow):
    @step
    def fetch(self) -> int: return 1
    @step
    def publish(self) -> None:
        if how == "failed": raise ValueError("not today")
        if how in ("running", "paused"): gate.wait(30)

def prepare(wanted):
    global engine, run, form, how, gate
    if "gate" in globals(): gate.set()
    engine, how, gate = Engine("memory://", close_seconds=0.1), wanted, threading.Event()
    run = engine.start(Steered(), run_id="import-7")
    if how in ("failed", "completed"):
        run.wait(30)
    else:
        while run.node("publish").status != "RUNNING": pass
    if how == "paused":
        run.pause()
    form = run.export_graph()
"""

STATES = {
    "get": "failed",
    "retry": "failed",
    "reattempt": "completed",
    "pause": "running",
    "resume": "paused",
    "cancel": "running",
    "freeze": "failed",
    "import_graph": "failed",
    "delete": "completed",
}
"""In which state a run is before each line of the verbs in control.md."""

PRELUDES: dict[str, str | dict[int, str]] = {
    "workflows.md": "",
    "expressions.md": "",
    "triggers.md": "",
    "running.md": {
        0: """
class OrderWorkflow(Workflow):
    order_id: int
    @step
    def ship(self) -> str: return f"shipped {self.order_id}"
""",
        1: """
class Order(Workflow):
    order_id: int
    @step
    def validate(self) -> None: ...
    @step
    def reserve(self) -> None: ...
    @step
    def charge(self) -> None: ...
    @step
    def pack(self) -> None: raise ValueError("no box")
    @step
    def ship(self) -> None: ...

engine = Engine("memory://")
""",
    },
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
    "control.md": {1: _STEERED, 2: "gate.set(); prepare('failed')", 3: "prepare('failed')"},
    "deploy.md": {
        0: """
from celery import Celery, chain, chord
from stepwell import Builder
""",
        2: """
engine.close()
engine = Engine("memory://")
own = Celery("own", broker="memory://", backend="cache+memory://")
own.conf.task_always_eager = own.conf.task_store_eager_result = True

@own.task
def fetch(url): return url
@own.task
def parse(text): return {"text": text}
@own.task
def store(found): return found
@own.task
def resize(image): return image
@own.task
def publish(images, album): return [album, images]

url, images, album = "https://shop.example", [1, 2], "summer"
""",
        5: """
def resize(image): return image
def publish(album, ctx): return [album, ctx.outputs.all()]
""",
        6: """
app = own
@step
def validate(self): ...
""",
    },
    "dynamic.md": {
        2: """
from pathlib import Path
from stepwell.core.graph import to_frozen
from upload import upload

Path("upload.json").write_text(json.dumps(to_frozen(upload(7, [4, 8]).graph(), 0)))
""",
        3: """
with Engine(jobs=["shop"]) as failing:
    import shop.jobs
    def fails(change_id, ctx): raise ValueError
    fine, shop.jobs.apply.__code__ = shop.jobs.apply.__code__, fails.__code__
    failing.run(upload(7, [4, 8]), run_id="01a1dee2ce6b2f768b3cdfd818ba5158", check=False)
    shop.jobs.apply.__code__ = fine
""",
    },
    "effects.md": {
        0: """
import httpx
answers = httpx.MockTransport(lambda request: httpx.Response(200, json={"rate": 1.25}))
def pay(number, key): return {"paid": number, "key": key}
""",
        2: "def price(order): return order\norder = 7",
    },
    "healing.md": {
        1: """
class Order(Workflow):
    @step
    def ship(self) -> bool: raise ValueError
run = engine.run(Order(), check=False)
edited = run.export_graph()
""",
        2: """
class Order(Workflow):
    @step
    def ship(self) -> bool: return True
with Engine("sqlite:///orders.db", runner=None) as starting:
    starting.start(Order(), run_id="order-7")
class Order(Workflow):
    express: bool
    @step
    def ship(self) -> bool: return self.express
engine = Engine("sqlite:///orders.db", workflows=[Order])
run = engine.get("order-7").wait(60)
assert run.status == "PAUSED"
""",
    },
    "http.md": "from shop import OrderWorkflow",
    "postgres.md": "",
    "redis.md": """
class Order(Workflow):
    order_id: int
    @step
    def ship(self) -> str: return f"shipped {self.order_id}"
""",
    "replay.md": {1: 'run = engine.run(Order(), run_id="order-7")', 2: 'import os\nos.mkdir("tests")'},
}

_WORKFLOWS = """
from stepwell import Workflow, step

class OrderWorkflow(Workflow):
    order_id: int
    @step
    def ship(self) -> str: return f"shipped {self.order_id}"
"""

FILES = {
    "deploy.md": {"shop/__init__.py": "", "shop/workflows.py": _WORKFLOWS, "shop/jobs.py": ""},
    "dynamic.md": {
        "shop/__init__.py": "",
        "shop/mail.py": "def notify(user_id): return user_id",
        "shop/audit.py": "def check(ctx): return ctx.outputs['report']",
    },
    "http.md": {"shop.py": _WORKFLOWS},
}
"""Modules that a page takes for granted; what begins with `# name.py` on a page is one too."""

EPILOGUES = {
    "dynamic.md": """
with Engine(runner=None) as looking:
    run = looking.get("01a1dee2ce6b2f768b3cdfd818ba5158")
    assert run.status == "COMPLETED", run.why()
    assert run.outputs["audit"] == {"user": 7, "applied": 1}
""",
    "effects.md": """
with Engine(runner=None) as looking:
    assert looking.get(run.id).output("price")["rate"] == 1.25
""",
    "healing.md": "assert run.wait(60).output('ship') is True",
    "postgres.md": """
from stepwell.stores import open_store

store = open_store("postgresql://localhost/shop")
with Engine("postgresql://localhost/shop", workflows=[Order]) as engine, store._connections.one() as connection:
    connection.execute("DROP TABLE IF EXISTS public.account, public.payment CASCADE")  # of other tests
    connection.execute("CREATE TABLE public.account (owner int, balance int)")
    connection.execute("CREATE TABLE public.payment (owner int, amount int)")
    engine.run(Order(order_id=7))
    assert connection.execute("SELECT * FROM public.payment").fetchall() == [(7, 10)]
    connection.execute("DROP TABLE public.account")
    connection.execute("DROP TABLE public.payment")
store.close()
""",
    "replay.md": "assert (report.executed, report.effects) == (('convert', 'receipt'), 1)",
}
"""What shows that the blocks of a page did what it says."""
