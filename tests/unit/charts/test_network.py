"""Networks and lying bars: all is drawn once, nothing overlaps, no name breaks the page."""

import doctest
import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import charts
from sfumato.charts import Edge, bar_rows, layered_layout, network_chart
from sfumato.errors import InputError
from sfumato.randomness import simulation_rng

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ['<script>alert("1")</script>', "'\"><img src=x>", "a & b", "]]>", "\x00\x08\ud800￾"]
SCRIPTS = ["تهران", "עברית", "管理人员", "e\u0301", "x\u202egnp"]
Box = tuple[float, float, float, float]


def names(count: int) -> list[str]:
    return [f"column {place}" for place in range(count)]


def network(count: int, *, parents: int, seed: int) -> list[Edge]:
    """Every column after the first has up to so many random ones before it as parents."""
    rng, nodes, edges = simulation_rng(seed), names(count), []
    for child in range(1, count):
        chosen = rng.permutation(child)[:parents]
        edges += [Edge(start=nodes[int(p)], end=nodes[child]) for p in chosen]
    return edges


def ties(count: int, *, every: int = 1) -> list[Edge]:
    pairs = list(combinations(names(count), 2))[::every]
    return [Edge(start=a, end=b, strength=(i % 7 + 1) / 10) for i, (a, b) in enumerate(pairs)]


def boxes(svg: str) -> list[Box]:
    rects = [r for r in ET.fromstring(svg).iter(f"{SVG}rect") if "sf-box" in r.get("class", "")]
    sides = ("x", "y", "width", "height")
    found = [[float(rect.attrib[side]) for side in sides] for rect in rects]
    return [(x, y, x + width, y + height) for x, y, width, height in found]


