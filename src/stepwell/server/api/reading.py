"""The one door for clients of this package: questions about what is stored, as `model.wire` writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fastapi import Response
from pydantic import BaseModel, Field
from pydantic_core import to_json

from ...base.codec import MAX_BYTES
from ...core.model import GetRecord, ListRecords, queries
from ...core.model.wire import WireError, answer_to_wire, query_from_wire
from ...core.store import Store
from ..bodies import Body
from ..problems import HttpProblem
from ..routes import JSON, Routes
from ..service import Given

routes = Routes("reading")

MAX_ROWS = 200_000
"""Rows of all answers to one request. More must be read page by page."""
SLICE, LARGEST_SLICE = 64, 512
"""Rows with payloads that are read at once before their size is known, and at most."""
SLICE_BYTES = 8 * 1024 * 1024
"""How large a slice should be, by the rows read so far."""
SETTLED_AFTER = 3
"""How often to read again when a run moved between two slices."""
_PAYLOADS = (
    queries.GetRun,
    queries.ListRuns,
    queries.ListAttempts,
    queries.GetOutputs,
    queries.GetGraph,
    queries.ListLines,
    queries.ListMarks,
    GetRecord,
    ListRecords,
)
"""Their rows may be of any size; all others are small."""


class Questions(Body):
    """Queries, each with its name and its fields, as in {"query": "GetRun", "run_id": "r-1"}."""

    queries: list[dict[str, Any]] = Field(max_length=500, examples=[[{"query": "GetRun", "run_id": "r-1"}]])
    """The queries."""


class Answers(BaseModel, use_attribute_docstrings=True):
    """The answers, all from one moment."""

    answers: list[Any]
    """The answers, in the order of the queries."""
    now: int
    """The store's time, in microseconds since 1970."""


@routes.post("/read", "read", threads="view", response_model=Answers)
def read(body: Questions, service: Given) -> Any:
    """Ask the store. For `stepwell.Client`, which has all of a run's surface by it; others use the routes of runs."""
    try:
        asked: list[Any] = [query_from_wire(data) for data in body.queries]
    except WireError as error:
        raise HttpProblem(422, f"the query is refused: {error}") from None
    # Records of two kinds with the same fields are equal. The same 500 times is read once.
    repeats = Counter((type(query), query) for query in asked)
    written = _read(service.store, repeats)
    answers = b",".join(written[type(query), query] for query in asked)
    return Response(b'{"answers":[%b],"now":%d}' % (answers, service.store.now()), media_type=JSON)


def _read(store: Store, repeats: Counter[tuple[type, Any]]) -> dict[tuple[type, Any], bytes]:
    """The answers as JSON, all from one moment unless their runs do not stop moving."""
    most = MAX_ROWS // max(1, sum(hasattr(query, "limit") for _, query in repeats))
    runs = {query.run_id for _, query in repeats if hasattr(query, "run_id")}
    positions: list[Any] = [queries.GetNodeColumns(run_id, limit=1) for run_id in runs]
    for _ in range(SETTLED_AFTER):
        answers = {key: _SlicedAnswer(key[1], most, count) for key, count in repeats.items()}
        slices, before = _read_slices(store, [*answers.values()], positions)
        if slices <= 1 or before == _seqs(store.read(positions)):
            break
    return {key: answer.written() for key, answer in answers.items()}


def _read_slices(store: Store, answers: list[_SlicedAnswer], positions: list[Any]) -> tuple[int, list[int]]:
    """Read slice by slice; how many there were, and the `seq` of each run at the first."""
    now = [answer for answer in answers if not answer.has_payloads]
    later = [answer for answer in answers if answer.has_payloads]
    slices, size, seqs = 0, 0, list[int]()
    while now or later:
        now, later = [*now, *later[:SLICE]], later[SLICE:]
        share = sum(answer.has_payloads for answer in now) or 1
        results = store.read([*(answer.query(share) for answer in now), *positions])
        seqs = seqs or _seqs(results[len(now) :])
        for answer, result in zip(now, results, strict=False):
            size += answer.add(result)
            if size > MAX_BYTES and (len(answers) > 1 or answer.rows * answer.repeats > 1):
                raise HttpProblem(413, f"the answers have more than {MAX_BYTES:,} bytes: ask for fewer rows at once")
        now, positions = [answer for answer in now if answer.is_open], []
        slices += 1
    return slices, seqs


def _seqs(columns: Sequence[Any]) -> list[int]:
    return [of_run.seq for of_run in columns]


class _SlicedAnswer:
    """The answer to a query, of which slices have been read."""

    def __init__(self, query: Any, most: int, repeats: int) -> None:
        self._query, self._most, self.repeats = query, most, repeats
        self._limit: int | None = getattr(query, "limit", None)
        self._left = min(self._limit or 1, most)
        self._is_cut = self._limit is not None and self._limit > most
        self._place: Any = None
        self._slices: list[bytes] = []
        self._size = 0
        self._is_page = False
        self.has_payloads = isinstance(query, _PAYLOADS)
        self.is_open = True
        self.rows = 0

    def query(self, share: int) -> Any:
        """What is asked next. Rows with payloads are shared among `share` queries."""
        if self._limit is None:
            return self._query
        limit = self._left
        if self.has_payloads:
            fits = SLICE if not self.rows else SLICE_BYTES * self.rows // self._size
            limit = min(limit, max(1, max(SLICE, min(fits, LARGEST_SLICE)) // share))
        query = self._query._replace(limit=limit)
        if self._place is None:
            return query
        return query._replace(**{"before" if isinstance(query, queries.ListRuns) else "after": self._place})

    def add(self, result: Any) -> int:
        """Add what was read; how many bytes it adds to the response."""
        written = answer_to_wire(result)
        self._is_page = isinstance(result, queries.Page | queries.RunPage)
        rows = written["rows"] if self._is_page else [written]
        self.rows += len(rows)
        self._left -= len(rows)
        self._place = getattr(result, "cursor", None)
        self.is_open = self._is_page and self._place is not None and self._left > 0
        if not self.is_open and self._place is not None and self._is_cut:
            raise HttpProblem(
                413, f"{type(self._query).__name__} finds more than {self._most:,} rows: ask for pages of them"
            )
        slice_ = to_json(rows)[1:-1] if self._is_page else to_json(written)
        if slice_:
            self._slices.append(slice_)
        self._size += len(slice_)
        return len(slice_) * self.repeats

    def written(self) -> bytes:
        rows = b",".join(self._slices)
        return b'{"rows":[%b],"cursor":%b}' % (rows, to_json(self._place)) if self._is_page else rows
