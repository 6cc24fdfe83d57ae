"""stdout is the result and nothing else, whoever prints: scripts read it as JSON."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from tests.cli.conftest import Shop

NOISY = """
import asyncio, os, subprocess, sys, threading
from stepwell import Builder, Workflow, step
print("while imported")

def loud(name):
    print(name, "prints")
    sys.stdout.write(f"{name} writes\\n")
    os.write(1, f"{name} writes to the descriptor\\n".encode())
    subprocess.run([sys.executable, "-c", f"print('a program of {name}')"], check=True)
    thread = threading.Thread(target=print, args=(f"a thread of {name}",))
    thread.start()
    thread.join()
    return name

class Noisy(Workflow):
    @step
    def threaded(self):
        return loud("threaded")

    @step
    async def looped(self, threaded):
        return loud("looped")

    @step(isolation="process")
    def isolated(self, looped):
        print("isolated prints")
        return loud("isolated")

    @step(side_effects="pure")
    def last(self, isolated):
        print("last prints")
        if os.path.exists("broken"):
            raise ValueError("broken")
        return {"all": "well"}

def noisy() -> Builder:
    print("while built")
    builder = Builder("noisy")
    builder.node("one", job=quiet)
    return builder

def quiet():
    print("quiet prints")
"""
SAID = [
    f"{who}{what}"
    for who in ("threaded", "looped", "isolated")
    for what in (" prints", " writes", " writes to the descriptor")
]
SAID += [f"a {what} of {who}" for who in ("threaded", "looped", "isolated") for what in ("program", "thread")]


@pytest.fixture
def noisy(shop: Shop) -> Shop:
    shop.write("noisy.py", NOISY)
    return shop


def test_what_bodies_and_modules_print_goes_to_stderr(noisy: Shop) -> None:
    ended = noisy("run", "noisy:Noisy", "--run-id", "loud")
    assert ended.json == {"all": "well"}
    assert [said for said in ("while imported", *SAID) if said not in ended.err] == []


def test_and_is_still_kept_with_its_attempt(noisy: Shop) -> None:
    noisy("run", "noisy:Noisy", "--run-id", "loud")
    kept = {(line["node"], line["message"]) for line in noisy("logs", "loud", "--json").json}
    assert {(who, f"{who} prints") for who in ("threaded", "looped", "isolated")} <= kept


def test_other_commands_are_quiet_too(noisy: Shop) -> None:
    noisy.touch("broken")
    failed = noisy("run", "noisy:Noisy", "--run-id", "loud", code=1)
    assert failed.out == ""
    (noisy.folder / "broken").unlink()
    retried = noisy("retry", "loud", "--no-wait")
    assert retried.out.startswith("run loud is RUNNING again")
    assert "while imported" not in retried.out
    worked = noisy("work", "noisy", "--once")
    assert [line.split()[:2] for line in worked.out.splitlines()] == [["COMPLETED", "loud"]]
    assert "while imported" in worked.err
    assert noisy("graph", "noisy:noisy", "--json").json["workflow"] == "noisy"
    assert noisy("graph", "noisy:noisy", "--svg", "-").out.startswith("<svg")
    assert noisy("replay", "loud", "--json").json["executed"] == ["last"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_ends_no_command(shop: Shop, closed: str) -> None:
    shop.touch("go")
    command = f"{shlex.quote(sys.executable)} -m stepwell run shop:Chatty --run-id chat {closed}"
    ended = subprocess.run(command, shell=True, cwd=shop.folder, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 0, ended
    assert shop.status("chat") == "COMPLETED"


def test_help_and_version_are_results(shop: Shop) -> None:
    assert "Usage: stepwell" in shop("ls", "--help").out
    assert shop("version").out.startswith("stepwell ")


def test_a_reader_who_has_seen_enough_ends_the_command_and_nothing_is_wrong(shop: Shop) -> None:
    """`stepwell show r | head -1`."""
    shop("run", "shop:Again", "--run-id", "r")
    for words in ("show r", "show r --json", "ls", "checkpoints r", "--help", "run shop:Again"):
        command = shop.start(*words.split(), PYTHONUNBUFFERED="1")
        assert command.stdout is not None
        command.stdout.close()  # before it has begun to write
        assert command.wait(60) == 0, words
        assert command.stderr is not None
        assert "error" not in command.stderr.read().lower()
