"""The command that explains: why."""

from __future__ import annotations

from ..connect import Connection
from ..show.records import json_text
from ..stored import check_node, find_run
from ..streams import say


def why(place: Connection, text: str, node: str | None, *, as_json: bool) -> None:
    from ...runner import Engine

    with place.store() as store:
        run = Engine(store, runner=None).get(find_run(store, text).id)
        if node is not None:
            check_node(run, node)
        answer = run.why(node)
    say(json_text(answer.to_dict()) if as_json else answer.text(command=place.command))
