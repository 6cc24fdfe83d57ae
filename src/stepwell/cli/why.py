"""The command that explains: why."""

from __future__ import annotations

from ..errors import InputError
from .opening import Place
from .records import json_text
from .stored import find_run


def why(place: Place, text: str, node: str | None, *, as_json: bool) -> None:
    from ..runner import Engine

    with place.store() as store:
        run = Engine(store, runner=None).get(find_run(store, text).id)
        try:
            answer = run.why(node)
        except KeyError as error:  # no node is called like that; the message says which there are
            raise InputError(str(error.args[0])) from None
    print(json_text(answer.to_dict()) if as_json else answer.text(command=place.command))
