"""The flow of the source document, from files, in real processes, on real servers: fetch, two models, aggregate, notify.

One server answers 429 with `Retry-After`, one is slow, one resets the connection, one is broken until it is mended, one
redirects to a private address, one name changes its address between check and use.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from stepwell import Document, Engine, RunFailed
from stepwell.base.networks import allowed_networks
from stepwell.handlers import Handlers
from stepwell.handlers.access import Access
from tests.cli.conftest import Shop
from tests.handlers.servers import Asked, Server, answer

DOCUMENT = """
name: summarise
description: Fetch a page, ask two models about it, tell the team.
input:
  properties:
    url: {type: string, format: uri}
  required: [url]
nodes:
  - id: fetch
    handler: http_request
    config: {url: "{{ input.url }}"}
  - id: summary
    handler: llm_service
    config: {service: llm, prompt: "Summarise: {{ fetch.result }}"}
    dependencies: [fetch]
    retry: {max_attempts: 3, base_delay: 0.05}
  - id: title
    handler: llm_service
    config: {service: llm, prompt: "A title for: {{ fetch.result }}"}
    dependencies: [fetch]
    retry: {max_attempts: 3, base_delay: 0.05}
  - id: digest
    handler: aggregate
    dependencies: [title, summary]
  - id: notify
    handler: call_external_service
    config:
      service: chat
      method: POST
      path: messages
      json: {text: "*{{ digest.result.title }}* {{ digest.result.summary }}", from: "{{ run.id }}"}
    dependencies: [digest]
    retry: 1
