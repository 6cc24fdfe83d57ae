"""A server without the modules of handlers checks and starts the documents that name them; workers that have them run them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from pydantic import BaseModel, Field

from stepwell import Context, Document, Engine, InputError, handler
from stepwell.base.templates import is_template
from stepwell.core.graph import Retry
from stepwell.engine.code import registering
from stepwell.errors import MissingJob
from stepwell.handlers import Handlers
from stepwell.handlers.described import from_data, to_data
from tests.engine.waiting import eventually
from tests.server.running import client, ended, running


class Line(BaseModel):
    sku: str
    count: int = Field(default=1, ge=1)


class Packing(BaseModel):
    lines: list[Line]
    carrier: Literal["post", "drone"] = "post"
    weight: float | None = None
    note: str = Field(default="", max_length=5, alias="remark")


class Packed(BaseModel):
    parcels: int


@handler("pack", retry=Retry(3, base_delay=0.5, retry_on=(ConnectionError,)), timeout=7, side_effects="recordable")
def pack(ctx: Context, config: Packing) -> Packed:
    """Pack an order."""
    return Packed(parcels=sum(line.count for line in config.lines))


@handler("label", version="2")
async def label(ctx: Context, config: dict[str, Any]) -> dict[str, Any]:
    return {"result": config}


OWN = [pack, label]
CONFIG: dict[str, Any] = {
    "lines": [{"sku": "a", "count": 2}, {"sku": "{{ input.sku }}", "count": "{{ input.count }}"}],
    "carrier": "drone",
    "weight": 1.5,
    "remark": "soon",
}
DOCUMENT: dict[str, Any] = {
    "name": "parcels",
    "input": {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}}},
    "nodes": [
        {"id": "packing", "handler": "pack", "config": CONFIG},
        {
            "id": "labels",
            "handler": "label",
            "config": {"n": "{{ packing.parcels }}", "any": [1]},
            "dependencies": ["packing"],
        },
    ],
}


def changed(path: str, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(DOCUMENT)
    at: Any = made["nodes"]
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        at = at[step]
    at[last] = value
    return made


WRONG = [
    changed("0.config.carrier", "pigeon"),
    changed("0.config.lines", "none"),
    changed("0.config.lines.0.count", 0),
    changed("0.config.lines.0", {"count": 1}),
    changed("0.config.remark", "far too long"),
    changed("0.config.note", "by its other name"),
    changed("0.config.weight", [1]),
    changed("0.config", {}),
    changed("0.config", {"lines": [], "liens": []}),
    changed("0.handler", "packs"),
    changed("1.config.n", "{{ packing.boxes }}"),
]


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A server that has none of the handlers."""
    monkeypatch.setattr(registering, "LOOK_SECONDS", 0.0)
    with running(f"sqlite:///{tmp_path}/parcels.db") as serving, client(serving) as made:
        yield made


def paths_of(answer: httpx.Response) -> set[str]:
    return {problem["path"] for problem in answer.json()["problems"]}


def test_a_document_is_checked_saved_and_started_where_its_handlers_are_not(api: httpx.Client, tmp_path: Path) -> None:
    before = api.post("/api/v1/workflows", json=DOCUMENT)
    assert before.status_code == 422
    assert "there is no handler 'pack'" in before.json()["detail"]
    with Engine(f"sqlite:///{tmp_path}/parcels.db", handlers=OWN) as worker:
        worker.work(wait=0)
        saved = api.post("/api/v1/workflows", json=DOCUMENT)
        assert saved.status_code == 201, saved.text
        started = api.post("/api/v1/workflows/parcels/runs", json={"input": {"sku": "b", "count": 3}, "run_id": "one"})
        assert started.status_code == 201, started.text
        ended(api, "one")
        assert api.get("/api/v1/runs/one/results").json()["result"] == {"result": {"n": 5, "any": [1]}}
        inline = api.post(
            "/api/v1/runs", json={"document": DOCUMENT, "input": {"sku": "b", "count": 1}, "run_id": "two"}
        )
        assert inline.status_code == 201, inline.text
        ended(api, "two")
        # What the handler says of retries, time limits and effects counts as where its code is.
        there = Document(DOCUMENT, Handlers(OWN)).graph
        assert api.get("/api/v1/runs/one").json()["digest"] == there.digest


def test_a_config_is_checked_as_where_the_code_is(api: httpx.Client, tmp_path: Path) -> None:
    with Engine(f"sqlite:///{tmp_path}/parcels.db", handlers=OWN) as worker:
        worker.work(wait=0)
    with running("memory://", handlers=Handlers(OWN)) as other, client(other) as with_code:
        for document in WRONG:
            here, there = (each.post("/api/v1/workflows/check", json=document) for each in (api, with_code))
            assert here.json()["valid"] is there.json()["valid"] is False, document
            assert paths_of(here) == paths_of(there), document


def test_of_a_handler_that_an_older_worker_registered_no_field_is_unknown() -> None:
    """It did not say whether its config may have others."""
    for each in OWN:
        written = to_data(each)
        del written["open"]
        config = dict(each.example) or CONFIG
        assert from_data(each.name, written).check_config({**config, "another": 1}, is_template) == []


def test_what_is_registered_keeps_all_that_a_graph_needs() -> None:
    for each in OWN:
        known = from_data(each.name, to_data(each))
        for name in ("name", "retry", "timeout", "side_effects", "is_async", "expressions", "version", "description"):
            assert getattr(known, name) == getattr(each, name), name
        assert known.output_fields() == each.output_fields()
        assert known.check_config((each.example and dict(each.example)) or CONFIG, is_template) == []


def test_a_worker_without_the_code_does_not_run_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/parcels.db"
    with Engine(url, handlers=OWN) as worker:
        worker.work(wait=0)
        worker.save(Document(DOCUMENT, Handlers(OWN)))
    with Engine(url) as other, pytest.raises(MissingJob, match="there is no handler 'pack' here"):
        other.start("parcels", input={"sku": "b", "count": 1})
    with Engine(url, runner=None) as starter:
        run = starter.start("parcels", input={"sku": "b", "count": 1})
        with pytest.raises(InputError):
            starter.start("parcels", input={"sku": 7})
        with Engine(url, handlers=OWN) as worker:
            worker.work(wait=0)
            eventually(lambda: run.status == "COMPLETED")


def test_a_handler_that_cannot_be_loaded_keeps_no_worker_from_starting(tmp_path: Path) -> None:
    with Engine(f"sqlite:///{tmp_path}/broken.db", handlers=["tests.server.no_such_module"]) as worker:
        worker.work(wait=0)
