"""The flow of the source document over HTTP: save with templates, start, follow, fail, retry only what failed, read results."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

from stepwell.base.settings import read_settings
from stepwell.handlers import Handlers
from tests.server.running import client, ended, running

FLOW = {
    "name": "summarise",
    "input": {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
    "nodes": [
        {"id": "fetch", "handler": "http_request", "config": {"url": "{{ input.url }}/text"}},
        {
            "id": "size",
            "handler": "transform",
            "config": {"template": "{{ fetch.output.status_code }}"},
            "dependencies": ["fetch"],
        },
        {
            "id": "deliver",
            "handler": "http_request",
            "config": {"url": "{{ input.url }}/deliver?size={{ size.result }}"},
            "retry": {"max_attempts": 1},
            "dependencies": ["size"],
        },
    ],
}


class Outside(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []
    delivers = False

    def do_GET(self) -> None:
        self.asked.append(self.path.partition("?")[0])
        status = 200 if self.path.startswith("/text") or type(self).delivers else 500
        body = json.dumps({"path": self.path}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_document_is_saved_started_followed_retried_and_read(tmp_path: Path) -> None:
    outside = HTTPServer(("127.0.0.1", 0), Outside)
    Thread(target=outside.serve_forever, daemon=True).start()
    settings = read_settings({"private_networks": ("127.0.0.0/8",)}, {}, tmp_path)
    handlers = Handlers.of_settings(settings)
    try:
        with running(f"sqlite:///{tmp_path}/flow.db", worker={}, handlers=handlers) as serving, client(serving) as api:
            assert api.post("/api/v1/workflows", json=FLOW).status_code == 201
            url = f"http://127.0.0.1:{outside.server_port}"
            run = api.post("/api/v1/workflows/summarise/runs", json={"input": {"url": url}}).json()["id"]
            ended(api, run, "FAILED")
            assert Outside.asked == ["/text", "/deliver"]
            assert "500" in api.get(f"/api/v1/runs/{run}/why").json()["text"]
            Outside.delivers = True
            dry = api.post(f"/api/v1/runs/{run}/retry", json={"dry_run": True}).json()
            assert [node["id"] for node in dry["nodes"]] == ["deliver"]
            assert api.post(f"/api/v1/runs/{run}/retry").status_code == 200
            ended(api, run)
            assert Outside.asked == ["/text", "/deliver", "/deliver"]  # only what failed
            node = api.get(f"/api/v1/runs/{run}/nodes/deliver").json()
            assert [attempt["status"] for attempt in node["attempt_list"]] == ["FAILED", "COMPLETED"]
            assert node["attempt_list"][1]["config"]["url"] == f"{url}/deliver?size=200"
            assert api.get(f"/api/v1/runs/{run}/results").json()["result"]["status_code"] == 200
    finally:
        outside.shutdown()
        outside.server_close()
