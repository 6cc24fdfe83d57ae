"""Ops, queries and rows as they are sent and stored: records go as JSON, field by field, and bytes beside it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ...base.codec import write_json
from ...core.model import AttemptStatus, GateState, Lane, NodeStatus, RunStatus
from ...core.store.rules.codes import ATTEMPT_CODE, GATE_CODE, NODE_CODE, RUN_CODE
from ...core.store.rules.payloads import is_large, reference

Arg: TypeAlias = bytes | str | int
Fields: TypeAlias = dict[str, Any]
LARGEST = 2**52
"""Larger numbers are taken as this, of microseconds 142 years: a Lua number is exact to 2^53."""
_FIRST = 4
"""The place of the first payload among the arguments: the marker, the time and the JSON come before it."""
_CODES: dict[type, Mapping[Any, int]] = {
    AttemptStatus: ATTEMPT_CODE,
    GateState: GATE_CODE,
    NodeStatus: NODE_CODE,
    RunStatus: RUN_CODE,
}


class Arguments:
    """What a call is given: JSON, and payloads, which the JSON names by their places."""

    def __init__(self) -> None:
        self._payloads: list[Arg] = []

    def of(self, request: Any) -> list[Arg]:
        # Half of a character, which is no UTF-8, is sent as it is: nothing stored has it.
        return [write_json(request).encode("utf-8", "surrogatepass"), *self._payloads]

    def raw(self, data: bytes | None) -> int | None:
        """The place of bytes that are stored in their row, whatever their size."""
        if data is None:
            return None
        self._payloads.append(data)
        return _FIRST + len(self._payloads) - 1

    def payload(self, payload: bytes | None) -> int | None:
        """The place of a payload; a large one comes after its reference."""
        if payload is None or not is_large(payload):
            return self.raw(payload)
        place = self.raw(reference(payload))
        self.raw(payload)
        return place

    def fields(self, record: Any, *, large: bool = False) -> Fields:
        """A record by its fields, without those that are None: Lua has no other word for what is missing. `large`: its own
        payloads may be large."""
        return {
            name: self._value(value, large)
            for name, value in zip(record._fields, record, strict=True)
            if value is not None
        }

    def columns(self, records: Sequence[Any], first: int) -> Fields:
        """Records of one kind as columns by the names of fields, from `first` on, but for those that have only defaults."""
        kind, columns = type(records[0]), [*zip(*records, strict=True)]
        return {
            name: [self._value(value, True) for value in column]
            for name, column in zip(kind._fields[first:], columns[first:], strict=True)
            if name not in kind._field_defaults or column.count(kind._field_defaults[name]) < len(column)
        }

    def _value(self, value: Any, large: bool = False) -> Any:
        kind = type(value)
        if kind is str or kind is bool:
            return value
        if kind is bytes:
            return self.payload(value) if large else self.raw(value)
        if kind is Lane:
            return lane_text(value), int(value.suspect), int(value.careful)
        if kind in _CODES:
            return _CODES[kind][value]
        if hasattr(value, "_fields"):
            return self.fields(value)
        if isinstance(value, tuple):
            return [self._value(member) for member in value]
        return 0 if value is None else max(-LARGEST, min(int(value), LARGEST))


def pack_document(document: bytes) -> bytes:
    """The document of a graph says the same of every node, so a tenth of its size is enough."""
    return zlib.compress(document, 1)


def unpack_document(stored: bytes | None) -> bytes | None:
    return zlib.decompress(stored) if stored else stored


def lane_text(lane: Lane) -> str:
    return f"{lane.queue}\0{lane.body}\0{int(lane.careful)}"


def lane_of(text: bytes, suspect: int | None) -> Lane:
    queue, body, careful = text.decode().split("\0")
    return Lane(queue, body, careful == "1", bool(suspect))
