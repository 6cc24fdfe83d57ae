"""The commands for documents, as `app.py` declares the others."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import declare
from .completion import documents
from .options import AsJson, InputFile, Inputs, argument, option

Files = Annotated[list[str], argument("FILE...", "JSON or YAML.")]
Source = Annotated[str, argument("FILE|NAME", "A file, or a stored document.", autocompletion=documents)]
Node = Annotated[str, argument("NODE", "The id of a node.")]
OUTPUTS_HELP = "What its ancestors returned: a JSON object by node; - reads stdin."
Outputs = Annotated[str | None, option("FILE", OUTPUTS_HELP)]
Version = Annotated[str, argument("NAME[@N]", "A version; without @N the newest again.", autocompletion=documents)]


def add_document_commands(app: typer.Typer) -> None:
    @declare(app, "documents", jobs=True, place="none")
    def check(files: Files, as_json: AsJson = False) -> None:
        """Check documents: every problem at once, with its line. Nothing is run; exit code 2 if anything is wrong."""

    @declare(app, "documents", place="none")
    def schema() -> None:
        """Print the JSON Schema of documents and pipelines, for editors: with the config of every handler there is here."""

    @declare(app, "documents")
    def render(
        file: Source, node: Node, outputs: Outputs = None, inputs: Inputs = None, input_file: InputFile = None
    ) -> None:
        """Show the config of a node as it would be rendered. Secrets stay references."""

    @declare(app, "documents", "try", jobs=True)
    def try_(
        file: Source,
        node: Node,
        outputs: Outputs = None,
        inputs: Inputs = None,
        input_file: InputFile = None,
    ) -> None:
        """Run one node of a document alone, really, and print what it returns. Nothing is stored."""

    @declare(app, "documents", jobs=True, changes=True)
    def save(files: Files, as_json: AsJson = False) -> None:
        """Store documents, each as an immutable version; the same content is the same version."""

    @declare(app, "documents", changes=True)
    def activate(name: Version) -> None:
        """Choose the version of a stored document that its name starts."""

    @declare(app, "documents")
    def workflows(as_json: AsJson = False) -> None:
        """List the stored documents."""

    @declare(app, "documents")
    def workflow(
        name: Annotated[str, argument("NAME", "A stored document.", autocompletion=documents)],
        version: Annotated[int | None, option("N", "This version.")] = None,
        diff: Annotated[tuple[int, int] | None, option("N N", "What changed from one to the other.")] = None,
        as_json: AsJson = False,
    ) -> None:
        """Show a stored document: its versions, and the content of the active one or of another."""
