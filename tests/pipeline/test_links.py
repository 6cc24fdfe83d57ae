"""No link leads out of a root: whatever is where a pipeline reads or writes, nothing outside is changed or waited for."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from stepwell import Pipeline
from stepwell.errors import StepwellError
from stepwell.pipeline.states.files.root import Root
from stepwell.pipeline.states.files.store import FileStates

OWN = [
    ".stepwell", ".stepwell/p.lease", ".stepwell/lock", ".stepwell/.gitignore", ".stepwell/root.json",
    ".stepwell/failures.json", ".stepwell/failures.log", ".stepwell/code.json", ".stepwell/code.log", ".stepwell/p.cache",
    "out", "out/.manifest.json", "out/.manifest.log", "many/a", "dirs/a",
]  # fmt: skip
"""Everything of our own that a build reads or writes, and where outputs go."""


def pipeline_in(root: Path) -> Pipeline:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage("copy", input="in/{x}.txt", output="out/{x}.txt", version="1")
    def copy(text: str) -> str:
        if text == "bad":
            raise ValueError("bad")
        return text.upper()

    @pipeline.stage("split", input="in/{x}.txt", output="many/{x}/{n}.txt", version="1")
    def split(text: str) -> dict[int, str]:
        return dict(enumerate(text))

    @pipeline.stage("folder", input="in/{x}.txt", output="dirs/{x}/", version="1")
    def folder(text: str, out: Path) -> None:
        (out / "a").write_text(text)

    return pipeline


def contents_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        if path.is_file()
        else (b"", 0)
        for path in folder.rglob("*")
    }


def build_in_time(root: Path, engine: str) -> None:
    """Build and look at everything; an error is one of ours, and nothing waits."""

    def work() -> None:
        pipeline = pipeline_in(root)
        for ask in (
            lambda: pipeline.build(engine=engine),
            pipeline.status,
            lambda: pipeline.invalidate("out/*"),
            pipeline.retry,
        ):
            try:
                ask()
            except StepwellError as error:
                errors.append(str(error))
            except BaseException as error:
                unexpected.append(error)

    errors: list[str] = []
    unexpected: list[BaseException] = []
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it waits for something that nobody writes"
    assert not unexpected
    assert all("cannot be read" in each or "link" in each for each in errors), errors


@pytest.mark.parametrize("kind", ["link", "dangling", "hard", "pipe"])
@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("is_first", [True, False])
def test_nothing_of_ours_leads_out(
    tmp_path: Path, own: str, kind: str, is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if own.endswith(".log"):  # which a small directory has none of
        monkeypatch.setattr("stepwell.pipeline.states.files.logged.SMALL_BYTES", -1)
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "in").mkdir(parents=True)
    outside.mkdir()
    (root / "in/a.txt").write_text("text")
    (root / "in/$(touch hacked).txt").write_text("bad")
    engine = f"sqlite:///{tmp_path}/engine.db"
    is_folder = own in (".stepwell", "out", "many/a", "dirs/a")
    if not is_first:
        pipeline_in(root).build(engine=engine)
        (root / "in/a.txt").write_text("other")
        (root / "in/b.txt").write_text("new")
    file = root / own
    file.parent.mkdir(parents=True, exist_ok=True)
    target = outside / "target"
    if is_folder and kind != "dangling":
        if kind in ("hard", "pipe"):
            return  # there are none of directories, and nothing waits for a pipe in place of one
        target.mkdir()
        (target / "0.txt").write_text("precious")
        (target / "a").write_text("precious")
    elif kind != "dangling":
        target.write_text("precious")
    if file.exists():
        file.rename(tmp_path / "before")
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "hard":
        os.link(target, file)
    else:
        file.symlink_to(target)
    before = contents_of(outside)
    build_in_time(root, engine)
    assert contents_of(outside) == before


@pytest.mark.parametrize(
    "act",
    [
        lambda store, draft: store.drafts.write(draft, b"made"),
        lambda store, draft: store.drafts.read(draft),
        lambda store, draft: store.drafts.open("out/x/b", "token"),
        lambda store, draft: store.drafts.discard(draft),
        lambda store, draft: store.files.put("out/x/c", b"put"),
        lambda store, draft: store.files.read("out/x/a"),
        lambda store, draft: store.files.still_is("out/x/a", (0, 0, 0, 0), ""),
        lambda store, draft: store.files.local("out/x/a"),
        lambda store, draft: store.files.hash_of("out/x/a"),
        lambda store, draft: store.files.members("out/x/"),
        lambda store, draft: store.files.keep_aside("out/x/a"),
        lambda store, draft: store.records.read("out/x"),
        lambda store, draft: store.remove(["out/x/a"]),
        lambda store, draft: store.sync([draft]),
    ],
)
def test_a_directory_that_was_swapped_for_a_link_leads_nowhere(tmp_path: Path, act: Callable[..., object]) -> None:
    store = FileStates(str(tmp_path / "root"), "p")
    outside = tmp_path / "outside"
    outside.mkdir()
    draft = store.drafts.open("out/x/a", "token")
    for name in ("a", ".manifest.json", Path(draft.place).name):
        (outside / name).write_text("precious")
    (tmp_path / "root/out").rename(tmp_path / "moved")
    (tmp_path / "root/out").mkdir()
    (tmp_path / "root/out/x").symlink_to(outside)
    before = contents_of(outside)
    result = None
    with suppress(StepwellError):
        result = act(store, draft)
    assert "precious" not in repr(result)
    assert hashlib.sha256(b"precious").hexdigest() not in repr(result)
    assert contents_of(outside) == before


def test_a_directory_that_is_swapped_again_and_again_never_lets_a_draft_out(tmp_path: Path) -> None:
    store = FileStates(str(tmp_path / "root"), "p")
    outside, out, aside = tmp_path / "outside", tmp_path / "root/out", tmp_path / "aside"
    outside.mkdir()
    draft = store.drafts.open("out/a", "token")
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            out.rename(aside)
            with suppress(FileExistsError):  # made anew meanwhile
                out.symlink_to(outside)
            out.unlink() if out.is_symlink() else shutil.rmtree(out)
            aside.rename(out)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(5_000):
            with suppress(StepwellError, OSError):
                store.drafts.write(draft, b"made")
    finally:
        ended.set()
        thread.join()
    assert not list(outside.iterdir())


@pytest.mark.parametrize("path", ["../outside", "a/../../outside", "..", "a/..", "./a", "a//b"])
def test_a_root_opens_nothing_above_it(tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").write_text("precious")
    (tmp_path / "root/a").mkdir(parents=True)
    root = Root(str(tmp_path / "root"))
    with pytest.raises((StepwellError, FileNotFoundError)):
        root.read(path)
    with pytest.raises((StepwellError, FileNotFoundError, OSError)):
        root.write_durably(path, b"changed")
    assert (tmp_path / "outside").read_text() == "precious"


@pytest.mark.parametrize("most_open", [1, 2, 100])
def test_directories_are_looked_for_again_while_they_are_used(
    tmp_path: Path, most_open: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepwell.pipeline.states.files.root.LOOK_AGAIN_SECONDS", 0)
    monkeypatch.setattr("stepwell.pipeline.states.files.root.MOST_OPEN", most_open)
    (tmp_path / "root/in").mkdir(parents=True)
    for number in range(5):
        (tmp_path / f"root/in/{number}.txt").write_text("text")
    open_before = len(os.listdir("/proc/self/fd"))
    pipeline = pipeline_in(tmp_path / "root")
    assert len(pipeline.build(engine=f"sqlite:///{tmp_path}/engine.db").produced) == 15
    assert pipeline.status().counts == {"fresh": 15}
    assert len(os.listdir("/proc/self/fd")) <= open_before + 2


def test_what_is_no_file_in_an_input_directory_makes_nothing_stale(tmp_path: Path) -> None:
    root = tmp_path / "root"
    pipeline = Pipeline("p", root=root)

    @pipeline.stage("list", input="dir/{x}/", output="out/{x}.txt", version="1")
    def names(folder: Path) -> str:
        return " ".join(sorted(os.listdir(folder)))

    (root / "dir/a/below").mkdir(parents=True)
    (root / "dir/a/file").write_text("text")
    os.mkfifo(root / "dir/a/pipe")
    (root / "dir/a/below/link").symlink_to(tmp_path)
    engine = f"sqlite:///{tmp_path}/engine.db"
    assert pipeline.build(engine=engine).produced == ("list a",)
    assert pipeline.build(engine=engine).produced == ()
    assert pipeline.view().status().counts == {"fresh": 1}


def test_a_file_in_the_place_of_a_directory_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    root = Root(str(tmp_path))
    with pytest.raises(NotADirectoryError):
        root.read("file/below")
    assert root.stat("file/below") is None
