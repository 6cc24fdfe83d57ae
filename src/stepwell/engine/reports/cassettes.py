"""Writes a run into a cassette. Its code is imported first, because only then its secrets are known."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

from ...base.ids import RunId
from ...base.masking import mask
from ...base.words import shown
from ...core.store import Store
from ...define import Bodies
from ...errors import DefinitionError, InputError, MissingJob
from ...history.replay.cassette import cassette_text
from ...history.replay.recorded import RecordedRun, read_recorded
from ..code.code import Code

MISSING_UP_TO = 10
"""How many missing addresses an error lists."""


def export_run(store: Store, code: Code, run_id: RunId, file: str | Path, *, missing_code_ok: bool = False) -> Path:
    """Write a cassette. An existing file is replaced only when the new one is complete."""
    _check_file(file)
    return write_cassette(file, exported(store, code, run_id, missing_code_ok=missing_code_ok))


def exported(store: Store, code: Code, run_id: RunId, *, missing_code_ok: bool = False) -> str:
    """The text of a cassette."""
    recorded = read_recorded(store, run_id, lambda digest: code.graphs.get(digest, run_id))
    missing = _missing_code(code, recorded)
    if missing and not missing_code_ok:
        raise _unmaskable(run_id, missing)
    return cassette_text(recorded)


def _missing_code(code: Code, recorded: RecordedRun) -> list[str]:
    """Import all code of a run, so that its secrets are known; the reasons why some of it is missing."""
    missing: list[str] = []
    bodies = Bodies()
    try:
        bodies = code.bodies(recorded.workflow, recorded.target, recorded.graph)
        bodies.state  # noqa: B018  # it is imported when it is asked for
    except DefinitionError as error:
        missing.append(str(error))
    done = (node.graph.in_order[node.index] for node in recorded.nodes)
    jobs = {spec.job: spec for spec in (*recorded.graph, *done) if spec.job is not None}
    for spec in jobs.values():
        try:
            bodies.find(spec)
        except MissingJob as error:
            missing.append(error.reason)
    return missing


def _unmaskable(run_id: RunId, missing: list[str]) -> InputError:
    more = [f"and {len(missing) - MISSING_UP_TO:,} more"] if len(missing) > MISSING_UP_TO else []
    lines = "".join(f"  - {mask(reason)}\n" for reason in (*missing[:MISSING_UP_TO], *more))
    return InputError(
        f"the code of run {run_id} cannot be imported, so the secrets that it names are not known and would not be masked; "
        f"nothing was written:\n{lines}"
        f"  export it where its code is, or with missing_code_ok=True (--missing-code-ok) if that code names no secrets"
    )


def _check_file(file: object) -> None:
    if not isinstance(file, str | Path) or not Path(file).name:
        raise InputError(f"export({shown(file)}): expected the path of a file, as in orders.cassette.json")


def write_cassette(file: str | Path, text: str) -> Path:
    """Write a cassette; a file that exists is replaced as a whole."""
    _check_file(file)
    path = Path(file)
    # A short name, because the name of the file may be as long as names can be.
    beside = path.with_name(f".{os.getpid()}-{threading.get_ident()}.part")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise InputError(
            f"{shown(str(path))}: it cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from None
    finally:
        with suppress(OSError, ValueError):  # if it could not be written, that was reported
            beside.unlink(missing_ok=True)
    return path
