"""What bodies log and print is stored with their attempt, wherever they run; and it goes where it went before."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from stepwell import Builder, Engine, Retry, Workflow, step
from stepwell.base import masking
from stepwell.core.model import Append
from stepwell.engine.bodies.capture import CapturedStream
from stepwell.engine.bodies.log_lines import LINES_UP_TO
from stepwell.engine.worker.runner import LINES_SECONDS
from stepwell.errors import StoreError
from stepwell.stores import open_store
from tests.engine import speakers
from tests.engine.speakers import TOKEN
from tests.engine.waiting import eventually

EVERYWHERE = pytest.mark.parametrize("isolation", ["thread", "process"])


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_values", set())
    monkeypatch.setattr(masking, "_pattern", None)
    monkeypatch.setattr(masking, "_longest", 0)


def one(job: Any, *, isolation: str = "thread", **options: Any) -> Builder:
    w = Builder("one")
    w.node("body", job=job, **({"isolation": "process"} if isolation == "process" else {}), **options)
    return w


@EVERYWHERE
def test_prints_and_logging_are_kept_with_their_attempt(engine: Engine, isolation: str) -> None:
    before = time.time()
    run = engine.run(one(speakers.speak, isolation=isolation, args={"word": "a"}))
    assert [line[1:] for line in run.logs()] == [
        ("body", 1, "INFO", "stdout", "printed a"),
        ("body", 1, "INFO", "stderr", "complaint a"),
        ("body", 1, "WARNING", "shop.orders", "logged a"),
        ("body", 1, "INFO", "stdout", "no end of line"),
    ]
    assert all(before - 1 <= line.time <= time.time() + 1 for line in run.logs())


def test_what_is_printed_goes_where_it_went_before(
    engine: Engine, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    engine.run(one(speakers.speak, args={"word": "b"}))
    out, err = capsys.readouterr()
    assert out == "printed b\nno end of line"
    assert "complaint b\n" in err
    assert [record.getMessage() for record in caplog.records if record.name == "shop.orders"] == ["logged b"]


def test_bodies_that_take_turns_on_the_loop_are_told_apart(engine: Engine) -> None:
    w = Builder("turns")
    for word in "abc":
        w.node(word, job=speakers.take_turns, args={"word": word, "times": 20}, depends_on=None)
    run = engine.run(w)
    for word in "abc":
        kept = [line.message for line in run.logs(word)]
        assert kept == [
            text
            for number in range(20)
            for text in (
                f"{word} {number}",
                f"{word} logged {number}",
                f"{word} in a thread {number}",
                f"{word} in a task {number}",
            )
        ]
    assert len(run.logs()) == 3 * 80


def test_bodies_in_threads_are_told_apart(engine: Engine) -> None:
    w = Builder("many")
    parts = w.fan_out(range(40), job=speakers.speak, name=lambda i: f"n{i}", args=lambda i: {"word": str(i)})
    w.node("end", job=speakers.chatter, args={"lines": 1}, depends_on=parts)
    run = engine.run(w)
    for number in range(40):
        assert [line.message.split()[-1] for line in run.logs(f"n{number}")] == [str(number)] * 3 + ["line"]


def test_an_async_function_that_was_called_in_a_thread_is_captured_too(engine: Engine) -> None:
    async def body() -> None:
        print("on the loop")

    class Odd(Workflow):
        @step
        def returns_a_coroutine(self) -> Any:
            print("in a thread")
            return body()

    assert [line.message for line in engine.run(Odd()).logs()] == ["in a thread", "on the loop"]


def test_every_attempt_has_its_own_lines(engine: Engine) -> None:
    w = Builder("retried")
    w.node("fails", job=speakers.fail_loudly, retry=Retry(2, base_delay=0.001))
    run = engine.run(w, check=False)
    first, second = run.logs("fails", attempt=1), run.logs("fails", attempt=2)
    assert (len(first), len(second)) == (1, 1)
    assert (first[0].attempt, second[0].attempt) == (1, 2)
    assert first[0].message.startswith("it is\nTraceback (most recent call last):")
    assert first[0].message.endswith("ValueError: broken")
    assert run.logs(attempt=3) == []
    with pytest.raises(KeyError, match="no node 'nobody'"):
        run.logs("nobody")


@EVERYWHERE
def test_lines_are_stored_while_the_body_runs(engine: Engine, tmp_path: Path, isolation: str) -> None:
    go = tmp_path / "go"
    run = engine.start(one(speakers.speak_and_wait, isolation=isolation, args={"go": str(go)}))
    eventually(lambda: [line.message for line in run.logs()] == ["begun"], seconds=30)
    eventually(lambda: run.node("body").progress, seconds=30)
    progress = run.node("body").progress
    assert progress is not None
    assert (progress.done, progress.total, progress.message, progress.fraction) == (1, 4, "quarters", 0.25)
    assert not run.status.terminal
    go.touch()
    run.wait(30)
    assert [line.message for line in run.logs()] == ["begun", "ended"]
    ended = run.node("body").progress
    assert ended is not None
    assert ended == run.nodes()[0].progress == (4, 4, None)


def test_the_last_words_of_a_process_that_crashes_are_kept(engine: Engine) -> None:
    run = engine.run(one(speakers.last_words, isolation="process"), check=False)
    assert run.status == "FAILED"
    assert [line.message for line in run.logs()] == ["before the crash"]


@EVERYWHERE
def test_secrets_are_masked_in_lines_and_errors(engine: Engine, isolation: str) -> None:
    run = engine.run(one(speakers.tell_secrets, isolation=isolation), check=False)
    assert [line.message for line in run.logs()] == ["printed ***", "logged ***"]
    error = run.node("body").error
    assert error is not None
    assert error.message == "raised ***"
    assert "KeyError: '***'" in (error.traceback or "")
    assert TOKEN not in (error.traceback or "")


@EVERYWHERE
def test_secrets_that_the_engines_process_knows_are_masked_everywhere(engine: Engine, isolation: str) -> None:
    masking.secret("known to the parent")
    args = {"value": "known to the parent"}
    run = engine.run(one(speakers.tell_a_secret_of_another, isolation=isolation, args=args), check=False)
    assert [line.message for line in run.logs()] == ["printed ***"]
    assert str(run.node("body").error) == "ValueError: ***"


def test_nothing_secret_is_in_the_file(sqlite_url: str) -> None:
    with Engine(sqlite_url) as engine:
        engine.run(one(speakers.tell_secrets), check=False)
    folder = Path(sqlite_url.removeprefix("sqlite:///")).parent
    assert all(TOKEN.encode() not in file.read_bytes() for file in folder.iterdir() if file.is_file())


@EVERYWHERE
@pytest.mark.parametrize("job", [speakers.chatter, speakers.chatter_by_logging])
def test_a_body_that_says_too_much_is_cut_short_and_not_slowed_down(
    sqlite_engine: Engine, isolation: str, job: Any
) -> None:
    logging.getLogger("shop.orders").propagate = False  # pytest would keep 100,000 records
    try:
        sqlite_engine.run(one(job, isolation=isolation, args={"lines": 1}))
        before = psutil.Process().memory_info().rss
        run = sqlite_engine.run(one(job, isolation=isolation, args={"lines": 100_000}), wait=60)
        grown = psutil.Process().memory_info().rss - before
    finally:
        logging.getLogger("shop.orders").propagate = True
    lines = run.logs()
    assert len(lines) == LINES_UP_TO + 1
    assert lines[-2].message == f"line {LINES_UP_TO - 1}"
    assert lines[-1].message.startswith(f"{100_000 - LINES_UP_TO:,} more lines were not kept")
    assert grown < 30_000_000


def test_a_late_attempt_cannot_say_anything(engine: Engine, tmp_path: Path) -> None:
    """Its time is up and it is fenced; what its body says then is not recorded anywhere."""
    go = tmp_path / "go"
    w = one(speakers.speak_and_wait, args={"go": str(go)}, timeout=0.05)
    run = engine.run(w, check=False)
    assert run.node("body").attempts[0].status == "TIMED_OUT"
    go.touch()
    eventually(lambda: engine.parts.work.runner is not None and engine.parts.work.runner.runaways == 0)
    assert [line.message for line in run.logs()] == ["begun"]


def test_lines_wait_for_a_store_in_trouble_with_the_settlement(tmp_path: Path) -> None:
    store = open_store("memory://")
    taken, broken = store.commit, threading.Event()

    def commit(batch: Any) -> Any:
        if broken.is_set():
            raise StoreError("full")
        return taken(batch)

    store.commit = commit  # type: ignore[method-assign]
    go = tmp_path / "go"
    with Engine(store) as engine:
        run = engine.start(one(speakers.speak_and_wait, args={"go": str(go)}))
        eventually(run.logs)
        broken.set()
        go.touch()
        eventually(lambda: engine.parts.work.runner is not None and engine.parts.work.runner._commits.trouble)
        assert [line.message for line in run.logs()] == ["begun"]
        broken.clear()
        eventually(lambda: run.status == "COMPLETED", seconds=20)
        assert [line.message for line in run.logs()] == ["begun", "ended"]


def test_two_engines_in_one_process_do_not_capture_each_other(tmp_path: Path) -> None:
    with Engine(f"sqlite:///{tmp_path}/a.db") as a, Engine(f"sqlite:///{tmp_path}/b.db") as b:
        runs = {
            word: engine.start(one(speakers.take_turns, args={"word": word, "times": 30}))
            for word, engine in (("a", a), ("b", b))
        }
        for word, run in runs.items():
            run.wait(30)
            assert len(run.logs()) == 120
            assert {line.message.split()[0] for line in run.logs()} == {word}
        a.close()
        later = b.run(one(speakers.speak, args={"word": "later"}))
        assert len(later.logs()) == 4


def test_a_body_that_runs_an_engine_has_only_its_own_output(tmp_path: Path, open_sqlite: Any) -> None:
    def outer() -> list[str]:
        print("outer begins")
        with Engine(f"sqlite:///{tmp_path}/inner.db") as inner:
            messages = [line.message for line in inner.run(one(speakers.chatter, args={"lines": 2})).logs()]
        print("outer ends")
        return messages

    class Outer(Workflow):
        @step
        def body(self) -> list[str]:
            return outer()

    run = open_sqlite().run(Outer())
    assert run.output("body") == ["line 0", "line 1"]
    assert [line.message for line in run.logs()] == ["outer begins", "outer ends"]


def test_however_often_progress_is_called_it_is_seldom_stored() -> None:
    store = open_store("memory://")
    taken, marks = store.commit, [0]

    def commit(batch: Any) -> Any:
        marks[0] += sum(isinstance(op, Append) for op in batch)
        return taken(batch)

    store.commit = commit  # type: ignore[method-assign]
    with Engine(store) as engine:
        run = engine.run(one(speakers.count, args={"times": 100_000}))
        assert run.node("body").progress == (100_000, 100_000, None)
        assert marks[0] <= 2 + run.output("body") / LINES_SECONDS


def test_output_outside_bodies_is_not_captured(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    run = engine.run(one(speakers.chatter, args={"lines": 1}))
    print("outside")
    logging.getLogger("shop").warning("outside")
    engine.on("node", lambda event: print("a listener speaks"))
    later = engine.run(one(speakers.chatter, args={"lines": 1}))
    assert len(run.logs()) == len(later.logs()) == 1
    assert "outside\n" in capsys.readouterr().out


def test_the_streams_and_loggers_are_as_before_when_the_last_engine_is_closed(tmp_path: Path) -> None:
    before = (sys.stdout, sys.stderr, logging.Logger.callHandlers, list(logging.getLogger().handlers))
    with Engine("memory://") as a:
        a.run(one(speakers.speak))
        assert type(sys.stdout) is CapturedStream
        with Engine("memory://") as b:
            b.run(one(speakers.speak))
        assert type(sys.stdout) is CapturedStream
    assert (sys.stdout, sys.stderr, logging.Logger.callHandlers, list(logging.getLogger().handlers)) == before
    with Engine("memory://", runner=None):
        assert sys.stdout is before[0]


def test_a_stream_that_somebody_else_put_there_is_captured_and_given_back(engine: Engine) -> None:
    engine.run(one(speakers.chatter, args={"lines": 1}))
    other = io.StringIO()
    with contextlib.redirect_stdout(other):
        run = engine.run(one(speakers.chatter, args={"lines": 2}))
        assert [line.message for line in run.logs()] == ["line 0", "line 1"]
        engine.close()
        assert sys.stdout is other
    assert other.getvalue() == "line 0\nline 1\n"


def test_a_stream_of_ours_that_was_left_below_another_is_silent_and_works(tmp_path: Path) -> None:
    with Engine(f"sqlite:///{tmp_path}/a.db") as engine:
        engine.run(one(speakers.chatter, args={"lines": 1}))
        mine = sys.stdout
        real = mine._stream  # type: ignore[attr-defined]
        sys.stdout = wrapper = io.TextIOWrapper(io.BytesIO(), write_through=True)
        engine.close()
    assert sys.stdout is wrapper
    sys.stdout = mine  # whoever replaced it puts back what it found
    try:
        with Engine(f"sqlite:///{tmp_path}/a.db") as again:
            assert [line.message for line in again.run(one(speakers.chatter, args={"lines": 1})).logs()] == ["line 0"]
        assert sys.stdout is real
    finally:
        sys.stdout = real


def test_a_live_display_is_recorded_as_it_was_printed(engine: Engine) -> None:
    from rich.console import Console
    from rich.live import Live

    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=60)
    with Live("a bar", console=console, refresh_per_second=20):
        run = engine.run(one(speakers.chatter, args={"lines": 3}))
    assert [line.message for line in run.logs()] == ["line 0", "line 1", "line 2"]
    assert "line 2" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn.getvalue())


def test_python_s_own_ways_of_logging_stay_as_they_were(tmp_path: Path) -> None:
    """No handlers: warnings are printed by the last resort. basicConfig works after an engine was opened, in bodies too."""
    script = tmp_path / "script.py"
    script.write_text(
        "import logging, sys\n"
        "from stepwell import Builder, Engine\n"
        "log = logging.getLogger('shop')\n"
        "def body():\n"
        "    log.warning('last resort')\n"
        "    logging.basicConfig(format='mine: %(message)s', level='INFO', stream=sys.stdout)\n"
        "    log.info('configured')\n"
        "def main():\n"
        "    w = Builder('one')\n"
        "    w.node('body', job=body)\n"
        "    with Engine('memory://') as engine:\n"
        "        for line in engine.run(w).logs():\n"
        "            print(line.level, line.logger, line.message)\n"
        "if __name__ == '__main__':\n"
        "    main()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "last resort\n"
    assert done.stdout.splitlines() == ["mine: configured", "WARNING shop last resort", "INFO shop configured"]


def test_a_line_is_printed_as_a_line(engine: Engine) -> None:
    class Says(Workflow):
        @step
        def load(self) -> None:
            print("loading")

    (line,) = engine.run(Says()).logs()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  load #1  INFO  stdout: loading", str(line))
