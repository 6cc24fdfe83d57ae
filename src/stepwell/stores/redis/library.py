"""The library of functions that is loaded into the server: the files of `lua/`, joined.

It is a library (`FUNCTION LOAD`, Redis 7.0) and not a script: a library is compiled and its functions are made once, where
a script of this size would make all of them at each call; it is kept with the data and goes to replicas, so a server that was
restarted or failed over knows it; and a read is a function without writes, which a replica or a user without the right to
write may call. The name ends with a digest of the text, so that two versions of Stepwell use one server side by side.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import NamedTuple

from ...core.model import RUN_MOVES, StoreLimits, ops, suspects
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
FILES = (
    "keys",
    "state",
    "graphs",
    "rows",
    "runs",
    "attempts",
    "moving",
    "claiming",
    "listing",
    "leases",
    "shaping",
    "deleting",
    "restoring",
    "versions",
    "records",
    "reading",
    "writing",
    "commit",
)
"""In this order: each uses what those before it define."""


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
    parts = [_constants(), *((folder / f"{name}.lua").read_text() for name in FILES)]
    text = "\n".join(parts)
    name = f"stepwell_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return Library(name, f"#!lua name={name}\nlocal NAME = '{name}'\n{text}")


def _constants() -> str:
    """Numbers and names that are defined once, in Python."""
    tables = {
        "N": {str(status): code for status, code in NODE_CODE.items()},
        "A": {str(status): code for status, code in ATTEMPT_CODE.items()},
        "R": {str(status): code for status, code in RUN_CODE.items()},
        "G": {str(state): code for state, code in GATE_CODE.items()},
        "K": KIND_CODE,
        "LIMIT": {"nodes": LIMITS.nodes, "slice": SLICE, "scanned": SCANNED, "runs": SCANNED_RUNS, "derived": DERIVED},
    }
    lines = [
        f"local {name} = {{{', '.join(f'{k} = {v}' for k, v in table.items())}}}" for name, table in tables.items()
    ]
    lines.append(
        f"local RUN_NAMES = {{{', '.join(f'[{code}] = {str(status)!r}' for status, code in RUN_CODE.items())}}}"
    )
    moves = (
        f"[{RUN_CODE[was]}] = {{{', '.join(f'[{RUN_CODE[to]}] = true' for to in sorted(later))}}}"
        for was, later in RUN_MOVES.items()
    )
    lines.append(f"local RUN_MOVES = {{{', '.join(moves)}}}")
    numbers = {
        "ENDS": ENDS,
        "RECORDED": ops.RECORDED,
        "HAND_OUT": ops.HAND_OUT,
        "OUTAGE": ops.OUTAGE,
        "LOAD_LEASE": ops.LOAD_LEASE,
        "SUSPECT_AFTER": suspects.SUSPECT_AFTER,
        "MAX_LOSSES": suspects.MAX_LOSSES,
        "ENTRIES_A_NODE": ops.ENTRIES_A_NODE,
    }
    lines += [f"local {name} = {value}" for name, value in numbers.items()]
    lines.append(f"local NODE_FAILED = '{ops.NODE_FAILED}'")
    lines.append(f"local WORKER_LOST_ERROR = '{suspects.WORKER_LOST_ERROR.decode()}'")
    return "\n".join(lines)
