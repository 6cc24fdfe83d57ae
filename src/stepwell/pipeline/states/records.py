"""Records of states and failures, and their JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.clock import utc_text
from ...base.codec import encode_checked

if TYPE_CHECKING:
    from ...answers.pipelines import StageFailureRecord, StateOrigin

EXISTS = "exists"
"""Stands for the content of an input that only has to exist."""
MANY_INPUTS = 1_000
"""With more inputs than this, a record has only their common hash."""


class Record(NamedTuple):
    """How a state came to be. A state is a file, a directory (`audio/2026-01-15/`), or all the files that a stage made of
    one entity (`chapters/moby/{number}.txt`); of the latter two, `members` has the files, relative to it.
    """

    code_hash: str
    config_hash: str
    content_hash: str
    inputs_hash: str
    produced_at: str
    produced_by: str
    """The pipeline and the stage: `auto-blog#summary`."""
    entity: str
    inputs: Mapping[str, str]
    """Content hashes by path, without those of very many."""
    members: Mapping[str, str] | None = None
    check_hash: str = ""
    """Of the function that found it valid."""
    stale: str = ""
    """Why it was invalidated."""

    def to_json(self) -> dict[str, Any]:
        """As manifests have it: fields at their default are left out."""
        defaults = self._field_defaults
        return {
            key: dict(value) if isinstance(value, Mapping) else value
            for key, name, value in zip(_keys(Record), self._fields, self, strict=True)
            if name not in defaults or value != defaults[name]
        }

    def to_dict(self) -> StateOrigin:
        """As answers have it."""
        return {
            "code_hash": self.code_hash,
            "config_hash": self.config_hash,
            "content_hash": self.content_hash,
            "inputs_hash": self.inputs_hash,
            "produced_at": self.produced_at,
            "produced_by": self.produced_by,
            "entity": self.entity,
            "inputs": dict(self.inputs),
            "members": None if self.members is None else dict(self.members),
            "check_hash": self.check_hash,
            "stale": self.stale,
        }


def record_from(written: Mapping[str, Any]) -> Record:
    """Read a record from its JSON. KeyError, TypeError or AttributeError if it is not one."""
    members = written.get("members")
    inputs = written.get("inputs", {})
    texts = (
        written["codeHash"],
        written.get("configHash", ""),
        written["contentHash"],
        written.get("producedAt", ""),
        written.get("producedBy", ""),
        written.get("entity", ""),
        written.get("checkHash", ""),
        written.get("stale", ""),
    )
    if not (_TEXTS.issuperset(map(type, texts)) and _are_hashes(inputs) and (members is None or _are_hashes(members))):
        raise TypeError("a record has texts, and hashes by path")
    code, config, content, at, by, entity, check, stale = texts
    common = written.get("inputsHash")
    return Record(
        code, config, content, common if isinstance(common, str) and common else inputs_hash(inputs), at, by, entity,
        inputs, members, check, stale,
    )  # fmt: skip


_TEXTS = frozenset({str})


def _are_hashes(value: object) -> bool:
    return isinstance(value, dict) and _TEXTS.issuperset(map(type, value.values()))


class StageFailure(NamedTuple):
    """What went wrong with one stage of one entity, and when it is tried again."""

    error: str
    error_type: str
    attempts: int
    first_failed_at: float
    last_failed_at: float
    next_retry_at: float | None
    """None: not before `retry`."""
    identity: str
    """Code, config and inputs it failed with: when they change, the back-off ends."""
    run_id: str = ""

    def to_json(self) -> dict[str, Any]:
        return dict(zip(_keys(StageFailure), self, strict=True))

    def to_dict(self) -> StageFailureRecord:
        """As answers have it."""
        return {
            "error": self.error,
            "error_type": self.error_type,
            "attempts": self.attempts,
            "first_failed_at": utc_text(self.first_failed_at),
            "last_failed_at": utc_text(self.last_failed_at),
            "next_retry_at": None if self.next_retry_at is None else utc_text(self.next_retry_at),
            "identity": self.identity,
            "run_id": self.run_id,
        }


def failure_from(written: Mapping[str, Any]) -> StageFailure | None:
    """Read a failure from its JSON; it need not have a run. None if it is not one: then it is tried again at once."""
    try:
        failure = StageFailure._make([*(written[key] for key in _keys(StageFailure)[:-1]), written.get("runId", "")])
        due = 0.0 if failure.next_retry_at is None else failure.next_retry_at
        numbers = (failure.attempts, failure.first_failed_at, failure.last_failed_at, due)
        texts = (failure.error, failure.error_type, failure.identity, failure.run_id)
        is_sound = all(type(each) in (int, float) and -1e12 < each < 1e12 for each in numbers)
        return failure if is_sound and failure.attempts >= 1 and _TEXTS.issuperset(map(type, texts)) else None
    except (KeyError, TypeError, AttributeError):
        return None


@cache
def _keys(kind: type[Record | StageFailure]) -> list[str]:
    """The names of the fields in JSON: `codeHash` is `code_hash`."""
    return [re.sub("_([a-z])", lambda match: match[1].upper(), name) for name in kind._fields]


def content_hash(content: bytes) -> str:
    return sha256(content).hexdigest()


def inputs_hash(inputs: Mapping[str, str]) -> str:
    """Of the set of inputs and their contents: one more, one less or another name makes another hash."""
    if len(inputs) == 1:
        ((path, digest),) = inputs.items()
        return sha256(f"{path}\0{digest}\n".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    text = "".join([f"{path}\0{inputs[path]}\n" for path in sorted(inputs)])
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def members_hash(members: Mapping[str, str]) -> str:
    """The content hash of a state that is made of several files."""
    return sha256(encode_checked(dict(members))).hexdigest()
