"""Write what the web UI is generated from: the OpenAPI document, and the tables of statuses, looks and verbs.

Usage: scripts/describe_api.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from stepwell.core.kernel.healing import POSSIBLE_RENAME, UNFIT
from stepwell.core.model import LOOKS, NODE_FAILED, RUN_VERBS, NodeStatus, RunStatus
from stepwell.server.access.tokens import SCOPES
from stepwell.server.app import make_app
from stepwell.server.openapi import openapi_document
from stepwell.server.service import ServerProcess
from stepwell.stores import open_store


def document() -> dict[str, Any]:
    store = open_store("memory://")
    guard: Any = make_app(ServerProcess(store))
    try:
        return openapi_document(guard.app.app)
    finally:
        store.close()


def tables() -> dict[str, Any]:
    verbs = {name: verb for name, verb in RUN_VERBS.items() if verb.options is not None}
    return {
        "scopes": list(SCOPES),
        "looks": {name: {"symbol": look.symbol} for name, look in LOOKS.items()},
        "run_statuses": {str(each): {"terminal": each.terminal, "resting": each.resting} for each in RunStatus},
        "node_statuses": {
            str(each): {"terminal": each.terminal, "active": each.active, "broken": each.broken} for each in NodeStatus
        },
        "verbs": {
            name: {"allowed": list(verb.allowed), "options": list(verb.options or ()), "summary": verb.summary}
            for name, verb in verbs.items()
        },
        "pauses": {"rename": POSSIBLE_RENAME, "input": UNFIT, "failed": NODE_FAILED},
    }


def main(folder: Path) -> None:
    for name, value in (("openapi.json", document()), ("tables.json", tables())):
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


main(Path(sys.argv[1]))
