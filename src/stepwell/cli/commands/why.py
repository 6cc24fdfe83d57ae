"""The command that explains: why."""

from __future__ import annotations

from ...runner.stored import StoredRun
from ..connect import Connection
from ..find import find_node, find_run
from ..streams import json_text, say


def why(connection: Connection, text: str, node: str | None, *, as_json: bool) -> None:
    with connection.store() as store:
        run = StoredRun(store, find_run(store, text))
        if node is not None:
            find_node(run, node)
        answer = run.why(node)
    say(json_text(answer.to_dict()) if as_json else answer.text(command=connection.command))
