"""Ten thousand entities: built once, then only what changed."""

from __future__ import annotations

from pathlib import Path

from stepwell import Engine, Pipeline

MANY = 10_000


def make(root: Path) -> Pipeline:
    pipeline = Pipeline("many", root=root)

    @pipeline.stage(input="in/{number}", output="out/{number}", version="1")
    def double(text: str) -> str:
        if text == "7":
            raise ValueError("seven")
        return str(2 * int(text))

    @pipeline.stage(input="out/{number}", output="sum", collect="number", version="1")
    def total(numbers: list[int]) -> str:
        return str(sum(numbers))

    return pipeline


def test_ten_thousand_entities(root: Path, engine: Engine) -> None:
    (root / "in").mkdir()
    for number in range(MANY):
        (root / f"in/{number}").write_text(str(number))
    report = make(root).build(engine=engine)
    assert len(report.produced) == MANY - 1
    assert report.failed == {"double 7": "seven"}
    assert report.left == {"double 7": "failed", "total": "blocked"}
    (root / "in/7").write_text("8")
    assert set(make(root).build(engine=engine).produced) == {"double 7", "total"}
    assert (root / "sum").read_text() == str(sum(range(MANY)) * 2 + 2)
    assert make(root).build(engine=engine).produced == ()
    manifest = (root / "out/.manifest.json").stat()
    (root / "in/4711").write_text("0")
    (root / "in/4712").unlink()
    assert set(make(root).build(engine=engine).produced) == {"double 4711", "total"}
    assert (root / "sum").read_text() == str(sum(range(MANY)) * 2 + 2 - 2 * 4711 - 2 * 4712)
    again = (root / "out/.manifest.json").stat()
    assert again.st_mtime_ns == manifest.st_mtime_ns, "one state changed, and the whole manifest was written anew"
    status = make(root).status()
    assert (status.counts["fresh"], status.counts["orphan"]) == (MANY, 1)
