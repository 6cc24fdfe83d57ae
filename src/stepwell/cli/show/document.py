"""`stepwell show FILE|NAME`: a document, what it takes, and its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...codec import text as json_line
from ..streams import json_text, say
from .words import count, one_line, plain

if TYPE_CHECKING:
    from ...define.document import Document


def print_document(document: Document, version: int | None, *, as_json: bool) -> None:
    if as_json:
        more: dict[str, Any] = {} if version is None else {"version": version}
        say(json_text({"digest": document.digest, **more, "document": document.canonical}))
        return
    named = document.name if version is None else f"{document.name}@{version}"
    say(plain(f"{named}  {count(len(document.nodes), 'node')}  {document.digest[:12]}"))
    if document.description:
        say(plain(one_line(document.description)))
    for name, field in (document.input or {}).get("properties", {}).items():
        default = f" = {json_line(field['default'])}" if isinstance(field, dict) and "default" in field else ""
        kind = field.get("type", "anything") if isinstance(field, dict) else "anything"
        say(plain(f"  input.{name}: {kind}{default}"))
    for node in document.nodes:
        after = f"  after {', '.join(node.dependencies)}" if node.dependencies else ""
        say(plain(f"  {node.id}  {node.handler}{after}"))
