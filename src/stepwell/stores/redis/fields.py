"""Fields of ops and rows as they are sent and stored.

Numbers go as text and payloads as they are. A seed or a priority has more bits than a Lua number, so the library never
calculates with one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from ...base.ids import RunId
from ...core.model import Lane
from ...core.store.rules.payloads import is_large, reference

Arg: TypeAlias = bytes | str | int
LONGEST = 2**52
"""Microseconds. Durations beyond, 142 years, are taken as this: a Lua number is exact to 2^53."""
ENTRY = struct.Struct(">B7sII")
NO_NODE = 0xFFFFFFFF
"""The index of a journal entry that is about no node."""
_ID_BYTES = 16


def pack_id(text: str) -> bytes:
    """The id of a claim in half the bytes, if it is one of ours."""
    try:
        packed = bytes.fromhex(text)
    except ValueError:
        packed = b""
    if len(packed) == _ID_BYTES and packed.hex() == text:  # as we spell it
        return b"\x01" + packed
    return b"\x02" + text.encode()


def unpack_id(packed: bytes) -> str:
    return packed[1:].hex() if packed[:1] == b"\x01" else packed[1:].decode()


def flag(value: object) -> str:
    return "1" if value else "0"


def maybe(value: Any) -> tuple[Arg, ...]:
    return ("0",) if value is None else ("1", value)


def many(values: Iterable[Arg]) -> list[Arg]:
    listed = list(values)
    return [len(listed), *listed]


def duration(value: int) -> int:
    return max(-LONGEST, min(int(value), LONGEST))


def payload(value: bytes | None) -> tuple[Arg, ...]:
    if value is None:
        return ("0",)
    return ("r", reference(value), value) if is_large(value) else ("1", value)


def pack_document(document: bytes) -> bytes:
    """The document of a graph says the same of every node, so a tenth of its size is enough."""
    return zlib.compress(document, 1)


def unpack_document(stored: bytes | None) -> bytes | None:
    return zlib.decompress(stored) if stored else stored


def lane_text(lane: Lane) -> str:
    return f"{lane.queue}\0{lane.body}\0{flag(lane.careful)}"


def lane_of(text: str, suspect: bool) -> Lane:
    queue, body, careful = text.split("\0")
    return Lane(queue, body, careful == "1", suspect)


def tags_text(tags: Sequence[tuple[str, str]]) -> str | None:
    """Each tag between NULs, which no text has, so that one can be found in the whole."""
    return "".join(f"\0{name}\0\0{value}\0" for name, value in tags) or None


def tags_of(text: str | None) -> tuple[tuple[str, str], ...]:
    if not text:
        return ()
    parts = text[1:-1].split("\0\0")
    return tuple(zip(parts[::2], parts[1::2], strict=True))


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def run_id_of(found: bytes) -> RunId:
    return RunId(found.decode())
