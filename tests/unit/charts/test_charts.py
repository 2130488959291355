"""Charts: what is drawn is what was given, and nothing a label says can break the page."""

import doctest
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import charts
from sfumato.charts import canvas
from sfumato.errors import InputError

SVG = "{http://www.w3.org/2000/svg}"
AGES = [str(age) for age in range(4, 18)]
HOSTILE = ['<script>alert("1")</script>', "'\"><img src=x>", "a & b", "]]>", "\x00\x08\ud800￾"]
SCRIPTS = ["تهران", "עברית", "管理人员", "e\u0301", "x\u202egnp"]
NOT_NUMBERS = [float("nan"), float("inf"), -float("inf"), 1e101]


def histogram(labels: list[str], **options: object) -> str:
    options.setdefault("published", list(range(len(labels))))
    return charts.histogram_chart(labels, title="t", **options)  # type: ignore[arg-type]


def five_charts(labels: list[str]) -> list[str]:
    values = [float(i) for i in range(len(labels))]
    line = charts.Line(name=labels[0], values=values, margins=values)
    return [
        charts.histogram_chart(labels, values, real=values, errors=values, title=labels[0]),
        charts.sideways_chart(labels, values, real=values, errors=values, title=labels[0]),
        charts.heat_map(labels, labels, [values] * len(labels), title=labels[0]),
        charts.line_chart([line, line], x_labels=labels, title=labels[0]),
        charts.bar_rows(labels, {"one": values}, title=labels[0], groups={labels[0]: 3}),
    ]


def bars(svg: str) -> list[dict[str, float]]:
    found = ET.fromstring(svg).findall(f".//{SVG}g[@class='sf-bar']/{SVG}rect")
    return [{key: float(value) for key, value in rect.attrib.items()} for rect in found]


def path(svg: str, name: str) -> str:
    """The path of that class with the most to say; the other is its mark in the legend."""
    found = ET.fromstring(svg).findall(f".//{SVG}path[@class='{name}']")
    return max((element.attrib["d"] for element in found), key=len)


def shades(svg: str, name: str) -> dict[float, str]:
    """The shades of a map: where the cells of each begin, in units of a cell."""
    cells = ET.fromstring(svg).findall(f"{SVG}g/{SVG}path[@class='{name}']")
    starts = {
        float(c.attrib["stroke-opacity"]): re.sub(r"h[\d.]+", "", c.attrib["d"]) for c in cells
    }
    assert all(0 < shade <= 1 for shade in starts)
    return starts


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_a_bar_for_twice_the_count_is_twice_as_high() -> None:
    single, double, half = bars(histogram(["a", "b", "c"], published=[100, 200, 50]))
    assert double["height"] == pytest.approx(2 * single["height"], abs=0.2)
    assert half["height"] == pytest.approx(single["height"] / 2, abs=0.1)
    assert single["y"] + single["height"] == pytest.approx(double["y"] + double["height"])


def test_bars_do_not_overlap_and_stay_on_the_sheet() -> None:
    drawn = bars(histogram([str(i) for i in range(60)], published=[5.0] * 60))
    ends = [bar["x"] + bar["width"] for bar in drawn]
    assert all(end < bar["x"] for end, bar in zip(ends, drawn[1:], strict=False))
    assert ends[-1] <= 420


def test_very_many_bars_are_one_path_at_the_same_heights() -> None:
    svg = histogram([str(i) for i in range(61)], published=[float(i) for i in range(61)])
    assert bars(svg) == []
    tops = [float(y) for y in re.findall(r"V([\d.]+)h", path(svg, "sf-bar"))]
    few = [bar["y"] for bar in bars(histogram(["59", "60"], published=[59, 60]))]
    assert tops[-2:] == pytest.approx(few, abs=0.11)
    assert len(tops) == 60


def test_a_negative_count_hangs_below_zero() -> None:
    up, down = bars(histogram(["a", "b"], published=[10, -10]))
    assert down["y"] == pytest.approx(up["y"] + up["height"], abs=0.11)
    assert down["height"] == pytest.approx(up["height"], abs=0.11)


def test_an_outline_of_the_real_count_is_as_high_as_a_bar_of_it() -> None:
    svg = histogram(["a", "b"], published=[100, 300], real=[300, 100])
    tops = [float(y) for y in re.findall(r"V([\d.]+)h", path(svg, "sf-real"))]
    first, second = bars(svg)
    assert tops == pytest.approx([second["y"], first["y"]], abs=0.02)


