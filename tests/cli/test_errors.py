"""Every error is a line that says what to do, an exit code that scripts can rely on, and never a traceback."""

from __future__ import annotations

import apsw
import pytest

from tests.cli.conftest import Shop


def test_a_missing_module_is_named(shop: Shop) -> None:
    refused = shop("run", "nowhere:Order", code=2)
    assert refused.err.startswith("error: nowhere:Order: there is no module 'nowhere' to import from here")
    assert refused.err.count("\n") == 1


def test_a_missing_name_is_named(shop: Shop) -> None:
    assert "module 'shop' has no 'Oder'" in shop("run", "shop:Oder", code=2).err


def test_what_is_no_target_is_refused(shop: Shop) -> None:
    assert "package.module:Name" in shop("run", "shop", code=2).err
    assert "a target names a module: shop:Order" in shop("run", "shop.py:Order", code=2).err
    assert "expected a Workflow class" in shop("run", "shop:Path", code=2).err


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("import time\n\n1 / 0\n", "ZeroDivisionError: division by zero\n  raised at broken.py:3\n"),
        (
            "import no_such_package\n",
            "ModuleNotFoundError: No module named 'no_such_package'\n  raised at broken.py:1\n",
        ),
        ("def order(:\n", "SyntaxError: invalid syntax (broken.py, line 1)\n  raised at broken.py:1\n"),
        ("import sys\nsys.exit(0)\n", 'belongs below `if __name__ == "__main__":`\n  raised at broken.py:2\n'),
    ],
)
def test_a_broken_module_shows_the_exception_and_its_line(shop: Shop, code: str, raised: str) -> None:
    shop.write("broken.py", code)
    assert raised in shop("run", "broken:Order", code=2).err


def test_a_workflow_that_is_written_wrongly_shows_every_problem_on_a_line(shop: Shop) -> None:
    shop.write(
        "wrong.py",
        "from stepwell import Workflow, task\n"
        "class Wrong(Workflow):\n"
        "    @task(depends_on='b')\n"
        "    def a(self): ...\n"
        "    @task(depends_on='a')\n"
        "    def b(self): ...\n"
        "    @task(depends_on='nobody')\n"
        "    def c(self): ...\n",
    )
    lines = shop("run", "wrong:Wrong", code=2).err.splitlines()
    assert sum(line.startswith("  - ") for line in lines) >= 1
    assert any("nobody" in line for line in lines)
    assert any("wrong.py:" in line for line in lines)


def test_a_function_that_makes_no_builder_is_refused(shop: Shop) -> None:
    assert "shop:no_builder: expected it to return a Builder, got 7" in shop("run", "shop:no_builder", code=2).err
    raised = shop("run", "shop:raising", "-i", "width=3", code=2).err
    assert raised.startswith("error: shop:raising raised RuntimeError: cannot build 3\n  raised at shop.py:")
    assert "the graph has 1 problem" in shop("run", "shop:crooked", code=2).err


@pytest.mark.parametrize(
    "words", [(), ("frobnicate",), ("run",), ("show",), ("ls", "--limit", "0"), ("ls", "--limit", "x")]
)
def test_wrong_usage_is_exit_code_2(shop: Shop, words: tuple[str, ...]) -> None:
    refused = shop(*words, code=2)
    assert "Usage: stepwell" in refused.err + refused.out


def test_wrong_values_of_options_are_exit_code_2(shop: Shop) -> None:
    assert "there are PENDING, RUNNING" in shop("ls", "--status", "sleeping", code=2).err
    assert "use memory://, sqlite:///" in shop("ls", "--store", "mysql://x", code=2).err
    assert "is not allowed" in shop("run", "shop:Again", "--run-id", "a b", code=2).err
    assert "a positive number of seconds" in shop("run", "shop:Again", "--deadline", "-1", code=2).err
    assert "expected an age" in shop("gc", "--older-than", "soon", code=2).err
    assert "only one of" in shop("graph", "shop:Order", "--dot", "--json", code=2).err


@pytest.mark.parametrize("command", ["show", "graph", "retry", "resume", "cancel"])
def test_an_unknown_run_is_exit_code_3_and_no_store_is_made(shop: Shop, command: str) -> None:
    refused = shop(command, "nobody", code=3)
    assert refused.err == "error: no run 'nobody' in this store; `stepwell ls` lists the runs there are\n"
    assert not (shop.folder / ".stepwell").exists()


def test_a_locked_store_is_exit_code_4(shop: Shop) -> None:
    shop("run", "shop:Again")
    holder = apsw.Connection(str(shop.folder / ".stepwell" / "stepwell.db"))
    holder.execute("BEGIN IMMEDIATE")
    url = "sqlite:///.stepwell/stepwell.db?busy_seconds=0.1"
    assert "another process has held the write lock" in shop("run", "shop:Again", "--store", url, code=4).err
    holder.execute("ROLLBACK")
    shop("run", "shop:Again", "--store", url)
    holder.close()


