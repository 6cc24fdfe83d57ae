"""The record of an effect: what is stored of it, and how it is read again.

An effect is a line of its attempt, of kind `effect`: one JSON object, keys sorted.

    at            when it began, by the worker's wall clock, in microseconds
    awaited       true: the function was awaited; else left out
    digest        SHA-256 of the canonical JSON of the response, or of `raised`
    durable       true: it was stored before the body got the response; else left out
    duration      microseconds
    format        1
    from_attempt  the attempt whose durable effect was served instead of a call; else left out
    index         its place among the effects of the attempt, counted from 0 in the order in which they began
    key           SHA-256 of the canonical JSON of the request
    masked        true: the response held a secret, in place of which `***` is stored; else left out
    name          as the body gave it, but for secrets
    occurrence    how many effects with this name and key began before it in this attempt
    open          true: there was no answer when the body ended, so there is neither response nor digest; else left out
    raised        instead of a response: what `EffectError.data` makes of the exception
    request       what was asked
    response      what was answered

A request or response of 16 KiB or more is left out here and has a line of its own, of kind `payload`, which is found by its
hash: stores keep equal large payloads once, which they could not if each had another time in it.

What `ctx.now()` gave is one such record for the whole attempt: name `stepwell.now`, index -1, the response a list of
microseconds.
Secrets are masked before anything is hashed or stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...base.clock import SECOND
from ...base.codec import MAX_BYTES, decode, encode_checked, sha256, text
from ...base.masking import MASK, hidden, holds_secret, mask
from ...core.model import LineRow
from ...core.model.lines import EFFECT, PAYLOAD
from ...errors import NotJson, StoreCorrupt
from .exceptions import EffectError, error_of, error_raised

FORMAT = 1
LARGE = 16 * 1024
"""Bytes from which a request or response has a line of its own; the same as for payloads of stores."""
MAX_RECORDED = MAX_BYTES
"""Bytes that may be recorded of one attempt and stored with its settlement, and of one durable effect."""
MAX_RAISED = 1024 * 1024
"""Bytes of an exception; only the beginning of the message of a larger one is kept."""
CLOCK = "stepwell.now"
"""The name of the record of what `ctx.now()` gave."""

_MESSAGE_UP_TO = 8_192

Line: TypeAlias = tuple[str, bytes]
"""Kind and data of something to append to an attempt."""


class EffectRequest(NamedTuple):
    """An effect that a body has asked for, before it is answered."""

    name: str
    request: str
    """Canonical JSON, masked."""
    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    occurrence: int
    at: int
    started: int
    """The same on the clock for durations, in nanoseconds."""

    @property
    def key(self) -> str:
        return sha256(self.request.encode())

    def answered(
        self,
        answer: str,
        ended: int,
        *,
        raised: bool = False,
        awaited: bool = False,
        durable: bool = False,
        masked: bool = False,
        from_attempt: int | None = None,
    ) -> list[Line]:
        """The lines of its record, payloads first. `answer` is the response or what was raised: canonical JSON, masked."""
        request, response = self.request.encode(), answer.encode()
        record = self._record(ended, awaited=awaited, durable=durable, masked=masked, from_attempt=from_attempt)
        record |= {"key": sha256(request), "digest": sha256(response)}
        payloads = []
        for field, data in (("request", request), ("raised" if raised else "response", response)):
            if len(data) >= LARGE and field != "raised":
                payloads.append((PAYLOAD, data))
            else:
                record[field] = decode(data)
        return [*payloads, (EFFECT, encode_checked(record))]

    def left_open(self, ended: int, *, awaited: bool) -> Line:
        """Its record when the body ended without waiting for the answer."""
        record = self._record(ended, awaited=awaited, open=True)
        return EFFECT, encode_checked(record | {"key": self.key, "request": decode(self.request)})

    def _record(self, ended: int, **marks: int | None) -> dict[str, Any]:
        """What every record has, and the marks that apply."""
        return {
            "at": self.at,
            "duration": (ended - self.started) // 1_000,
            "format": FORMAT,
            "index": self.index,
            "name": self.name,
            "occurrence": self.occurrence,
            **{mark: value for mark, value in marks.items() if value},
        }


class Effect(NamedTuple):
    """An effect as it was recorded."""

    node: str
    """The id of the node."""
    attempt: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    name: str
    request: Any
    response: Any
    error: EffectError | None
    request_hash: str
    response_hash: str
    occurrence: int
    time: float
    seconds: float
    durable: bool
    awaited: bool
    from_attempt: int | None
    masked: bool = False
    """Its response is not the whole one: `***` stands for a secret."""
    open: bool = False
    """Its body ended without waiting for the answer, so there is none."""

    @property
    def parts(self) -> list[tuple[str, Any, str]]:
        """What was asked and what was answered: `request`, then `response` or `raised` if there is one; value and hash."""
        request = ("request", self.request, self.request_hash)
        if self.open:
            return [request]
        if self.error is not None:
            return [request, ("raised", self.error.data(), self.response_hash)]
        return [request, ("response", self.response, self.response_hash)]

    @property
    def match(self) -> tuple[str, str, int]:
        """What identifies an effect in a later attempt or a replay."""
        return self.name, self.request_hash, self.occurrence


def effects_of(rows: Iterable[LineRow], node_ids: Mapping[int, str] | tuple[str, ...]) -> list[Effect]:
    """The effects among the lines of a run (kinds `effect` and `payload`), by attempt in the order of claims, then by index."""
    records: list[tuple[LineRow, dict[str, Any]]] = []
    payloads: dict[str, dict[str, bytes]] = {}
    for row in rows:
        if row.kind == EFFECT:
            records.append((row, decode(row.data)))
        elif row.kind == PAYLOAD:
            payloads.setdefault(row.attempt, {})[sha256(row.data)] = row.data
    attempts = {row.attempt: place for place, (row, _) in reversed(list(enumerate(records)))}
    records.sort(key=lambda entry: (attempts[entry[0].attempt], entry[1]["index"]))
    return [_effect(row, record, payloads.get(row.attempt, {}), node_ids[row.node]) for row, record in records]


def effects_by_attempt(rows: Iterable[LineRow], order: Sequence[str]) -> dict[tuple[int, int], list[Effect]]:
    """The same by (index, number) of their attempts. Read one by one: two nodes of different versions may have one id."""
    grouped: dict[tuple[int, int], list[LineRow]] = {}
    for row in rows:
        grouped.setdefault((row.node, row.number), []).append(row)
    return {(index, number): effects_of(lines, {index: order[index]}) for (index, number), lines in grouped.items()}


def _effect(row: LineRow, record: dict[str, Any], payloads: Mapping[str, bytes], node: str) -> Effect:
    if record["format"] != FORMAT:
        raise StoreCorrupt(
            f"effect {record['index']} of node {node!r}, attempt {row.number}, has format {record['format']!r}; this version "
            f"of Stepwell reads {FORMAT}: a newer one has written it"
        )

    def part(field: str, digest: str) -> Any:
        if field in record:
            return record[field]
        if digest not in payloads:
            raise StoreCorrupt(
                f"the {field} of effect {record['name']!r} of node {node!r}, attempt {row.number}, is missing"
            )
        return decode(payloads[digest])

    raised, is_open = record.get("raised"), record.get("open", False)
    return Effect(
        node=node,
        attempt=row.number,
        index=record["index"],
        name=record["name"],
        request=part("request", record["key"]),
        response=part("response", record["digest"]) if raised is None and not is_open else None,
        error=None if raised is None else error_of(raised),
        request_hash=record["key"],
        response_hash=record.get("digest", ""),
        occurrence=record["occurrence"],
        time=record["at"] / SECOND,
        seconds=record["duration"] / SECOND,
        durable=record.get("durable", False),
        awaited=record.get("awaited", False),
        from_attempt=record.get("from_attempt"),
        masked=record.get("masked", False),
        open=is_open,
    )


def clock_lines(readings: list[int]) -> list[Line]:
    """The record of what `ctx.now()` gave in one attempt, if it was asked."""
    if not readings:
        return []
    first, last = readings[0], readings[-1]
    return EffectRequest(CLOCK, "null", -1, 0, first, first * 1_000).answered(text(readings), last * 1_000)


def raised_text(error: BaseException) -> str:
    """An exception as canonical JSON, masked."""
    data = error_raised(error).data()
    raised = masked_text(text(data))
    if len(raised) <= MAX_RAISED:
        return raised
    message = f"{mask(data['message'])[:_MESSAGE_UP_TO]} ... (what it says and holds is too large to be recorded)"
    return text({"bases": data["bases"], "message": message, "type": data["type"]})


def masked(data: bytes) -> bytes:
    """Canonical JSON without the secrets that are known here; the same object when there are none in it."""
    plain = data.decode()
    without = masked_text(plain)
    return data if without is plain else without.encode()


def masked_text(plain: str) -> str:
    """The same for its text."""
    if not holds_secret(plain):
        return plain
    # Value by value: a masked text need not be JSON any more. The text is enough to tell whether there is anything to mask,
    # because escaped forms of a secret are looked for, too.
    masked_json = text(masked_value(decode(plain)))
    return plain if masked_json == plain else masked_json


def masked_value(value: Any) -> Any:
    """The same for decoded JSON."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask(key): masked_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked_value(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    # A number is hidden whole: the rest of it would be another number.
    return MASK if holds_secret(str(value)) else value


