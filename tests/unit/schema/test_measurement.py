"""Counts that are public: coarser views of a schema, and totals that everybody knows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, SchemaError
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Integer, Schema
from sfumato.schema.measurement import (
    Coarse,
    PublicTotal,
    as_measurements,
    check_totals,
    described,
    load_totals,
    rows_of,
)

SCHEMA = Schema(
    columns=(
        Category(name="job", values=tuple("abcdefg")),
        Boolean(name="smoker"),
        Integer(name="age", low=0, high=4, missing=True),
    ),
    dataset="study",
)
JOBS, AGES = np.array([0, 2, 1, 2, 2, 0, 2]), np.array([1, 1, 0, 0, 2, 2])


def view(**groups):
    return Coarse(fine=SCHEMA, groups=groups)


def brute(counts, names, groups):
    """Cell by cell into the cell of its groups."""
    shape = [int(groups[n].max()) + 1 if n in groups else SCHEMA[n].size for n in names]
    out = np.zeros(shape, dtype=np.int64)
    for cell in np.ndindex(counts.shape):
        pairs = zip(names, cell, strict=True)
        out[tuple(int(groups[n][c]) if n in groups else c for n, c in pairs)] += counts[cell]
    return out


@pytest.mark.parametrize(
    "names", [(), ("job",), ("smoker",), ("job", "smoker", "age"), ("age", "job")], ids=str
)
def test_a_sum_is_that_of_the_cells_of_each_group(names):
    groups = {"job": JOBS, "age": AGES}
    counts = simulation_rng(1).below(100, SCHEMA.cells(names)).reshape(SCHEMA.shape(names))
    assert (view(**groups).sum(counts, names) == brute(counts, names, groups)).all()


@given(data=st.data())
def test_any_groups_keep_the_total_and_the_shape_of_the_view(data):
    size = SCHEMA["job"].size
    drawn = data.draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    groups = np.unique(drawn, return_inverse=True)[1].astype(np.int64)
    coarse = view(job=groups)
    counts = simulation_rng(2).below(50, 14).reshape(7, 2)
    found = coarse.sum(counts, ("job", "smoker"))
    assert found.shape == coarse.schema.shape(("job", "smoker"))
    assert (found == brute(counts, ("job", "smoker"), {"job": groups})).all()
    assert found.dtype == np.int64


def test_the_view_has_a_schema_of_its_own_with_a_name_for_each_group():
    coarse = view(job=JOBS)
    assert coarse.schema.names == SCHEMA.names
    assert coarse.schema.dataset == "study"
    assert coarse.schema.shape(SCHEMA.names) == (3, 2, 6)
    assert coarse.schema["job"].labels == ("0, 5", "2", "1, 3, 4, 6")
    assert coarse.schema["age"] is SCHEMA["age"]


def test_long_groups_are_named_by_their_first_codes_and_stay_apart():
    schema = Schema.from_dict({"a": 40})
    coarse = Coarse(fine=schema, groups={"a": np.arange(40) % 2})
    assert coarse.labels("a") == ["0, 2, 4, 6, ... (20 codes)", "1, 3, 5, 7, ... (20 codes)"]


def test_many_groups_are_named_as_each_by_itself_would_be():
    groups = np.concatenate([np.arange(3_000), simulation_rng(3).below(3_000, 1_000)])
    coarse = Coarse(fine=Schema.from_dict({"a": 4_000}), groups={"a": groups})
    for group in (0, 17, 2_999):
        codes = [str(code) for code in np.flatnonzero(groups == group)]
        assert coarse.labels("a")[group].split(", ...")[0] == ", ".join(codes[:4])


def test_a_view_without_groups_is_the_schema():
    counts = np.arange(14).reshape(7, 2)
    assert view().sum(counts, ("job", "smoker")) is counts
    assert view().schema.columns == SCHEMA.columns


def test_an_unknown_column_is_refused_with_its_neighbor():
    with pytest.raises(SchemaError, match="Did you mean 'job'"):
        view(jobs=JOBS)


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        (JOBS[:6], "must be 7 whole numbers"),
        (JOBS.astype(np.float64), "must be 7 whole numbers"),
        (JOBS.reshape(1, 7), "must be 7 whole numbers"),
        (JOBS * 2, "without gaps"),
        (JOBS - 1, "without gaps"),
        (JOBS + 1, "without gaps"),
    ],
    ids=["too few", "not whole", "a matrix", "with gaps", "negative", "without a first"],
)
def test_groups_that_are_no_partition_are_refused(groups, problem):
    with pytest.raises(InputError, match=problem):
        view(job=groups)


def test_what_was_checked_can_not_be_changed_afterwards():
    """Neither through the array that was given, nor through the view, nor its mapping."""
    given_ = JOBS.copy()
    mapping = {"job": given_}
    coarse = Coarse(fine=SCHEMA, groups=mapping)
    given_[:] = 0
    mapping["smoker"] = np.array([0, 5])
    assert coarse.groups.keys() == {"job"}
    assert (coarse.groups["job"] == JOBS).all()
    with pytest.raises(ValueError, match="read-only"):
        coarse.groups["job"][0] = 1
    with pytest.raises(TypeError):
        coarse.groups["job"] = JOBS


def test_two_views_are_the_same_by_their_groups():
    assert view(job=JOBS).same_groups(view(job=JOBS.copy()), ("job", "age"))
    assert not view(job=JOBS).same_groups(view(), ("job",))
    assert not view(job=JOBS).same_groups(view(job=JOBS, age=AGES), ("age",))
    assert view(job=JOBS).same_groups(view(job=JOBS, age=AGES), ("job",))
    assert not view(job=JOBS).same_groups(view(job=np.array([0, 1, 2, 2, 2, 0, 2])), ("job",))


COUNTED = Schema(
    columns=(
        Category(name="sex", values=("f", "m")),
        Integer(name="age", low=0, high=29, step=10, missing=True),
        Boolean(name="member"),
    )
)
SEX = {"columns": ["sex"], "counts": [["f", 12], ["m", 11]]}


def read(tmp_path: Path, *entries: Any, schema: Schema = COUNTED) -> tuple[PublicTotal, ...]:
    path = tmp_path / "totals.json"
    path.write_text(json.dumps({"totals": list(entries)}))
    return load_totals(schema, path)


def test_a_total_is_read_by_labels_in_the_order_of_the_schema(tmp_path: Path) -> None:
    pair = {
        "columns": ["member", "sex"],
        "counts": [[True, "m", 4], [False, "m", 7], ["true", "f", 12], [False, "f", 0]],
    }
    one, two = read(tmp_path, SEX, pair)
    assert one.marginal == ("sex",)
    assert one.counts.tolist() == [12, 11]
    assert two.marginal == ("sex", "member")
    assert two.counts.tolist() == [[0, 12], [7, 4]]
    assert (one.rows, str(two)) == (23, "sex × member")


def test_bins_are_named_as_in_reports_and_null_is_missing(tmp_path: Path) -> None:
    ages = {"columns": ["age"], "counts": [["0..9", 1], ["10..19", 2], ["20..29", 3], [None, 4]]}
    (found,) = read(tmp_path, ages)
    assert found.counts.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"columns": ["sxe"], "counts": []}, r"no column 'sxe' .* Did you mean 'sex'\?"),
        ({"columns": ["sex"], "counts": [["x", 1]]}, "'sex' has no value 'x'; it has f, m"),
        (
            {"columns": ["sex"], "counts": [["f", 1]]},
            r"1 cell has no count in sex, the first \['m'\]",
        ),
        ({"columns": ["sex"], "counts": [["f", 1], ["f", 1]]}, "stands twice"),
        ({"columns": ["sex"], "counts": [["f", -1], ["m", 1]]}, "whole number >= 0, got -1"),
        ({"columns": ["sex"], "counts": [["f", 1.5], ["m", 1]]}, "whole number >= 0, got 1.5"),
        ({"columns": ["sex"], "counts": [["f", 0], ["m", 0]]}, "rows_in_all must be"),
        ({"columns": ["sex"], "counts": [["f"], ["m"]]}, "lists of its values and a count"),
        ({"columns": ["sex"]}, '"columns" and "counts"'),
        ({"columns": "sex", "counts": []}, "must be lists"),
        ({"columns": ["member"], "counts": [[True, 1], [False, 1]]}, "differ in the rows in all"),
    ],
)
def test_what_can_not_be_meant_is_refused(entry: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        read(tmp_path, SEX, entry)


def test_totals_must_agree_on_the_columns_they_share(tmp_path: Path) -> None:
    pair = {
        "columns": ["sex", "member"],
        "counts": [["f", True, 11], ["f", False, 0], ["m", True, 6], ["m", False, 6]],
    }
    with pytest.raises(InputError, match="sex and of sex × member differ in the rows by sex"):
        read(tmp_path, SEX, pair)


def test_impossible_cells_need_no_count_and_may_have_none(tmp_path: Path) -> None:
    schema = COUNTED.excluding([{"sex": ["m"], "member": [True]}])
    rest = [["f", True, 5], ["f", False, 5], ["m", False, 5]]
    pair = {"columns": ["sex", "member"], "counts": rest}
    (found,) = read(tmp_path, pair, schema=schema)
    assert found.counts.tolist() == [[5, 5], [5, 0]]
    pair["counts"] = [*rest, ["m", True, 1]]
    with pytest.raises(InputError, match="counts rows in a combination declared impossible"):
        read(tmp_path, pair, schema=schema)


def test_totals_made_in_python_are_checked_against_the_schema() -> None:
    with pytest.raises(InputError, match="must be whole numbers of at least 0"):
        PublicTotal(marginal=("sex",), counts=np.array([1.5, 2]))
    with pytest.raises(InputError, match="a count for each cell"):
        PublicTotal(marginal=("sex", "member"), counts=np.array([1, 2]))
    with pytest.raises(InputError, match="sex has 2 cells, got"):
        check_totals(COUNTED, [PublicTotal(marginal=("sex",), counts=np.array([1, 2, 3]))])
    swapped = PublicTotal(marginal=("member", "sex"), counts=np.ones((2, 2)))
    with pytest.raises(InputError, match="in the order of the schema"):
        check_totals(COUNTED, [swapped])


def test_the_number_of_rows_is_their_sum_and_no_other() -> None:
    total = PublicTotal(marginal=("sex",), counts=np.array([1, 2]))
    assert rows_of([total], None) == rows_of([total], 3) == 3
    assert (rows_of([], 7), rows_of([], None)) == (7, None)
    with pytest.raises(InputError, match="of sex are of 3 rows, but rows is 4"):
        rows_of([total], 4)


def test_they_are_measurements_without_noise() -> None:
    total = PublicTotal(marginal=("sex",), counts=np.array([1, 2]))
    (found,) = as_measurements([total])
    assert (found.target, found.sigma_counts) == (("sex",), 0.0)
    assert found.values.tolist() == [1, 2]
    assert described([total]) == {"public_totals": ["sex"]}
    assert described([]) == {}
