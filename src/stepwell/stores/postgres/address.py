"""Store URLs of PostgreSQL: what of them is ours, what is libpq's, and how they are shown."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from ...base.words import shown
from ...errors import InputError

DEFAULT_SCHEMA = "stepwell"
_OURS = ("schema", "pooler")
_POOLERS = ("none", "transaction")
_SECRET = ("password", "sslpassword")


class PostgresAddress(NamedTuple):
    conninfo: str
    """What libpq is given."""
    schema: str
    url: str
    """The URL without its password."""
    pooled: bool
    """Behind a pooler in transaction mode: no session of our own."""
    secrets: tuple[str, ...]
    """What no message may show."""

    def masked(self, text: object) -> str:
        words = str(text)
        for secret in self.secrets:
            words = words.replace(secret, "***")
        return words.strip()


def parse(url: str) -> PostgresAddress:
    """
    >>> parse("postgresql://me:secret@db.example/app?schema=flows&sslmode=require").url
    'postgresql://me@db.example/app?schema=flows&sslmode=require'
    >>> parse("postgresql:///app?service=shop").conninfo
    'postgresql:///app?service=shop'
    """
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    ours = {key: value for key, value in given if key in _OURS}
    schema, pooler = ours.get("schema", DEFAULT_SCHEMA), ours.get("pooler", "none")
    user, separator, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    rest = [(key, value) for key, value in given if key not in _OURS]
    secrets = {unquote(password), password, *(value for key, value in rest if key in _SECRET)} - {""}
    shown_pairs = [(key, value) for key, value in given if key not in _SECRET]
    public = _joined(f"{parts.scheme}://{name}{separator}{host}{parts.path}", shown_pairs)
    if not schema or schema.startswith("pg_") or not schema.isprintable() or len(schema.encode()) > 63:
        raise InputError(f"store URL {public!r}: schema={shown(schema)} cannot be the name of a schema")
    if pooler not in _POOLERS:
        raise InputError(f"store URL {public!r}: pooler={shown(pooler)} is not one of {', '.join(_POOLERS)}")
    conninfo = _joined(f"postgresql://{parts.netloc}{parts.path}", rest)
    return PostgresAddress(
        conninfo, schema, public, pooler == "transaction", tuple(sorted(secrets, key=len, reverse=True))
    )


def _joined(address: str, pairs: list[tuple[str, str]]) -> str:
    """Not by `urlunsplit`, which leaves the slashes out where no host is named."""
    return f"{address}?{urlencode(pairs, quote_via=quote)}" if pairs else address
