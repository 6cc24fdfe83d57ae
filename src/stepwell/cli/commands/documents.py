"""The commands for workflows that are data: check, schema, render, try, save, activate, workflows, workflow."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import Any

import typer

from ...codec import decode
from ...define.document import Document, DocumentError, Problem
from ...errors import InputError
from ...handlers import Handlers
from ...model import VersionRow, parted
from ...runner.documents import Documents, StoredWorkflow
from ...store import Store, reader
from ...words import iso
from ..connect import Connection
from ..documents import document_input, is_file, json_object, load_file
from ..exits import ExitCode
from ..inputs import Pairs
from ..show.words import ago, count, plain
from ..streams import json_text, say


def check(connection: Connection, files: Sequence[str], *, as_json: bool) -> None:
    """Exit code 2 if anything is wrong with any of them."""
    handlers = connection.handlers()
    told: list[dict[str, Any]] = []
    wrong = 0
    for file in files:
        problems: list[Problem] = []
        document: Document | None = None
        if is_pipeline_file(file):
            told.append(check_pipeline(connection, file, handlers, as_json=as_json))
            wrong += len(told[-1]["problems"])
            continue
        try:
            document = load_file(connection, file, handlers)
        except DocumentError as error:
            problems = [each for each in error.problems if isinstance(each, Problem)]
        wrong += len(problems)
        if as_json:
            name = {} if document is None else {"name": document.name, "nodes": len(document.nodes)}
            told.append({"file": file, **name, "problems": [each.as_json() for each in problems]})
        elif document is not None:
            say(f"{plain(file)}: {plain(document.name)}, {count(len(document.nodes), 'node')}, nothing is wrong")
        for each in problems if not as_json else ():
            say(plain(f"{file}:{each.line}:{each.column}: {each.path}: {each.message}"))
    if as_json:
        say(json_text(told))
    elif wrong:
        typer.echo(f"{count(wrong, 'problem')} in {count(len(files), 'file')}", err=True)
    if wrong:
        raise typer.Exit(ExitCode.USAGE)


def is_pipeline_file(file: str) -> bool:
    from ...pipeline.document.load import is_pipeline

    return file != "-" and is_pipeline(file)


def check_pipeline(connection: Connection, file: str, handlers: Handlers, *, as_json: bool) -> dict[str, Any]:
    """The same for a document whose mode is "pipeline"."""
    from ...pipeline.finding import load_pipeline

    try:
        pipeline = load_pipeline(file, handlers=handlers, jobs=connection.settings.jobs, check_handlers=True)
    except DocumentError as error:
        problems = [each for each in error.problems if isinstance(each, Problem)]
        for each in problems if not as_json else ():
            say(plain(f"{file}:{each.line}:{each.column}: {each.path}: {each.message}"))
        return {"file": file, "problems": [each.as_json() for each in problems]}
    unknown = {name: dict(pipeline.code.of(name).unknown) for name in pipeline.stages}
    if not as_json:
        say(f"{plain(file)}: {plain(pipeline.name)}, {count(len(pipeline.stages), 'stage')}, nothing is wrong")
        for stage, parts in unknown.items():
            for what, where in parts.items():
                say(plain(f"  {stage}: changes of {what} are not noticed ({where})"))
    return {
        "file": file,
        "name": pipeline.name,
        "stages": list(pipeline.stages),
        "problems": [],
        "notFollowed": unknown,
    }


def schema(connection: Connection) -> None:
    from ...pipeline.document.schema import any_schema

    say(json_text(any_schema(connection.handlers())))


def render(
    connection: Connection, file: str, node: str, *, outputs: str | None, inputs: Pairs, input_file: str | None
) -> None:
    from ...runner.trying import rendered

    document = _found(connection, file)
    given = _outputs(outputs)
    say(json_text(rendered(document, _node(document, node), given, document_input(document, inputs, input_file))))


def try_(
    connection: Connection, file: str, node: str, *, outputs: str | None, inputs: Pairs, input_file: str | None
) -> None:
    """The output of the node to stdout; what is shown of a failed run otherwise, and its exit code."""
    from ...runner.trying import tried

    document = _found(connection, file)
    given = _outputs(outputs)
    output = tried(
        document, _node(document, node), given, document_input(document, inputs, input_file), connection.handlers(),
        connection.settings.jobs,
    )  # fmt: skip
    say(json_text(output))


def save(connection: Connection, files: Sequence[str], *, as_json: bool) -> None:
    """All of them are checked before the first is stored."""
    from ...pipeline.document.stored import save_pipeline
    from ...pipeline.finding import load_pipeline

    handlers = connection.handlers()
    pipelines = [file for file in files if is_pipeline_file(file)]
    for file in pipelines:
        load_pipeline(file, handlers=handlers, jobs=connection.settings.jobs, check_handlers=True)
    documents = {file: load_file(connection, file, handlers) for file in files if file not in pipelines}
    with connection.worker() as engine:
        saved = [
            save_pipeline(engine.store, file) if file in pipelines else engine.save(documents[file]) for file in files
        ]
    if as_json:
        say(json_text([each._asdict() for each in saved]))
        return
    for each in saved:
        state = "saved" if each.is_new else "was stored before"
        active = "" if each.active == each.version else f"; {each.name}@{each.active} stays active"
        say(plain(f"{each}  {state}{active}"))


def activate(connection: Connection, name: str) -> None:
    with connection.store() as store:
        documents = _documents(connection, store, name)
        done = documents.activate(name)
    use = "run" if documents.kind == "document" else "pipeline build -p"
    verb = "starts it" if documents.kind == "document" else "builds it"
    say(plain(f"{done} is active: `{connection.command(f'{use} {done.name}')}` {verb}"))


def workflows(connection: Connection, *, as_json: bool) -> None:
    with connection.store() as store:
        found = connection.engine(store).workflows()
        pipelines = list(Documents(store, connection.handlers(), "pipeline").all())
        now = store.now()
    if as_json:
        modes = [*(("workflow", each) for each in found), *(("pipeline", each) for each in pipelines)]
        say(json_text([{**each._asdict(), "mode": mode} for mode, each in modes]))
    elif found or pipelines:
        _print_workflows([*found, *(each._replace(name=f"{each.name} (pipeline)") for each in pipelines)], now)
    else:
        typer.echo(f"no documents in {connection.where}; `stepwell save FILE` stores one", err=True)


def workflow(
    connection: Connection, name: str, *, version: int | None, diff: tuple[int, int] | None, as_json: bool
) -> None:
    with connection.store() as store:
        documents = _documents(connection, store, name)
        if diff is not None:
            old, new = (documents.row(f"{name}@{number}") for number in diff)
            say(_difference(old, new), end="")
            return
        row = documents.row(name if version is None else f"{name}@{version}")
        if as_json:
            say(json_text(_version_data(row) | {"document": decode(row.body or b"")}))
            return
        _print_versions(documents, row)


def _documents(connection: Connection, store: Store, text: str) -> Documents:
    """Where a name is stored: among the workflows, or the pipelines."""
    name, _ = parted(text)
    is_pipeline = reader.get_version(store, "document", name) is None and reader.get_version(store, "pipeline", name)
    return Documents(store, connection.handlers(), "pipeline" if is_pipeline else "document")


def _found(connection: Connection, text: str) -> Document:
    """A file, or a stored document."""
    if is_file(text):
        return load_file(connection, text)
    with connection.store() as store:
        return connection.engine(store).documents.find(text)


def _node(document: Document, name: str) -> str:
    if document.node(name) is None:
        known = [node.id for node in document.nodes]
        near = difflib.get_close_matches(name, known, n=1)
        rest = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known[:20])}"
        raise InputError(f"{document.name} has no node {name!r}; {rest}")
    return name


def _outputs(file: str | None) -> dict[str, Any]:
    if file is None:
        return {}
    problems: list[str] = []
    found = json_object("--outputs", file, problems)
    if problems:
        raise InputError(problems[0])
    return found


def _print_workflows(found: Sequence[StoredWorkflow], now: int) -> None:
    from ..show.screen import console, table

    made = table("workflow", "active", "versions", "saved", wrapped=("workflow",))
    for each in found:
        saved = ago(int(each.saved_at * 1_000_000), now)
        made.add_row(plain(each.name), f"@{each.version}", str(each.versions), saved)
    console().print(made)


def _print_versions(documents: Documents, row: VersionRow) -> None:
    for each in documents.versions(row.name):
        marks = "  active" if each.active else ""
        say(plain(f"{each.name}@{each.number}  {each.digest[:12]}  {iso(each.stored_at)}{marks}"), end="\n")
    say("")
    say(json_text(decode(row.body or b"")))


def _version_data(row: VersionRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.number,
        "digest": row.digest,
        "saved_at": iso(row.stored_at),
        "active": row.active,
    }


def _difference(old: VersionRow, new: VersionRow) -> str:
    def lines(row: VersionRow) -> list[str]:
        text = json.dumps(decode(row.body or b""), indent=2, ensure_ascii=False)
        return [f"{plain(line)}\n" for line in text.split("\n")]

    before, after = (plain(f"{each.name}@{each.number}") for each in (old, new))
    return "".join(difflib.unified_diff(lines(old), lines(new), before, after))
