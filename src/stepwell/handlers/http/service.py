"""`call_external_service`: ask a service that the settings name, so that documents name no hosts and hold no credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, Field

from ...base.services import Service
from ...errors import PermanentError
from ..access import Access
from ..definition import Handler
from .config import HttpResponse, Sent
from .outgoing import Outgoing, recorded
from .request import RETRY, answered, sent

_DOTS = re.compile(r"(?:^|/)\.{1,2}(?:/|$)")


def checked_path(path: str) -> str:
    """A path that stays below the base URL of its service, however often it is unquoted."""
    if any(character.isspace() or not character.isprintable() or character in "\\?#" for character in path):
        raise ValueError("a path may hold no blanks, line ends, backslashes, ? and #: `query` takes parameters")
    plain = path
    for _ in range(4):
        if _DOTS.search(plain.replace("\\", "/")):
            raise ValueError("a path may not lead upwards")
        plain, before = unquote(plain), plain
        if plain == before:
            break
    if path.startswith("//") or "://" in path.partition("/")[0] + path[:12]:
        raise ValueError("expected a path below the base URL of the service, got a URL")
    return path


class _WithService(BaseModel):
    service: str = Field(description="its name in the settings")
    path: Annotated[str, AfterValidator(checked_path)] = Field("", description="below the base URL of the service")


class CallExternalService(Sent, _WithService):
    """A request to a service of the settings."""


def call_external_service(access: Access) -> Handler:
    async def call(ctx: Any, config: CallExternalService) -> dict[str, Any]:
        to = ToService(config.service, config.path, config.method, ctx.idempotency_key)
        return await to.answered(ctx, access, sent(config), config.expected_status)

    return Handler(
        "call_external_service",
        call,
        CallExternalService,
        HttpResponse,
        "Call a service of the settings, which have its base URL and credentials. Retried as http_request is.",
        {"service": "crm", "method": "POST", "path": "/contacts", "json": {"email": "{{ input.email }}"}},
        retry=RETRY,
        side_effects="recordable",
        keeps_secrets=True,
    )


def known_service(access: Access, name: str) -> Service:
    service = access.services.get(name)
    if service is None:
        known = ", ".join(access.services) or "none"
        raise PermanentError(f"there is no service {name!r} here; there are {known}")
    return service


class ToService(NamedTuple):
    """A request to a service, known by its name until it is sent."""

    service: str
    path: str
    method: str
    idempotency_key: str

    async def answered(
        self, ctx: Any, access: Access, said: Mapping[str, Any], expected: Iterable[int] = ()
    ) -> dict[str, Any]:
        request = recorded(self.method, {"service": self.service, "path": self.path}, **said)
        return await answered(ctx, access, request, lambda: self.made(access, said), expected)

    def made(self, access: Access, said: Mapping[str, Any]) -> Outgoing:
        """What the settings say wins: a document cannot replace credentials by its own."""
        service = known_service(access, self.service)
        own = {name.lower() for name in service.headers} | (
            {"authorization"} if service.bearer or service.basic else set()
        )
        headers = {name: value for name, value in said.get("headers", {}).items() if name.lower() not in own}
        query = tuple((name, value) for name, value in said.get("query", ()) if name not in service.query)
        more = {
            **said,
            "headers": {**headers, **service.headers},
            "query": (*query, *service.query.items()),
        }
        return Outgoing(
            self.method,
            f"{service.base_url}/{self.path.lstrip('/')}" if self.path else service.base_url,
            bearer=service.bearer,
            basic=service.basic,
            service=self.service,
            private=service.is_private,
            idempotency_key=self.idempotency_key,
            **more,
        )
