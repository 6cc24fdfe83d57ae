"""The documents of examples/documents, each run from its file against the stand-ins."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from examples.documents.servers import ARTICLE, KEY, PORT, server
from stepwell import Engine, Handlers
from stepwell.base.settings import read_settings
from stepwell.define.document import Document
from stepwell.engine import Run

FOLDER = Path(__file__).parents[2] / "examples" / "documents"


class Town:
    """A copy of the folder whose services are at a port of their own, and an engine that works there."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
        settings = folder / "stepwell.toml"
        text = settings.read_text().replace(str(PORT), str(port)).replace("demo.key", str(folder / "demo.key"))
        settings.write_text(text)
        self.handlers = Handlers.of_settings(read_settings({}, {}, folder))
        self.store = f"sqlite:///{folder}/runs.db"

    def run(self, file: str, **input: Any) -> Run:
        document = Document.load(self.folder / file, self.handlers)
        with Engine(self.store, handlers=self.handlers) as engine:
            run = engine.run(document, input=input, wait=60)
            run.export(self.folder / "run.cassette.json")
            replayed = run.replay()
            assert len(replayed.executed) == len(run.nodes())
            self.outputs = {node.name: run.output(node.name) for node in run.nodes()}
            self.attempts = {node.name: [str(each.status) for each in node.attempts] for node in run.nodes()}
            return run

    def asked(self) -> list[str]:
        with urlopen(self.url + "/asked") as answer:
            found: list[str] = json.load(answer)
        return found


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    serving = server(0)
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield Town(tmp_path / "town", serving.server_port)
    serving.shutdown()
    serving.server_close()
    thread.join()
    kept = [
        path for path in (tmp_path / "town").iterdir() if path.name not in ("demo.key", "servers.py") and path.is_file()
    ]
    assert [path.name for path in kept if KEY.encode() in path.read_bytes()] == []


def test_summarise(town: Town) -> None:
    town.run("summarise.yaml", url=f"{town.url}/news/harbour")
    assert town.outputs["fetch"]["result"] == ARTICLE
    assert town.attempts["fetch"] == ["FAILED", "COMPLETED"]  # asked again when it was told to
    assert town.outputs["digest"]["result"]["title"] == "Harbour bridge closed"
    assert town.outputs["notify"]["result"]["accepted"] is True


def test_order(town: Town) -> None:
    town.run("order.json", order_id=7, quantity=2)
    assert town.outputs["total"]["result"] == 39
    assert town.attempts["charge"] == ["FAILED", "COMPLETED"]
    assert town.outputs["charge"]["result"] == {"id": "payments-1", "accepted": True, "amount": 39}
    assert town.outputs["parcel"]["result"]["id"] == "carrier-2"  # there was one charge


def test_nightly(town: Town) -> None:
    town.run("nightly.yaml", day="2026-11-15")
    assert town.outputs["total"] == {"result": 5450, "count": 3}
    words = " ".join(town.outputs["report"]["result"].split())
    assert words == "Sales of 2026-11-15 berlin: 1840.5 lisbon: 2210.0 oslo: 1399.5 in all: 5450.0"
    assert town.attempts["oslo"] == ["FAILED", "COMPLETED"]


def test_enrich(town: Town) -> None:
    town.run("enrich.yaml", email="ada@example.com")
    assert town.outputs["profile"]["result"]["city"] == "Lisbon"
    assert town.outputs["worth_a_call"]["result"] is True
    assert sorted(town.asked())[:3] == ["GET /registry/companies", "GET /registry/people", "GET /registry/places"]


def test_triage(town: Town) -> None:
    town.run("triage.yaml", incident="OPS-12")
    assert town.outputs["judge"]["result"] == {
        "severity": "high",
        "team": "database",
        "reason": "db-7 does not answer in time",
    }
    assert town.asked().count("POST /llm/v1/chat/completions") == 2  # prose first, then what was asked for
    assert town.outputs["page"]["result"]["accepted"] is True