def masked_data(value: Any) -> Any:
    """The same for JSON that somebody else wrote. It is searched as decoded: its text may write a secret in any way."""
    if not hidden():
        return value
    try:
        is_clean = not holds_secret(text(value))
    except NotJson:
        is_clean = False
    return value if is_clean else masked_value(value)


def masked_part(value: Any, digest: str) -> tuple[Any, str]:
    """A recorded value without secrets that became known since, and its hash.

    The hash of a value that was tampered with stays as it is, which shows that.
    """
    before = encode_checked(value)
    after = masked(before)
    if after is before:
        return value, digest
    return decode(after), sha256(after) if sha256(before) == digest else digest


def with_masked_requests(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """The effects of an attempt, their requests without secrets that became known since.

    Requests that are equal after masking are counted again, as they are when a body asks them now.
    """
    if not hidden():
        return effects
    without = tuple(map(_with_masked_request, effects))
    if without == effects:
        return effects
    counted_effects: list[Effect] = []
    counts: dict[tuple[str, str], int] = {}
    counted: dict[int, int] = {}  # an effect that was cancelled while it was being stored has two records
    for effect in sorted(without, key=lambda one: one.index):
        identity = effect.name, effect.request_hash
        occurrence = counted.setdefault(effect.index, max(effect.occurrence, counts.get(identity, 0)))
        counts[identity] = occurrence + 1
        counted_effects.append(effect._replace(occurrence=occurrence))
    return tuple(counted_effects)


def _with_masked_request(effect: Effect) -> Effect:
    request, digest = masked_part(effect.request, effect.request_hash)
    return effect._replace(name=mask(effect.name), request=request, request_hash=digest)
