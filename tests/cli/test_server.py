"""`--server URL`: the commands that read or steer ask a server, and say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from stepwell.server.access.tokens import create_token
from tests.cli.conftest import Shop
from tests.server.running import running


@pytest.fixture(scope="module")
def url(old_shop: Shop) -> Iterator[str]:
    """A server of the old shop's store; it has no runner, so nothing changes while it is looked at."""
    with running(f"sqlite:///{old_shop.folder}/.stepwell/stepwell.db") as serving:
        yield serving.url


READING = [
    ["ls", "--json"],
    ["show", "fan-12", "--json"],
    ["logs", "again", "--json"],
    ["graph", "fan-12", "--frozen"],
    ["checkpoints", "again", "2", "--json"],
    ["retry", "shop:failed", "--dry-run", "--json"],
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_command_that_reads_says_the_same(old_shop: Shop, url: str, words: list[str]) -> None:
    local, remote = old_shop(*words), old_shop(*words, "--server", url)
    if "--json" in words and words[0] == "show":
        found, other = local.json, remote.json
        assert {key: value for key, value in found.items() if key != "metrics"} == {
            key: value for key, value in other.items() if key != "metrics"
        }
    else:
        assert remote.out == local.out


def test_mistakes_are_told(old_shop: Shop, url: str) -> None:
    assert "no run 'nothing'" in old_shop("show", "nothing", "--server", url, code=3).err
    assert "cannot both be given" in old_shop("ls", "--server", url, "--store", "sqlite:///x.db", code=2).err
    assert "cannot be reached" in old_shop("ls", "--server", "http://127.0.0.1:9", code=4).err
    assert "leave out --server" in old_shop("work", "shop", "--server", url, code=2).err
    told = old_shop("why", "shop:failed", "--server", url).out
    assert f"stepwell retry shop:failed --server {url}" in told


def test_runs_are_started_and_steered(shop: Shop) -> None:
    shop.write(
        "add.json",
        json.dumps({"name": "add", "nodes": [{"id": "x", "handler": "transform", "config": {"template": 1}}]}),
    )
    with running(f"sqlite:///{shop.folder}/steered.db", worker={}) as serving:
        text, _ = create_token(serving.service.store, ["admin"])
        where = {"STEPWELL_SERVER": serving.url, "STEPWELL_TOKEN": text}
        assert "a token is needed" in shop("ls", "--server", serving.url, code=4).err
        assert "add@1" in shop("save", "add.json", **where).out
        assert shop("run", "add", "--run-id", "first", **where).json == {"result": 1}
        assert [run["id"] for run in shop("ls", "--json", **where).json] == ["first"]
        shop("reattempt", "first", "x", **where)
        shop("fork", "first", "--run-id", "third", **where)
        assert shop("show", "third", "--json", **where).json["status"] == "COMPLETED"
        assert "it has ended" in shop("cancel", "first", code=6, **where).err
