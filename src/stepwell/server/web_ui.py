"""The web UI: the files that `make ui` built, and the page that loads them.

They hold no data, so whoever reaches the server by its name may have them; what they show comes from the API, which asks who
wants it. Nothing is served but what was there when the server began.
"""

from __future__ import annotations

import gzip
import mimetypes
import secrets
from collections.abc import Collection
from functools import lru_cache
from html import escape
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

BUILT = Path(__file__).parent / "ui"
PAGE = "index.html"
IMMUTABLE = "public, max-age=31536000, immutable"
"""The names of built files have a hash of what is in them."""
MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Stepwell</title>
<h1>The web UI is not built</h1><p>This is a checkout. Run <code>make ui</code> there, and start the server again.
The <a href="{root}/healthz">API</a> works without it.</p></html>"""


def policy(nonce: str) -> str:
    """What the page may load: nothing from elsewhere, and no code that is not a built file."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; worker-src 'self'; "
        "font-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def is_built(built: Path = BUILT) -> bool:
    """Whether there is a page to load, besides the one that says how to build it."""
    return (built / PAGE).is_file()


class WebUi:
    """`reserved` are the first parts of paths that are the API's: `api`, `hooks` and so on. `root` is the path that the server
    is reached below, as in `/stepwell`, or nothing."""

    def __init__(self, reserved: Collection[str], root: str = "", built: Path = BUILT) -> None:
        self._reserved = frozenset(reserved)
        self._root = root
        self._files = {f"/{path.relative_to(built).as_posix()}": path for path in built.rglob("*") if path.is_file()}
        page = self._files.pop(f"/{PAGE}", None)
        self._page = MISSING.replace("{root}", escape(root)) if page is None else page.read_text("utf-8")

    def answer(self, scope: Scope) -> Response | None:
        """The answer to a request, if it is for a page."""
        path: str = scope["path"]
        if scope["method"] not in ("GET", "HEAD") or path.lstrip("/").partition("/")[0] in self._reserved:
            return None
        if path in self._files:
            return self._file(self._files[path], Headers(scope=scope))
        if path.startswith("/assets/"):
            return Response("there is no such file", 404, media_type="text/plain")
        return self._shell()

    def _shell(self) -> Response:
        nonce = secrets.token_urlsafe(16)
        page = self._page.replace("%NONCE%", nonce).replace("%ROOT%", escape(self._root))
        page = page.replace('="./', f'="{escape(self._root)}/')
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": policy(nonce)})

    @staticmethod
    def _file(path: Path, headers: Headers) -> Response:
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        caching = {
            "Cache-Control": IMMUTABLE if path.parent.name == "assets" else "no-cache",
            "Vary": "Accept-Encoding",
        }
        body = _read(path)
        if "gzip" in headers.get("accept-encoding", "") and kind.partition("/")[0] not in ("font", "image"):
            body, caching["Content-Encoding"] = _compressed(path), "gzip"
        return Response(body, media_type=kind, headers=caching)


@lru_cache(256)
def _read(path: Path) -> bytes:
    return path.read_bytes()


@lru_cache(256)
def _compressed(path: Path) -> bytes:
    return gzip.compress(_read(path), 9, mtime=0)