"""
SETTINGS = """
private_networks = ["127.0.0.1:{port}"]
[services.llm]
base_url = "http://127.0.0.1:{port}/v1"
bearer = "secret:LLM_KEY"
model = "small"
[services.chat]
base_url = "http://127.0.0.1:{port}/chat"
"""
KEY = "a-key-that-nobody-must-see"


class Town:
    """All that the document calls, on one port."""

    def __init__(self) -> None:
        self.mended = True
        self.slow = 0.2
        self.keys: set[str] = set()
        self.server = Server(self.respond)

    def respond(self, asked: Asked) -> bytes | None:
        first = self.counted()[asked.path, self.about(asked)] == 1
        if asked.path == "/page":
            return answer(429, Retry_After="1") if first else answer(200, {"words": "the sea is calm"})
        if asked.path == "/v1/chat/completions":
            self.keys.add({name.lower(): value for name, value in asked.headers.items()}["authorization"])
            if self.about(asked) == "A title for":
                return None if first else completion("Calm sea")  # the first connection is reset
            time.sleep(self.slow)
            return completion("Nothing moves.")
        if asked.path == "/chat/messages":
            return answer(201, {"id": 1}) if self.mended else answer(400, {"error": "closed"})
        return answer(404)

    @staticmethod
    def about(asked: Asked) -> str:
        if not asked.path.startswith("/v1"):
            return ""
        words: str = asked.json()["messages"][-1]["content"]
        return words.partition(":")[0]

    def counted(self) -> Counter[tuple[str, str]]:
        return Counter((each.path, self.about(each)) for each in self.server.asked)


def completion(words: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": words}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return answer(200, {"id": "c", "model": "small", "choices": [choice], "usage": usage})


@pytest.fixture
def town(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Town]:
    town = Town()
    shop.write("summarise.yaml", DOCUMENT)
    shop.write("stepwell.toml", SETTINGS.format(port=town.server.port))
    monkeypatch.setenv("STEPWELL_SECRET_LLM_KEY", KEY)
    with town.server:
        yield town


def run(shop: Shop, town: Town, **more: Any) -> Any:
    words = ("run", "summarise.yaml", "-i", f"url={town.server.url}/page", "--run-id", "flow")
    return shop(*words, STEPWELL_SECRET_LLM_KEY=KEY, **more)


def test_the_flow_works_fails_is_retried_and_repeats_only_what_failed(shop: Shop, town: Town) -> None:
    shop("check", "summarise.yaml")
    town.mended = False
    ended = run(shop, town, code=1)
    assert "400" in ended.err
    before = town.counted()
    assert before["/page", ""] == 2, "429, and again after a second"
    assert before["/v1/chat/completions", "A title for"] == 2, "reset, and again"
    assert before["/v1/chat/completions", "Summarise"] == 1
    assert before["/chat/messages", ""] == 1, "a 400 is not tried again"
    assert town.keys == {f"Bearer {KEY}"}
    town.mended = True
    shop("retry", "flow", STEPWELL_SECRET_LLM_KEY=KEY)
    assert town.counted() - before == Counter({("/chat/messages", ""): 1})
    sent = town.server.asked[-1].json()
    assert sent == {"text": "*Calm sea* Nothing moves.", "from": "flow"}
    shown = shop("show", "flow", "notify", "--json").json
    assert shown["config"]["json"]["text"] == "*{{ digest.result.title }}* {{ digest.result.summary }}"
    assert [each["config"]["json"]["text"] for each in shown["attempt_list"]] == ["*Calm sea* Nothing moves."] * 2
    assert "*Calm sea*" in shop("why", "flow", "notify").out
    for file in shop.folder.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_it_is_killed_resumed_and_replayed_offline_byte_for_byte(shop: Shop, town: Town) -> None:
    town.slow = 60
    words = ("run", "summarise.yaml", "-i", f"url={town.server.url}/page", "--run-id", "flow")
    process = shop.start(*words, STEPWELL_SECRET_LLM_KEY=KEY)
    shop.until(lambda: town.counted()["/v1/chat/completions", "Summarise"])
    shop.until(lambda: shop("show", "flow", "title", "--json").json["status"] == "COMPLETED")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before, town.slow = town.counted(), 0
    shop("resume", "flow", STEPWELL_SECRET_LLM_KEY=KEY)
    after = Counter({("/v1/chat/completions", "Summarise"): 1, ("/chat/messages", ""): 1})
    assert town.counted() - before == after, "only what had not completed is done again"
    shop("export", "flow", "flow.cassette.json", STEPWELL_SECRET_LLM_KEY=KEY)
    assert KEY not in (shop.folder / "flow.cassette.json").read_text()
    count = len(town.server.asked)
    (shop.folder / "stepwell.toml").unlink()  # neither services nor secrets are needed to replay
    replayed = shop("replay", "flow.cassette.json", "--json").json
    assert sorted(replayed["executed"]) == ["digest", "fetch", "notify", "summary", "title"]
    assert len(town.server.asked) == count


def page(url: str) -> Document:
    return Document(
        {"name": "page", "nodes": [{"id": "a", "handler": "http_request", "config": {"url": url}, "retry": 1}]}
    )


def test_a_redirect_to_a_private_address_fails_the_node() -> None:
    with Server(lambda asked: answer(200, b"inside")) as inside:
        moved = answer(302, Location=f"{inside.url}/secret")
        with Server(lambda asked: moved) as outside:
            handlers = Handlers(access=Access(private=allowed_networks([f"127.0.0.1:{outside.port}"])))
            with Engine("memory://", handlers=handlers) as engine, pytest.raises(RunFailed, match="private"):
                engine.run(page(f"{outside.url}/page"))
        assert inside.asked == []
        assert len(outside.asked) == 1


def test_a_name_that_changes_its_address_between_check_and_use_is_connected_where_it_was_checked() -> None:
    answers = iter(["127.0.0.2", "127.0.0.1"])

    async def resolve(host: str, port: int) -> list[str]:
        return [next(answers)]

    with Server(lambda asked: answer(200, b"inside")) as inside:
        access = Access(private=allowed_networks([f"127.0.0.2:{inside.port}"]), resolve=resolve)
        with Server(lambda asked: answer(200, {"who": "outside"}), host="127.0.0.2", port=inside.port) as outside:
            with Engine("memory://", handlers=Handlers(access=access)) as engine:
                made = engine.run(page(f"http://changing.test:{inside.port}/"))
                assert made.output("a")["result"] == {"who": "outside"}
            assert (len(outside.asked), inside.asked) == (1, [])
