"""`shell`: off by default, no shell in it, and nothing of it outlives its node."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from stepwell.errors import PermanentError, TransientError
from stepwell.secrets import SecretRef
from tests.handlers.conftest import Bench, Ctx


def test_it_is_off_unless_the_settings_allow_a_program():
    with pytest.raises(
        PermanentError, match=r'the handler shell is off; the settings can allow programs: shell = \["echo"\]'
    ):
        Bench().call("shell", args=["echo", "x"])
    with pytest.raises(PermanentError, match="'cat' may not be started; the settings allow echo, ls"):
        Bench(shell=frozenset({"ls", "echo"})).call("shell", args=["cat"])
    with pytest.raises(PermanentError, match="may not be started"):
        Bench(shell=frozenset({"echo"})).call("shell", args=["/bin/echo"])
    assert Bench(shell=frozenset({"echo"})).call("shell", args=["echo", "x"])["result"] == "x\n"


def test_arguments_are_given_as_they_are():
    odd = ["$HOME", "`id`", "; rm -rf /", "a b", "*", "", "ü", "--", "$(id)", "a\nb"]
    script = "import sys, json; print(json.dumps(sys.argv[1:]))"
    bench = Bench(shell=True)
    got = bench.call("shell", args=[sys.executable, "-c", script, *odd], parse="json")
    assert got == {"result": odd, "exit_code": 0, "stderr": ""}
    [(name, request, response)] = bench.ctx.recorded
    assert (name, request["args"][3:]) == ("shell", odd)
    assert response["exit_code"] == 0
    with pytest.raises(PermanentError, match="NUL"):
        bench.handlers["shell"].validated({"args": ["a\0b"]})


def test_the_environment_of_the_worker_stays_with_it(monkeypatch):
    monkeypatch.setenv("STEPWELL_SECRET_X", "swordfish-6")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "swordfish-7")
    script = "import os, json; print(json.dumps(dict(os.environ)))"
    args = [sys.executable, "-c", script]
    seen = Bench(shell=True).call("shell", args=args, env={"MINE": "1"}, parse="json")["result"]
    assert seen["MINE"] == "1"
    assert seen["STEPWELL_IDEMPOTENCY_KEY"] == "run-1:node"
    assert not {"STEPWELL_SECRET_X", "AWS_SECRET_ACCESS_KEY"} & set(seen)


def test_secrets_go_by_variable_or_input_and_come_back_masked():
    script = (
        "import os, sys; t = os.environ['K'] + sys.stdin.read(); print(t); print(t, file=sys.stderr); sys.exit(len(t))"
    )
    bench = Bench(shell=True, secrets={"K": "swordfish-8", "I": "swordfish-9"})
    config = {"args": [sys.executable, "-c", script], "env": {"K": SecretRef("K")}, "stdin": SecretRef("I")}
    got = bench.call("shell", **config, expected_exit=[22])
    assert (got["result"], got["stderr"], got["exit_code"]) == ("******\n", "******\n", 22)
    assert bench.ctx.recorded[0][1]["env"] == {"K": "secret:K"}
    assert bench.ctx.recorded[0][1]["stdin"] == "secret:I"
    assert "swordfish" not in repr(bench.ctx.recorded)
    with pytest.raises(TransientError) as caught:
        bench.call("shell", **config)
    assert str(caught.value) == f"{sys.executable} ended with exit code 22: ******"
    assert bench.handlers["shell"].validated({"args": ["x"]})
    with pytest.raises(PermanentError):  # everybody can see arguments
        bench.handlers["shell"].validated({"args": ["x", SecretRef("K")]})


def test_what_fails_says_how():
    bench = Bench(shell=True)
    with pytest.raises(PermanentError, match="no-such-program cannot be started: No such file"):
        bench.call("shell", args=["no-such-program"])
    with pytest.raises(PermanentError, match="cannot be started"):
        bench.call("shell", args=["true"], folder="/no/such/folder")
    with pytest.raises(TransientError, match="ended with signal 9"):
        bench.call("shell", args=["sh", "-c", "kill -9 $$"])
    with pytest.raises(PermanentError, match="is no JSON"):
        bench.call("shell", args=["echo", "NaN"], parse="json")


def test_a_program_that_writes_without_end_is_killed():
    started = time.monotonic()
    with pytest.raises(PermanentError, match="yes wrote more than 100,000 bytes"):
        Bench(shell=True).call("shell", args=["yes"], max_bytes=100_000)
    assert time.monotonic() - started < 5


def test_a_program_need_not_read_what_it_is_given():
    assert Bench(shell=True).call("shell", args=["true"], stdin="x" * 10_000_000)["exit_code"] == 0


def test_when_its_node_ends_the_whole_group_is_killed(tmp_path: Path):
    """As the loop does at a time-out: the task is cancelled."""
    script = f"sleep 60 & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/parent; wait"
    bench = Bench(shell=True)

    async def run() -> None:
        handler = bench.handlers["shell"]
        task = asyncio.ensure_future(bench.handlers.call(handler, Ctx(), {"args": ["sh", "-c", script]}))
        while not (tmp_path / "parent").exists() or not (tmp_path / "parent").read_text().strip():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    for name in ("parent", "child"):
        _wait_until_gone(int((tmp_path / name).read_text()))


def test_what_a_program_leaves_behind_is_killed_too(tmp_path: Path):
    script = f"sleep 60 & echo $! > {tmp_path}/child; echo done"
    started = time.monotonic()
    assert Bench(shell=True).call("shell", args=["sh", "-c", script])["result"] == "done\n"
    assert time.monotonic() - started < 10
    _wait_until_gone(int((tmp_path / "child").read_text()))


def _wait_until_gone(pid: int) -> None:
    until = time.monotonic() + 5
    while time.monotonic() < until:
        try:
            state = (
                Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] if os.path.isdir("/proc") else "Z"
            )
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return
        if state == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} lives on")
