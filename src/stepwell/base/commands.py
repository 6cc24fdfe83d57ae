"""Commands that messages tell people to type. They name the store, unless it is the one that is used without a word."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from shlex import quote
from urllib.parse import unquote

DEFAULT_STORE = "sqlite:///.stepwell/stepwell.db"
_SQLITE = "sqlite:///"


def command(words: str, store: str | None) -> str | None:
    """What to type where this process was started; None when `store` is in the memory of this process alone, or not known.

    >>> command("retry r-1", "sqlite:////srv/my orders.db")
    "stepwell retry r-1 --store 'sqlite:////srv/my orders.db'"
    >>> command("retry r-1", "memory://")
    """
    if store is None or store.startswith("memory:"):
        return None
    if store.startswith(("http://", "https://")):  # that of a server, which is asked for it
        return f"stepwell {words} --server {quote(store)}"
    near = _from_here(store)
    return f"stepwell {words}" if near == DEFAULT_STORE else f"stepwell {words} --store {quote(near)}"


def either(call: str, words: str, store: str | None) -> str:
    """What to write in a program, or to type.

    >>> either("run.retry()", "retry r-1", "memory://")
    '`run.retry()`'
    """
    typed = command(words, store)
    return f"`{call}`" if typed is None else f"`{call}` or `{typed}`"


def _from_here(store: str) -> str:
    """The URL of a file below the working directory as people write it, and as they read it."""
    if not store.startswith(_SQLITE):
        return store
    location = unquote(store.removeprefix(_SQLITE))
    with suppress(ValueError, OSError):  # it is elsewhere, or the working directory was deleted
        location = os.fspath(Path(location).relative_to(Path.cwd()))
    return f"{_SQLITE}{location.replace('%', '%25').replace('?', '%3F')}"
