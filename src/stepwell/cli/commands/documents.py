"""The commands for workflows that are data: check, schema, render, try, save, activate, workflows, workflow."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from ...base.codec import decode
from ...base.words import iso, suggestion
from ...core.model import NameRow, VersionRow, parted
from ...core.store import Store, versions
from ...define.document import Document
from ...define.document.problems import problem_place
from ...engine.documents import KINDS, DocumentKind, Documents, workflow_record
from ...errors import DocumentError, InputError, StoreError
from ...handlers import Handlers
from ..connect import Connection
from ..documents import Pairs, is_file, json_object, load_file, typed_input
from ..exits import ExitCode
from ..show.words import ago, count, plain
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...answers.workflows import CheckedFile
    from ...pipeline import Pipeline


def check(connection: Connection, files: Sequence[str], *, as_json: bool) -> None:
    """Exit code 2 if anything is wrong with any of them."""
    handlers = connection.handlers()
    pipelines = _load_pipelines(connection, files, handlers)
    records = [_checked(connection, file, handlers, pipelines.get(file)) for file in files]
    problems = sum(len(record["problems"]) for record in records)
    if as_json:
        say(json_text(records))
    else:
        for record in records:
            _print_checked(record)
        if problems:
            typer.echo(f"{count(problems, 'problem')} in {count(len(files), 'file')}", err=True)
    if problems:
        raise typer.Exit(ExitCode.USAGE)


def _load_pipelines(
    connection: Connection, files: Sequence[str], handlers: Handlers
) -> dict[str, Pipeline | DocumentError]:
    """The pipelines among these files, each beside the others: states of one may be named by type in another."""
    from ...pipeline.finding import load_pipeline, load_together

    names = [file for file in files if is_pipeline_file(file)]

    def load(file: str, beside: Sequence[Pipeline]) -> Pipeline:
        return load_pipeline(file, handlers=handlers, jobs=connection.settings.jobs, strict=True, beside=beside)

    loaded = load_together([partial(load, file) for file in names])
    pipelines = [each for each in loaded if not isinstance(each, DocumentError)]
    for each in pipelines:
        each.give_beside(pipelines)
    return dict(zip(names, loaded, strict=True))


def _checked(
    connection: Connection, file: str, handlers: Handlers, pipeline: Pipeline | DocumentError | None
) -> CheckedFile:
    """What a document or pipeline file contains, or its problems."""
    record: CheckedFile = {
        "valid": True,
        "name": None,
        "digest": None,
        "nodes": None,
        "problems": [],
        "file": file,
        "stages": None,
        "not_followed": {},
        "awaited": {},
    }
    try:
        if pipeline is None:
            document = load_file(connection, file, handlers)
            return {**record, "name": document.name, "digest": document.digest, "nodes": len(document.nodes)}
        if isinstance(pipeline, DocumentError):
            raise pipeline
        awaited = _awaited(pipeline, file)
    except DocumentError as error:
        return {**record, "valid": False, "problems": [*map(problem_place, error.problems)]}
    return {
        **record,
        "name": pipeline.name,
        "stages": [*pipeline.stages],
        "not_followed": {name: dict(pipeline.code.of(name).unknown) for name in pipeline.stages},
        "awaited": awaited,
    }


def _awaited(pipeline: Pipeline, file: str) -> dict[str, str]:
    """What waits for states that nothing makes. A document is checked also where its database cannot be reached."""
    try:
        pipeline.look_for_types()
    except StoreError as error:
        typer.echo(plain(f"{file}: whether every state that it waits for is made is not known: {error}"), err=True)
        return {}
    return pipeline.unknown_states()


def _print_checked(record: CheckedFile) -> None:
    for problem in record["problems"]:
        place = f"{record['file']}:{problem.get('line')}:{problem.get('column')}"
        say(plain(f"{place}: {problem['path']}: {problem['message']}"))
    if not record["problems"]:
        stages = record["stages"]
        parts = count(record["nodes"] or 0, "node") if stages is None else count(len(stages), "stage")
        verdict = "but it waits for states that nothing makes" if record["awaited"] else "nothing is wrong"
        say(f"{plain(record['file'])}: {plain(record['name'] or '')}, {parts}, {verdict}")
    for node, state in record["awaited"].items():
        where = "nor one of a pipeline that is checked with it or was built in this root"
        say(plain(f"  {node}: no stage here makes {state!r}, {where}"))
    for stage, unknown in record["not_followed"].items():
        for code, place in unknown.items():
            say(plain(f"  {stage}: changes of {code} are not noticed ({place})"))


def is_pipeline_file(file: str) -> bool:
    from ...pipeline.document.load import is_pipeline

    return file != "-" and is_pipeline(file)


def schema(connection: Connection) -> None:
    from ...pipeline.document.schema import any_schema

    say(json_text(any_schema(connection.handlers())))


def render(
    connection: Connection, file: str, node: str, *, outputs: str | None, inputs: Pairs, input_file: str | None
) -> None:
    from ...engine.trying import rendered

    document = _found(connection, file)
    given = _outputs(outputs)
    say(json_text(rendered(document, _node(document, node), given, typed_input(document.input, inputs, input_file))))


def try_(
    connection: Connection, file: str, node: str, *, outputs: str | None, inputs: Pairs, input_file: str | None
) -> None:
    """Prints the output of the node, or the error and exit code of a failed run."""
    from ...engine.trying import tried

    document = _found(connection, file)
    given = _outputs(outputs), typed_input(document.input, inputs, input_file)
    say(json_text(tried(document, _node(document, node), *given, connection.handlers(), connection.settings.jobs)))


def save(connection: Connection, files: Sequence[str], *, as_json: bool) -> None:
    """Checks all files before it stores the first."""
    from ...pipeline.document.stored import save_pipeline

    handlers = connection.handlers()
    pipelines = [file for file in files if is_pipeline_file(file)]
    for loaded in _load_pipelines(connection, pipelines, handlers).values():
        if isinstance(loaded, DocumentError):
            raise loaded
    documents = {file: load_file(connection, file, handlers) for file in files if file not in pipelines}
    with connection.worker() as engine:
        saved = [
            save_pipeline(engine.store, file) if file in pipelines else engine.save(documents[file]) for file in files
        ]
    if as_json:
        say(json_text([each.to_dict() for each in saved]))
        return
    for each in saved:
        state = "saved" if each.is_new else "was stored before"
        active = "" if each.active == each.version else f"; {each.name}@{each.active} stays active"
        say(plain(f"{each}  {state}{active}"))


def activate(connection: Connection, name: str) -> None:
    with connection.store() as store:
        documents = _documents(connection, store, name)
        done = documents.activate(name)
    use, does = ("run", "starts") if documents.kind == "document" else ("pipeline build -p", "builds")
    say(plain(f"{done} is active: `{connection.command(f'{use} {done.name}')}` {does} it"))


def workflows(connection: Connection, *, as_json: bool) -> None:
    with connection.store() as store:
        rows = [(kind, row) for kind in KINDS for row in versions.all_names(store, kind)]
        now = store.now()
    if as_json:
        say(json_text([workflow_record(row, kind) for kind, row in rows]))
    elif rows:
        _print_workflows(rows, now)
    else:
        typer.echo(f"no documents in {connection.where}; `stepwell save FILE` stores one", err=True)


def workflow(
    connection: Connection, name: str, *, version: int | None, diff: tuple[int, int] | None, as_json: bool
) -> None:
    with connection.store() as store:
        documents = _documents(connection, store, name)
        if diff is not None:
            old, new = (documents.row(f"{name}@{number}") for number in diff)
            say(_difference(documents, old, new), end="")
            return
        row = documents.row(name if version is None else f"{name}@{version}")
        if as_json:
            say(json_text(documents.detail(row)))
            return
        _print_versions(documents, row)


def _documents(connection: Connection, store: Store, text: str) -> Documents:
    """The stored workflows or the stored pipelines, whichever have this name."""
    name, _ = parted(text)
    is_pipeline = versions.get_version(store, "document", name) is None and versions.get_version(
        store, "pipeline", name
    )
    if is_pipeline:
        return Documents(store, connection.handlers(), "pipeline")
    return connection.engine(store).parts.documents


def _found(connection: Connection, text: str) -> Document:
    """A file, or a stored document."""
    if is_file(text):
        return load_file(connection, text)
    with connection.store() as store:
        return connection.engine(store).parts.documents.find(text)


def _node(document: Document, name: str) -> str:
    if document.node(name) is None:
        known = [node.id for node in document.nodes]
        raise InputError(f"{document.name} has no node {name!r}; {suggestion(name, known, most=20)}")
    return name


def _outputs(file: str | None) -> dict[str, Any]:
    problems: list[str] = []
    outputs = json_object("--outputs", file, problems)
    if problems:
        raise InputError(problems[0])
    return outputs


def _print_workflows(rows: Sequence[tuple[DocumentKind, NameRow]], now: int) -> None:
    from ..show.screen import console, table

    made = table("workflow", "active", "versions", "saved", wrapped=("workflow",))
    for kind, row in rows:
        name = row.name if kind == "document" else f"{row.name} (pipeline)"
        made.add_row(plain(name), f"@{row.active}", str(row.newest), ago(row.stored_at, now))
    console().print(made)


def _print_versions(documents: Documents, row: VersionRow) -> None:
    for each in documents.versions(row.name):
        marks = "  active" if each.active else ""
        say(plain(f"{each.name}@{each.number}  {each.digest[:12]}  {iso(each.stored_at)}{marks}"), end="\n")
    say("")
    say(json_text(decode(documents.content(row))))


def _difference(documents: Documents, old: VersionRow, new: VersionRow) -> str:
    def lines(row: VersionRow) -> list[str]:
        text = json.dumps(decode(documents.content(row)), indent=2, ensure_ascii=False)
        return [f"{plain(line)}\n" for line in text.split("\n")]

    before, after = (plain(f"{each.name}@{each.number}") for each in (old, new))
    return "".join(difflib.unified_diff(lines(old), lines(new), before, after))
