"""Tab: asked as the shells ask, through the variables of their protocols, and by a real bash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shop

COLON = "shop:failed"


def bash(shop: Shop, *words: str, **environment: str) -> list[str]:
    """What is offered for the last of these words, cut into words as bash does it."""
    asked = {"_STEPWELL_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    ended = shop(**asked, **environment)
    assert ended.err == ""
    return ended.out.split()


def zsh(shop: Shop, line: str) -> str:
    return shop(_STEPWELL_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line).out


def test_runs_are_offered_newest_first(old_shop: Shop) -> None:
    newest, *others = bash(old_shop, "stepwell", "show", "")
    assert newest == old_shop("ls", "--json").json[0]["id"]
    assert others == ["fan-100", COLON, "fan-12", "again"]
    for command in ("retry", "resume", "cancel", "audit"):
        assert bash(old_shop, "stepwell", command, "fan") == ["fan-100", "fan-12"]


def test_runs_come_with_their_status_and_workflow(old_shop: Shop) -> None:
    offered = zsh(old_shop, "stepwell show fan")
    assert offered.index('"fan-100":"FAILED fan"') < offered.index('"fan-12":"COMPLETED fan"')
    asked = {"_STEPWELL_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert old_shop(**asked, _TYPER_COMPLETE_ARGS="stepwell show ag").out == "again\tCOMPLETED Again\n"


def test_bash_cuts_words_at_colons(old_shop: Shop) -> None:
    assert bash(old_shop, "stepwell", "show", "shop", ":", "fa") == ["failed"]
    assert bash(old_shop, "stepwell", "show", "shop", ":") == ["failed"]
    assert bash(old_shop, "stepwell", "run", "sh") == ["shop:Again", "shop:Order"]
    assert bash(old_shop, "stepwell", "run", "shop", ":", "O") == ["Order"]


def test_targets_statuses_and_workflows_are_offered(old_shop: Shop) -> None:
    assert bash(old_shop, "stepwell", "graph", "shop", ":") == ["Again", "Order", "failed"]
    assert bash(old_shop, "stepwell", "ls", "--status", "f") == ["failed"]
    assert bash(old_shop, "stepwell", "ls", "--status", "C") == ["CANCELLING", "COMPLETED", "CANCELLED"]
    assert bash(old_shop, "stepwell", "ls", "--workflow", "") == ["Again", "fan", "Order"]
    assert "--traceback" in bash(old_shop, "stepwell", "show", "--")


def test_the_store_that_is_named_is_the_one_that_is_asked(old_shop: Shop, shop: Shop) -> None:
    url = f"sqlite:///{old_shop.folder}/.stepwell/stepwell.db"
    assert bash(shop, "stepwell", "show", "ag") == []
    assert bash(shop, "stepwell", "show", "ag", STEPWELL_STORE=url) == ["again"]
    # Bash cuts the address, too.
    scheme, rest = url.split(":", 1)
    assert bash(shop, "stepwell", "show", "--store", scheme, ":", rest, "ag") == ["again"]
    assert bash(shop, "stepwell", "--store", scheme, ":", rest, "show", "ag") == ["again"]


def test_without_a_store_nothing_is_offered_and_none_is_made(shop: Shop) -> None:
    assert bash(shop, "stepwell", "show", "") == []
    assert bash(shop, "stepwell", "run", "") == []
    assert zsh(shop, "stepwell show ") == "_files\n"
    assert not (shop.folder / ".stepwell").exists()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("stepwell.toml", "store = 7\nrubbish"),
        ("stepwell.toml", 'store = "nonsense://"'),
        (".stepwell/stepwell.db", "no"),
    ],
)
def test_what_is_broken_is_not_told_between_two_keys(shop: Shop, file: str, text: str) -> None:
    (shop.folder / ".stepwell").mkdir()
    shop.write(file, text)
    assert bash(shop, "stepwell", "show", "") == []


def test_code_is_not_imported(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "again")
    shop.write("shop.py", "raise SystemExit('imported')")
    assert bash(shop, "stepwell", "show", "") == ["again"]
    assert bash(shop, "stepwell", "run", "") == ["shop:Again"]


NODES = """
import typer
from stepwell.cli import completion
app = typer.Typer()
@app.callback()
def main(store: str = typer.Option(None)): ...
@app.command()
def reattempt(run: str, node: str = typer.Argument(autocompletion=completion.nodes), store: str = typer.Option(None)): ...
with completion.shell_completion():
    app(prog_name="stepwell")
