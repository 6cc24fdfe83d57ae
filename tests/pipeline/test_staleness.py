"""What makes a state stale, with which cause, and what runs because of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from stepwell import Engine, Entity, Pipeline
from stepwell.errors import InputError
from stepwell.pipeline.building.build import Scanner
from stepwell.pipeline.states import single
from stepwell.pipeline.states.single import is_recent
from tests.pipeline.blog import Clock, Ledger, causes, make_blog, statuses, write

A, B = "2026-01-15", "2026-01-16"


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def blog(root: Path, engine: Engine, ledger: Ledger) -> Pipeline:
    """Built once: everything is fresh."""
    pipeline = make_blog(root, ledger)
    for date in (A, B):
        write(root, f"daily/{date}/a.txt", f"Hello {date}")
    report = pipeline.build(engine=engine)
    assert report.ok
    assert not report.left
    assert ledger.take() == [f"digest {A}", f"digest {B}", "index", f"summary {A}", f"summary {B}"]
    return pipeline


def test_nothing_to_do_creates_no_run(blog: Pipeline, engine: Engine, ledger: Ledger) -> None:
    before = len(engine.runs())
    report = blog.build(engine=engine)
    assert (report.produced, report.runs) == ((), ())
    assert len(engine.runs()) == before
    assert ledger.take() == []


def test_a_deleted_output_is_missing_and_made_again(blog: Pipeline, root: Path, engine: Engine, ledger: Ledger) -> None:
    (root / f"final/{A}-digest.md").unlink()
    assert causes(blog, f"final/{A}-digest.md") == ["missing"]
    report = blog.build(engine=engine)
    assert ledger.take() == [f"digest {A}"]  # it came out as it was: the index does not run
    assert report.produced == (f"digest {A}",)


def test_a_reader_of_two_stages_waits_for_the_slower_one(root: Path, engine: Engine, ledger: Ledger) -> None:
    """Nothing is forced, so only its standing says that `title` is being made: also in the model that is made anew when the
    files of `split` appear, whose names nobody could foresee.
    """
    books = Pipeline("books", root=root)

    @books.stage(input="books/{book}.txt", output="chapters/{book}/{number}.txt", version="1")
    def split(text: str):
        return dict(enumerate(text.split()))

    @books.stage(input="books/{book}.txt", output="titles/{book}.txt", version="1")
    def title(text: str):
        first = root / "chapters" / "moby" / "0.txt"
        while not first.exists() or first.read_text() != text.split(maxsplit=1)[0]:  # until that is published
            time.sleep(0.01)
        return text.upper()

    inputs = {"title": "titles/{book}.txt", "chapters": "chapters/{book}/{number}.txt"}

    @books.stage(input=inputs, output="final/{book}.txt", collect="number", version="1")
    def bind(title: str, chapters: list[str]):
        ledger.ran.append(f"bind {title} {'+'.join(chapters)}")
        return title

    for text in ("call me", "a whale"):
        write(root, "books/moby.txt", text)
        assert books.build(engine=engine).ok
        assert ledger.take() == [f"bind {text.upper()} {text.replace(' ', '+')}"]


def test_an_edited_input_makes_everything_below_stale(
    blog: Pipeline, root: Path, engine: Engine, ledger: Ledger
) -> None:
    write(root, f"daily/{A}/a.txt", "Other words")
    assert causes(blog, f"daily/{A}/summary.txt") == ["input_changed"]
    assert causes(blog, f"final/{A}-digest.md") == ["upstream_stale"]
    assert statuses(blog)[f"digest {B}"] == "fresh"
    report = blog.build(engine=engine)
    assert ledger.take() == [f"digest {A}", "index", f"summary {A}"]
    assert set(report.unchanged) == {"index"}
    write(root, f"daily/{A}/a.txt", "OTHER WORDS")
    report = blog.build(engine=engine)
    assert ledger.take() == [f"summary {A}"]  # it comes to the same, so that nothing below is made again
    assert report.produced == report.unchanged == (f"summary {A}",)


def test_an_input_of_the_same_size_and_mtime_is_noticed(
    blog: Pipeline, root: Path, engine: Engine, ledger: Ledger
) -> None:
    file = root / f"daily/{A}/a.txt"
    blog.build(engine=engine)
    before = os.stat(file)
    text = file.read_text()
    file.write_text(text.replace("Hello", "Jelly"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(file).st_size == before.st_size
    assert os.stat(file).st_mtime_ns == before.st_mtime_ns
    blog.build(engine=engine)
    assert f"summary {A}" in ledger.take()


@pytest.mark.parametrize("change", ["add", "remove", "rename"])
def test_the_set_of_inputs_counts(blog: Pipeline, root: Path, engine: Engine, ledger: Ledger, change: str) -> None:
    write(root, f"daily/{A}/b.txt", "second")
    blog.build(engine=engine)
    ledger.take()
    if change == "add":
        write(root, f"daily/{A}/c.txt", "third")
    elif change == "remove":
        (root / f"daily/{A}/b.txt").unlink()
    else:
        (root / f"daily/{A}/b.txt").rename(root / f"daily/{A}/bb.txt")
    assert causes(blog, f"daily/{A}/summary.txt") == ["input_changed"]
    blog.build(engine=engine)
    assert f"summary {A}" in ledger.take()


def test_a_new_entity_is_collected(blog: Pipeline, root: Path, engine: Engine, ledger: Ledger) -> None:
    write(root, "daily/2026-01-17/a.txt", "New")
    blog.build(engine=engine)
    assert ledger.take() == ["digest 2026-01-17", "index", "summary 2026-01-17"]
    assert "2026-01-17" in (root / "index.html").read_text()


def test_a_glob_never_matches_what_the_pipeline_writes(blog: Pipeline, root: Path) -> None:
    record = blog.why(f"daily/{A}/summary.txt").record
    assert record is not None
    assert list(record.inputs) == [f"daily/{A}/a.txt"]


def test_a_changed_output_is_made_again_and_kept_aside(
    blog: Pipeline, root: Path, engine: Engine, ledger: Ledger
) -> None:
    write(root, f"final/{A}-digest.md", "my own words")
    assert causes(blog, f"final/{A}-digest.md") == ["output_changed"]
    blog.build(engine=engine)
    assert ledger.take() == [f"digest {A}"]
    kept = list((root / ".stepwell/aside").rglob(f"{A}-digest.md"))
    assert [each.read_text() for each in kept] == ["my own words"]


@pytest.mark.parametrize("content", ["", "#"])
def test_a_truncated_output_is_noticed(
    blog: Pipeline, root: Path, engine: Engine, ledger: Ledger, content: str
) -> None:
    write(root, f"daily/{A}/summary.txt", content)
    assert "output_changed" in causes(blog, f"daily/{A}/summary.txt")
    blog.build(engine=engine)
    assert ledger.take() == [f"summary {A}"]


def test_a_file_nobody_recorded_is_never_overwritten_unasked(root: Path, engine: Engine, ledger: Ledger) -> None:
    blog = make_blog(root, ledger)
    write(root, f"daily/{A}/a.txt", "Hello")
    write(root, f"final/{A}-digest.md", "written by hand")
    report = blog.build(engine=engine)
    assert statuses(blog) == {f"summary {A}": "fresh", f"digest {A}": "unrecorded", "index": "blocked"}
    assert (root / f"final/{A}-digest.md").read_text() == "written by hand"
    assert report.left == {f"digest {A}": "unrecorded", "index": "blocked"}
    assert blog.accept(f"final/{A}-digest.md") == [f"final/{A}-digest.md"]
    ledger.take()
    blog.build(engine=engine)
    assert ledger.take() == ["index"]
    assert (root / f"final/{A}-digest.md").read_text() == "written by hand"
    blog.invalidate(f"final/{A}-digest.md")
    assert causes(blog, f"final/{A}-digest.md") == ["invalidated"]
    blog.build(engine=engine)
    assert ledger.take() == [f"digest {A}", "index"]


def test_invalidate_lets_what_nobody_recorded_be_replaced_and_kept(root: Path, engine: Engine, ledger: Ledger) -> None:
    blog = make_blog(root, ledger)
    write(root, f"daily/{A}/a.txt", "Hello")
    write(root, f"final/{A}-digest.md", "written by hand")
    blog.invalidate(f"final/{A}-digest.md")
    blog.build(engine=engine)
    assert (root / f"final/{A}-digest.md").read_text() == f"# {A}\nhello"


def test_a_source_that_is_gone_leaves_orphans_that_clean_removes(
    blog: Pipeline, root: Path, engine: Engine, ledger: Ledger
) -> None:
    (root / f"daily/{A}/a.txt").unlink()
    found = statuses(blog)
    assert found[f"daily/{A}/summary.txt"] == found[f"final/{A}-digest.md"] == "orphan"
    blog.build(engine=engine)
    assert ledger.take() == ["index"]  # one member less
    assert (root / f"final/{A}-digest.md").exists()
    assert sorted(blog.clean(dry_run=True)) == [f"daily/{A}/summary.txt", f"final/{A}-digest.md"]
    blog.clean()
    assert not (root / f"final/{A}-digest.md").exists()
    assert not (root / f"daily/{A}/summary.txt").exists()
    assert set(statuses(blog).values()) == {"fresh"}


def test_code_and_config_are_causes_of_their_own(root: Path, engine: Engine) -> None:
    def make(version: str, prompt: str) -> Pipeline:
        pipeline = Pipeline("p", root=root)
        pipeline.stage("copy", input="in/{x}.txt", output="out/{x}.txt", version=version, config={"prompt": prompt})(
            _copy
        )
        return pipeline

    write(root, "in/a.txt", "a")
    make("1", "short").build(engine=engine)
    assert statuses(make("1", "short")) == {"copy a": "fresh"}
    assert causes(make("2", "short"), "out/a.txt") == ["code_changed"]
    assert causes(make("1", "long"), "out/a.txt") == ["config_changed"]
    assert make("1", "long").build(engine=engine).produced == ("copy a",)


def _copy(text: str, config: dict[str, str]) -> str:
    return f"{config['prompt']} {text}"


def test_what_is_too_small_or_refused_is_not_recorded(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)
    pipeline.stage("small", input="in/{x}.txt", output="small/{x}.txt", min_size=5)(_same)
    pipeline.stage("checked", input="in/{x}.txt", output="checked/{x}.txt", validate=_no_digits)(_same)
    write(root, "in/long.txt", "long enough")
    write(root, "in/tiny.txt", "x9")
    report = pipeline.build(engine=engine)
    assert set(report.failed) == {"small tiny", "checked tiny"}
    assert "2 bytes" in report.failed["small tiny"]
    assert "no digits" in report.failed["checked tiny"]
    assert sorted(path.name for path in (root / "small").iterdir() if path.name[0] != ".") == ["long.txt"]
    assert not list(root.rglob(".stepwell-*"))  # no drafts are left


def test_a_stricter_validation_finds_what_is_invalid_now(root: Path, engine: Engine) -> None:
    write(root, "in/a.txt", "short 1")
    first = Pipeline("p", root=root)
    first.stage("same", input="in/{x}.txt", output="out/{x}.txt")(_same)
    first.build(engine=engine)
    larger = Pipeline("p", root=root)
    larger.stage("same", input="in/{x}.txt", output="out/{x}.txt", min_size=100)(_same)
    assert causes(larger, "out/a.txt") == ["invalid"]
    stricter = Pipeline("p", root=root)
    stricter.stage("same", input="in/{x}.txt", output="out/{x}.txt", validate=_no_digits)(_same)
    assert causes(stricter, "out/a.txt") == ["invalid"]


def _same(text: str) -> str:
    return text


def _no_digits(text: str) -> str | None:
    return "no digits are allowed" if any(map(str.isdigit, text)) else None


def test_manifests_are_the_truth(blog: Pipeline, root: Path, tmp_path: Path, ledger: Ledger) -> None:
    import shutil

    clone = tmp_path / "clone"
    shutil.copytree(root, clone, ignore=shutil.ignore_patterns(".stepwell"))
    for path in clone.rglob("*"):
        os.utime(path, (time.time() - 9_000, time.time() - 9_000))
    elsewhere = make_blog(clone, ledger)
    assert set(statuses(elsewhere).values()) == {"fresh"}
    assert elsewhere.build(engine=f"sqlite:///{tmp_path}/another.db").produced == ()


def test_a_shared_file_is_an_input_of_every_entity(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input={"page": "in/{x}.txt", "prompt": "prompt.md"}, output="out/{x}.txt")
    def ask(page: str, prompt: str) -> str:
        return f"{prompt}: {page}"

    for name in "ab":
        write(root, f"in/{name}.txt", name)
    assert statuses(pipeline) == {"ask a": "blocked", "ask b": "blocked"}
    assert causes(pipeline, "out/a.txt") == ["input_missing"]
    write(root, "prompt.md", "Sum up")
    assert len(pipeline.build(engine=engine).produced) == 2
    write(root, "prompt.md", "Explain")
    assert len(pipeline.build(engine=engine).produced) == 2
    assert (root / "out/b.txt").read_text() == "Explain: b"


def test_inputs_join_by_the_names_of_variables(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input={"page": "in/{lang}/{x}.txt", "words": "words/{lang}.txt"}, output="out/{lang}/{x}.txt")
    def both(page: str, words: str) -> str:
        return page + words

    write(root, "in/de/a.txt", "a")
    write(root, "in/en/a.txt", "a")
    write(root, "words/de.txt", "!")
    assert pipeline.build(engine=engine).produced == ("both de/a",)
    write(root, "words/en.txt", "?")
    assert pipeline.build(engine=engine).produced == ("both en/a",)


def test_files_that_are_still_written_wait(root: Path, engine: Engine) -> None:
    clock = Clock(time.time())
    pipeline = Pipeline("p", root=root, clock=clock)
    pipeline.stage("same", input="in/{x}.txt", output="out/{x}.txt", quiet=30)(_same)
    write(root, "in/a.txt", "half")
    assert statuses(pipeline) == {"same a": "waiting"}
    assert pipeline.build(engine=engine).produced == ()
    clock.now += 31
    assert pipeline.build(engine=engine).produced == ("same a",)


@pytest.mark.parametrize("folder", ["", "day/", "a/b/"])
def test_what_is_where_outputs_belong_is_no_input_of_their_stage(root: Path, engine: Engine, folder: str) -> None:
    """Though its pattern matches that, and whoever wrote it."""
    pipeline = Pipeline("p", root=root)
    pipeline.stage("sum", input=f"{folder}{{x}}-*.txt", output=f"{folder}{{x}}-sum.txt", version="1")(_joined)
    write(root, f"{folder}a-1.txt", "a")
    write(root, f"{folder}b-sum.txt", "by hand")
    for produced in (("sum a",), ()):
        assert pipeline.build(engine=engine).produced == produced
        assert statuses(pipeline) == {"sum a": "fresh"}
    assert (root / f"{folder}a-sum.txt").read_text() == "a"


def _joined(texts: list[str]) -> str:
    return "".join(texts)


def test_names_that_others_could_not_tell_apart_are_blocked(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)
    pipeline.stage("same", input="in/{x}.txt", output="out/{x}.txt")(_same)
    write(root, "in/Post.txt", "1")
    write(root, "in/post.txt", "2")
    pipeline.build(engine=engine)
    assert sorted(statuses(pipeline).values()) == ["blocked", "fresh"]
    assert len(pipeline.build(engine=engine, force=True).produced) == 1, "whatever is forced"


def test_links_are_left_out_and_told(root: Path, engine: Engine, tmp_path: Path) -> None:
    write(tmp_path, "secret.txt", "password")
    pipeline = Pipeline("p", root=root)
    pipeline.stage("same", input="in/{x}.txt", output="out/{x}.txt")(_same)
    (root / "in").mkdir()
    (root / "in/stolen.txt").symlink_to(tmp_path / "secret.txt")
    assert pipeline.build(engine=engine).produced == ()
    assert pipeline.status().problems == (("in/stolen.txt", "it is a symbolic link, which is not followed"),)


def test_what_a_dry_run_lists_is_what_runs(blog: Pipeline, root: Path, engine: Engine, ledger: Ledger) -> None:
    write(root, f"daily/{A}/a.txt", "hello " + A)  # the summary in lower case comes out the same
    (root / f"final/{B}-digest.md").unlink()
    plan = blog.plan()
    will = {f"{each.stage} {each.entity}".strip() for each in plan.will_run}
    may = {f"{each.stage} {each.entity}".strip() for each in plan.may_run}
    assert will == {f"summary {A}", f"digest {B}"}
    assert may == {f"digest {A}", "index"}
    blog.build(engine=engine)
    ran = set(ledger.take())
    assert ran == {f"summary {A}", f"digest {B}"}  # early cut-off


def test_build_of_a_target_makes_only_what_it_needs(root: Path, engine: Engine, ledger: Ledger) -> None:
    blog = make_blog(root, ledger)
    for date in (A, B):
        write(root, f"daily/{date}/a.txt", f"Hello {date}")
    blog.build(f"final/{A}-digest.md", engine=engine)
    assert ledger.take() == [f"digest {A}", f"summary {A}"]
    blog.build(f"final/{A}-digest.md", engine=engine, force=True)
    assert ledger.take() == [f"digest {A}"]
    blog.build(f"summary {A}", "summary", engine=engine)
    assert ledger.take() == [f"summary {B}"]
    blog.build(*(f"final/{date}-digest.md" for date in (A, B)), engine=engine, force=True)
    assert sorted(ledger.take()) == [f"digest {A}", f"digest {B}"]
    for verb in (blog.build, blog.plan, blog.accept, blog.invalidate):
        with pytest.raises(InputError, match=r"expected a stage, an entity or the path of a state, got \['summary'\]"):
            verb(["summary"])  # type: ignore[operator]


def test_work_that_was_planned_for_another_root_is_refused(root: Path, tmp_path: Path) -> None:
    from stepwell.errors import OtherRoot
    from stepwell.pipeline.building.found import GivenPipelines

    pipeline = make_blog(root)
    given = GivenPipelines([pipeline], lambda module: False)
    assert given.find(pipeline.home, pipeline.name, pipeline.store.root_id, "summary") is pipeline
    with pytest.raises(OtherRoot, match="is not the one that the work was planned for"):
        given.find(pipeline.home, pipeline.name, "another", "summary")


def test_a_build_runs_its_own_code_also_when_the_process_made_the_pipeline_several_times(
    root: Path, engine: Engine
) -> None:
    write(root, f"daily/{A}/a.txt", "Hello")
    made = [(each, make_blog(root, each)) for each in (Ledger() for _ in range(8))]
    for ledger, pipeline in made:
        pipeline.build(engine=engine, force=True)
        assert ledger.take() == [f"digest {A}", "index", f"summary {A}"]
    assert [ledger.take() for ledger, _ in made] == [[]] * 8


def test_what_did_not_change_is_not_read_again_however_many_builds_come(
    root: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def hash_file(file: str, folder: int) -> str:
        read.append(file)
        return single.hash_file(file, folder)

    monkeypatch.setattr("stepwell.pipeline.states.files.local.hash_file", hash_file)

    def build() -> int:
        pipeline = Pipeline("copies", root=root)
        pipeline.stage("copy", input="in/{x}", output="out/{x}", version="1")(_copied)
        return len(pipeline.build(engine=engine).produced)

    for number in range(30):
        write(root, f"in/{number}", f"Hello {number}")
    assert build() == 30
    for number in range(4):
        time.sleep(0.25)  # what is as recent as a tick of the clock is read again
        read.clear()
        write(root, f"in/{number}", f"Changed {number}")
        assert build() == 1
        if number:  # the first still reads what had been recent
            assert len({file for file in read if ".manifest" not in file}) < 15, read


def _copied(text: str) -> str:
    return text


def test_force_makes_what_is_fresh_again_in_its_order(
    blog: Pipeline, root: Path, engine: Engine, ledger: Ledger
) -> None:
    everything = [f"digest {A}", f"digest {B}", "index", f"summary {A}", f"summary {B}"]
    for targets, forced in (((), everything), ((A,), everything[::3]), (("index",), ["index"])):
        plan = blog.plan(*targets, force=True)
        assert sorted(f"{each.stage} {each.entity}".strip() for each in (*plan.will_run, *plan.may_run)) == forced
        report = blog.build(*targets, engine=engine, force=True)
        assert ledger.take() == forced
        assert sorted(report.unchanged) == forced
        order = [each.split()[0] for each in report.produced]
        assert order == sorted(order, key=["summary", "digest", "index"].index)
    assert blog.build(engine=engine).produced == ()


def test_what_a_target_names(root: Path) -> None:
    """The first of these that anything matches: a unit, a stage, an entity, a state, a pattern of states."""
    blog = make_blog(root)
    blog.stage("site", input="daily/{date}/summary.txt", output="site/{date}/", version="1")(_into_folder)
    for date in (A, B):
        write(root, f"daily/{date}/a.txt", "Hello")
    view = blog.view()

    def named(target: str) -> list[str]:
        return sorted(unit.id for unit in view.find_all([target]))

    assert named(f"summary {A}") == named(f"daily/{A}/summary.txt") == [f"summary {A}"]
    assert named("summary") == named("daily/*/summary.txt") == [f"summary {A}", f"summary {B}"]
    assert named(A) == [f"digest {A}", f"site {A}", f"summary {A}"]
    assert named(f"site/{A}") == named(f"site/{A}/") == [f"site {A}"]
    assert named("index") == named("index.*") == ["index"]
    assert named("final/*-16-*") == [f"digest {B}"]
    assert [unit.id for unit in view.find_all([A, f"digest {A}", "index"])].count(f"digest {A}") == 1
    for nothing in ("nothing", "", "Summary", "final/*.txt"):
        with pytest.raises(InputError, match="stages are summary, digest, index, site"):
            view.find_all([nothing])
    chosen = view.chosen([f"digest {A}"])
    assert {unit.id for unit in view.model.all_units() if id(unit) in (chosen or ())} == {f"digest {A}", f"summary {A}"}
    assert view.chosen([]) is None
    only = view.status(entity=A)
    assert [(each.stage, each.entity) for each in only.states] == [("summary", A), ("digest", A), ("site", A)]
    assert (only.entities, only.counts) == (1, {"stale": 3})
    assert view.status().entities == 2


def _into_folder(text: str, out: Path) -> None:
    (out / "page").write_text(text)


def test_a_scanner_knows_when_something_becomes_stale_by_itself(root: Path, engine: Engine) -> None:
    clock = Clock(time.time())
    pipeline = Pipeline("p", root=root, clock=clock, back_off=(50, 70))
    pipeline.stage("later", input="in/{x}", output="out/{x}", quiet=20, version="1")(_boom)
    with Scanner(pipeline, engine) as scanner:
        assert scanner.due_at() is None
        scanner.scan()
        assert scanner.due_at() is None
        for name, age in (("a", 0), ("b", 5)):
            write(root, f"in/{name}", name)
            os.utime(root / f"in/{name}", (clock.now - age,) * 2)
        assert scanner.changed(["in/a", "in/b"]).left == {"later a": "waiting", "later b": "waiting"}
        assert scanner.due_at() == pytest.approx(clock.now + 15, abs=0.01)
        clock.now += 30
        first = scanner.scan()
        assert first.left == {"later a": "failed", "later b": "failed"}
        assert scanner.due_at() == clock.now + 50
        clock.now += 50
        second = scanner.scan()
        assert second.failed.keys() == {"later a", "later b"}
        assert len(first.runs) == len({*first.runs, *second.runs}) - len(second.runs) == 1
        assert scanner.due_at() == clock.now + 70
        clock.now += 70
        scanner.scan()
        assert scanner.due_at() is None


def _boom(text: str) -> str:
    raise ValueError("boom")


def test_looking_for_targets_takes_a_limited_time(root: Path) -> None:
    """Also those of a request: a glob is compared with every path, and an unclosed bracket with all that follows it."""
    pipeline = Pipeline("p", root=root)
    pipeline.stage("same", input="in/{x}.txt", output="out/{x}.txt", version="1")(_same)
    for number in range(300):
        write(root, f"in/{number}.txt", "text")
    view = pipeline.view()
    began = time.process_time()
    every = [f"same {number}" for number in range(300)] * 30
    assert len(view.find_all(every)) == 300
    assert len(view.find_all(["out/*.txt", "same", *every])) == 300
    for targets in (["["] * 3 + ["out/["], ["[" * 1_001], ["*a" * 600], [f"*{number}*" for number in range(101)]):
        with pytest.raises(InputError, match=r"is no stage, entity or state|may have globs"):
            view.find_all(targets)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("fraction", [0, 123_456])
def test_a_file_is_recent_for_as_long_as_its_stamp_may_stay_the_same(fraction: int) -> None:
    """Two seconds where the file system records whole seconds only, a tenth of one elsewhere."""
    now = 1_800_000_000 * 10**9
    for age_ms in (0, 90, 110, 1_900, 2_100):
        changed = now - age_ms * 10**6 + fraction
        for stamp in ((1, changed, now - 10**10 + fraction, 1), (1, now - 10**10 + fraction, changed, 1)):
            limit_ms = 100 if stamp[2] % 1_000_000 else 2_000
            assert is_recent(stamp, now) == (age_ms <= limit_ms), (age_ms, stamp)


def test_a_directory_that_matches_in_several_ways_is_left_out_and_said(root: Path) -> None:
    pipeline = Pipeline("p", root=root)
    pipeline.stage("list", input="in/{x}-{y}/", output="out/{x}/{y}.txt", version="1")(_list)
    pipeline.stage("deep", input="in/{x}-{y}/{z}/file", output="deep/{x}/{y}/{z}.txt", version="1")(_list)
    for folder in ("a-b-c", "a-b", "a-b-c-d/below", "other"):
        write(root, f"in/{folder}/z/file", "text")
    assert set(pipeline.status().problems) == {
        *((f"in/{name}", "it matches in/{x}-{y}/ in more than one way") for name in ("a-b-c", "a-b-c-d")),
        ("in/a-b-c/z", "it matches in/{x}-{y}/{z}/file in more than one way"),
        ("in/a-b-c-d/below", "it matches in/{x}-{y}/{z}/file in more than one way"),
    }
    assert statuses(pipeline) == {"list a/b": "stale", "deep a/b/z": "stale"}


def _list(folder: Path) -> str:
    return str(folder)


def test_entities_are_equal_if_their_values_are() -> None:
    assert Entity({"x": "1"}, "in/1") == Entity({"x": "1"}, "out/1")
    assert Entity({"x": "1"}) not in (Entity({"x": "2"}), Entity({"y": "1"}), "1")
