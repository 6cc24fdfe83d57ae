"""What tests of handlers share: a context that performs effects at once, and handlers that may reach loopback."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stepwell.base.codec import decode, encode
from stepwell.base.networks import allowed_networks
from stepwell.base.secrets import Secrets
from stepwell.base.services import SecretSource
from stepwell.base.settings import checked_services
from stepwell.handlers import Handlers
from stepwell.handlers.access import Access


class Ctx:
    """Performs effects and keeps what would be recorded of them."""

    def __init__(self, key: str = "run-1:node") -> None:
        self.idempotency_key = key
        self.outcome: dict[str, Any] = {}
        self.recorded: list[tuple[str, Any, Any]] = []

    def effect(self, name: str, function: Callable[..., Any], *args: Any, request: Any) -> Any:
        asked = decode(encode(request))

        async def later() -> Any:
            result = decode(encode(await function(*args)))
            self.recorded.append((name, asked, result))
            return decode(encode(result))

        if inspect.iscoroutinefunction(function):
            return later()
        result = decode(encode(function(*args)))
        self.recorded.append((name, asked, result))
        return result


class Bench:
    """Handlers with what they may reach, and one way to call them."""

    def __init__(
        self,
        *,
        services: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        sources: Mapping[str, SecretSource] | None = None,
        private: tuple[str, ...] = (),
        **access: Any,
    ) -> None:
        self.access = Access(
            services=checked_services(services or {}),
            secrets=Secrets(sources or {}, provider=dict(secrets or {}), environment={}),
            private=allowed_networks(private),
            **access,
        )
        self.handlers = Handlers(access=self.access)
        self.ctx = Ctx()

    def call(self, name: str, **config: Any) -> Any:
        self.ctx = Ctx()
        handler = self.handlers[name]
        assert handler.check_config(config) == []

        async def run() -> Any:
            async with asyncio.timeout(20):
                result = self.handlers.call(handler, self.ctx, config)
                return encode_and_back(await result if inspect.isawaitable(result) else result)

        return asyncio.run(run())


def encode_and_back(value: Any) -> Any:
    return decode(encode(value))


@pytest.fixture
def bench() -> type[Bench]:
    return Bench
