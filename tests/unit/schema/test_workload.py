"""Workloads: which questions exist, how ranges are written, and sums inside boxes."""

import json
from datetime import date
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, SchemaError
from sfumato.randomness import simulation_rng
from sfumato.schema import (
    Boolean,
    Category,
    Date,
    Integer,
    Measurement,
    Number,
    Ordinal,
    Range,
    Schema,
    Workload,
    all_marginals,
    chosen_marginals,
    load_workload,
    random_ranges,
    ranges,
)
from sfumato.schema.workload import box_sums, boxes, layout

SCHEMA = Schema(
    columns=(
        Integer(name="age", low=4, high=17),
        Category(name="help", values=("1", "2", "3", "4"), other=True),
        Ordinal(name="grade", values=("low", "mid", "high"), missing=True),
        Boolean(name="member"),
        Number(name="income", edges=(0, 10, 20, 50)),
        Date(name="visit", low=date(2020, 1, 1), high=date(2020, 12, 31), step="month"),
        Integer(name="weeks", low=0, high=51, step=4, missing=True),
    )
)


def _sizes(*sizes):
    columns = (Integer(name=f"c{i}", low=1, high=size) for i, size in enumerate(sizes))
    return Schema(columns=tuple(columns))


# ---------------------------------------------------------------- marginals


@pytest.mark.parametrize("degree", [1, 2, 3, 7])
def test_all_marginals_are_all_combinations_once(degree):
    workload = all_marginals(SCHEMA, degree=degree)
    assert len(workload) == comb(7, degree)
    assert workload.targets == tuple(combinations(SCHEMA.names, degree))
    assert workload.marginals == workload.targets
    assert workload.ranges == ()


@pytest.mark.parametrize("degree", [0, 8, 1.0, True])
def test_a_degree_beyond_the_columns_is_refused(degree):
    with pytest.raises(InputError, match="degree must be a whole number between 1 and 7"):
        all_marginals(SCHEMA, degree=degree)


def test_more_marginals_than_can_be_asked_are_refused_before_any_is_made():
    schema = Schema(columns=tuple(Boolean(name=f"c{i}") for i in range(80)))
    with pytest.raises(InputError, match="number_of_marginals"):
        all_marginals(schema, degree=40)


def test_chosen_marginals_stand_in_the_order_of_the_schema():
    workload = chosen_marginals(SCHEMA, [["member", "age"], ["help"]])
    assert workload.targets == (("age", "member"), ("help",))
    with pytest.raises(InputError, match="each marginal and each range once"):
        chosen_marginals(SCHEMA, [["member", "age"], ["age", "member"]])
    with pytest.raises(SchemaError, match="Did you mean 'age'"):
        chosen_marginals(SCHEMA, [["agee"]])
    with pytest.raises(InputError, match="at least one"):
        Workload(schema=SCHEMA, targets=())


# ---------------------------------------------------------------- ranges by value


@pytest.mark.parametrize(
    ("column", "ends", "codes"),
    [
        ("age", [10, 11], (6, 7)),
        ("age", [10, 10], (6, 6)),
        ("age", ["10", 11.0], (6, 7)),
        ("age", [-100, 100], (0, 13)),
        ("help", ["1", "2"], (0, 1)),
        ("grade", ["mid", "high"], (1, 2)),
        ("member", [False, True], (0, 1)),
        ("member", ["yes", "yes"], (1, 1)),
        ("income", [5, 19.99], (0, 1)),
        ("income", [5, 20], (0, 1)),
        ("visit", ["2020-02-15", "2020-04-01"], (1, 3)),
        ("visit", [date(2020, 1, 1), date(2020, 12, 31)], (0, 11)),
        ("weeks", [4, 11], (1, 2)),
    ],
)
def test_a_range_by_values_holds_the_codes_of_its_ends(column, ends, codes):
    (found,) = ranges(SCHEMA, [{column: ends}]).ranges
    assert found == Range(((column, *codes),))


