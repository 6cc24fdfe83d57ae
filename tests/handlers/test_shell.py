"""`shell`: off by default, no shell in it, and nothing of it outlives its node."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

import pytest

from stepwell.base.secret_refs import SecretRef
from stepwell.errors import PermanentError, TransientError
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


def test_a_secret_that_comes_back_as_escapes_is_masked():
    script = "import os; print('[\"' + ''.join(f'\\\\u{ord(each):04x}' for each in os.environ['K']) + '\"]')"
    bench = Bench(shell=True, secrets={"K": "swordfish-8"})
    config = {"args": [sys.executable, "-c", script], "env": {"K": SecretRef("K")}}
    assert bench.call("shell", **config, parse="json")["result"] == ["***"]
    assert bench.call("shell", **config)["result"] == '["***"]\n'


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
    assert Bench(shell=True).call("shell", args=["printf", "x"], max_bytes=1)["result"] == "x"
    with pytest.raises(PermanentError, match="wrote more than 1 bytes"):
        Bench(shell=True).call("shell", args=["printf", "xy"], max_bytes=1)
    for limit in (0, 100_000_001):
        (problem,) = Bench().handlers["shell"].check_config({"args": ["true"], "max_bytes": limit})
        assert problem.place == ("max_bytes",)


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


LEAVES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3):
            os.close(fd)
        open(sys.argv[1], "w").write(str(os.getpid()))
        os.rename(sys.argv[1], sys.argv[1] + ".done")
        time.sleep(60)
    os._exit(0)
while not os.path.exists(sys.argv[1] + ".done"):
    time.sleep(0.001)
"""


@pytest.mark.parametrize("ends", ["by itself", "when its node is cancelled", "when it wrote too much"])
def test_what_left_its_session_does_not_outlive_the_node(tmp_path: Path, ends: str):
    left = tmp_path / "left"
    goes_on = {
        "by itself": "",
        "when its node is cancelled": "time.sleep(60)",
        "when it wrote too much": "print('x' * 100_000)",
    }
    config = {"args": [sys.executable, "-c", LEAVES + goes_on[ends], str(left)], "max_bytes": 10_000}
    bench = Bench(shell=True)

    async def run() -> None:
        task = asyncio.ensure_future(bench.handlers.call(bench.handlers["shell"], Ctx(), config))
        while ends == "when its node is cancelled" and not Path(f"{left}.done").exists():
            await asyncio.sleep(0.01)
        if ends == "when its node is cancelled":
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, PermanentError):
            await task
        _check_gone(int(Path(f"{left}.done").read_text()))  # before the loop ends, which waits for threads

    asyncio.run(run())


def _check_gone(pid: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


DECIDING = """
PATH LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES GLIBC_TUNABLES GCONV_PATH PYTHONPATH
PYTHONSTARTUP PYTHONHOME PYTHONWARNINGS PERL5LIB PERL5OPT RUBYLIB RUBYOPT NODE_OPTIONS NODE_PATH BASH_ENV ENV
IFS SHELLOPTS PS4 HOME JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH LUA_PATH GIT_SSH_COMMAND
GIT_CONFIG_COUNT GIT_EXEC_PATH SSH_ASKPASS PAGER EDITOR LESSOPEN XDG_CONFIG_HOME KUBECONFIG AWS_CONFIG_FILE
OPENSSL_CONF OPENSSL_MODULES http_proxy TMPDIR R_PROFILE STEPWELL_IDEMPOTENCY_KEY path ld_preload MAKEFLAGS
MYSQL_HOME PSQLRC TERMINFO
"""


@pytest.mark.parametrize("name", DECIDING.split())
def test_no_variable_makes_an_allowed_name_another_program(name: str):
    with pytest.raises(
        PermanentError, match=f"env: {name} may not be given: it can decide what a program loads or runs"
    ):
        Bench(shell=frozenset({"echo"})).call("shell", args=["echo"], env={name: "/tmp/mine"})


def test_other_variables_are_given_and_odd_names_refused():
    allowed = Bench(shell=frozenset({"env"}))
    given = dict.fromkeys(("PGPASSWORD", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "LANG", "TZ", "MODE", "lower"), "1")
    seen = allowed.call("shell", args=["env"], env=given)["result"].splitlines()
    assert {f"{name}=1" for name in given} <= set(seen)
    for odd in ("", "A=B", "BASH_FUNC_ls%%", "a b", "LD_PRELOAD=x"):
        with pytest.raises(PermanentError, match="cannot be the name of a variable"):
            Bench(shell=True).call("shell", args=["true"], env={odd: "1"})


def test_a_program_is_the_one_that_the_worker_finds_wherever_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for folder, said in (("here", "worker"), ("there", "document")):
        (tmp_path / folder / "bin").mkdir(parents=True)
        tool = tmp_path / folder / "bin/tool"
        tool.write_text(f"#!/bin/sh\necho {said}\n")
        tool.chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", f"bin:{os.environ['PATH']}")
    there = str(tmp_path / "there")
    for name in ("tool", "./bin/tool"):
        assert Bench(shell=frozenset({name})).call("shell", args=[name], folder=there)["result"] == "worker\n"


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
