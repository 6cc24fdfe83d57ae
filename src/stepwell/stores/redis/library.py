"""The library of functions that is loaded into the server: the files of `lua/`, joined.

It is a library (`FUNCTION LOAD`, Redis 7.0) and not a script: a library is compiled and its functions are made once, where
a script of this size would make all of them at each call; it is kept with the data and goes to replicas, so a server that was
restarted or failed over knows it; and a read is a function without writes, which a replica or a user without the right to
write may call. The name ends with a digest of the text, so that two versions of Stepwell use one server side by side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, get_args, get_type_hints

from ...core.model import HEALED_LATE, PARENT_PAUSED, RUN_MOVES, AttemptRow, NodeRow, RunRow, StoreLimits, ops, suspects
from ...core.store.rules.codes import ATTEMPT_CODE, ENDS, GATE_CODE, KIND_CODE, NODE_CODE, RUN_CODE

LIMITS = StoreLimits(nodes=500, settlements=500, batch_bytes=2 * 1024 * 1024, runs=64)
"""How much one call takes: it stands in the way of everybody else on the server, so it is to be short."""
SLICE = 500
"""How many children of one completed node one call tells."""
EDGES = 2_000
"""How many edges of a graph one call adds."""
SCANNED = 2_000
"""How many rows one answer looks at."""
SCANNED_RUNS = 1_000
DERIVED = 2_500
"""How many nodes and edges one call looks at before a gate opens."""
_ORDER = """
keys state graphs runs attempts moving claiming listing leases
shaping children deleting restoring records reading writing commit
"""
FILES = _ORDER.split()
"""In this order: each uses what those before it define."""


def _without(kind: Any, *names: str) -> list[str]:
    return [name for name in kind._fields if name not in names]


PAYLOADS = [name for name, hint in get_type_hints(AttemptRow).items() if bytes in get_args(hint)]
"""What an attempt has that may be large."""
_RAW = ("input", "fork", "arguments")
"""What a run has that may be large: each is a field of its hash."""
_RUN_FIELDS = [{"nodes": "total"}.get(name, name) for name in RunRow._fields]
_KEPT = [
    name for name in _RUN_FIELDS if name in (*ops.Create._fields, "id", "created_at", "total") and name not in _RAW
]
_MOVING = [name for name in _RUN_FIELDS if name not in (*_KEPT, *_RAW)]
_LAYOUT = "rank lane id removed careful many_parents many_children many_needs parents children needs"
_NODE = "rank lane needs claim ordinal"
_RARE = ("wakes",)
"""What a row has in Lua only where it is set: a node without it is a table of 16 values, 712 bytes. With 17 it has 1,352."""
_COUNTERS = "runs graphs claims lanes swept_at stopping releasing"
_RUN = "requeue running loaded orders cancel_at expires reported due_first token last_token former fenced derived counts ready"
FORMS: dict[str, tuple[str, dict[str, list[str]]]] = {
    "counters": ("name", {"counters": _COUNTERS.split()}),
    "layout": ("i", {"layout": _LAYOUT.split()}),
    "node": ("i", {"node": [*_without(NodeRow, "index", "id", "lane"), *_NODE.split()]}),
    "attempt": ("name", {"attempt": [*_without(AttemptRow, "id", "index", "number"), "claim", "ordinal"]}),
    "claim": ("id", {"claim": ["at", "number", "left", "worker", "cells"]}),
    "record": ("key", {"record": ["version", "value"]}),
    "run": ("number", {"state": [*_MOVING, *_RUN.split()], "run": [*_KEPT, "order", "serving"]}),
}
"""Rows as they are stored: what a row calls its key, and by the names of its parts their fields, in order, as MessagePack. A
node has the claim of its running attempt. An attempt has a row once it has ended, with `worker` and `started_at` only if it
comes from elsewhere. Of a run, `run` stays and `state` changes."""


class Library(NamedTuple):
    name: str
    text: str

    @property
    def commit(self) -> str:
        return f"{self.name}_commit"

    @property
    def read(self) -> str:
        return f"{self.name}_read"


@cache
def library() -> Library:
    folder = resources.files(__package__) / "lua"
    parts = [(folder / f"{name}.lua").read_text() for name in FILES]
    parts.insert(2, _constants() + _forms())  # behind the state, which they use
    text = "\n".join(parts)
    name = f"stepwell_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return Library(name, f"#!lua name={name}\nlocal NAME = '{name}'\n{text}")


def _forms() -> str:
    """For each form a function that reads a row into a table, and one that writes it."""
    parts = []
    for form, (key, stored) in FORMS.items():
        every = [name for names in stored.values() for name in names]
        fields = ", ".join(f"{name} = {name}" for name in every if name not in _RARE)
        rare = "\n  ".join(f"if {name} then row.{name} = {name} end" for name in every if name in _RARE)
        reading = "\n  ".join(f"local {', '.join(names)} = unpack_row({part}_value)" for part, names in stored.items())
        parts.append(f"""
local function read_{form}({", ".join(f"{part}_value" for part in stored)}, key)
  {reading}
  local row = {{{key} = key, {fields}}}
  {rare}
  return row
end
""")
        parts += [
            f"local function {part}_text(row) return pack_row({', '.join(f'row.{name}' for name in names)}) end\n"
            for part, names in stored.items()
        ]
    return "".join(parts)


def _constants() -> str:
    """Numbers and names that are defined once, in Python."""
    limits = {"nodes": LIMITS.nodes, "slice": SLICE, "scanned": SCANNED, "runs": SCANNED_RUNS, "derived": DERIVED}
    constants = {
        "N": NODE_CODE,
        "A": ATTEMPT_CODE,
        "R": RUN_CODE,
        "G": GATE_CODE,
        "K": KIND_CODE,
        "LIMIT": limits,
        "PAYLOADS": PAYLOADS,
        "RAW": _RAW,
        "KEPT": _KEPT,
        "RUN_FIELDS": _RUN_FIELDS,
        "RUN_NAMES": {code: status for status, code in RUN_CODE.items()},
        "RUN_MOVES": {RUN_CODE[was]: {RUN_CODE[to]: True for to in later} for was, later in RUN_MOVES.items()},
        "ENDS": ENDS,
        "RECORDED": ops.RECORDED,
        "HAND_OUT": ops.HAND_OUT,
        "OUTAGE": ops.OUTAGE,
        "LOAD_LEASE": ops.LOAD_LEASE,
        "SUSPECT_AFTER": suspects.SUSPECT_AFTER,
        "MAX_LOSSES": suspects.MAX_LOSSES,
        "ENTRIES_A_NODE": ops.ENTRIES_A_NODE,
        "NODE_FAILED": ops.NODE_FAILED,
        "HEALED_LATE": HEALED_LATE,
        "ENDED": ops.ENDED,
        "PARENT_PAUSED": PARENT_PAUSED,
        "WORKER_LOST": suspects.WORKER_LOST,
        "WORKER_LOST_ERROR": suspects.WORKER_LOST_ERROR.decode(),
    }
    return "\n".join(f"local {name} = {_lua(value)}" for name, value in constants.items())


def _lua(value: Any) -> str:
    """A constant as Lua writes it; tables in order of their keys, so that all processes have the same text."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'[{_lua(key)}] = {_lua(value[key])}' for key in sorted(value))}}}"
    if isinstance(value, list | tuple):
        return f"{{{', '.join(map(_lua, value))}}}"
    if isinstance(value, str):
        return repr(str(value))
    return "true" if value is True else str(value)