def test_a_range_stands_in_the_order_of_the_schema_and_reads_as_text():
    (found,) = ranges(SCHEMA, [{"help": ["1", "2"], "age": [4, 7]}]).ranges
    assert found.bounds == (("age", 0, 3), ("help", 0, 1))
    assert found.marginal == ("age", "help")
    assert str(found) == "age 0..3 and help 0..1"


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ({}, "a range is an object"),
        ([1, 2], "a range is an object"),
        ({"agee": [1, 2]}, "Did you mean 'age'"),
        ({"age": [10]}, "needs two ends"),
        ({"age": 10}, "needs two ends"),
        ({"age": "10"}, "needs two ends"),
        ({"age": {"low": 1, "high": 2}}, "needs two ends"),
        ({"age": [11, 10]}, "ends before it begins"),
        ({"grade": ["high", "low"]}, "ends before it begins"),
        ({"help": ["1", "9"]}, "'help' has no value '9'"),
        ({"help": [1, 2]}, "'help' has no value 1"),
        ({"help": ["1", "(other)"]}, "has no value"),
        ({"help": [["1"], "2"]}, "has no value"),
        ({"age": [10, "x"]}, "'x' can't be an end of a range of 'age'"),
        ({"age": [10.5, 11]}, "10.5 can't be an end"),
        ({"age": [10, None]}, "None can't be an end"),
        ({"weeks": [10, None]}, "None can't be an end"),
        ({"weeks": [float("nan"), 5]}, "nan can't be an end"),
        ({"age": [True, 11]}, "True can't be an end"),
        ({"age": [10**30, 10**31]}, "can't be an end"),
        ({"age": [[1], 2]}, "can't be an end"),
        ({"income": [0, float("inf")]}, "inf can't be an end"),
        ({"visit": ["2020-02-30", "2020-03-01"]}, "'2020-02-30' can't be an end"),
        ({"visit": [20200101, 20200201]}, "can't be an end"),
        ({"member": ["maybe", True]}, "'maybe' can't be an end"),
    ],
)
def test_a_wrong_range_is_refused_with_its_column(box, message):
    with pytest.raises(InputError, match=message):
        ranges(SCHEMA, [box])


