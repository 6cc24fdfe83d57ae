"""A graph can be drawn as a picture: nothing overlaps, every arrow is there, and no name can break it."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.graph.layout import POINTS_PER_NODE, Arrangement, _offsets, arrange, place
from stepwell.core.graph.svg import NAME_CELLS, to_svg
from tests.core.graph.dags import dags

SVG = "{http://www.w3.org/2000/svg}"
DIAMOND = Graph(
    [
        NodeSpec("a", "a"),
        NodeSpec("b", "b", depends_on=("a",), kind="task"),
        NodeSpec("c", "c", depends_on=("a",)),
        NodeSpec("d", "d", depends_on=("b", "c")),
    ]
)


def drawn(graph: Graph, statuses: dict[str, str] | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(graph, statuses))


def boxes(picture: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each node."""
    found = []
    for rect in picture.iter(f"{SVG}rect"):
        x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found


def titles(picture: ElementTree.Element) -> list[str]:
    return [title.text or "" for title in picture.iter(f"{SVG}title")]


def parents_of(specs: list[NodeSpec]) -> list[list[int]]:
    position = {spec.id: number for number, spec in enumerate(specs)}
    return [[position[parent] for parent in spec.depends_on] for spec in specs]


def reached(arranged: Arrangement) -> set[tuple[int, int]]:
    """The arrows that somebody sees who follows the segments from node to node."""
    onwards: dict[int, list[int]] = {}
    for start, end in arranged.segments:
        onwards.setdefault(start, []).append(end)
    seen = set()
    for node in range(arranged.nodes):
        walk = list(onwards.get(node, ()))
        while walk:
            vertex = walk.pop()
            if vertex < arranged.nodes:
                seen.add((node, vertex))
            else:
                walk += onwards.get(vertex, ())
    return seen


@given(dags())
def test_what_is_drawn_is_what_depends(specs: list[NodeSpec]) -> None:
    parents = parents_of(specs)
    arranged = arrange(parents)
    assert reached(arranged) == {(parent, node) for node, own in enumerate(parents) for parent in own}
    assert all(arranged.layer[start] < arranged.layer[end] for start, end in arranged.segments)
    assert sorted(vertex for row in arranged.rows for vertex in row) == list(range(len(arranged.layer)))


@given(dags(), st.lists(st.floats(1, 300), min_size=12, max_size=12))
def test_nothing_in_a_layer_overlaps(specs: list[NodeSpec], sizes: list[float]) -> None:
    arranged = arrange(parents_of(specs))
    extents = sizes[: len(specs)]
    across = place(arranged, extents)
    for row in arranged.rows:
        spans = [(across[n], extents[n] if n < len(specs) else 0.0) for n in row]
        assert all(left + size / 2 < right - other / 2 for (left, size), (right, other) in pairwise(spans))
    assert min(at - size / 2 for at, size in zip(across, extents, strict=False)) >= -1e-6


@given(dags())
def test_boxes_do_not_overlap_and_stay_inside(specs: list[NodeSpec]) -> None:
    picture = drawn(Graph(specs))
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    found = boxes(picture)
    assert len(found) == len(specs)
    for number, (left, top, right, bottom) in enumerate(found):
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        for other in found[:number]:
            assert right < other[0] or other[2] < left or bottom < other[1] or other[3] < top


@given(dags())
def test_the_same_graph_gives_the_same_picture(specs: list[NodeSpec]) -> None:
    assert to_svg(Graph(specs)) == to_svg(Graph(specs))


@given(st.text(min_size=1, max_size=60))
def test_no_name_breaks_the_picture(name: str) -> None:
    picture = drawn(Graph([NodeSpec("x", name), NodeSpec("y", "y", depends_on=("x",))]))
    assert len(titles(picture)) == 2
    if name.isprintable():
        assert titles(picture)[0] == name


def test_names_that_mean_something_to_xml_are_shown() -> None:
    name = "</title><script>alert('x')</script>&amp;\"\x00\x1b"
    picture = drawn(Graph([NodeSpec("x", name)]))
    assert titles(picture) == [name.replace("\x00", "\ufffd").replace("\x1b", "\ufffd")]
    assert picture.find(f".//{SVG}script") is None


