"""`stepwell handlers`: what nodes of documents can do, and how it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...base.codec import text as text_of
from ...base.words import suggestion
from ...errors import InputError
from ...handlers import Handler
from ..connect import Connection
from ..show.words import plain
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...answers.workflows import HandlerRecord


def handlers(connection: Connection, name: str | None, *, as_json: bool) -> None:
    known = connection.handlers()
    if name is None:
        listed = [known[each] for each in known]
        say(json_text([_record(each) for each in listed])) if as_json else _list(connection, listed)
        return
    if name not in known:
        raise InputError(f"there is no handler {plain(name)!r}; {suggestion(name, known)}")
    say(json_text(_record(known[name]))) if as_json else _show(known[name])


def _record(handler: Handler) -> HandlerRecord:
    retry = handler.retry
    return {
        "name": handler.name,
        "description": handler.description,
        "version": handler.version,
        "config": handler.config_schema(),
        "output": handler.output_schema(),
        "example": dict(handler.example),
        "timeout_seconds": handler.timeout,
        "max_attempts": 1 if retry is None else retry.max_attempts,
        "side_effects": handler.side_effects,
        "where": handler.where,
    }


def _list(connection: Connection, handlers: list[Handler]) -> None:
    from ..show.screen import console, table

    made = table("handler", "what it does", wrapped=("what it does",))
    for each in handlers:
        made.add_row(each.name, plain(each.description.partition("\n\n")[0].replace("\n", " ")))
    console().print(made)
    say(f"\n`{connection.command('handlers NAME')}` shows the config of one, and an example")


def _show(handler: Handler) -> None:
    retry = "not retried" if handler.retry is None else f"{handler.retry.max_attempts} attempts"
    say(f"{handler.name}  {plain(handler.description)}\n")
    _fields("config", handler.config_schema())
    schema = handler.output_schema()
    if schema is not None:
        _fields("output", schema)
    if handler.example:
        node = {
            "id": handler.name.split("_")[0].split(".")[0],
            "handler": handler.name,
            "config": dict(handler.example),
        }
        say(f"example\n\n{json_text(node)}\n")
    say(f"unless the node says otherwise: {handler.timeout:g} s, {retry}, side effects {handler.side_effects}")


def _fields(title: str, schema: Mapping[str, Any]) -> None:
    from rich.text import Text

    from ..show.screen import console, table

    rows = list(fields(schema))
    if not rows:
        say(f"{title}: any object\n")
        return
    made = table(title, "type", "default", "", wrapped=("type", ""))
    for row in rows:
        made.add_row(*map(Text, row))  # so that Rich does not read brackets as markup
    console().print(made)
    say("")


def fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default (or `required`) and description of each field of a schema."""
    needed = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in needed else text_of(field["default"]) if "default" in field else ""
        kind = kind_of(field, schema)
        if default == "null":
            kind = kind.removesuffix(" | null")
        yield name, plain(kind), plain(default), plain(field.get("description", ""))


def kind_of(field: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """The type of a field, in words."""
    if "$ref" in field:
        field = root.get("$defs", {}).get(str(field["$ref"]).rpartition("/")[2], {})
    if "enum" in field:
        return " | ".join(str(each) for each in field["enum"])
    for word in ("anyOf", "oneOf"):
        if word in field:
            kinds = " | ".join(dict.fromkeys(kind_of(each, root) for each in field[word]))
            return kinds.replace("string | integer | number | boolean", "scalar")
    if str(field.get("pattern", "")).startswith("^secret:"):
        return "secret:NAME"
    kind = str(field.get("type", "any"))
    if kind == "array":
        if "prefixItems" in field:
            return f"[{', '.join(kind_of(each, root) for each in field['prefixItems'])}]"
        return f"list of {kind_of(field.get('items', {}), root)}"
    more = field.get("additionalProperties")
    return f"object of {kind_of(more, root)}" if kind == "object" and isinstance(more, Mapping) else kind