def test_a_store_that_fails_in_the_middle_keeps_the_run(shop: Shop) -> None:
    url = "sqlite:///orders.db?busy_seconds=0.1"
    running = shop.start("run", "shop:Slow", "--run-id", "slow", "--store", url)
    shop.until(lambda: "second" in shop.ledger())
    holder = apsw.Connection(str(shop.folder / "orders.db"))
    holder.set_busy_timeout(5_000)
    holder.execute("BEGIN IMMEDIATE")
    shop.touch("go")
    ended = shop.end(running, code=4)
    holder.execute("ROLLBACK")
    holder.close()
    assert "another process has held the write lock" in ended.err
    assert f"  stepwell resume slow --store '{url}'  goes on when the store can be used again\n" in ended.err
    assert shop("resume", "slow", "--store", url).json == "12"


def test_a_store_of_a_newer_version_is_exit_code_4(shop: Shop) -> None:
    shop("run", "shop:Again")
    connection = apsw.Connection(str(shop.folder / ".stepwell" / "stepwell.db"))
    connection.pragma("user_version", 999)
    connection.close()
    assert "newer Stepwell" in shop("ls", code=4).err


def test_what_is_no_store_is_exit_code_4(shop: Shop) -> None:
    shop.write("text.db", "this is no database, but it is long enough to look like one" * 20)
    assert "is not a SQLite database" in shop("ls", "--store", "sqlite:///text.db", code=4).err
    assert "error: " in shop("run", "shop:Again", "--store", "sqlite:////dev/null/x.db", code=4).err


def test_a_traceback_is_shown_when_debugging(shop: Shop) -> None:
    assert "Traceback" in shop("run", "nowhere:Order", code=2, STEPWELL_DEBUG="1").err


def test_a_reader_that_goes_away_is_no_error_of_ours(shop: Shop) -> None:
    shop("run", "shop:Again")
    listing = shop.start("show", shop("ls", "--json").json[0]["id"], "--json")
    assert listing.stdout is not None
    listing.stdout.close()
    listing.wait(20)
    assert listing.stderr is not None
    assert "Traceback" not in listing.stderr.read()


def test_a_name_that_the_terminal_cannot_show_ends_nothing(shop: Shop) -> None:
    ended = shop("run", "shop:Order", "-i", "order_id=7", "-i", "note=Ωλ😀", PYTHONIOENCODING="ascii")
    assert ended.json["shipped"]["note"] == "Ωλ😀"


def test_numbers_and_keys_that_make_no_sense_are_exit_code_2(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "bad", code=1)
    for grace in ("nan", "inf", "1e300"):
        assert "grace_seconds=" in shop("cancel", "bad", "--grace", grace, code=2).err
        assert "grace_seconds=" in shop("cancel", "bad", "--grace", grace, "--dry-run", code=2).err
    assert "idempotency_key=''" in shop("run", "shop:Again", "--key", "", code=2).err
    assert "deadline=nan" in shop("run", "shop:Again", "--deadline", "nan", code=2).err


@pytest.mark.parametrize(
    "words", ["ls", "ls --json", "show nobody", "why nobody", "logs nobody", "gc", "cancel nobody"]
)
def test_a_store_that_was_named_and_is_not_there_is_exit_code_4(shop: Shop, words: str) -> None:
    url = f"sqlite:///{shop.folder}/nope.db"
    assert "there is no such file" in shop(*words.split(), "--store", url, code=4).err
    assert "there is no such file" in shop(*words.split(), STEPWELL_STORE=url, code=4).err
    assert not (shop.folder / "nope.db").exists()


def test_the_store_of_a_fresh_folder_has_no_runs(shop: Shop) -> None:
    assert shop("ls").err == "no runs in sqlite:///.stepwell/stepwell.db\n"
    shop.write("stepwell.toml", 'store = "sqlite:///orders.db"\n')
    assert "orders.db" in shop("ls", code=4).err


BROKEN = """
import sys

class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")

class Odd(BaseException):
    pass

def mute():
    raise Mute

def leave():
    sys.exit(0)

def odd():
    raise Odd("not an Exception")
"""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("mute", "Mute: (no message: its __str__ raised RuntimeError)"),
        ("leave", "SystemExit: 0"),
        ("odd", "Odd: not an Exception"),
    ],
)
def test_whatever_code_of_the_user_raises_is_exit_code_2(shop: Shop, call: str, message: str) -> None:
    """In a function that builds, and in a module that is imported."""
    shop.write("broken.py", BROKEN)
    shop.write("importing.py", f"from broken import {call}\n{call}()\n")
    assert shop("run", f"broken:{call}", code=2).err.startswith(f"error: broken:{call} raised {message}\n")
    if call != "leave":  # that one is told what belongs below `if __name__ == "__main__":`
        assert shop("graph", "importing:Any", code=2).err.startswith(
            f"error: importing:Any: importing importing raised {message}\n"
        )
        assert f"importing importing raised {message}" in shop("work", "--once", "importing", code=2).err
