"""`--server URL`: the commands that read or steer ask a server, and say the same."""

from __future__ import annotations

import json

from stepwell.server.access.tokens import create_token
from tests.cli.conftest import Shop
from tests.server.running import running


def test_commands_ask_a_server_and_say_the_same(shop: Shop) -> None:
    node = {"id": "x", "handler": "transform", "config": {"template": 1}}
    shop.write("add.json", json.dumps({"name": "add", "nodes": [node]}))
    store = f"sqlite:///{shop.folder}/asked.db"
    with running(store, worker={}) as serving:
        text, _ = create_token(serving.service.store, ["admin"])
        where = {"STEPWELL_SERVER": serving.url, "STEPWELL_TOKEN": text}
        refused = shop("ls", "--server", serving.url, code=4)
        assert "a token is needed" in refused.err
        assert "add@1" in shop("save", "add.json", **where).out
        assert shop("run", "add", "--run-id", "first", **where).json == {"result": 1}
        assert shop("ls", "--json", **where).json == shop("ls", "--json", "--store", store).json
        remote, local = (
            shop("show", "first", "--json", **where).json,
            shop("show", "first", "--json", "--store", store).json,
        )
        assert {**remote, "metrics": None} == {**local, "metrics": None}
        assert "`stepwell ls --server" in shop("why", "nothing", code=3, **where).err
        shop("fork", "first", "--at", "x", "--run-id", "second", **where)
        told = shop("cancel", "second", "--server", serving.url, STEPWELL_TOKEN=text, code=6).err
        assert "it has ended" in told
        assert f"--server {serving.url}" in told
    assert "No such option: --server" in shop("work", "shop", "--server", "http://127.0.0.1:9", code=2).err
    assert "cannot be reached" in shop("ls", "--server", "http://127.0.0.1:9", code=4).err
