"""`stepwell demo`: a sample at work in a temporary folder, with the web UI open."""

from __future__ import annotations

import sys
from contextlib import closing
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from ...stores import open_store
from ..connect import Connection
from ..documents import load_file
from ..web import announce, load_serving, show_page

if TYPE_CHECKING:
    from ...engine import Engine

MODULE, DOCUMENT = "sample", "newsletter.yaml"
FILES = (f"{MODULE}.py", DOCUMENT)
_SOURCE = "stepwell.cli.demo_project"
CLOSE_SECONDS = 2.0
"""How long the slow run may go on after Ctrl-C: nothing of it is kept."""


def demo(connection: Connection, *, port: int, no_browser: bool) -> None:
    Serving = load_serving()
    from ...server.service import About

    with TemporaryDirectory(prefix="stepwell-demo-") as name:
        folder = Path(name)
        for file in FILES:
            (folder / file).write_text(files(_SOURCE).joinpath(file).read_text("utf-8"), "utf-8")
        sys.path.insert(0, name)
        sample = import_module(MODULE)
        with closing(open_store(f"sqlite:///{folder / 'demo.db'}")) as store:
            worker = {"workflows": [sample.Purchase, sample.PriceList, sample.Training], "close_seconds": CLOSE_SECONDS}
            handlers = connection.handlers()
            about = About("demo", "green")
            serving = Serving(store, port=port, worker=worker, handlers=handlers, jobs=[MODULE], about=about)
            assert serving.worker is not None
            serving.worker.parts.work.warns_unfinished = False
            _start_runs(connection, serving.worker, folder)

            def started() -> None:
                announce(serving, ", from a folder that is removed in the end")
                typer.echo(f"the sample is {folder / FILES[0]}", err=True)
                show_page(f"{serving.url}/", no_browser=no_browser)

            serving.run(started)


def _start_runs(connection: Connection, engine: Engine, folder: Path) -> None:
    from ...triggers import Trigger

    sample = import_module(MODULE)
    engine.save(load_file(connection, str(folder / DOCUMENT)))
    engine.triggers.add(Trigger("every-minute", "newsletter", every="1m", input={"subject": "It is {{ fire.time }}"}))
    engine.start(sample.photos(), run_id="photos", tags={"part": "fan"})
    engine.start(sample.PriceList(), run_id="price-list", tags={"part": "failure"})
    engine.start(sample.Purchase(order_id=7), run_id="purchase-7", tags={"part": "retry"})
    engine.start(sample.Training(), run_id="training", tags={"part": "slow"})
    engine.start("newsletter", input={"subject": "Hello"}, run_id="newsletter-1", tags={"part": "document"})