def test_a_whisker_reaches_the_error_up_and_down() -> None:
    svg = histogram(["a", "b"], published=[100, 200], errors=[50, 10])
    pixels_per_count = bars(svg)[0]["height"] / 100
    ends = re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", path(svg, "sf-noise"))
    spans = [float(low) - float(high) for low, high in ends]
    assert spans == pytest.approx([100 * pixels_per_count, 20 * pixels_per_count], abs=0.2)


def test_the_legend_names_only_what_is_drawn() -> None:
    assert not {"published", "real", "known noise"} & set(words(histogram(AGES)))
    assert "real" not in words(histogram(AGES, errors=[1.0] * 14))
    assert {"published", "real"} <= set(words(histogram(AGES, real=[1.0] * 14)))


def test_all_zeros_draw_an_axis_without_bars() -> None:
    svg = histogram(AGES, published=[0.0] * 14)
    assert bars(svg) == []
    assert {"0", "1"} <= set(words(svg))


def test_nothing_at_all_still_draws_a_sheet() -> None:
    for svg in (
        histogram([]),
        charts.heat_map([], [], [], title="t"),
        charts.line_chart([], x_labels=[], title="t"),
        charts.line_chart([charts.Line(name="n", values=[])], x_labels=[], title="t"),
    ):
        assert ET.fromstring(svg).attrib["role"] == "img"


def test_above_200_cells_neighbors_are_added_up_and_the_chart_says_so() -> None:
    svg = histogram([str(i) for i in range(1000)], published=[1.0] * 1000, errors=[2.0] * 1000)
    assert path(svg, "sf-bar").count("M") == charts.MAX_BARS
    assert "Each bar adds up 5 neighboring cells of 1,000." in words(svg)
    assert "adds up" not in histogram([str(i) for i in range(200)])


def test_errors_of_merged_bars_add_in_squares() -> None:
    merged = histogram([str(i) for i in range(800)], published=[1.0] * 800, errors=[3.0] * 800)
    low, high = re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", path(merged, "sf-noise"))[0]
    zero, top = re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", path(merged, "sf-bar"))[0]
    pixels_per_count = (float(zero) - float(top)) / 4
    assert float(low) - float(high) == pytest.approx(2 * 6 * pixels_per_count, abs=0.4)


@pytest.mark.parametrize("wrong", NOT_NUMBERS)
def test_a_number_that_is_none_is_refused(wrong: float) -> None:
    drawings: list[Callable[[], str]] = [
        lambda: histogram(["a"], published=[wrong]),
        lambda: histogram(["a"], real=[wrong]),
        lambda: histogram(["a"], errors=[wrong]),
        lambda: charts.heat_map(["a"], ["b"], [[wrong]], title="t"),
        lambda: charts.line_chart(
            [charts.Line(name="n", values=[wrong])], x_labels=["a"], title="t"
        ),
    ]
    for draw in drawings:
        with pytest.raises(InputError, match=r"finite numbers, got NaN or infinity\. Leave out"):
            draw()


