"""The tables of docs/handlers.md as the handlers themselves say them."""

from __future__ import annotations

from collections.abc import Iterator

from stepwell.cli.commands.handlers import fields
from stepwell.handlers import Handler


def tables(handler: Handler) -> Iterator[str]:
    """The lines of the two tables of a handler."""
    yield "| config | type | default | |"
    yield "|---|---|---|---|"
    for name, kind, default, told in fields(handler.config_schema()):
        shown = default if default == "required" else f"`{default}`"
        yield f"| `{name}` | {_cell(kind)} | {shown} | {_cell(told)} |"
    schema = handler.output_schema()
    if schema is None:  # it returns what another document does
        return
    yield ""
    yield "| output | type | |"
    yield "|---|---|---|"
    for name, kind, _, told in fields(schema):
        yield f"| `{name}` | {_cell(kind)} | {_cell(told)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
