"""Public totals: how they are read, and which are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.schema import Boolean, Category, Integer, Schema
from sfumato.schema.measurement import (
    PublicTotal,
    as_measurements,
    check_totals,
    described,
    load_totals,
    rows_of,
)

SCHEMA = Schema(
    columns=(
        Category(name="sex", values=("f", "m")),
        Integer(name="age", low=0, high=29, step=10, missing=True),
        Boolean(name="member"),
    )
)
SEX = {"columns": ["sex"], "counts": [["f", 12], ["m", 11]]}


def read(tmp_path: Path, *entries: Any, schema: Schema = SCHEMA) -> tuple[PublicTotal, ...]:
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
    schema = SCHEMA.excluding([{"sex": ["m"], "member": [True]}])
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
        check_totals(SCHEMA, [PublicTotal(marginal=("sex",), counts=np.array([1, 2, 3]))])
    swapped = PublicTotal(marginal=("member", "sex"), counts=np.ones((2, 2)))
    with pytest.raises(InputError, match="in the order of the schema"):
        check_totals(SCHEMA, [swapped])


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
