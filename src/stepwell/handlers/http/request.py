"""`http_request`: ask any public address, by http or https."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from ...base.codec import text
from ...base.secret_refs import SecretRef
from ...base.services import Text
from ...core.graph import Retry
from ...errors import NotJson, PermanentError, TransientError
from ..access import Access
from ..definition import Handler
from .config import HttpRequest, HttpResponse, Sent
from .outgoing import Outgoing, recorded

RETRIED = frozenset({408, 429})
NAME = "http"
"""What its effects are called."""
RETRY = Retry(3, retry_on=("stepwell.errors.TransientError", "builtins.TimeoutError"))
"""Of nodes that do not say: three attempts at what may pass."""
_SHOWN = 300
"""Characters of an answer that an error shows."""


def http_request(access: Access) -> Handler:
    async def ask(ctx: Any, config: HttpRequest) -> dict[str, Any]:
        said, key = sent(config), ctx.idempotency_key

        def make() -> Outgoing:
            return Outgoing(
                config.method,
                config.url,
                bearer=config.bearer,
                basic=config.basic,
                redirects=config.redirects,
                idempotency_key=key,
                **said,
            )

        request = recorded(config.method, {"url": config.url}, **said)
        return await answered(ctx, access, request, make, config.expected_status)

    return Handler(
        "http_request",
        ask,
        HttpRequest,
        HttpResponse,
        "Send an HTTP request. 408, 429, 5xx and network errors are tried again, other failures are not.",
        {"url": "{{ input.url }}", "headers": {"Accept": "application/json"}},
        retry=RETRY,
        side_effects="recordable",
        keeps_secrets=True,
    )


def sent(config: Sent) -> dict[str, Any]:
    """The parts of a request other than its address and credentials."""
    return {
        "headers": config.headers,
        "query": tuple(_pairs(config.query.items())),
        "json": config.json_,
        "form": None if config.form is None else dict(_pairs(config.form.items())),
        "body": config.body,
        "parse": config.parse,
        "max_bytes": config.max_bytes,
    }


def _pairs(items: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Text]]:
    for name, value in items:
        for each in value if isinstance(value, list) else (value,):
            if each is not None:
                yield name, each if isinstance(each, str | SecretRef) else json.dumps(each)


async def answered(
    ctx: Any, access: Access, request: Mapping[str, Any], make: Callable[[], Outgoing], expected: Iterable[int] = ()
) -> dict[str, Any]:
    """Send a request as a recorded effect and return the answer; TransientError or PermanentError if it failed.

    `make` is called where it is sent: a replay is given the answer, and needs neither the settings nor httpx.
    """
    try:
        answer: dict[str, Any] = await ctx.effect(NAME, _exchange, access, make, request=request)
    except NotJson as error:  # half a surrogate pair, or nested too deeply: a retry would get the same
        raise PermanentError(str(error)) from None
    wait = answer.pop("retry_after", None)
    status = answer["status_code"]
    ctx.outcome[NAME] = {"status_code": status} if wait is None else {"status_code": status, "retry_after": wait}
    if 200 <= status < 300 or status in expected:
        return answer
    said = answer["result"] if isinstance(answer["result"], str) else text(answer["result"])
    shown = said if len(said) <= _SHOWN else f"{said[:_SHOWN]} ..."
    message = f"{request['method']} {answer['url']}: status {status}{f': {shown}' if said else ''}"
    if status in RETRIED or status >= 500:
        raise TransientError(message, retry_after=wait)
    raise PermanentError(message)


@cache
def _loaded() -> ModuleType:
    return import_module(f"{__package__}.exchange")


async def _exchange(access: Access, make: Callable[[], Outgoing]) -> dict[str, Any]:
    outgoing = make()
    try:
        # In a thread when it is loaded: that takes long, and others are on this loop.
        module = _loaded() if _loaded.cache_info().currsize else await asyncio.to_thread(_loaded)
    except ModuleNotFoundError as error:
        if error.name not in ("httpx", "httpcore"):
            raise
        raise PermanentError("HTTP needs httpx, which is not installed here: pip install 'stepwell[http]'") from None
    answer: dict[str, Any] = await module.exchange(access, outgoing)
    return answer
