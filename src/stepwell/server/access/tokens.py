"""Bearer tokens: random texts with scopes and an expiry, of which only a hash is stored.

A token is `sw_ID_SECRET`. The id finds its record; the secret has 256 random bits, so a plain SHA-256 of it gives nothing away.
Records are kept when a token is revoked or has expired: a server that ever had a token never goes back to being open.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from ...answers.scopes import SCOPES, Scope
from ...base.clock import SECOND, is_seconds
from ...base.codec import decode, encode, sha256
from ...base.words import shown
from ...core.model import ListRecords, PutRecord, RecordPut, RecordRow
from ...core.store import Store, reader
from ...errors import InputError, StoreCorrupt
from ...history.audit_log import noted

KIND = "token"
PREFIX = "sw"
MAX_NAME = 200
DEFAULT_DAYS = 90.0
LONGEST_DAYS = 3_650.0
_TRIES = 20


def allows(scopes: Iterable[str], needed: Scope) -> bool:
    """
    >>> allows(["author"], "run"), allows(["read"], "run")
    (True, False)
    """
    return any(SCOPES.index(scope) >= SCOPES.index(needed) for scope in scopes if scope in SCOPES)


def checked_scopes(given: Iterable[str]) -> tuple[Scope, ...]:
    chosen = tuple(given)
    wrong = [scope for scope in chosen if scope not in SCOPES]
    if wrong or not chosen:
        message = f"there is no scope {shown(wrong[0])}" if wrong else "a token needs a scope"
        raise InputError(f"{message}; there are {', '.join(SCOPES)}, each of which includes those before it")
    return tuple(scope for scope in SCOPES if scope in chosen)


class Token(NamedTuple):
    """What is stored of a token. Times are microseconds of the store's clock."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: int
    expires_at: int
    revoked_at: int | None
    hash: str

    def status(self, now: int) -> Literal["valid", "expired", "revoked"]:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if now >= self.expires_at else "valid"


def create_token(
    store: Store, scopes: Iterable[str] = ("read",), *, name: str = "", days: float = DEFAULT_DAYS
) -> tuple[str, Token]:
    """A new token: its text, which is not stored, and its record."""
    if not isinstance(name, str) or len(name) > MAX_NAME or not name.isprintable():
        raise InputError(f"name={shown(name)}: expected at most {MAX_NAME} printable characters")
    if not is_seconds(days, positive=True) or days > LONGEST_DAYS:
        raise InputError(f"a token is valid for a number of days, {LONGEST_DAYS:g} at most, not {shown(days)}")
    identity, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    now = store.now()
    token = Token(
        identity, name, checked_scopes(scopes), now, now + int(days * 86_400 * SECOND), None, sha256(secret.encode())
    )
    entries = noted("create", "token", identity, name=name, scopes=[*token.scopes])
    receipt, *_ = store.commit([PutRecord(KIND, identity, _value(token), expected=0), *entries])
    if not isinstance(receipt, RecordPut):
        raise InputError("no token could be made: one with the same id was made at this moment; try again")
    return f"{PREFIX}_{identity}_{secret}", token


def find_token(store: Store, text: str) -> Token | None:
    """The record of a presented token, valid or not; None if it is unknown."""
    parts = text.split("_", 2)
    if len(parts) != 3 or parts[0] != PREFIX:
        return None
    found = get_token(store, parts[1]) if parts[1].isalnum() and len(parts[1]) < 100 else None
    shown_hash = sha256(parts[2].encode("utf-8", "replace"))
    return found if found is not None and hmac.compare_digest(found.hash, shown_hash) else None


def get_token(store: Store, identity: str) -> Token | None:
    row = reader.get_record(store, KIND, identity)
    return None if row is None else _token(row)


def all_tokens(store: Store) -> Iterator[Token]:
    return map(_token, reader.all_records(store, KIND))


def any_token(store: Store) -> bool:
    """Whether a token was ever made in this store."""
    return bool(store.read([ListRecords(KIND, limit=1)])[0])


def revoke_token(store: Store, identity: str) -> Token:
    """Revoke a token, and the sessions that were opened with it."""
    for _ in range(_TRIES):
        row = reader.get_record(store, KIND, identity)
        if row is None:
            known = ", ".join(token.id for token in all_tokens(store)) or "none"
            raise InputError(f"there is no token {shown(identity)}; there are: {known}")
        token = _token(row)
        if token.revoked_at is not None:
            return token
        token = token._replace(revoked_at=store.now())
        entries = noted("revoke", "token", identity, name=token.name)
        receipt, *_ = store.commit([PutRecord(KIND, identity, _value(token), expected=row.version), *entries])
        if isinstance(receipt, RecordPut):
            return token
    raise InputError(f"token {identity} could not be revoked: others change it all the time; try again")


def _value(token: Token) -> bytes:
    return encode({name: value for name, value in token._asdict().items() if name != "id"})


def _token(row: RecordRow) -> Token:
    try:
        value: dict[str, Any] = decode(row.value)
        return Token(row.key, **{**value, "scopes": tuple(value["scopes"])})
    except (ValueError, TypeError, KeyError):
        raise StoreCorrupt(f"the record of token {row.key} cannot be read") from None
