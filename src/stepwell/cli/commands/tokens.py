"""`stepwell token`: the tokens of the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from ...base.words import iso
from ...server.access.tokens import Token, all_tokens, create_token, revoke_token
from ..connect import Connection
from ..show.words import plain
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...answers.fleet import NewToken, TokenRecord


def create(connection: Connection, *, scope: Sequence[str] | None, name: str, days: float, as_json: bool) -> None:
    with connection.store(make=True) as store:
        text, token = create_token(store, scope or ("read",), name=name, days=days)
        now = store.now()
    if as_json:
        record: NewToken = {**_record(token, now), "token": text}
        say(json_text(record))
        return
    say(text)
    typer.echo(
        f"scope {', '.join(token.scopes)}, until {iso(token.expires_at)}; it is shown only now. From now on every request to a "
        f"server of this store needs a token",
        err=True,
    )


def ls(connection: Connection, *, as_json: bool) -> None:
    with connection.store() as store:
        tokens, now = list(all_tokens(store)), store.now()
    if as_json:
        say(json_text([_record(token, now) for token in tokens]))
        return
    if not tokens:
        typer.echo("no token was made: whoever is on this machine may use a server of this store", err=True)
        return
    from ..show.screen import console, table

    made = table("token", "name", "scope", "is", "until", wrapped=("name",))
    for token in tokens:
        made.add_row(token.id, plain(token.name), ", ".join(token.scopes), token.status(now), iso(token.expires_at))
    console().print(made)


def revoke(connection: Connection, identity: str) -> None:
    with connection.store() as store:
        token = revoke_token(store, identity)
    say(f"token {token.id} is revoked")


def _record(token: Token, now: int) -> TokenRecord:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": [*token.scopes],
        "status": token.status(now),
        "created_at": iso(token.created_at),
        "expires_at": iso(token.expires_at),
        "revoked_at": iso(token.revoked_at),
    }
