"""What commands that serve have in common: the server, the line that says where it is, and the browser."""

from __future__ import annotations

import threading
import webbrowser
from typing import TYPE_CHECKING

import typer

from ..errors import InputError
from ..stores import public
from .exits import complain
from .streams import say

if TYPE_CHECKING:
    from ..base.settings import Settings
    from ..server.service import About
    from ..server.serving import Serving


def load_serving() -> type[Serving]:
    """`Serving`; InputError says what to install."""
    try:
        from ..server.serving import Serving
    except ModuleNotFoundError as error:
        raise InputError(f"serving needs {error.name}: pip install 'stepwell[server]'") from None
    return Serving


def about(settings: Settings) -> About:
    """What the settings let the pages show of a server."""
    from ..server.service import About

    return About(**settings.for_pages)


def announce(serving: Serving, more: str = "") -> None:
    """Say on stderr where the web UI and the API are, once they answer."""
    from ..server.web_ui import is_built

    store = public(serving.service.store.url)
    typer.echo(f"serving the web UI and the API of {store} at {serving.url}{more}; Ctrl-C ends it", err=True)
    if not is_built():
        typer.echo("the web UI is not built: run `make ui` in the checkout, and start this again", err=True)


def show_page(address: str, *, no_browser: bool) -> None:
    """Print the address of a page, and open it unless `no_browser`. A browser in the terminal goes on beside the caller."""
    say(address)
    if not no_browser:
        threading.Thread(target=_open, args=(address,), name="browser").start()


def _open(address: str) -> None:
    if not webbrowser.open(address):
        complain("no browser could be opened: open the address above in one")
