"""What pages tell to type, found and typed.

A block of commands is typed by a test, or the line above it says that it is an illustration, and of what:

    *Illustration: a moment of a run, as a terminal shows it.*

`Terminal` types the blocks of one page into this process, and fails if it is closed before all of them were typed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stepwell.cli.app import app
from stepwell.cli.exits import report

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("*.md")])
OF_OTHERS = ("make", "pip", "ruff")
"""Programs that are not ours: `test_commands.py` looks whether the targets and extras exist."""


class Block(NamedTuple):
    page: str
    line: int
    text: str
    is_illustration: bool

    @property
    def commands(self) -> list[tuple[str, str]]:
        """What is typed, without comments, and what is shown below it."""
        text = re.sub(r"\\\n +", "", self.text)
        if not re.search(r"^\$ ", text, re.MULTILINE):  # a block of `sh` has no prompt
            text = re.sub(r"^(?=\S)", "$ ", text, flags=re.MULTILINE)
        parts = [part.partition("\n") for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]
        return [(re.sub(r" +#.*", "", typed), shown) for typed, _, shown in parts]

    @property
    def is_for_us(self) -> bool:
        """Whether there is something to type but what belongs to programs that are not ours."""
        return any(Path(_program(typed)).name not in OF_OTHERS for typed, _ in self.commands)


def _program(typed: str) -> str:
    return next(word for word in shlex.split(typed) if not re.match(r"\w+=", word))


def blocks(page: str) -> list[Block]:
    """The blocks of a page in which something is typed."""
    path = ROOT / "docs" / page
    return blocks_of(page, (path if path.exists() else ROOT / page).read_text(encoding="utf-8"))


def blocks_of(page: str, text: str) -> list[Block]:
    found = []
    for match in re.finditer(r"^ *```(\w*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE):
        is_prompt = match[1] in ("", "text") and re.search(r"^\$ ", match[2], re.MULTILINE)
        if match[1] in ("console", "sh", "bash", "shell") or is_prompt:
            above = text[: match.start()].rstrip().rpartition("\n")[2]
            marked = re.fullmatch(r"\*Illustration: .+\*", above) is not None
            found.append(Block(page, text[: match.start(2)].count("\n"), match[2], marked))
    return found


def to_type(page: str) -> list[Block]:
    return [block for block in blocks(page) if block.is_for_us and not block.is_illustration]


def without_times(text: str) -> str:
    """What differs each time: moments, how long something took and its bar, ratios, the width of columns, and
    which branch of a tree is drawn last: the one that took longest."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?|\b\d\d:\d\d:\d\d\b", "W", text)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s|m)\b", "T", re.sub(r"\d+\.\d\dx", "Rx", text))
    return re.sub(r"[ ─━╍·╺├└│]+", " ", text)


class Terminal:
    """Types the blocks of a page in a folder, those of `stepwell` in this process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys
        self._left: dict[Block, set[int]] = {}
        """By block: the numbers of the commands that nobody has typed yet."""
        self.instead: dict[str, Callable[[str], object]] = {}
        """By the beginning of a command: what is done instead of what this class knows."""
        self.told = ""
        """What the last command printed."""
        self.exact = False
        """Whether the page shows all that is written to stdout, and how it ended: `exit code 2`."""

    def open(self, page: str) -> list[Block]:
        self._left = {block: set(range(len(block.commands))) for block in to_type(page)}
        return list(self._left)

    def close(self) -> None:
        for block, left in self._left.items():
            assert not left, f"nobody has typed {block.page}:{block.line}: {block.commands[min(left)][0]}"

    def type(
        self,
        block: Block,
        before: Mapping[int, Callable[[], object]] | None = None,
        *,
        replace: Mapping[str, str] | None = None,
        some: slice = slice(None),
    ) -> None:
        """Type the commands of a block, or some of them; `before` is called before the command with that number."""
        for number, (typed, shown) in list(enumerate(block.commands))[some]:
            (before or {}).get(number, lambda: None)()
            for old, new in (replace or {}).items():
                typed, shown = typed.replace(old, new), shown.replace(old, new)
            self._type(typed, shown)
            self._left.get(block, set()).discard(number)

    def _type(self, typed: str, shown: str) -> None:
        first, follows, rest = typed.partition(" && ")
        if follows:
            self._type(first, "")
            return self._type(rest, shown)
        typed = typed.partition(" | ")[0]  # what follows is not ours
        typed, _, file = typed.partition(" > ")
        for beginning, act in self.instead.items():
            if typed.startswith(beginning):
                self.told = str(act(typed))
                return self._compare(typed, shown)
        words = shlex.split(typed)
        if words[0] == "stepwell":
            self._type_ours(words[1:], typed, shown, file)
        elif words[0] == "cd":
            self._monkeypatch.chdir(words[1])
            self._monkeypatch.syspath_prepend(os.getcwd())
        elif words[0] == "python":
            done = subprocess.run(
                [sys.executable, *words[1:]], capture_output=True, text=True, timeout=100, check=False
            )
            assert done.returncode == 0, done.stderr
            self.told = done.stdout
            self._compare(typed, shown)
        else:
            assert Path(_program(typed)).name in OF_OTHERS, f"{typed}: who types it?"
        return None

    def _type_ours(self, words: list[str], typed: str, shown: str, file: str) -> None:
        with pytest.raises(SystemExit) as ended:
            _main(words)
        printed = self._capsys.readouterr()
        if file:
            Path(file).write_text(printed.out, encoding="utf-8")
        self.told = printed.out + printed.err
        if self.exact:
            expected, _, code = shown.partition("exit code ")
            assert (ended.value.code or 0) == int(code or 0), (typed, printed)
            pattern = ".*".join(map(re.escape, expected.split("…")))
            assert file or re.fullmatch(pattern, printed.out), f"{typed}\n{printed.out}\ninstead of\n{expected}"
            return
        if words[:1] != ["diff"]:  # whose exit code says whether there is a difference
            assert bool(ended.value.code) == ("error: " in shown), (typed, printed)
        self._compare(typed, shown)

    def _compare(self, typed: str, shown: str) -> None:
        told = without_times(self.told)
        for line in shown.splitlines():
            for piece in line.split("…"):
                assert without_times(piece).strip() in told, f"{typed} does not print:\n{line}\nbut:\n{self.told}"


def _main(words: list[str]) -> None:
    """What the `stepwell` of a shell does, but for what changes the whole process."""
    try:
        app(words, prog_name="stepwell")
    except Exception as error:
        sys.exit(report(error))


def forget(*modules: str) -> None:
    """Have them imported anew: those of another folder are not meant."""
    for name in [name for name in sys.modules.copy() if name.partition(".")[0] in modules]:
        del sys.modules[name]


def start(*words: str, **options: Any) -> subprocess.Popen[str]:
    """A `stepwell` of its own process."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([sys.executable, "-m", "stepwell", *words], env=environment, **streams, **options)
