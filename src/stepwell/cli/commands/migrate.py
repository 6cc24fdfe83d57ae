"""The command that makes the schema of a store on a server, for people who do not let programs do that."""

from __future__ import annotations

from ...errors import InputError
from ...store import open_store, public
from ..connect import Connection
from ..streams import say


def migrate(connection: Connection, *, show: bool) -> None:
    connection.need_store("migrate")
    url = connection.settings.store
    if not url.startswith(("postgresql://", "postgres://")):
        raise InputError(
            f"store {public(url)}: only a postgresql:// store has a schema to migrate; others see to it themselves"
        )
    if show:
        from ...store.postgres.address import parse
        from ...store.postgres.schema import script

        say(script(parse(url).schema))
        return
    store = open_store(url)
    store.close()
    say(f"{store.url} has the schema of this version")
