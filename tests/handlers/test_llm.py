"""`llm_service` against a real server that speaks the chat API."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.errors import PermanentError, TransientError
from tests.handlers.conftest import Bench
from tests.handlers.servers import Asked, Server, answer

SCHEMA = {
    "type": "object",
    "properties": {"mood": {"enum": ["good", "bad"]}, "score": {"type": "integer"}},
    "required": ["mood"],
    "additionalProperties": False,
}


def said(content: Any, **more: Any) -> bytes:
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop", **more}
    return answer(200, {"id": "x", "model": "small-2", "choices": [choice], "usage": usage})


def served(server: Server, **more: Any) -> Bench:
    service = {"base_url": server.url + "/v1", "bearer": "secret:KEY", "model": "small", **more}
    return Bench(services={"llm": service}, secrets={"KEY": "sk-swordfish-10"})


def in_turn(*answers: bytes) -> Any:
    left = list(answers)

    def respond(asked: Asked) -> bytes:
        return left.pop(0)

    return respond


def test_a_prompt_is_answered():
    with Server(lambda asked: said("Short.")) as server:
        bench = served(server)
        got = bench.call(
            "llm_service", service="llm", system="Be short.", prompt="Summarise", temperature=0, max_tokens=9
        )
    assert got == {
        "result": "Short.",
        "model": "small-2",
        "tokens": {"prompt": 10, "completion": 3, "total": 13},
        "finish_reason": "stop",
    }
    [asked] = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == "Bearer sk-swordfish-10"
    assert asked.headers["idempotency-key"] == "run-1:node"
    assert asked.json() == {
        "model": "small",
        "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Summarise"}],
        "temperature": 0,
        "max_tokens": 9,
    }
    assert bench.ctx.outcome["llm"]["tokens"]["total"] == 13
    assert "swordfish" not in repr(bench.ctx.recorded)


def test_messages_and_options_and_another_model():
    with Server(
        lambda asked: said([{"type": "text", "text": "a"}, {"type": "x"}, {"type": "text", "text": "b"}])
    ) as server:
        messages = [{"role": "user", "content": "hi"}]
        got = served(server).call("llm_service", service="llm", messages=messages, model="big", options={"top_p": 0.5})
    assert got["result"] == "ab"
    with Server(lambda asked: said("x", finish_reason={"type": "stop"})) as odd:
        assert served(odd).call("llm_service", service="llm", prompt="x")["finish_reason"] is None
    assert server.asked[0].json() == {"model": "big", "messages": messages, "top_p": 0.5}


@pytest.mark.parametrize("text", ['{"mood": "good"}', '```json\n{"mood": "good"}\n```', ' {"mood": "good"}\n'])
def test_an_answer_that_should_be_data_is_data(text):
    with Server(lambda asked: said(text)) as server:
        got = served(server).call("llm_service", service="llm", prompt="How is it?", schema=SCHEMA)
    assert got["result"] == {"mood": "good"}
    body = server.asked[0].json()
    assert body["response_format"] == {"type": "json_object"}
    assert '"enum":["good","bad"]' in body["messages"][0]["content"]


@pytest.mark.parametrize(
    "first", ["good, I think", '{"mood": "so so"}', "[]", '{"mood": NaN}', '{"mood": "good", "x": 1}', "[" * 9_999]
)
def test_an_answer_that_does_not_fit_is_asked_for_once_more(first):
    with Server(in_turn(said(first), said('{"mood": "bad"}'))) as server:
        bench = served(server)
        got = bench.call("llm_service", service="llm", prompt="How is it?", schema=SCHEMA)
    assert got["result"] == {"mood": "bad"}
    assert got["tokens"] == {"prompt": 20, "completion": 6, "total": 26}
    assert server.asked[1].headers["idempotency-key"] == "run-1:node:again"
    again = server.asked[1].json()["messages"]
    assert again[-2] == {"role": "assistant", "content": first}
    assert again[-1]["content"].startswith("This does not fit the schema: ")
    assert [name for name, _, _ in bench.ctx.recorded] == ["http", "http"]


def test_twice_is_enough():
    with Server(in_turn(said("no"), said('{"mood": 1}'))) as server, pytest.raises(PermanentError) as caught:
        served(server).call("llm_service", service="llm", prompt="x", schema=SCHEMA)
    assert "nor did the one before: $.mood: expected one of 'good', 'bad', got 1" in str(caught.value)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (answer(200, {"error": "x"}), "gave no chat completion"),
        (answer(200, []), "gave no chat completion"),
        (answer(200, {"choices": [{}]}), "gave no chat completion"),
        (said(None), "the model said nothing"),
        (answer(200, {"choices": [{"message": "Hello"}]}), "the model said nothing"),
        (answer(200, {"choices": [{"message": {"content": None, "refusal": "never"}}]}), "the model refused: never"),
        (answer(200, b"<html>", "text/html"), "is not"),
        (answer(401, {"error": "bad key sk-swordfish-10"}), r"status 401: .*bad key \*\*\*"),
    ],
)
def test_what_is_no_answer_fails_for_good(told, why):
    with Server(lambda asked: told) as server, pytest.raises(PermanentError, match=why):
        served(server).call("llm_service", service="llm", prompt="x")


def test_too_many_requests_are_told_to_wait():
    with Server(lambda asked: answer(429, Retry_After="20")) as server, pytest.raises(TransientError) as caught:
        served(server).call("llm_service", service="llm", prompt="x")
    assert caught.value.retry_after == 20


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "either prompt or messages"),
        ({"prompt": "a", "messages": [{"role": "user", "content": "b"}]}, "either prompt or messages"),
        ({"messages": [{"role": "user", "content": "b"}], "system": "c"}, "as the first of them"),
        ({"messages": []}, "at least 1"),
        ({"messages": [{"role": "wizard", "content": "b"}]}, "expected one of"),
        ({"prompt": "a", "options": {"stream": True}}, "set by the handler"),
        ({"prompt": "a", "schema": {"type": "wizard"}}, "schema.type: there is no type 'wizard'"),
        ({"prompt": "a", "temperature": 3}, "expected at most 2"),
    ],
)
def test_a_wrong_config_is_told(config, told):
    problems = Bench().handlers["llm_service"].check_config({"service": "llm", **config})
    assert any(told in each.message for each in problems)


def test_a_model_has_to_be_named_somewhere():
    with Server(lambda asked: said("x")) as server:
        bench = Bench(services={"llm": {"base_url": server.url}})
        with pytest.raises(PermanentError, match="names a model"):
            bench.call("llm_service", service="llm", prompt="x")
        with pytest.raises(PermanentError, match="there is no service 'other' here; there are llm"):
            bench.call("llm_service", service="other", prompt="x")


def test_a_secret_in_two_parts_or_as_escapes_of_an_answer_is_masked():
    key = "sk-swordfish-10"
    escaped = "".join(f"\\u{ord(each):04x}" for each in key)
    parts = [{"type": "text", "text": key[:7]}, {"type": "text", "text": key[7:]}]
    for content, schema, result in (
        (parts, None, "***"),
        (f'{{"mood": "{escaped}"}}', {"type": "object"}, {"mood": "***"}),
    ):
        with Server(lambda asked, content=content: said(content)) as server:
            asked = {"prompt": "x"} | ({} if schema is None else {"schema": schema})
            assert served(server).call("llm_service", service="llm", **asked)["result"] == result
