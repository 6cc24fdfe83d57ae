"""Requests to a server. A problem in an answer becomes the error that the engine would have raised."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from ..base.codec import decode
from ..base.types.codecs import encoded_by_type
from ..base.version import __version__
from ..base.words import shown
from ..errors import (
    InputError,
    NotAllowed,
    PipelineBusy,
    RunBusy,
    RunConflict,
    RunNotFound,
    ServerError,
    StepwellError,
    StoreError,
)
from ..history.audit_log import FROM, REASON, acting, local_actor

if TYPE_CHECKING:
    import httpx

PREFIX = "/api/v1"
SECONDS = 60.0
"""How long an answer may take."""
TRIES = 5
SAFE_TO_REPEAT = frozenset({"GET", "PUT", "DELETE"})


def checked_url(url: Any) -> str:
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(f"expected the URL of a server, as in http://127.0.0.1:8765, got {shown(url)}")
    if parts.username or parts.password:
        raise InputError("a token is given as token=, not in the URL")
    return str(url).rstrip("/")


def path_of(*parts: str) -> str:
    """
    >>> path_of("runs", "a/b", "events")
    '/api/v1/runs/a%2Fb/events'
    """
    return "/".join((PREFIX, *(quote(part, safe="@:") for part in parts)))


class Transport:
    """One server, and the token it is asked with."""

    def __init__(self, url: str, token: str | None, timeout: float = SECONDS) -> None:
        self.url = checked_url(url)
        self.headers = {"User-Agent": f"stepwell/{__version__}"}
        if token is not None:
            if not isinstance(token, str) or not token.isascii() or not token.isprintable():
                raise InputError("the token is no text of a token: `stepwell token create` makes one")
            self.headers["Authorization"] = f"Bearer {token}"
        try:
            import httpx
        except ModuleNotFoundError:
            raise InputError("a client needs httpx: pip install 'stepwell[http]'") from None
        self.httpx: Any = httpx
        self._client = self.httpx.Client(base_url=self.url, headers=self.headers, timeout=timeout)

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, **params: Any) -> Any:
        return self.ask("GET", path, params=params)

    def pages(self, path: str, **params: Any) -> Iterator[Any]:
        """The items of a list, page by page."""
        cursor = None
        while True:
            page = self.get(path, cursor=cursor, limit=1_000, **params)
            yield from page["items"]
            if (cursor := page["next"]) is None:
                return

    def post(
        self, path: str, body: Mapping[str, Any] | None = None, *, repeatable: bool = False, **headers: str
    ) -> Any:
        return self.ask("POST", path, body=body, repeatable=repeatable, headers=headers)

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
        as_text: bool = False,
    ) -> Any:
        """The JSON of the answer, or its text. Safe requests are repeated when the connection breaks or the server is busy."""
        content = None if body is None else encoded_by_type(body)
        more = {**(headers or {}), **_origin(), **({} if body is None else {"Content-Type": "application/json"})}
        chosen = {name: value for name, value in (params or {}).items() if value is not None}
        again = repeatable or method in SAFE_TO_REPEAT
        for turn in range(TRIES):
            last = turn == TRIES - 1 or not again
            try:
                answer = self._client.request(method, path, content=content, params=chosen, headers=more)
            except self.httpx.ConnectError as error:
                raise unreachable(self.url, error) from None
            except self.httpx.TransportError as error:
                if last:
                    raise unreachable(self.url, error) from None
                time.sleep(0.1 * 2**turn)
                continue
            if answer.status_code == 503 and not last:
                time.sleep(0.1 * 2**turn)
                continue
            if method == "DELETE" and answer.status_code == 404 and turn > 0:
                return None  # the request before this one removed it, and its answer was lost
            return answer.text if as_text and answer.is_success else self.result(answer)
        raise AssertionError("the last try returns or raises")

    def result(self, answer: httpx.Response) -> Any:
        if answer.status_code == 204:
            return None
        try:
            found = decode(answer.content)
        except ValueError:
            if answer.is_success:
                message = f"{answer.url} answers with something else than JSON: is it a Stepwell server?"
                raise ServerError(message, status=answer.status_code) from None
            found = None
        if answer.is_success:
            return found
        problem = found if isinstance(found, dict) else {"detail": answer.text[:300] or answer.reason_phrase}
        raise error_of(answer.status_code, problem, self.url)

    @contextmanager
    def stream(self, path: str, *, last: str | None, timeout: float | None, **params: Any) -> Iterator[Iterator[str]]:
        """The lines of a stream. `timeout`: seconds without a line after which it is taken to be broken."""
        headers = {} if last is None else {"Last-Event-ID": last}
        wait = self.httpx.Timeout(SECONDS, read=timeout)
        with self._client.stream("GET", path, headers=headers, params=params, timeout=wait) as answer:
            if not answer.is_success:
                answer.read()
                self.result(answer)
            yield answer.iter_lines()


def _origin() -> dict[str, str]:
    """The headers that tell the server what a request is made with, and why."""
    actor, reason = acting() or (local_actor("python"), None)
    return {FROM: actor.via, **({} if reason is None else {REASON: quote(reason)})}


def unreachable(url: str, error: BaseException) -> ServerError:
    return ServerError(f"the server {url} cannot be reached: {error}; is `stepwell serve` running there?")


def error_of(status: int, problem: Mapping[str, Any], url: str) -> StepwellError:
    """The error that the engine would have raised for a problem."""
    detail, run_id = str(problem.get("detail", "")), str(problem.get("run_id", ""))
    kind = problem.get("error")
    if status in (401, 403):
        return NotAllowed(f"{url} refuses: {detail}", status=status)
    if kind == "RunNotFound":
        return RunNotFound(run_id, f"asked was {url}")
    if kind == "RunBusy":
        return RunBusy(detail, run_id=run_id)
    if kind == "PipelineBusy":
        return PipelineBusy(detail, pipeline=str(problem.get("pipeline", "")))
    if status == 409 and run_id:
        return RunConflict(detail, run_id=run_id)
    if status in (400, 404, 409, 413, 422):
        return InputError(detail)
    if status in (503, 507):
        return StoreError(f"{url}: {detail}")
    return ServerError(f"{url} answers {status}: {detail}", status=status)
