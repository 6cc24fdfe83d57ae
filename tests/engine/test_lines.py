"""What is kept of what bodies say: lines, caps, marks, turns. No threads, clocks or stores."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import InputError
from stepwell.base.ids import AttemptId
from stepwell.core.model import MARK, Append
from stepwell.core.model.lines import LogLine, Progress
from stepwell.engine.bodies import log_lines as module
from stepwell.engine.bodies.held import Held
from stepwell.engine.bodies.log_lines import (
    LINE_UP_TO,
    LINES_UP_TO,
    NAME_UP_TO,
    TAKEN_UP_TO,
    UNFINISHED_UP_TO,
    AttemptOutput,
    UnstoredLines,
)
from tests.engine.schedulers import facts


def held(name: str = "c.0") -> Held:
    return Held(AttemptId(name), facts(), 0, 1, 0, ())


def texts(ops: list[Append]) -> list[str]:
    return [LogLine.of(op.data).text for op in ops if op.kind == "log"]


def made() -> tuple[UnstoredLines, AttemptOutput]:
    lines = UnstoredLines()
    output = lines.of(held())
    assert output is not None
    return lines, output


def test_pieces_become_lines_and_streams_do_not_mix() -> None:
    _, output = made()
    for stream, text in [("stdout", "one"), ("stderr", "uh"), ("stdout", " more\ntwo\nthr"), ("stderr", "-oh\n")]:
        output.write(1, stream, text)
    assert texts(output.take(10)) == ["one more", "two", "uh-oh"]
    assert texts(output.rest()) == ["thr"]


def test_the_name_of_a_logger_is_kept_short_and_can_be_stored() -> None:
    _, output = made()
    output.log(7, "x" * 1_000, 40, "y" * 1_000, "one")
    output.log(8, "ERROR", 40, "half \ud800 pair", "two")
    assert [LogLine.of(op.data) for op in output.take(9)] == [
        (7, "x" * NAME_UP_TO, 40, "y" * NAME_UP_TO, "one"),
        (8, "ERROR", 40, "half \\ud800 pair", "two"),
    ]


def test_a_line_holds_its_logger_time_and_level() -> None:
    _, output = made()
    output.log(7, "ERROR", 40, "shop", "broken")
    output.write(8, "stderr", "printed\n")
    assert [LogLine.of(op.data) for op in output.take(9)] == [
        (7, "ERROR", 40, "shop", "broken"),
        (8, "INFO", 20, "stderr", "printed"),
    ]


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        (["\r 1 %", "\r50 %", "\r99 %\n"], ["99 %"]),
        (["windows\r\n", "split\r", "\n"], ["windows", "split"]),
        (["a\rb\rc"], ["c"]),
        (["\n\n"], ["", ""]),
        (["half a pair \ud800\n"], ["half a pair \\ud800"]),
        (["nul \0 and ünïcode\n"], ["nul \0 and ünïcode"]),
    ],
)
def test_a_line_is_what_a_terminal_would_show(pieces: list[str], kept: list[str]) -> None:
    _, output = made()
    for piece in pieces:
        output.write(1, "stdout", piece)
    assert texts(output.rest()) == kept


def test_a_long_line_keeps_its_beginning_and_its_end() -> None:
    _, output = made()
    output.log(1, "INFO", 20, "x", "begin" + "." * 100_000 + "end")
    (text,) = texts(output.rest())
    assert text.startswith("begin.")
    assert text.endswith(".end")
    assert "characters left out" in text
    assert len(text) < LINE_UP_TO + 100


def test_a_line_without_end_does_not_grow() -> None:
    _, output = made()
    for _ in range(50_000):
        output.write(1, "stdout", "xxxxxxxxxx")
    assert len(output._unfinished["stdout"]) == UNFINISHED_UP_TO
    assert len(texts(output.rest())) == 1


def test_a_secret_that_lost_its_end_to_the_cap_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "mask", lambda text: text.replace("topsecretvalue", "***"))
    monkeypatch.setattr(module, "longest", lambda: len("topsecretvalue"))
    _, output = made()
    output.write(1, "stdout", "." * (UNFINISHED_UP_TO - 9))
    output.write(1, "stdout", "topsecretvalue and more\n")
    output.write(1, "stdout", "." * (UNFINISHED_UP_TO - 9))
    output.write(1, "stdout", "topsecretvalue and more")
    output.write(1, "stdout", "!\n")
    shown = texts(output.rest())
    assert len(shown) == 2
    assert not [text for text in shown if "topsec" in text]


def test_of_too_many_lines_the_first_are_kept_and_the_others_counted() -> None:
    _, output = made()
    for number in range(LINES_UP_TO + 5):
        output.write(number, "stdout", f"{number}\n")
    output.log(9_999, "INFO", 20, "x", "another")
    output.drop(10_000)
    kept = output.rest()
    assert len(kept) == LINES_UP_TO + 1
    assert texts(kept)[-2:] == [
        str(LINES_UP_TO - 1),
        "7 more lines were not kept: of an attempt 1,000 lines and 1,024 KiB are",
    ]
    assert LogLine.of(kept[-1].data)[:4] == (10_000, "WARNING", 30, "stepwell")
    assert [op.index for op in kept] == list(range(LINES_UP_TO + 1))


def test_of_too_many_bytes_the_first_are_kept() -> None:
    _, output = made()
    for _ in range(500):
        output.log(1, "INFO", 20, "x", "y" * LINE_UP_TO)
    kept = output.rest()
    assert 1024 * 1024 <= sum(len(op.data) for op in kept) <= 1024 * 1024 + 2 * LINE_UP_TO
    assert "more lines were not kept" in texts(kept)[-1]


def test_what_all_attempts_together_keep_waiting_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_UP_TO", 10_000)
    lines = UnstoredLines()
    attempts = [held(f"c.{number}") for number in range(10)]
    for each in attempts:
        output = lines.of(each)
        assert output is not None
        for _ in range(10):
            output.log(1, "INFO", 20, "x", "y" * 400)
    assert lines._bytes <= 10_000
    ends = [each.printed.rest() for each in attempts if each.printed is not None]
    assert sum(len(ops) for ops in ends) < 40
    assert "10 more lines were not kept" in texts(ends[-1])[-1]
    assert lines._bytes == 0


def test_numbers_go_on_from_take_to_take() -> None:
    lines, output = made()
    for number in range(3):
        output.log(1, "INFO", 20, "x", str(number))
    first = output.take(2)
    output.log(1, "INFO", 20, "x", "3")
    assert [(op.index, LogLine.of(op.data).text) for op in (*first, *output.rest())] == [
        (0, "0"),
        (1, "1"),
        (2, "2"),
        (3, "3"),
    ]
    assert lines._bytes == 0


def test_after_the_end_nothing_is_kept() -> None:
    lines, output = made()
    output.rest()
    output.write(1, "stdout", "late\nlate")
    output.log(1, "INFO", 20, "x", "late")
    output.progress(1)
    output.relay("line", b"late")
    output.drop(1)
    lines.mark_due()
    assert lines.due() == []


def test_an_attempt_that_is_over_gets_no_voice_any_more() -> None:
    lines, late = UnstoredLines(), held()
    late.over = True
    assert lines.of(late) is None


def test_of_progress_only_the_latest_is_given() -> None:
    lines, output = made()
    for number in range(100):
        output.progress(number, 100, "rows")
    lines.mark_due()
    (op,) = lines.due()
    assert (op.index, op.kind, Progress.of(op.data)) == (MARK, "progress", (99, 100, "rows"))
    assert not lines.is_due
    lines.mark_due()
    assert lines.due() == []
    output.progress(100, 100)
    assert [Progress.of(op.data) for op in output.rest()] == [(100, 100, None)]


class Odd:
    def __index__(self) -> int:
        return 3

    def __float__(self) -> float:
        return 3.0


@pytest.mark.parametrize(("done", "total"), [(float("nan"), None), (1, float("inf")), ("7", None), (None, 3), (1, "x")])
def test_progress_must_be_numbers(done: Any, total: Any) -> None:
    _, output = made()
    with pytest.raises(InputError, match="finite numbers"):
        output.progress(done, total)


def test_progress_takes_the_numbers_of_any_library() -> None:
    _, output = made()
    output.progress(Odd(), 4.5)  # type: ignore[arg-type]
    assert [Progress.of(op.data) for op in output.rest()] == [(3, 4.5, None)]


@pytest.mark.parametrize(
    ("progress", "fraction"),
    [
        (Progress(1, 4), 0.25),
        (Progress(1), None),
        (Progress(1, 0), None),
        (Progress(9, 4), 1.0),
        (Progress(-1, 4), 0.0),
    ],
)
def test_a_fraction_is_between_nothing_and_all(progress: Progress, fraction: float | None) -> None:
    assert progress.fraction == fraction


def test_whoever_waits_wakes_the_pulse_once_and_is_taken_when_ripe() -> None:
    woken: list[int] = []
    lines = UnstoredLines(wake=lambda: woken.append(1))
    output = lines.of(held())
    assert output is not None
    for _ in range(3):
        output.log(1, "INFO", 20, "x", "y")
    assert woken == [1]
    assert not lines.is_due
    lines.mark_due()
    assert len(lines.due()) == 3
    output.log(1, "INFO", 20, "x", "y")
    assert woken == [1, 1]


def test_one_commit_takes_a_part_and_the_next_ones_the_rest() -> None:
    lines = UnstoredLines()
    for number in range(4):
        output = lines.of(held(f"c.{number}"))
        assert output is not None
        for _ in range(700):
            output.log(1, "INFO", 20, "x", "y")
    lines.mark_due()
    sizes = []
    while lines.is_due:
        sizes.append(len(lines.due()))
    assert sizes == [TAKEN_UP_TO, TAKEN_UP_TO, 800]
    assert lines._bytes == 0


def test_what_a_process_sends_is_kept_as_it_is() -> None:
    lines, output = made()
    output.relay("line", LogLine(1, "INFO", 20, "stdout", "one").encoded())
    output.relay("mark", Progress(1, 2).encoded())
    output.relay("dropped", (17, 5))
    lines.mark_due()
    assert [op.index for op in lines.due()] == [0, MARK]
    assert texts(output.rest()) == ["17 more lines were not kept: of an attempt 1,000 lines and 1,024 KiB are"]