# ---------------------------------------------------------------- random ranges


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    part=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_random_ranges_are_different_and_lie_inside(sizes, part, seed):
    schema = _sizes(*sizes)
    possible = int(np.prod([size * (size + 1) // 2 for size in sizes]))
    n = max(1, round(part * possible))
    found = random_ranges(schema, n=n, rng=simulation_rng(seed)).ranges
    assert len(set(found)) == len(found) == n
    for box in found:
        assert box.marginal == schema.names
        assert all(0 <= low <= high < schema[name].size for name, low, high in box.bounds)


@pytest.mark.parametrize("sizes", [(1,), (6,), (3, 4), (300,)])
def test_as_many_ranges_as_exist_can_be_had_and_no_more(sizes):
    schema = _sizes(*sizes)
    possible = int(np.prod([size * (size + 1) // 2 for size in sizes]))
    assert len(set(random_ranges(schema, n=possible, rng=simulation_rng(0)).targets)) == possible
    with pytest.raises(InputError, match=f"only {possible} exist"):
        random_ranges(schema, n=possible + 1, rng=simulation_rng(0))
    with pytest.raises(InputError, match="n must be a whole number"):
        random_ranges(schema, n=0, rng=simulation_rng(0))


def test_random_ranges_follow_the_seed():
    first, again, other = (
        random_ranges(SCHEMA, n=20, rng=simulation_rng(seed)) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("n", [1, 4])
def test_the_first_range_is_likely_as_its_ends_say_both_where_few_and_where_many_exist(n):
    """Chance of the box (low, high) is 1/3 * 1/(3 - low); n = 4 of 6 takes the path for few.

    2,000 draws of the first of them; a chi-square with 5 degrees of freedom exceeds 30 with
    probability 1.5e-5. Against equal chances for all boxes the distance is about 440.
    """
    schema, rng = _sizes(3), simulation_rng(5)
    seen: dict[tuple[int, int], int] = {}
    for _ in range(2000):
        ((_, low, high),) = random_ranges(schema, n=n, rng=rng).ranges[0].bounds
        seen[low, high] = seen.get((low, high), 0) + 1
    expected = {(a, b): 2000 / 3 / (3 - a) for a in range(3) for b in range(a, 3)}
    distance = sum((seen.get(box, 0) - e) ** 2 / e for box, e in expected.items())
    assert distance < 30
    assert sum((count - 2000 / 6) ** 2 / (2000 / 6) for count in seen.values()) > 30


# ---------------------------------------------------------------- files


def _load(tmp_path, value):
    path = tmp_path / "w.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return load_workload(SCHEMA, path)


def test_a_workload_file_holds_marginals_ranges_or_both(tmp_path):
    marginals, boxed = [["help", "age"]], [{"age": [10, 11]}, {"age": [4, 7], "help": ["1", "2"]}]
    both = _load(tmp_path, {"marginals": marginals, "ranges": boxed})
    assert both.targets == (
        ("age", "help"),
        Range((("age", 6, 7),)),
        Range((("age", 0, 3), ("help", 0, 1))),
    )
    assert _load(tmp_path, {"marginals": marginals}).targets == both.marginals
    assert _load(tmp_path, {"ranges": boxed}).targets == both.ranges


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "w.json:1:2: not valid JSON"),
        ({}, '"marginals", "ranges" or both'),
        ([], '"marginals", "ranges" or both'),
        ({"marginal": []}, '"marginals", "ranges" or both'),
        ({"marginals": []}, "at least one"),
        ({"marginals": {"a": 1}}, "marginals must be a list of lists"),
        ({"marginals": ["age"]}, "marginals must be a list of lists"),
        ({"marginals": [{"age": 1}]}, "marginals must be a list of lists"),
        ({"marginals": [["agee"]]}, "Did you mean 'age'"),
        ({"marginals": [[["age"]]]}, "no column"),
        ({"marginals": [["age"], ["age"]]}, "once"),
        ({"ranges": [["age"]]}, "ranges must be a list of objects"),
        ({"ranges": [{}]}, "a range is an object"),
        ({"ranges": [{"age": [11, 10]}]}, "ends before it begins"),
    ],
)
def test_a_wrong_workload_file_is_refused_with_its_name(tmp_path, value, message):
    with pytest.raises(InputError, match=message) as refusal:
        _load(tmp_path, value)
    assert "w.json" in str(refusal.value)


# ---------------------------------------------------------------- layout and sums


def test_the_layout_gives_each_target_its_places():
    box = Range((("age", 0, 3),))
    targets = [("age",), box, ("member", "grade"), ()]
    assert layout(SCHEMA, targets).tolist() == [0, 14, 15, 23, 24]
    assert layout(SCHEMA, []).tolist() == [0]


def test_boxes_are_whole_where_a_range_does_not_limit():
    limits = boxes(SCHEMA, ("age", "member"), [Range((("member", 1, 1),)), Range(())])
    assert limits.tolist() == [[[0, 13], [1, 1]], [[0, 13], [0, 1]]]


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    kind=st.sampled_from(["int64", "int32", "uint8", "float64"]),
    data=st.data(),
)
def test_sums_inside_boxes_are_those_of_adding_cell_by_cell(shape, kind, data):
    largest = 200 if kind == "uint8" else 2**31 - 1 if kind == "int32" else 2**53
    cells = int(np.prod(shape))
    values = data.draw(st.lists(st.integers(0, largest), min_size=cells, max_size=cells))
    counts = np.array(values, dtype=kind).reshape(shape)
    limits = []
    for _ in range(5):
        lows = [data.draw(st.integers(0, size - 1)) for size in shape]
        highs = [data.draw(st.integers(a, size - 1)) for a, size in zip(lows, shape, strict=True)]
        limits.append(list(zip(lows, highs, strict=True)))
    found = box_sums(counts, np.array(limits))
    for total, box in zip(found.tolist(), limits, strict=True):
        inside = counts[tuple(slice(low, high + 1) for low, high in box)]
        exact = sum(int(value) for value in inside.reshape(-1).tolist())
        if kind == "float64":
            assert total == pytest.approx(exact, rel=1e-9, abs=1e-9 * max(values))
        else:
            assert total == exact


def test_no_boxes_have_no_sums():
    assert box_sums(np.ones((2, 2)), np.empty((0, 2, 2), dtype=np.int64)).size == 0


def test_a_measurement_names_its_target_and_its_noise():
    marginal = Measurement(target=("age",), values=np.zeros(14), sigma_counts=2.0)
    assert marginal.to_dict() == {"target": ["age"], "sigma_counts": 2.0}
    box = Measurement(target=Range((("age", 0, 3),)), values=np.array(1.0), sigma_counts=1.5)
    assert box.to_dict() == {"target": "age 0..3", "sigma_counts": 1.5}


def test_a_range_up_to_an_edge_stops_there():
    schema = Schema(columns=(Number(name="income", edges=(0, 10, 20, 30)),))
    found = ranges(schema, [{"income": [0, 10]}, {"income": [10, 20]}, {"income": [0, 30]}])
    assert [box.bounds[0][1:] for box in found.ranges] == [(0, 0), (1, 1), (0, 2)]


@pytest.mark.parametrize("ends", [[100, 200], [-9, -1]])
def test_a_range_beside_the_limits_is_refused(ends):
    for column in (Integer(name="x", low=4, high=17), Number(name="x", edges=(4, 8, 17))):
        with pytest.raises(InputError, match="outside the limits of 'x'"):
            ranges(Schema(columns=(column,)), [{"x": ends}])


def test_a_range_of_days_beside_the_limits_is_refused():
    days = Date(name="x", low=date(2020, 1, 1), high=date(2020, 12, 31))
    with pytest.raises(InputError, match="outside the limits of 'x'"):
        ranges(Schema(columns=(days,)), [{"x": ["2021-01-01", "2021-02-01"]}])


# ---------------------------------------------------------------- weights


def test_targets_weigh_the_same_unless_weights_are_given():
    assert all_marginals(SCHEMA, degree=1).importance.tolist() == [1.0] * 7
    weighted = chosen_marginals(SCHEMA, [["age"], ["help"]], weights=[2, 0.5])
    assert weighted.weights == (2, 0.5)
    assert weighted.importance.tolist() == [2.0, 0.5]
    assert ranges(SCHEMA, [{"age": [4, 5]}], weights=[3]).importance.tolist() == [3.0]


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "2", True])
def test_a_weight_is_a_finite_number_above_zero(weight):
    with pytest.raises(InputError, match="weight must be > 0"):
        chosen_marginals(SCHEMA, [["age"]], weights=[weight])


def test_every_target_needs_a_weight():
    with pytest.raises(InputError, match="2 targets need as many weights, got 1"):
        chosen_marginals(SCHEMA, [["age"], ["help"]], weights=[1])


def test_a_file_may_weigh_its_targets(tmp_path):
    path = tmp_path / "w.json"
    content = {"marginals": [["age"], ["help"]], "ranges": [{"age": [4, 5]}]}
    for weights, expected in [
        ({"marginals": [2, 0.5], "ranges": [3]}, (2.0, 0.5, 3.0)),
        ({"ranges": [3]}, (1.0, 1.0, 3.0)),
        ({}, (1.0, 1.0, 1.0)),
    ]:
        path.write_text(json.dumps(content | {"weights": weights}))
        assert load_workload(SCHEMA, path).weights == expected
    path.write_text(json.dumps(content))
    assert load_workload(SCHEMA, path).weights is None


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({"marginals": [1]}, "weights of marginals must be a list of 2 numbers"),
        ({"marginals": 2}, "weights of marginals must be a list of 2 numbers"),
        ({"marginals": [1, 0]}, "weight must be > 0, got 0"),
        ({"marginal": [1, 1]}, 'weights is an object with "marginals", "ranges" or both'),
        ([1, 2], "weights is an object"),
    ],
)
def test_weights_that_fit_no_target_are_refused(weights, says, tmp_path):
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"marginals": [["age"], ["help"]], "weights": weights}))
    with pytest.raises(InputError, match=says):
        load_workload(SCHEMA, path)


def test_a_file_of_weights_alone_is_no_workload(tmp_path):
    path = tmp_path / "w.json"
    path.write_text('{"weights": {}}')
    with pytest.raises(InputError, match='a workload file has "marginals", "ranges" or both'):
        load_workload(SCHEMA, path)


def test_a_marginal_of_no_columns_is_no_target() -> None:
    with pytest.raises(InputError, match="names at least one column"):
        chosen_marginals(SCHEMA, [["age"], []])
