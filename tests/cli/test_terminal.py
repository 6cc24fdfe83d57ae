"""On a terminal: a bar that stays in its place while the run goes on, and goes away."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest
from rich.cells import cell_len

from stepwell.cli.show.bar import Bar
from stepwell.cli.show.progress import Lines, Tally
from stepwell.cli.show.screen import console
from tests.cli.conftest import COMMAND, Shop


def on_a_terminal(
    shop: Shop, *words: str, columns: int = 100, until: bytes = b"second", typed: bytes = b""
) -> tuple[int, str]:
    """Run a command with a terminal for all its streams; the file `go` is made when the bar shows the second node."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "40"}
    for name in ("NO_COLOR", "FORCE_COLOR"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=shop.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    seen = b""
    os.write(ours, typed)
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
            if until in seen:
                shop.touch("go")
    except OSError:  # the terminal is gone with the process
        pass
    finally:
        os.close(ours)
    return process.wait(30), seen.decode()


def test_a_terminal_sees_a_bar_then_a_tree_and_the_result(shop: Shop) -> None:
    code, seen = on_a_terminal(shop, "run", "shop:Slow", "--run-id", "slow")
    assert code == 0
    assert "━" in seen
    assert "1/3" in seen
    assert "\x1b[?25l" in seen, "the cursor is hidden while the bar is drawn"
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l"), "and shown again"
    end = seen[seen.rindex("\x1b[?25h") :]
    assert "COMPLETED" in end
    assert '"12"' in end
    assert "━" not in end


def test_what_bodies_print_under_the_bar_is_recorded_as_they_printed_it(shop: Shop) -> None:
    shop.write(
        "talk.py",
        "from stepwell import Workflow, step\n"
        "from shop import wait_for\n"
        "class Talk(Workflow):\n"
        "    @step\n"
        "    def second(self, ctx):\n"
        "        ctx.progress(450, 1_000, 'rows')\n"
        "        print('one')\n"
        "        wait_for('go')\n"
        "        print('two')\n",
    )
    code, seen = on_a_terminal(shop, "run", "talk:Talk", "--run-id", "talk", until=b"45 %, 450/1,000, rows")
    assert code == 0
    assert "one" in seen
    assert [line["message"] for line in shop("logs", "talk", "--json").json] == ["one", "two"]


def test_lines_on_a_terminal_are_coloured_by_level(shop: Shop) -> None:
    shop.touch("go")
    shop("run", "shop:Chatty", "--run-id", "chat")
    code, seen = on_a_terminal(shop, "logs", "chat")
    assert code == 0
    assert "\x1b[33mWARNING \x1b[0m" in seen
    assert "\x1b[31mcareful" not in seen, "what a body printed must not command the terminal"


def test_ls_on_a_terminal_is_coloured(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "again")
    code, seen = on_a_terminal(shop, "ls")
    assert code == 0
    assert "\x1b[32mCOMPLETED\x1b[0m" in seen


def test_elsewhere_there_is_a_line_after_one_second_then_after_two_four_and_so_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 0.0
    lines = Lines(now=lambda: now)
    for tenth in range(1_200):
        now = tenth / 10
        lines.update(Tally(9, 4, 2, 2, 1, ("charge", "ship")))
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "1.0 s: 4/9 done, 2 running, 2 waiting, 1 failed: charge, ship"
    assert [line.partition(":")[0] for line in told] == [
        "1.0 s",
        "3.0 s",
        "7.0 s",
        "15.0 s",
        "31.0 s",
        "1 m 01 s",
        "1 m 31 s",
    ]


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize(
    "tally",
    [
        Tally(1, 0, 1, 0, 0, ("only",)),
        Tally(20, 5, 4, 10, 1, ("check_fraud (attempt 2)", "check_inventory", "charge (again in 3.2 s)", "漢字" * 9)),
        Tally(2_000_000, 1_999_000, 8, 900_000, 100, tuple(f"a_node_with_a_long_name_{n}" for n in range(13))),
        Tally(3, 0, 1, 2, 0, ("x" * 300,)),
    ],
)
def test_the_bar_keeps_its_three_lines_at_every_width(
    columns: int, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    bar = Bar()
    bar.update(tally)
    drawn = console(err=True)
    with drawn.capture() as captured:
        drawn.print(bar._render())
    lines = captured.get().splitlines()
    assert len(lines) == 3
    assert all(cell_len(line) <= columns for line in lines)
    assert f"{tally.done:,}/{tally.total:,}" in lines[0]
    assert ("failed" in lines[1] or columns == 40) == (tally.failed > 0 or columns == 40)
    assert tally.at_work[0][:20] in lines[2]
    assert ("…" in lines[2]) == (len(lines[2]) < len(", ".join(tally.at_work)))
