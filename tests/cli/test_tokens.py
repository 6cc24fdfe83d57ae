"""`stepwell token`: made once, listed without their secret, revoked for good."""

from __future__ import annotations

from stepwell.server.access.tokens import find_token
from stepwell.stores import open_store
from tests.cli.conftest import Shop


def test_a_token_is_made_listed_and_revoked(shop: Shop) -> None:
    made = shop("token", "create", "--scope", "author", "--name", "CI", "--days", 2, "--json").json
    assert made["scopes"] == ["author"]
    assert made["token"].startswith(f"sw_{made['id']}_")
    file = shop.folder / ".stepwell/stepwell.db"
    store = open_store(f"sqlite:///{file}")
    found = find_token(store, made["token"])
    assert found is not None
    assert found.status(store.now()) == "valid"
    store.close()
    assert made["token"].split("_", 2)[2].encode() not in file.read_bytes()
    assert [(each["id"], each["name"], each["status"]) for each in shop("token", "ls", "--json").json] == [
        (made["id"], "CI", "valid")
    ]
    assert shop("token", "revoke", made["id"]).out == f"token {made['id']} is revoked\n"
    assert "revoked" in shop("token", "ls").out
    assert "there is no token 'nothing'" in shop("token", "revoke", "nothing", code=2).err
    assert "there is no scope 'root'" in shop("token", "create", "--scope", "root", code=2).err
