"""What a body returns or writes, as drafts: checked and hashed, but not yet published."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...base.codec import check
from ...base.words import count, shown
from ...errors import InvalidOutput, NotJson, UnsafePath
from ..patterns.paths import checked_path
from ..stage import SOLE, Output, Stage
from ..states.address import split_address
from ..states.port import Draft, Drafts
from ..states.records import members_hash

_BYTES = (bytes, bytearray, memoryview)


def as_bytes(value: Any, what: str) -> bytes:
    """Return the content of a file: text as UTF-8, bytes as they are, data as JSON."""
    if type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, _BYTES):
        return bytes(value)
    try:
        check(value)
    except NotJson as error:
        raise InvalidOutputValue(f"{what}: expected text, bytes or JSON, got {shown(value)} ({error})") from None
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode("utf-8") + b"\n"


class InvalidOutputValue(InvalidOutput):
    """A body returned something that cannot be the content of a file."""

    def __init__(self, message: str) -> None:
        super().__init__(message, pipeline="")


def store_result(stage: Stage, result: Any, drafts: Mapping[str, Draft], store: Drafts) -> dict[str, bytes]:
    """Write what a body returned into its drafts; what it wrote itself stays. Return the contents of single files."""
    if result is None:
        return {}
    if SOLE in drafts:
        return _store(stage, stage.outputs[SOLE], drafts[SOLE], result, store)
    if not isinstance(result, Mapping) or not set(result) <= set(drafts):
        raise InvalidOutputValue(
            f"stage {stage.name!r} has several outputs: expected a dict of {', '.join(drafts)}, got {shown(result)}"
        )
    written: dict[str, bytes] = {}
    for name, value in result.items():
        if value is not None:
            written |= _store(stage, stage.outputs[name], drafts[name], value, store)
    return written


def _store(stage: Stage, output: Output, draft: Draft, value: Any, store: Drafts) -> dict[str, bytes]:
    what = f"stage {stage.name!r}"
    if output.kind == "file":
        content = as_bytes(value, what)
        store.write(draft, content)
        return {draft.address: content}
    pairs = value.items() if isinstance(value, Mapping) else value
    if isinstance(value, str | bytes) or not isinstance(pairs, Iterable):
        raise InvalidOutputValue(
            f"{what} makes several files, so it returns a dict of names and contents, not {shown(value)}"
        )
    _, key = split_address(draft.address)
    for name, content in pairs:
        relative = str(name) if output.kind == "directory" else _member_name(output, key, name, what)
        store.write(draft, as_bytes(content, what), checked_path(relative))
    return {}


def _member_name(output: Output, key: str, name: Any, what: str) -> str:
    """The file of a member: `{number}.txt` and 7 make `7.txt`; several variables are given as a tuple, or joined by `/`."""
    values = name if isinstance(name, tuple) else str(name).split("/") if len(output.extra) > 1 else (name,)
    if len(values) != len(output.extra):
        raise InvalidOutputValue(f"{what} returned the name {shown(name)}: expected {'/'.join(output.extra)}")
    made = key
    for variable, each in zip(output.extra, values, strict=True):
        if "/" in str(each) or "{" in str(each):
            raise UnsafePath(str(each), f"it is the value of {{{variable}}}, which is one name")
        made = made.replace(f"{{{variable}}}", checked_path(str(each)))
    return made


def described(
    stage: Stage, output: Output, draft: Draft, store: Drafts, content: bytes | None = None
) -> tuple[str, dict[str, str] | None]:
    """The content hash of a draft, and of several files that of each; InvalidOutput if it must not be recorded. `content` is
    what was just written to it, if it was not the body that did.
    """
    try:
        if output.kind == "file":
            written = store.read(draft) if content is None else content
            _check_size(stage, draft, len(written))
            _validate(stage, draft, draft.place, written)
            return sha256(written).hexdigest(), None
        members: dict[str, str] = {}
        size = 0
        for member in store.members(draft):
            content = store.read(draft, member)
            size += len(content)
            if output.kind == "members":
                _check_size(stage, draft, len(content))
                _validate(stage, draft, os.path.join(draft.place, member), content)
            members[member] = sha256(content).hexdigest()
    except FileNotFoundError:
        raise _refused(stage, draft, "the body neither returned it nor wrote `out`") from None
    except UnsafePath as problem:
        raise _refused(stage, draft, str(problem)) from None
    if output.kind == "directory":
        _check_size(stage, draft, size)
        _validate(stage, draft, draft.place, b"")
    return members_hash(members), members


def _check_size(stage: Stage, draft: Draft, size: int) -> None:
    if size < stage.min_size:
        raise _refused(stage, draft, f"it has {count(size, 'byte')}: expected at least {stage.min_size:,}")


def _validate(stage: Stage, draft: Draft, path: str, content: bytes) -> None:
    if stage.validate is None:
        return
    problem = run_validation(stage.validate, Path(path), content)
    if problem is not None:
        raise _refused(stage, draft, problem)


def run_validation(validate: Callable[..., Any], path: Path, content: bytes) -> str | None:
    """Run a custom validation: it takes a Path, str or bytes, and raises, returns False, or says what is wrong."""
    parameter = next(iter(inspect.signature(validate).parameters.values()), None)
    annotation = None if parameter is None else parameter.annotation
    given: Any = path
    if annotation in (str, "str"):
        given = content.decode("utf-8", "replace")
    elif annotation in (bytes, "bytes"):
        given = content
    try:
        answer = validate(given)
    except Exception as error:
        return f"its validation raised {type(error).__name__}: {error}"
    if answer is False:
        return "its validation refuses it"
    return answer if isinstance(answer, str) and answer else None


def _refused(stage: Stage, draft: Draft, problem: str) -> InvalidOutput:
    return InvalidOutput(f"{draft.address} (stage {stage.name}) was not recorded: {problem}", pipeline="")