def test_what_does_not_go_together_is_refused() -> None:
    line = charts.Line(name="n", values=[1.0])
    with pytest.raises(InputError, match="labels has 2, published has 1"):
        histogram(["a", "b"], published=[1.0])
    with pytest.raises(InputError, match="real has 3"):
        histogram(["a", "b"], real=[1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="errors must be >= 0"):
        histogram(["a"], errors=[-1.0])
    with pytest.raises(InputError, match=r"shape \(2, 1\).*got \(1, 2\)"):
        charts.heat_map(["a", "b"], ["c"], [[1.0, 2.0]], title="t")
    with pytest.raises(InputError, match="rows of the same length"):
        charts.heat_map(["a", "b"], ["c"], [[1.0], [1.0, 2.0]], title="t")
    with pytest.raises(InputError, match="x_labels has 2"):
        charts.line_chart([line], x_labels=["a", "b"], title="t")
    with pytest.raises(InputError, match="at most 6 lines, got 7"):
        charts.line_chart([line] * 7, x_labels=["a"], title="t")


@pytest.mark.parametrize("label", HOSTILE + SCRIPTS)
def test_any_label_gives_well_formed_svg_that_can_be_stored(label: str) -> None:
    for svg in five_charts([label, label]):
        tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
        assert tags <= {"svg", "title", "desc", "rect", "text", "g", "path", "circle"}
        assert svg.encode()


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_no_text_breaks_a_chart(labels: list[str]) -> None:
    for svg in five_charts(labels):
        assert ET.fromstring(svg).tag == f"{SVG}svg"


def test_a_right_to_left_label_keeps_its_direction_to_itself() -> None:
    assert canvas.safe("تهران") == "\u2068تهران\u2069"
    assert canvas.safe("x\u202ey").startswith("\u2068")
    assert canvas.safe("plain") == "plain"


def test_a_long_label_is_cut_on_the_axis_and_whole_in_the_tooltip() -> None:
    label = "Other service, not elsewhere classified"
    svg = histogram([label, *AGES], published=[7.0] * 15)
    assert label not in words(svg)
    assert any(word.startswith("Other service") and word.endswith("…") for word in words(svg))
    assert f"<title>{label}: 7</title>" in svg


def test_east_asian_characters_are_as_wide_as_they_are_high() -> None:
    assert canvas.width_px("管理") >= 2 * 11 > 1.5 * canvas.width_px("ab")
    assert canvas.width_px("e\u0301") == canvas.width_px("e")
    assert canvas.width_px("می\u200cشود") == canvas.width_px("میشود")


def test_few_labels_stand_level_many_slope_and_more_are_thinned() -> None:
    level = canvas.label_axis(AGES, left=40, right=400)
    sloped = canvas.label_axis(["a long category name"] * 14, left=40, right=400)
    thinned = canvas.label_axis([str(i) for i in range(200)], left=40, right=400)
    assert (level.every, level.sloped) == (1, False)
    assert (sloped.every, sloped.sloped) == (1, True)
    assert (thinned.every, thinned.sloped) == (20, False)
    assert sloped.left > 40


def test_a_logarithmic_axis_between_round_numbers_still_has_ticks() -> None:
    scale = canvas.scale_over(np.array([201.0, 402.0]), pixels=(200, 30), log=True)
    assert scale.ticks() == [300, 400]


@given(
    st.floats(-1e90, 1e90, allow_nan=False), st.floats(1e-60, 1e90, allow_nan=False), st.booleans()
)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_an_axis_has_a_few_ticks_inside_its_scale(low: float, span: float, log: bool) -> None:
    values = np.array([span, 2 * span] if log else [low, span])
    build = canvas.scale_over(values, pixels=(200, 30), log=True) if log else None
    scale = build or canvas.scale_from_zero(values, pixels=(200, 30))
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 12
    assert all(29 <= scale.at(tick) <= 201 for tick in ticks)


def test_ticks_are_round() -> None:
    scale = canvas.scale_from_zero(np.array([23_456.0]), pixels=(200, 30))
    assert [charts.compact(tick) for tick in scale.ticks()] == ["0", "10k", "20k"]
    log = canvas.scale_over(np.array([1.0, 1e6]), pixels=(200, 30), log=True)
    assert [charts.compact(tick) for tick in log.ticks()] == [
        "1", "10", "100", "1k", "10k", "100k", "1M",
    ]  # fmt: skip


def test_a_logarithmic_axis_puts_equal_ratios_at_equal_distances() -> None:
    line = charts.Line(name="error", values=[1000.0, 100.0, 10.0])
    svg = charts.line_chart(
        [line], x_labels=["1", "4", "16"], x_values=[1, 4, 16], log_x=True, log_y=True, title="t"
    )
    spots = [tuple(map(float, point.split())) for point in path(svg, "sf-line-0")[1:].split("L")]
    (x1, y1), (x2, y2), (x3, y3) = spots
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.02)
    assert y2 - y1 == pytest.approx(y3 - y2, abs=0.02)
    with pytest.raises(InputError, match="above 0"):
        charts.line_chart(
            [charts.Line(name="n", values=[0.0])], x_labels=["a"], log_y=True, title="t"
        )


def test_a_band_surrounds_its_line() -> None:
    line = charts.Line(name="n", values=[10.0, 20.0], margins=[5.0, 5.0])
    svg = charts.line_chart([line], x_labels=["a", "b"], title="t")
    ys = [float(y) for y in re.findall(r"[\d.]+ ([\d.]+)", path(svg, "sf-band-0"))]
    middle = [float(y) for y in re.findall(r"[\d.]+ ([\d.]+)", path(svg, "sf-line-0"))]
    assert [(ys[0] + ys[3]) / 2, (ys[1] + ys[2]) / 2] == pytest.approx(middle, abs=0.02)
    assert ys[0] < middle[0] < ys[3]


