"""Whatever a store holds, a terminal is never commanded by it: older versions took any text as a name."""

from __future__ import annotations

import pytest

from stepwell.base.codec import encode
from stepwell.base.ids import NodeId, RunId
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.kernel.layout import add_graph
from stepwell.core.model import Create
from stepwell.stores import open_store
from tests.cli.conftest import Shop

EVIL = "esc\x1b[31m\x9b31m\x07"


@pytest.fixture
def old_store(shop: Shop) -> Shop:
    graph = Graph([NodeSpec(NodeId("n"), EVIL, job="shop:part")])
    folder = shop.folder / ".stepwell"
    folder.mkdir()
    store = open_store(f"sqlite:///{folder / 'stepwell.db'}")
    store.commit(
        [
            *add_graph(graph, EVIL),
            *(
                Create(RunId(f"evil-{number}"), EVIL, None, graph.digest, encode({}), 1, "fail_fast", 0, None, None)
                for number in range(2)
            ),
        ]
    )
    store.close()
    return shop


@pytest.mark.parametrize(
    "words",
    [
        "ls",
        "ls --json",
        "show evil-0",
        "show evil-0 --json",
        "why evil-0",
        "why evil-0 n",
        "cancel evil-0 --dry-run",
        "logs evil-0",
        "graph evil-0",
        "graph evil-0 --dot",
        "graph evil-0 --svg -",
        "diff evil-0 evil-1",
        "audit evil-0",
        "work shop --once",
    ],
)
def test_no_command_passes_control_characters_of_a_name_on(old_store: Shop, words: str) -> None:
    ended = old_store(*words.split(), code=0)
    assert ended.out or ended.err
    assert not set(ended.out + ended.err) & set("\x1b\x9b\x07")


def test_nor_does_a_refusal(old_store: Shop) -> None:
    refused = old_store("show", "evil", code=2)
    assert "esc" in refused.err
    assert not set(refused.err) & set("\x1b\x9b\x07")
    assert not set(old_store("logs", "evil-0", "x", code=2).err) & set("\x1b\x9b\x07")
