"""Cassettes that were changed: read and replayed without importing or running what they name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from stepwell.engine.reports.replay import replay_cassette
from stepwell.errors import StepwellError
from stepwell.history.replay.loading import read_cassette

from .drawing import PLAIN, READ, repeated

FOLDER = Path(__file__).parents[1] / "history/cassettes"
CASSETTES = sorted(file.name for file in FOLDER.glob("*.json"))
DEEP = {"type": "builtins:ExceptionGroup", "message": "x", "errors": []}


@cache
def _text(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


def read_changed(given: list[Any]) -> None:
    """A cassette, of which some values are exchanged: the number counts all values in it."""
    name, changes = given
    form = json.loads(_text(name))
    for number, value in changes:
        places = list(_places(form))
        inside, key = places[number % len(places)]
        inside[key] = value
    with suppress(StepwellError):
        replay_cassette(read_cassette(json.dumps(form)), jobs=["tests.history"])


def _places(form: Any) -> Iterator[tuple[Any, Any]]:
    items = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ()
    for key, value in items:
        yield form, key
        yield from _places(value)


VALUES = (
    PLAIN
    | repeated(*READ, "os:getcwd", "base64:", most=5_000)
    | st.sampled_from([-1, 2**63, 10**400, 1e308, [[]], {"": {}}, DEEP])
)
CHANGES = st.tuples(
    st.sampled_from(CASSETTES), st.lists(st.tuples(st.integers(0, 10**6), VALUES), min_size=1, max_size=4)
)