"""


def nodes(shop: Shop, shell: str, *words: str) -> str:
    """What is offered for a node by a command that takes a run and a node."""
    shop.write("nodes.py", NODES)
    asked = {"_STEPWELL_COMPLETE": f"complete_{shell}", "COMP_WORDS": "\n".join(words)}
    asked |= {"COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": " ".join(words)}
    command = [sys.executable, "nodes.py"]
    done = subprocess.run(
        command, cwd=shop.folder, env=shop._environment(asked), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def test_nodes_of_the_run_before_are_offered(old_shop: Shop) -> None:
    assert nodes(old_shop, "bash", "stepwell", "reattempt", "fan-12", "part_1").split() == [
        "part_1",
        "part_10",
        "part_11",
    ]
    assert '"validate":"FAILED"' in nodes(old_shop, "zsh", "stepwell", "reattempt", COLON, "")
    assert nodes(old_shop, "bash", "stepwell", "reattempt", "nothing", "").split() == []


def test_names_that_a_shell_would_run_are_not_offered(shop: Shop) -> None:
    shop.write(
        "evil.py",
        "from stepwell import Builder\n"
        "def nothing(): ...\n"
        "def build():\n"
        "    b = Builder('$(touch pwned)`touch pwned`')\n"
        "    evil = '$(touch pwned)', '`touch pwned`', \"';touch pwned;'\", 'a b', '\\\\'\n"
        "    for name in (*evil, 'good-1', 'née'):\n"
        "        b.node(name, job='evil:nothing')\n"
        "    return b\n",
    )
    shop("run", "evil:build", "--run-id", "evil")
    assert nodes(shop, "bash", "stepwell", "reattempt", "evil", "").split() == ["good-1", "née"]
    assert '"evil":"COMPLETED  touch pwned touch pwned "' in zsh(shop, "stepwell show ")
    assert bash(shop, "stepwell", "ls", "--workflow", "") == []


def test_a_real_bash_completes(old_shop: Shop, tmp_path: Path) -> None:
    command = tmp_path / "stepwell"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m stepwell "$@"\n')
    command.chmod(0o755)
    script = old_shop(_STEPWELL_COMPLETE="source_bash").out
    (tmp_path / "script").write_text(script)
    asked = (
        f"PATH={tmp_path}:$PATH; . {tmp_path}/script; COMP_WORDS=(stepwell show shop : f); COMP_CWORD=4; "
        f"$(complete -p stepwell | sed 's/.*-F \\([^ ]*\\) .*/\\1/') stepwell; echo \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", asked],
        cwd=old_shop.folder,
        env=old_shop._environment({}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("failed\n", "")


def test_completing_loads_nothing_heavy(old_shop: Shop) -> None:
    asked = {"_STEPWELL_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "stepwell show "}
    command = [sys.executable, "-X", "importtime", "-m", "stepwell"]
    told = subprocess.run(
        command, cwd=old_shop.folder, env=old_shop._environment(asked), capture_output=True, text=True, check=True
    )
    assert "again" in told.stdout
    loaded = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    assert {"rich", "typer.rich_utils", "asyncio", "stepwell.engine", "stepwell.define"}.isdisjoint(loaded)


def test_completion_can_be_shown_and_installed(shop: Shop, tmp_path: Path) -> None:
    def told(option: str) -> str:
        return subprocess.run(
            [
                "bash",
                "-c",
                f"{sys.executable} -m stepwell {option}; true",
            ],  # the shell is found by looking at the parent
            env=shop._environment({"HOME": str(tmp_path)}),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    script = told("--show-completion")
    assert "_STEPWELL_COMPLETE=complete_bash" in script
    assert "bash completion installed" in told("--install-completion")
    installed = (tmp_path / ".bash_completions" / "stepwell.sh").read_text()
    assert installed.strip() == script.strip()
    assert "stepwell.sh" in (tmp_path / ".bashrc").read_text()