def test_a_long_name_is_cut_in_the_middle_and_whole_in_its_title() -> None:
    name = "NFCORE_SAREK.PREPARE_GENOME." + "X" * 300 + ".INDEX_2"
    picture = drawn(Graph([NodeSpec("x", name)]))
    (text,) = [each.text or "" for each in picture.iter(f"{SVG}text")]
    assert text.startswith("NFCORE_SAR…")
    assert text.endswith(".INDEX_2")
    assert len(text) == NAME_CELLS
    assert titles(picture) == [name]


def test_statuses_are_written_and_coloured_in_light_and_dark() -> None:
    text = to_svg(DIAMOND, {"a": "COMPLETED", "b": "FAILED", "c": "RUNNING", "d": 'UNHEARD "OF"'})
    picture = ElementTree.fromstring(text)
    assert titles(picture) == ["a: COMPLETED", "b: FAILED", "c: RUNNING", 'd: UNHEARD "OF"']
    assert [group.attrib.get("class") for group in picture.iter(f"{SVG}g")] == ["COMPLETED", "FAILED", "RUNNING", None]
    light, dark = text.split("prefers-color-scheme: dark")
    assert ".FAILED rect" in light
    assert ".FAILED rect" in dark
    assert ".SKIPPED" not in text


def test_a_diamond_is_symmetrical() -> None:
    a, b, c, d = boxes(drawn(DIAMOND))
    assert a[1] == d[1]  # it flows to the right, so these two stand in one line
    assert abs((b[1] + c[3]) / 2 - (a[1] + a[3]) / 2) < 0.2
    assert b[0] == c[0]


def test_a_chain_is_a_straight_line() -> None:
    specs = [NodeSpec(f"s{n}", f"s{n}", depends_on=(f"s{n - 1}",) if n else ()) for n in range(12)]
    heights = {(top, bottom) for _, top, _, bottom in boxes(drawn(Graph(specs)))}  # it flows to the right
    assert len(heights) == 1


def test_a_fan_stands_in_the_order_of_its_declaration() -> None:
    specs = [
        NodeSpec("start", "start"),
        *(NodeSpec(f"part_{n}", f"part_{n}", depends_on=("start",)) for n in range(30)),
        NodeSpec("end", "end", depends_on=tuple(f"part_{n}" for n in range(30))),
    ]
    tops = [top for _, top, _, _ in boxes(drawn(Graph(specs)))[1:-1]]
    assert tops == sorted(tops)


def test_arrows_between_two_fans_meet_in_a_point() -> None:
    before = tuple(f"a{n}" for n in range(50))
    specs = [NodeSpec(name, name) for name in before]
    specs += [NodeSpec(f"b{n}", f"b{n}", depends_on=before) for n in range(60)]
    arranged = arrange(parents_of(specs))
    assert (len(arranged.segments), arranged.joins) == (110, 1)
    assert len(reached(arranged)) == 3_000


def test_arrows_that_skip_many_layers_do_not_take_endless_room() -> None:
    specs = [NodeSpec("s0", "s0")]
    specs += [NodeSpec(f"s{n}", f"s{n}", depends_on=tuple({f"s{n - 1}", f"s{n // 2}"})) for n in range(1, 3_000)]
    arranged = arrange(parents_of(specs))
    assert len(arranged.layer) <= (POINTS_PER_NODE + 1) * len(specs)
    assert len(reached(arranged)) == sum(len(spec.depends_on) for spec in specs)


def test_a_thousand_nodes_are_drawn() -> None:
    choose = random.Random(1)
    specs = [
        NodeSpec(
            f"n{n}", f"n{n}", depends_on=tuple({f"n{choose.randrange(n // 25 * 25)}" for _ in range(2 * (n >= 25))})
        )
        for n in range(1_000)
    ]
    picture = drawn(Graph(specs))
    assert len(titles(picture)) == 1_000
    arrows, heads = (path.attrib["d"] for path in picture.iter(f"{SVG}path"))
    assert re.fullmatch(r"[MChv\d. -]+", arrows), "plain numbers only"
    assert heads.count("M") == sum(len(spec.depends_on) for spec in specs)


def test_lines_that_pass_a_layer_keep_one_distance_to_each_other_and_another_to_nodes() -> None:
    nodes, row = 2, [0, 1, 2, 3, 4]  # two nodes, then three points
    offsets = _offsets(row, [0.0] * 5, nodes)
    between_nodes, beside_a_node, *between_points = [right - left for left, right in pairwise(offsets)]
    assert between_nodes == beside_a_node
    assert len(set(between_points)) == 1
    assert between_points[0] < between_nodes
