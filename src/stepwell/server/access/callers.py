"""Finds the tokens of callers in the store, and caches them for a second.

Changes of tokens by other processes take effect within that second, those of this process at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from ...base.clock import SECOND
from ...base.codec import sha256
from ...core.store import Store
from ...engine.recent import Recent
from ..threads import RequestThreads
from . import sessions, tokens
from .tokens import Token

REMEMBERED_SECONDS = 1.0


class Caller(NamedTuple):
    """A token that was presented, and whether it is `valid`, `revoked` or `expired`."""

    token: Token
    status: str
    until: float = 0.0
    """When the cached result expires, on the monotonic clock."""


class Callers:
    def __init__(self, store: Store, threads: RequestThreads) -> None:
        self._store = store
        self._threads = threads
        self._found: Recent[tuple[str, str], Caller] = Recent(1_000)
        """By kind and hash. Unknown tokens are not cached."""
        self._no_token_until = 0.0
        self._has_tokens = False
        self._cookie: str | None = None
        """Once there was a token, that never changes."""
        self.changes = 0
        """Of tokens and sessions, by this process."""

    def put(self, kind: str) -> bool:
        """A record of this kind was put by this process. Returns whether that may change who may do what."""
        if kind not in (tokens.KIND, sessions.KIND):
            return False
        self.changes += 1
        self._found.clear()
        self._no_token_until = 0.0
        return True

    async def by_token(self, text: str) -> Caller | None:
        return await self._find(tokens.KIND, text, tokens.find_token)

    async def by_session(self, text: str) -> Caller | None:
        return await self._find(sessions.KIND, text, sessions.find_session)

    async def cookie(self) -> str | None:
        """The name of the cookie of sessions, once there was a session."""
        if self._cookie is None:
            self._cookie = await self._threads.run("caller", sessions.cookie_name, self._store)
        return self._cookie

    async def any_token(self) -> bool:
        """Whether a token was ever made in this store."""
        if self._has_tokens or time.monotonic() < self._no_token_until:
            return self._has_tokens
        changes, until = self.changes, time.monotonic() + REMEMBERED_SECONDS
        found = await self._threads.run("caller", tokens.any_token, self._store)
        if found or changes == self.changes:
            self._has_tokens, self._no_token_until = found, until
        return found

    async def _find(self, kind: str, text: str, find: Callable[[Store, str], Token | None]) -> Caller | None:
        key = kind, sha256(text.encode("utf-8", "replace"))
        caller = self._found.get(key)
        if caller is not None and time.monotonic() < caller.until:
            return caller
        changes = self.changes
        caller = await self._threads.run("caller", self._look, find, text)
        if caller is not None and changes == self.changes:
            self._found[key] = caller
        return caller

    def _look(self, find: Callable[[Store, str], Token | None], text: str) -> Caller | None:
        began, token = time.monotonic(), find(self._store, text)
        if token is None:
            return None
        now = self._store.now()
        left = max(0.0, (token.expires_at - now) / SECOND)
        return Caller(token, token.status(now), began + min(REMEMBERED_SECONDS, left))
