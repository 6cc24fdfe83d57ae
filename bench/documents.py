"""Documents: how long checking and rendering take, and what a node of one costs beside a plain job."""

from __future__ import annotations

import json
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

from stepwell import Document, Engine
from stepwell.base.templates import NodeOutput, compile_template
from stepwell.handlers import Handlers

from .rows import Row, timed
from .shapes import chain, nothing

NODES = 1_000
TEMPLATES = ("{{ fetch.result }}", "Summary: {{ fetch.result.title }}", "{{ input.n + 1 }}", "{{ input.name | upper }}")
SCOPE: dict[str, Any] = {
    "input": {"n": 1, "name": "ann"},
    "fetch": NodeOutput({"result": {"title": "Tides", "tags": ["sea"]}}),
}


def chained(count: int, template: str = "{{ %s.result }}") -> dict[str, Any]:
    """A chain of `transform` nodes, each with what the one before made."""
    nodes = []
    for place in range(count):
        before = f"n{place - 1}"
        config = {"template": template % before if place else "{{ input.text }}"}
        node = {"id": f"n{place}", "handler": "transform", "config": config}
        nodes.append(node | ({"dependencies": [before]} if place else {}))
    return {"name": "chain", "nodes": nodes}


def documents(folder: Path) -> list[Row]:
    return [*checking(), rendering(), handled(folder)]


def checking() -> list[Row]:
    handlers, rows = Handlers(), []
    mixed = "Item {{ %s.result }} of {{ input.text }}"
    as_json, as_yaml = json.dumps(chained(10_000, mixed)), _yaml(chained(1_000, mixed))
    for count, form, text in ((10_000, "JSON", as_json), (1_000, "YAML", as_yaml)):
        load = partial(_load, text, handlers)
        load()
        taken = statistics.median(timed(load) for _ in range(5))
        rows.append(Row(f"check and load {count:,} nodes of {form}", "<= 1 s", f"{taken:.2f} s", taken <= 1))
    return rows


def _load(text: str, handlers: Handlers) -> None:
    assert Document.parse(text, handlers).graph.digest


def _yaml(data: dict[str, Any]) -> str:
    lines = [f"name: {data['name']}", "nodes:"]
    for node in data["nodes"]:
        lines += [f"  - id: {node['id']}", f"    handler: {node['handler']}", "    config:"]
        lines.append(f"      template: {json.dumps(node['config']['template'])}")
        lines += [f"    dependencies: [{', '.join(node['dependencies'])}]"] if "dependencies" in node else []
    return "\n".join(lines)


def rendering() -> Row:
    slowest = 0.0
    for template in TEMPLATES:
        compiled, times = compile_template(template), []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(200):
                compiled.render(SCOPE)
            times.append((time.perf_counter() - start) / 200)
        slowest = max(slowest, statistics.median(times))
    return Row(
        "render a simple expression", "<= 50 us", f"{slowest * 1e6:.1f} us, the slowest of four", slowest <= 50e-6
    )


def handled(folder: Path) -> Row:
    """The same chain of plain jobs and of `transform` nodes, in turn; the median of the ratios counts."""
    results = []
    with Engine(f"sqlite:///{folder}/documents.db") as engine:
        engine.run(chain(3, nothing))
        engine.run(Document(chained(3)), input={"text": "x"})
        for _ in range(7):
            builder, document = chain(NODES, nothing), Document(chained(NODES))
            assert builder.graph().digest != document.graph.digest
            plain = timed(partial(engine.run, builder))
            ours = timed(partial(engine.run, document, input={"text": "x"}))
            results.append((ours / plain, plain, ours))
    ratio, plain, ours = sorted(results)[len(results) // 2]
    measured = f"{ratio:.2f} x ({ours:.3f} and {plain:.3f} s, {(ours - plain) / NODES * 1e6:+.0f} us a node)"
    return Row(f"chain of {NODES:,} `transform` nodes", "<= 1.3 x plain jobs", measured, ratio <= 1.3)
