"""What a stage may take and make: several outputs, directories, many files of one, one of many."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepwell import Engine, Pipeline
from stepwell.errors import DefinitionError, UnsafePath
from tests.pipeline.blog import causes, statuses, write


def test_inputs_come_as_their_annotations_ask(root: Path, engine: Engine) -> None:
    seen: dict[str, object] = {}
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(
        input={"path": "in/{x}.txt", "text": "in/{x}.txt", "raw": "in/{x}.txt", "data": "in/{x}.json"},
        output="out/{x}.json",
        version="1",
        config={"n": 1},
    )
    def take(path: Path, text: str, raw: bytes, data: dict[str, int], entity, config, ctx):
        seen.update(path=path.read_text(), text=text, raw=raw, data=data, x=entity.x, config=config, node=ctx.node_name)
        return {"sum": sum(data.values())}

    write(root, "in/a.txt", "é")
    write(root, "in/a.json", '{"b": 2}')
    assert pipeline.build(engine=engine).ok
    assert seen == {
        "path": "é", "text": "é", "raw": "é".encode(), "data": {"b": 2}, "x": "a", "config": {"n": 1}, "node": "take a",
    }  # fmt: skip
    assert (root / "out/a.json").read_text() == '{\n  "sum": 2\n}\n'


def test_a_wrong_input_fails_with_its_path(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}.json", output="out/{x}", version="1")
    def take(data: dict[str, int]) -> str:
        return "never"

    write(root, "in/a.json", '{"b": "two"}')
    write(root, "in/b.json", "no json")
    failed = pipeline.build(engine=engine).failed
    assert "in/a.json['b']: expected int" in failed["take a"]
    assert "in/b.json is no JSON" in failed["take b"]


def test_a_body_may_write_its_output_itself(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}.txt", output="out/{x}.mp3", version="1")
    def speak(text: str, out: Path) -> None:
        assert out.suffix == ".mp3"  # programs look at it
        out.write_text(text)

    @pipeline.stage(input="in/{x}.txt", output="none/{x}", version="1")
    def forget(text: str, out: Path) -> None: ...

    write(root, "in/a.txt", "hello")
    report = pipeline.build(engine=engine)
    assert (root / "out/a.mp3").read_text() == "hello"
    assert "neither returned it nor wrote" in report.failed["forget a"]


def test_several_outputs_are_all_or_nothing(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}.txt", output={"page": "page/{x}.html", "feed": "feed/{x}.xml"}, version="1")
    def both(text: str) -> dict[str, str]:
        return {"page": text, "feed": text} if text != "half" else {"page": text}

    write(root, "in/a.txt", "a")
    write(root, "in/half.txt", "half")
    report = pipeline.build(engine=engine)
    assert report.produced == ("both a",)
    assert set(report.failed) == {"both half"}
    assert not (root / "page/half.html").exists()
    (root / "feed/a.xml").unlink()
    assert causes(pipeline, "page/a.html") == ["missing"]
    assert pipeline.build(engine=engine).produced == ("both a",)


def test_a_directory_is_replaced_as_a_whole(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}.txt", output="site/{x}/", version="1")
    def site(text: str, out: Path) -> None:
        for word in text.split():
            (out / "words").mkdir(exist_ok=True)
            (out / "words" / f"{word}.txt").write_text(word)

    @pipeline.stage(input="site/{x}/", output="count/{x}", version="1")
    def count(site: Path) -> str:
        return str(len(list(site.rglob("*.txt"))))

    write(root, "in/a.txt", "one two three")
    assert pipeline.build(engine=engine).ok
    assert (root / "count/a").read_text() == "3"
    write(root, "in/a.txt", "one")
    pipeline.build(engine=engine)
    assert [path.name for path in (root / "site/a/words").iterdir()] == ["one.txt"]
    assert (root / "count/a").read_text() == "1"
    (root / "site/a/words/one.txt").write_text("changed")
    assert causes(pipeline, "site/a/") == ["output_changed"]
    pipeline.build(engine=engine)
    assert (root / "site/a/words/one.txt").read_text() == "one"
    assert set(statuses(pipeline).values()) == {"fresh"}


def test_directories_are_entities_if_they_have_files(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="daily/{date}/", output="daily/{date}/list.md", filter="hasFiles", version="1")
    def listing(folder: Path) -> str:
        return "\n".join(
            sorted(path.name for path in folder.iterdir() if path.name[0] != "." and path.name != "list.md")
        )

    write(root, "daily/a/x.log", "1")
    (root / "daily/empty").mkdir()
    assert pipeline.build(engine=engine).produced == ("listing a",)
    assert pipeline.build(engine=engine).produced == ()  # its own output in the directory is no input
    write(root, "daily/a/y.log", "2")
    assert pipeline.build(engine=engine).produced == ("listing a",)
    assert (root / "daily/a/list.md").read_text() == "x.log\ny.log"


def test_one_makes_many_and_members_not_made_again_are_removed(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="books/{book}.txt", output="chapters/{book}/{number}.txt", version="1")
    def split(text: str) -> dict[int, str]:
        return dict(enumerate(text.split("|"), 1))

    @pipeline.stage(input="chapters/{book}/{number}.txt", output="upper/{book}/{number}.txt", version="1")
    def upper(text: str) -> str:
        return text.upper()

    write(root, "books/moby.txt", "call|me|ishmael")
    plan = pipeline.plan()
    assert [each.stage for each in plan.will_run] == ["split"]
    assert plan.may_appear == ("upper",)
    report = pipeline.build(engine=engine)
    assert set(report.produced) == {"split moby", "upper moby/1", "upper moby/2", "upper moby/3"}
    write(root, "books/moby.txt", "call|you")
    report = pipeline.build(engine=engine)
    assert set(report.produced) == {"split moby", "upper moby/2"}  # the first chapter came out the same
    assert not (root / "chapters/moby/3.txt").exists()
    assert statuses(pipeline)["upper/moby/3.txt"] == "orphan"
    (root / "chapters/moby/1.txt").unlink()
    assert "missing" in causes(pipeline, "chapters/moby/{number}.txt")
    assert set(pipeline.build(engine=engine).produced) == {"split moby"}
    write(root, "books/none.txt", "")
    pipeline.build(engine=engine)
    assert statuses(pipeline)["split none"] == "fresh"


def test_one_may_make_nothing(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="books/{book}.txt", output="chapters/{book}/{number}.txt", version="1")
    def split(text: str) -> dict[int, str]:
        return {}

    write(root, "books/empty.txt", "")
    assert pipeline.build(engine=engine).produced == ("split empty",)
    assert pipeline.build(engine=engine).produced == ()


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", ".x", "a\0", "/abs"])
def test_no_name_that_a_body_gives_escapes(root: Path, engine: Engine, name: str) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}", output="out/{x}/{name}.txt", version="1")
    def split(text: str) -> dict[str, str]:
        return {name: "evil"}

    write(root, "in/a", "1")
    report = pipeline.build(engine=engine)
    assert set(report.failed) == {"split a"}
    assert not list(root.parent.rglob("*etc*"))


def test_put_refuses_paths_that_escape_and_states_that_stages_make(root: Path) -> None:
    pipeline = Pipeline("p", root=root)
    pipeline.stage("same", input="in/{x}", output="out/{x}")(_same)
    pipeline.put("in/a", b"1")
    assert (root / "in/a").read_bytes() == b"1"
    for bad in ("../a", "/a", "in/../../a", ".stepwell/root.json", "in/.manifest.json"):
        with pytest.raises(UnsafePath):
            pipeline.put(bad, b"1")
    with pytest.raises(Exception, match="made by stage 'same'"):
        pipeline.put("out/a", b"1")


def _same(text: str) -> str:
    return text


def test_entities_may_come_from_a_function(root: Path, engine: Engine) -> None:
    wanted = ["de", "en"]
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(entities=lambda: wanted, output="hello/{lang}.txt", version="1")
    def hello(entity) -> str:
        return entity.lang

    assert pipeline.build(engine=engine).produced == ("hello de", "hello en")
    wanted.append("fr")
    assert pipeline.build(engine=engine).produced == ("hello fr",)
    wanted.remove("de")
    assert statuses(pipeline)["hello/de.txt"] == "orphan"
    wanted.append("../x")
    with pytest.raises(Exception, match="begins with a dot"):
        pipeline.build(engine=engine)


def test_an_input_that_changes_while_it_is_read_is_read_again(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)
    tries = 0

    @pipeline.stage(input="in/{x}", output="out/{x}", version="1")
    def read(path: Path) -> str:
        nonlocal tries
        tries += 1
        text = path.read_text()
        if tries == 1:
            path.write_text("second")
        return text

    write(root, "in/a", "first")
    assert pipeline.build(engine=engine).ok
    assert tries == 2
    assert (root / "out/a").read_text() == "second"
    assert set(statuses(pipeline).values()) == {"fresh"}


def test_a_limit_keeps_bodies_apart(root: Path, engine: Engine) -> None:
    import threading
    import time

    at_work, most = 0, 0
    lock = threading.Lock()
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}", output="out/{x}", limit=2, version="1")
    def slow(text: str) -> str:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.01)
        with lock:
            at_work -= 1
        return text

    for number in range(30):
        write(root, f"in/{number}", "x")
    assert len(pipeline.build(engine=engine).produced) == 30
    assert most == 2


def test_async_bodies_are_equal(root: Path, engine: Engine) -> None:
    import asyncio

    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}", output="out/{x}", version="1")
    async def fetch(text: str) -> str:
        await asyncio.sleep(0.01)
        return text.upper()

    write(root, "in/a", "x")
    assert pipeline.build(engine=engine).ok
    assert (root / "out/a").read_text() == "X"


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (str, "a directory is given as Path"),
        (bytes, "a directory is given as Path"),
        (complex, "Path, str and bytes, or JSON"),
    ],
)
def test_a_parameter_that_cannot_have_its_input_is_refused(root: Path, annotation: type, problem: str) -> None:
    def body(folder):
        return ""

    body.__annotations__["folder"] = annotation
    with pytest.raises(DefinitionError, match=problem):
        Pipeline("p", root=root).stage("s", input="in/{x}/", output="out/{x}")(body)


@pytest.mark.parametrize("kind", [str, bytes, Path])
def test_a_validation_says_what_is_wrong(root: Path, engine: Engine, kind: type) -> None:
    def check(state):
        text = state.read_text() if kind is Path else state if kind is str else state.decode()
        return {"good": None, "fine": True, "bad": False, "long": "it is too long"}[text]

    check.__annotations__["state"] = kind
    pipeline = Pipeline("p", root=root)
    pipeline.stage("same", input="in/{x}.txt", output="out/{x}.txt", validate=check, version="1")(
        lambda text: text.read_text()
    )
    for name in ("good", "fine", "bad", "long", "other"):
        write(root, f"in/{name}.txt", name)
    report = pipeline.build(engine=engine)
    assert set(report.produced) == {"same good", "same fine"}
    problems = {unit.removeprefix("same "): problem.rpartition(": ")[2] for unit, problem in report.failed.items()}
    assert problems == {"bad": "its validation refuses it", "long": "it is too long", "other": "'other'"}


async def _wait(_: object = None) -> list[str]:
    return []


@pytest.mark.parametrize("option", ["validate", "entities"])
def test_an_async_function_that_nobody_would_await_is_refused(root: Path, option: str) -> None:
    """Its coroutine is not False, so that everything would be valid."""
    with pytest.raises(DefinitionError, match=f"{option}=.*expected a function without async"):
        Pipeline("p", root=root).stage(**{"input": "in/{x}", "output": "out/{x}", option: _wait})(len)