def lines(svg: str) -> dict[str, str]:
    """The path of each line by its tooltip."""
    paths = ET.fromstring(svg).iter(f"{SVG}path")
    found = [path for path in paths if path.get("class") == "sf-edge"]
    named = {path.findtext(f"{SVG}title", ""): path.attrib["d"] for path in found}
    assert len(named) == len(found)
    return named


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def overlapping(found: list[Box]) -> list[tuple[Box, Box]]:
    return [
        (a, b)
        for a, b in combinations(found, 2)
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


CASES = [
    ([*names(2)], network(2, parents=1, seed=0), True),
    ([*names(16)], network(16, parents=2, seed=1), True),
    ([*names(50)], network(50, parents=3, seed=2), True),
    ([*names(100)], network(100, parents=2, seed=3), True),
    ([*names(60)], [Edge(start="column 0", end=name) for name in names(60)[1:]], True),
    ([*names(14)], ties(14, every=7), False),
    ([*names(30)], ties(9), False),
    ([*names(90)], ties(90, every=20), False),
    ([*names(40)], [], True),
]


@pytest.mark.parametrize(("nodes", "edges", "directed"), CASES)
def test_every_box_and_line_is_drawn_once_and_no_boxes_overlap(
    nodes: list[str], edges: list[Edge], directed: bool
) -> None:
    svg = network_chart(nodes, edges, directed=directed, title="t")
    found = boxes(svg)
    assert len(found) == len(nodes)
    assert sorted(words(svg)[1:]) == sorted(nodes)
    assert overlapping(found) == []
    tips = {tip.split(":")[0] for tip in lines(svg)}
    sign = "→" if directed else "–"
    assert tips == {f"{edge.start} {sign} {edge.end}" for edge in edges}


def test_the_check_for_overlaps_sees_one() -> None:
    assert overlapping([(0, 0, 10, 10), (9, 9, 20, 20)])
    assert not overlapping([(0, 0, 10, 10), (10, 0, 20, 10)])


@pytest.mark.parametrize(("nodes", "edges", "directed"), CASES)
def test_all_boxes_are_on_the_sheet(nodes: list[str], edges: list[Edge], directed: bool) -> None:
    svg = network_chart(nodes, edges, directed=directed, title="t")
    root = ET.fromstring(svg)
    (aside,) = map(float, re.findall(r"translate\(([\d.]+) 0\)", svg))
    for left, top, right, bottom in boxes(svg):
        assert left + aside >= 0
        assert right + aside <= float(root.attrib["width"])
        assert 0 <= top < bottom <= float(root.attrib["height"])


@pytest.mark.parametrize("seed", range(5))
def test_every_arrow_points_down_from_its_parent_to_its_child(seed: int) -> None:
    nodes, edges = names(30), network(30, parents=3, seed=seed)
    svg = network_chart(nodes, edges, directed=True, title="t")
    place = dict(zip(nodes, boxes(svg), strict=True))
    for edge in edges:
        path = lines(svg)[f"{edge.start} → {edge.end}"]
        body = path.removesuffix("m-3.5-5.5l3.5 5l3.5-5")
        assert body != path
        numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", body)]
        parent, child = place[edge.start], place[edge.end]
        assert numbers[1] == pytest.approx(parent[3], abs=0.02)
        assert numbers[-1] == pytest.approx(child[1], abs=0.02)
        assert child[0] < numbers[-2] < child[2]


@pytest.mark.parametrize("seed", range(5))
def test_no_line_passes_a_row_through_a_box(seed: int) -> None:
    nodes, edges = names(40), network(40, parents=3, seed=seed)
    svg = network_chart(nodes, edges, directed=True, title="t")
    passed = 0
    for path in lines(svg).values():
        for x, top, bottom in re.findall(r"([\d.]+) ([\d.]+)V([\d.]+)", path):
            passed += 1
            for box in boxes(svg):
                beside = not box[0] <= float(x) <= box[2]
                assert beside or float(bottom) <= box[1] or float(top) >= box[3]
    assert passed > 10


def test_the_order_in_rows_has_few_crossings() -> None:
    crossed = [(0, 5), (1, 4), (2, 3)]
    made = layered_layout.layered([40.0] * 6, crossed, capacity=3)
    upper, lower = made.rows
    partner = dict(crossed)
    assert [partner[node] for node in upper] == list(lower)


def test_a_row_holds_no_more_boxes_than_it_may_and_long_lines_share_their_way() -> None:
    made = layered_layout.layered([30.0] * 10, [(0, node) for node in range(1, 10)], capacity=3)
    assert [sum(item < 10 for item in row) for row in made.rows] == [1, 3, 3, 3]
    assert [sum(item >= 10 for item in row) for row in made.rows] == [0, 1, 1, 0]


def test_a_circle_is_refused() -> None:
    circle = [Edge(start="a", end="b"), Edge(start="b", end="c"), Edge(start="c", end="a")]
    with pytest.raises(InputError, match="run in a circle"):
        network_chart("abc", circle, directed=True, title="t")
    assert len(lines(network_chart("abc", circle, directed=False, title="t"))) == 3


@pytest.mark.parametrize(
    ("edges", "says"),
    [
        ([Edge(start="a", end="d")], "'d' is not one of the nodes"),
        ([Edge(start="a", end="a")], "two different nodes"),
        ([Edge(start="a", end="b"), Edge(start="b", end="a")], "and once"),
        ([Edge(start="a", end="b", strength=-0.1)], "strength must be >= 0"),
        ([Edge(start="a", end="b", strength=float("nan"))], "finite numbers"),
    ],
)
def test_edges_that_can_not_be_drawn_are_refused(edges: list[Edge], says: str) -> None:
    with pytest.raises(InputError, match=says):
        network_chart("abc", edges, directed=False, title="t")


def test_nodes_that_can_not_be_drawn_are_refused() -> None:
    with pytest.raises(InputError, match="different names"):
        network_chart("aa", [], directed=True, title="t")
    with pytest.raises(InputError, match="at most 120 nodes and 480 edges, got 121 and 0"):
        network_chart(names(121), [], directed=True, title="t")
    with pytest.raises(InputError, match="'x' is not one of the nodes"):
        network_chart("ab", [], directed=True, title="t", groups={"x": 1})
    with pytest.raises(InputError, match="group must be a whole number >= 1"):
        network_chart("ab", [], directed=True, title="t", groups={"a": 0})


def test_a_stronger_tie_is_a_wider_line() -> None:
    edges = [Edge(start="a", end="b", strength=0.1), Edge(start="a", end="c", strength=0.4)]
    svg = network_chart("abc", edges, directed=False, title="t")
    widths = {
        path.findtext(f"{SVG}title"): float(path.attrib["stroke-width"])
        for path in ET.fromstring(svg).iter(f"{SVG}path")
    }
    assert 0 < widths["a – b: 0.1"] < widths["a – c: 0.4"]
    assert "the strongest, a and c, is 0.4" in svg


def test_a_group_is_a_number_and_not_only_a_color() -> None:
    svg = network_chart("abc", [], directed=True, title="t", groups={"a": 1, "b": 7})
    assert {"1", "7"} <= set(words(svg))
    assert "<title>b, cluster 7</title>" in svg
    assert svg.count("sf-badge-0") == 2
    assert "3 columns in 2 clusters, 0 arrows" in svg


@pytest.mark.parametrize("name", HOSTILE + SCRIPTS)
def test_any_name_gives_well_formed_svg_that_can_be_stored(name: str) -> None:
    other = f"{name} too"
    edges = [Edge(start=name, end=other, strength=0.5)]
    for svg in (
        network_chart([name, other], edges, directed=True, title=name, groups={name: 1}),
        network_chart([name, other], edges, directed=False, title=name),
        bar_rows([name, other], {name: [1, 2], other: [0, 1]}, title=name, groups={name: 3}),
    ):
        tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
        assert tags <= {"svg", "title", "desc", "rect", "text", "g", "path"}
        assert svg.encode()


@given(st.lists(st.text(max_size=40), min_size=2, max_size=6, unique=True))
@settings(derandomize=True, max_examples=40, deadline=None)
def test_no_name_breaks_a_network(nodes: list[str]) -> None:
    edges = [Edge(start=nodes[0], end=name) for name in nodes[1:]]
    svg = network_chart(nodes, edges, directed=True, title="t")
    assert len(boxes(svg)) == len(nodes)
    assert overlapping(boxes(svg)) == []


def test_a_right_to_left_name_turns_around_neither_the_arrow_nor_its_number() -> None:
    svg = network_chart(["تهران", "b"], [Edge(start="تهران", end="b")], directed=True, title="t")
    assert "<title>\u2068تهران\u2069 → b</title>" in svg


def test_a_long_name_is_cut_in_its_box_and_whole_in_its_tooltip() -> None:
    long = "a name that is much too long for any box of a network"
    svg = network_chart([long, "b"], [], directed=True, title="t")
    assert long not in words(svg)
    assert f"<title>{long}</title>" in svg
    left, _, right, _ = boxes(svg)[0]
    assert right - left < 120


def test_long_names_that_start_alike_keep_their_ends() -> None:
    alike = [f"answer_to_the_long_question_{number}" for number in (17, 42)]
    shown = words(network_chart([*alike, "b"], [], directed=True, title="t"))[1:]
    assert [label[-3:] for label in shown[:2]] == ["_17", "_42"]
    assert all(label.startswith("answer") and "…" in label for label in shown[:2])


def test_the_same_network_gives_the_same_bytes_and_says_what_it_is() -> None:
    edges = network(50, parents=3, seed=4)
    first = network_chart(names(50), edges, directed=True, title="Network")
    assert first == network_chart(names(50), list(edges), directed=True, title="Network")
    root = ET.fromstring(first)
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == "Network"
    assert "arrows from parents above to children below" in root.findtext(f"{SVG}desc", "")
    assert not re.search(r"<(script|style)|style=| id=| on\w+=", first)


def test_a_network_of_fifty_columns_fits_the_page_without_shrinking_much() -> None:
    svg = network_chart(names(50), network(50, parents=3, seed=2), directed=True, title="t")
    assert float(ET.fromstring(svg).attrib["width"]) < 1_300


def test_bars_are_as_long_as_their_numbers_end_to_end() -> None:
    svg = bar_rows(["a", "b"], {"one": [1.0, 3.0], "two": [1.0, 0.0]}, title="t")
    rects = [r for r in ET.fromstring(svg).iter(f"{SVG}rect") if r.get("class") != "sf-paper"]
    x, long = ([float(rect.attrib[key]) for rect in rects] for key in ("x", "width"))
    assert long[1] == pytest.approx(long[0], abs=0.02)
    assert long[2] == pytest.approx(3 * long[0], abs=0.04)
    assert long[3] == 0
    assert x[1] == pytest.approx(x[0] + long[0], abs=0.02)
    assert {"one", "two", "2", "3"} <= set(words(svg))


def test_bars_that_can_not_be_drawn_are_refused() -> None:
    with pytest.raises(InputError, match="labels has 1, part has 2"):
        bar_rows(["a"], {"one": [1.0, 2.0]}, title="t")
    with pytest.raises(InputError, match="must be >= 0"):
        bar_rows(["a"], {"one": [-1.0]}, title="t")
    with pytest.raises(InputError, match="1 to 4 parts, got 5"):
        bar_rows(["a"], {str(part): [1.0] for part in range(5)}, title="t")
    with pytest.raises(InputError, match="finite"):
        bar_rows(["a"], {"one": [float("inf")]}, title="t")


def test_no_bars_are_an_empty_sheet() -> None:
    assert "0 bars." in bar_rows([], {"one": []}, title="t")


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(layered_layout).failed == 0
    assert charts.MAX_NODES >= 100


def test_weak_ties_are_thinner_and_fainter_than_strong_ones() -> None:
    edges = [Edge(start="a", end="b", strength=1.0), Edge(start="b", end="c", strength=0.1)]
    svg = network_chart(["a", "b", "c"], edges, directed=False, title="t")
    strong, weak = (
        (float(path.attrib["stroke-width"]), float(path.attrib["stroke-opacity"]))
        for path in ET.fromstring(svg).iter(f"{SVG}path")
    )
    assert strong[0] > weak[0] > 0
    assert strong[1] == 1 > weak[1] >= 0.3


def test_lines_without_a_strength_are_not_faint() -> None:
    svg = network_chart(["a", "b"], [Edge(start="a", end="b")], directed=True, title="t")
    assert "stroke-opacity" not in svg