def test_a_long_line_is_thinned_and_says_so() -> None:
    line = charts.Line(name="n", values=[1.0] * 1000)
    svg = charts.line_chart([line], x_labels=[""] * 1000, title="t")
    assert path(svg, "sf-line-0").count("L") == 333
    assert "1 of 3 points is drawn, of 1,000." in words(svg)


def test_shades_grow_with_the_count_and_cells_at_or_below_zero_stay_empty() -> None:
    svg = charts.heat_map(["a", "b"], ["c", "d"], [[100, 50], [0, -7]], title="t")
    assert shades(svg, "sf-cell") == {0.5: "M0 1", 1.0: "M0 0"}
    assert {"100", "50", "0", "-7"} <= set(words(svg))


def test_signed_numbers_below_zero_have_shades_of_their_own() -> None:
    svg = charts.heat_map(["a", "b"], ["c"], [[0.5], [-0.25]], title="t", darkest=1.0, signed=True)
    assert shades(svg, "sf-cell") == {0.5: "M0 0"}
    assert shades(svg, "sf-below") == {0.25: "M1 0"}
    assert {"0.5", "-0.25", "-1", "1"} <= set(words(svg))
    assert "sf-below" not in charts.heat_map(["a"], ["b"], [[-1]], title="t")


def test_a_map_without_zeros_writes_every_number_but_zero() -> None:
    table = [[0, 50], [0.2, 0]]
    svg = charts.heat_map(["a", "b"], ["c", "d"], table, title="t", zeros=False)
    assert sorted(words(svg)) == sorted(["50", "0", "a", "b", "c", "d", "0", "50", "t"])
    assert words(charts.heat_map(["a", "b"], ["c", "d"], table, title="t")).count("0") == 4


def test_every_row_of_a_large_map_has_its_name() -> None:
    labels = [f"column {number}" for number in range(charts.MAX_HEAT_CELLS)]
    svg = charts.heat_map(["a"], labels, [[1.0] * len(labels)], title="t")
    assert set(labels) <= set(words(svg))


def test_two_maps_can_share_their_darkest_shade() -> None:
    svg = charts.heat_map(["a"], ["b"], [[25]], title="t", darkest=100)
    assert shades(svg, "sf-cell") == {0.25: "M0 0"}
    assert "100" in words(svg)


def test_the_first_label_goes_across_and_the_second_down() -> None:
    svg = charts.heat_map(["x1", "x2", "x3"], ["y1", "y2"], [[1, 2], [3, 4], [5, 6]], title="t")
    spots = {
        element.text: (float(element.attrib["x"]), float(element.attrib["y"]))
        for element in ET.fromstring(svg).iter(f"{SVG}text")
        if "x" in element.attrib
    }
    assert spots["5"][0] == pytest.approx(spots["x3"][0])
    assert spots["4"][0] == pytest.approx(spots["x2"][0])
    assert spots["4"][1] == pytest.approx(spots["y2"][1], abs=1)


def test_a_large_table_is_merged_to_a_small_map_that_says_so() -> None:
    labels = [str(i) for i in range(100)]
    svg = charts.heat_map(labels, labels, np.ones((100, 100)).tolist(), title="t")
    assert "Each cell adds up 3 by 3 neighboring cells." in words(svg)
    assert "34 by 34 cells; the largest: 0 … 2 and 0 … 2 with 9" in svg
    assert len(svg) < 20_000


def test_a_long_label_beside_a_map_is_whole_in_its_tooltip() -> None:
    label = "Other service, not elsewhere classified"
    svg = charts.heat_map(["a"], [label], [[1]], title="t")
    assert f"<title>{label}</title>" in svg
    assert any(word.startswith("Other service") and word.endswith("…") for word in words(svg))


def test_merged_labels_without_room_name_the_first_only_once_cut() -> None:
    labels = [f"Country of birth number {i:02}" for i in range(50)]
    svg = charts.heat_map(["a"], labels, [[1.0] * 50], title="t")
    assert not any("…" in word[:-1] for word in words(svg))
    assert any(word.startswith("Country of birth") and word.endswith("…") for word in words(svg))


def sideways(labels: list[str], **options: object) -> str:
    return charts.sideways_chart(labels, title="t", **options)  # type: ignore[arg-type]


