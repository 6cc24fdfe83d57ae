"""`stepwell logs`: what the nodes of a run said, for people and for scripts, afterwards and meanwhile."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Shop
from tests.forking.template import Template

LINE_KEYS = {"run", "node_id", "node", "attempt", "index", "time", "level", "logger", "message"}
FIRST = [f"number {number}" for number in range(3)] + ["not this time\nsecond line"]


@pytest.fixture(scope="module")
def chatty(tmp_path_factory: pytest.TempPathFactory, template: Template) -> Iterator[Shop]:
    made = Shop(tmp_path_factory.mktemp("chatty"), template)
    made.touch("go")
    made("run", "shop:Chatty", "--run-id", "chat")
    made("run", "shop:Again", "--run-id", "quiet")
    yield made
    made.close()


def test_lines_are_shown_with_time_node_attempt_and_level(chatty: Shop) -> None:
    lines = chatty("logs", "chat").out.splitlines()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  hello #1  INFO     stdout: hello from stdout", lines[0]
    )
    assert lines[1].endswith("  hello #1  WARNING  shop: careful")
    assert lines[5].endswith("  count #1  ERROR    shop: not this time")
    assert lines[6] == "    second line"
    assert [line.split("  ")[1] for line in lines[7:]] == ["count #2"] * 3


def test_lines_are_chosen_by_node_and_attempt(chatty: Shop) -> None:
    def said(*words: str) -> list[str]:
        return [line["message"] for line in chatty("logs", "chat", *words, "--json").json]

    assert said("count", "--attempt", "1") == FIRST
    assert said("count") == FIRST + FIRST[:3]
    assert said("--attempt", "2") == FIRST[:3]
    assert said("hello") == ["hello from stdout", "\x1b[31mcareful\x1b[0m"]


def test_json_has_keys_that_stay(chatty: Shop) -> None:
    first = chatty("logs", "chat", "--json").json[0]
    assert set(first) == LINE_KEYS
    assert (first["run"], first["node"], first["attempt"], first["level"]) == ("chat", "hello", 1, "INFO")
    assert first["time"].endswith("Z")


def test_lines_are_chosen_by_level_and_text_and_counted_from_the_end(chatty: Shop) -> None:
    def said(*words: str) -> list[str]:
        lines = [line["message"] for line in chatty("logs", "chat", *words, "--json").json]
        followed = chatty("logs", "chat", *words, "--follow", "--json").out.splitlines()
        assert [json.loads(line)["message"] for line in followed] == lines
        return lines

    whole = said()
    assert said("--tail", "2") == whole[-2:]
    assert said("--tail", "100") == whole
    assert said("--tail", "3", "hello") == ["hello from stdout", "\x1b[31mcareful\x1b[0m"]
    assert said("--level", "error") == FIRST[3:]
    assert said("--search", "NUMBER 1") == ["number 1"] * 2
    assert said("--search", "number", "--tail", "1") == ["number 2"]
    assert chatty("logs", "chat", "--level", "CRITICAL").err == "run chat has no lines like that\n"
    assert "expected one of DEBUG, INFO" in chatty("logs", "chat", "--level", "loud", code=2).err
    assert "expected 1 or more" in chatty("logs", "chat", "--tail", "0", code=2).err


def test_a_run_that_said_nothing_is_told_so(chatty: Shop) -> None:
    ended = chatty("logs", "quiet")
    assert (ended.out, ended.err) == ("", "run quiet has no lines\n")
    assert chatty("logs", "quiet", "--json").json == []
    assert "no lines like that" in chatty("logs", "chat", "--attempt", "9").err


def test_mistakes_are_told(chatty: Shop) -> None:
    assert "no run" in chatty("logs", "nothing-like-it", code=3).err.lower()
    assert "has no node 'nobody': there are: hello, count" in chatty("logs", "chat", "nobody", code=2).err
    assert "numbered from 1" in chatty("logs", "chat", "--attempt", "0", code=2).err


def test_following_an_ended_run_shows_it_and_ends(chatty: Shop) -> None:
    assert chatty("logs", "chat", "--follow").out == chatty("logs", "chat").out
    followed = [json.loads(line) for line in chatty("logs", "chat", "-f", "--json").out.splitlines()]
    assert followed == chatty("logs", "chat", "--json").json


def test_following_a_run_of_another_process_shows_every_line_once_and_ends_with_it(shop: Shop) -> None:
    running = shop.start("run", "shop:Chatty", "--run-id", "chat")
    shop.until(lambda: "count" in shop.ledger())
    following = shop.start("logs", "chat", "--follow", "--json")
    shown: list[str] = []
    assert following.stdout is not None
    stream = following.stdout
    reading = threading.Thread(target=lambda: shown.extend(stream))
    reading.start()
    shop.until(lambda: len(shown) >= 5)  # while the run goes on
    assert running.poll() is None
    shop.touch("go")
    shop.end(running, code=0)
    reading.join(30)
    assert following.wait(30) == 0
    followed = [json.loads(line) for line in shown]
    assert sorted(followed, key=str) == sorted(shop("logs", "chat", "--json").json, key=str)
    assert len(followed) == 9


def test_show_says_how_far_a_running_node_is(shop: Shop) -> None:
    running = shop.start("run", "shop:Chatty", "--run-id", "chat")
    shop.until(lambda: "count" in shop.ledger())
    shop.until(lambda: shop("show", "chat", "--json").json["nodes"][1]["progress"])
    assert shop("show", "chat", "--json").json["nodes"][1]["progress"] == {
        "done": 3,
        "total": 4,
        "message": "numbers",
        "fraction": 0.75,
    }
    assert "━━━━━━━━━━━━━━━───── 75 %, 3/4, numbers" in shop("show", "chat").out
    shop.touch("go")
    shop.end(running, code=0)


def test_what_a_body_prints_is_not_the_result(shop: Shop) -> None:
    """It goes to stderr, as log lines do."""
    shop.touch("go")
    ended = shop("run", "shop:Chatty")
    assert ended.out == '"counted"\n'
    assert "hello from stdout" in ended.err
    assert "ERROR: not this time\n" in ended.err
