"""Sessions of browsers: a token is exchanged for a cookie that scripts cannot read.

The cookie is a random text, of which only a hash is stored. A session ends when it expires, when its token does, or when it is
closed.
"""

from __future__ import annotations

import secrets

from ...base.clock import SECOND
from ...base.codec import decode, encode, sha256
from ...core.model import PutRecord, RecordRow
from ...core.store import Store, reader
from .tokens import Token, get_token

KIND = "session"
COOKIE = "stepwell_session"
NAME_KIND, NAME_KEY = "server", "cookie"
LONGEST_SECONDS = 12 * 3_600
MAX_SESSIONS = 20
"""Of one token at once."""


def open_session(store: Store, token: Token) -> tuple[str, str, int]:
    """The name and the text of the cookie, and for how many seconds it is valid.

    Sessions that have ended are removed, and the oldest of this token if it has as many as are allowed.
    """
    name, now = cookie_name(store) or _make_cookie_name(store), store.now()
    ended: list[RecordRow] = []
    own: list[RecordRow] = []
    for row in reader.all_records(store, KIND):
        session = decode(row.value)
        if session["expires_at"] <= now:
            ended.append(row)
        elif session["token"] == token.id:
            own.append(row)
    own.sort(key=lambda row: row.version)
    text = secrets.token_urlsafe(32)
    expires_at = min(token.expires_at, now + LONGEST_SECONDS * SECOND)
    value = encode({"token": token.id, "expires_at": expires_at})
    removed = [*own[: max(0, len(own) + 1 - MAX_SESSIONS)], *ended[:1_000]]
    ops = [PutRecord(KIND, row.key, None, expected=row.version) for row in removed]
    store.commit([PutRecord(KIND, sha256(text.encode()), value), *ops])
    return name, text, (expires_at - now) // SECOND


def cookie_name(store: Store) -> str | None:
    """The name of the cookie for the sessions of this store; None before the first. Browsers send cookies to every port of a
    machine: servers of two stores must not take each other's."""
    row = reader.get_record(store, NAME_KIND, NAME_KEY)
    return None if row is None else f"{COOKIE}_{decode(row.value)}"


def _make_cookie_name(store: Store) -> str:
    store.commit([PutRecord(NAME_KIND, NAME_KEY, encode(secrets.token_hex(4)), expected=0)])
    name = cookie_name(store)
    assert name is not None  # whoever put it first
    return name


def find_session(store: Store, text: str) -> Token | None:
    """The token that a session was opened with, while the session lasts."""
    row = reader.get_record(store, KIND, sha256(text.encode("utf-8", "replace")))
    if row is None:
        return None
    value = decode(row.value)
    return get_token(store, value["token"]) if value["expires_at"] > store.now() else None


def close_session(store: Store, text: str) -> str:
    """Returns the name of its cookie."""
    store.commit([PutRecord(KIND, sha256(text.encode("utf-8", "replace")), None)])
    return cookie_name(store) or COOKIE
