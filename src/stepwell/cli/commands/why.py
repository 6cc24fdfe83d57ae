"""The command that explains: why."""

from __future__ import annotations

from typing import Any

from ...codec import text as json_line
from ...runner.runs.stored import StoredRun
from ..connect import Connection
from ..find import find_node, find_run
from ..show.words import plain
from ..streams import json_text, say


def why(connection: Connection, text: str, node: str | None, *, as_json: bool) -> None:
    with connection.store() as store:
        run = StoredRun(store, find_run(store, text))
        if node is not None:
            find_node(run, node)
        answer = run.why(node)
        config = None if node is None else _config(run, node)
    if as_json:
        say(json_text(answer.to_dict() | ({} if config is None else {"config": config})))
        return
    say(answer.text(command=connection.command))
    if config is not None:
        say(f"  config {plain(json_line(config['written']))}")
        if config["rendered"] is not None:
            say(f"  rendered {plain(json_line(config['rendered']))}")


def _config(run: StoredRun, node: str) -> dict[str, Any] | None:
    """The config of a node of a document, as it is written and as its latest attempt got it."""
    index = run.index_of(node)
    spec = run.graph.in_order[index]
    if not spec.templated:
        return None
    (view,) = run.nodes(index)
    found = [attempt.outcome["config"] for attempt in view.attempts if "config" in attempt.outcome]
    return {"written": dict(spec.args), "rendered": found[-1] if found else None}