def test_bars_that_lie_stand_from_the_largest_down_beside_their_names() -> None:
    svg = sideways(["small", "large", "middle"], published=[100, 300, 200])
    first, second, third = bars(svg)
    assert [first["width"], second["width"]] == pytest.approx(
        [3 * third["width"], 2 * third["width"]], abs=0.3
    )
    assert first["y"] < second["y"] < third["y"]
    assert words(svg)[words(svg).index("large") :][:3] == ["large", "middle", "small"]


def test_bars_that_lie_show_the_largest_and_say_how_many_are_left_out() -> None:
    svg = sideways([f"value {i}" for i in range(50)], published=[float(i) for i in range(50)])
    assert len(bars(svg)) == 24
    assert "The 24 largest; 26 more hold less each." in words(svg)
    assert "value 49" in words(svg)
    assert "value 25" not in words(svg)


def test_whiskers_and_outlines_that_lie_reach_what_they_stand_for() -> None:
    svg = sideways(["a", "b"], published=[100, 200], real=[200, 100], errors=[50, 10])
    long, short = bars(svg)
    pixels_per_count = long["width"] / 200
    ends = re.findall(r"M([\d.]+) [\d.]+H([\d.]+)", path(svg, "sf-noise"))
    spans = [float(stop) - float(start) for start, stop in ends]
    assert spans == pytest.approx([20 * pixels_per_count, 100 * pixels_per_count], abs=0.2)
    real = [float(x) for x in re.findall(r"H([\d.]+)v", path(svg, "sf-real"))]
    assert real == pytest.approx([short["x"] + short["width"], long["x"] + long["width"]], abs=0.11)


def test_a_group_is_a_number_and_not_only_a_color() -> None:
    svg = charts.bar_rows("abc", {"one": [1, 2, 3]}, title="t", groups={"a": 1, "b": 7})
    assert {"1", "7"} <= set(words(svg))
    assert svg.count("sf-badge-0") == 2


def test_bars_are_as_long_as_their_numbers_end_to_end() -> None:
    svg = charts.bar_rows(["a", "b"], {"one": [1.0, 3.0], "two": [1.0, 0.0]}, title="t")
    rects = [r for r in ET.fromstring(svg).iter(f"{SVG}rect") if r.get("class") != "sf-paper"]
    x, long = ([float(rect.attrib[key]) for rect in rects] for key in ("x", "width"))
    assert long[1] == pytest.approx(long[0], abs=0.02)
    assert long[2] == pytest.approx(3 * long[0], abs=0.04)
    assert long[3] == 0
    assert x[1] == pytest.approx(x[0] + long[0], abs=0.02)
    assert {"one", "two", "2", "3"} <= set(words(svg))


def test_bars_that_can_not_be_drawn_are_refused() -> None:
    with pytest.raises(InputError, match="labels has 1, part has 2"):
        charts.bar_rows(["a"], {"one": [1.0, 2.0]}, title="t")
    with pytest.raises(InputError, match="must be >= 0"):
        charts.bar_rows(["a"], {"one": [-1.0]}, title="t")
    with pytest.raises(InputError, match="1 to 4 parts, got 5"):
        charts.bar_rows(["a"], {str(part): [1.0] for part in range(5)}, title="t")
    with pytest.raises(InputError, match="finite"):
        charts.bar_rows(["a"], {"one": [float("inf")]}, title="t")


def test_no_bars_are_an_empty_sheet() -> None:
    assert "0 bars." in charts.bar_rows([], {"one": []}, title="t")


def test_fifty_bars_take_less_than_8_kilobytes() -> None:
    counts = np.linspace(100, 54_321.123456, 50).tolist()
    assert len(histogram([str(i) for i in range(50)], published=counts).encode()) < 8_000


def test_the_same_numbers_give_the_same_bytes() -> None:
    assert five_charts(AGES) == five_charts(list(AGES))


def test_a_chart_describes_itself_in_words() -> None:
    root = ET.fromstring(histogram(AGES))
    assert root.findtext(f"{SVG}title") == "t"
    assert root.findtext(f"{SVG}desc") == "14 bars from 4 to 17; the largest, 17, is 13."


def test_a_chart_carries_no_style_attribute_and_asks_for_nothing() -> None:
    for svg in five_charts(AGES):
        assert " style=" not in svg
        assert not re.search(r"href|src=|url\(|<style|<script| on\w+=", svg)


def test_the_examples_in_the_docstrings_hold() -> None:
    results = doctest.testmod(canvas)
    assert results.attempted > 0
    assert results.failed == 0
