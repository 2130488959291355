"""Published rows in pandas and Polars: the types that the schema means, missing values missing."""

import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.counting.exact_counts import count_marginals
from sfumato.models.answers.tree import fit_tree
from sfumato.release import TableRelease, draw_table, formats

SCHEMA = sf.Schema.from_dict(
    {
        "sfumato": 1,
        "dataset": "types",
        "columns": [
            {"name": "children", "kind": "integer", "low": 0, "high": 3, "missing": True},
            {"name": "age", "kind": "integer", "low": 18, "high": 20},
            {"name": "id", "kind": "integer", "low": 2**60, "high": 2**60 + 2, "missing": True},
            {"name": "town", "kind": "category", "values": ["B", "A", "nan"], "other": True},
            {
                "name": "grade",
                "kind": "ordinal",
                "values": ["low", "mid", "high"],
                "missing": True,
            },
            {"name": "member", "kind": "boolean", "missing": True},
            {"name": "smoker", "kind": "boolean"},
            {"name": "pay", "kind": "number", "edges": [0, 10, 20], "missing": True},
            {"name": "born", "kind": "date", "low": "1800-01-01", "high": "1810-12-31"},
            {
                "name": "seen",
                "kind": "datetime",
                "low": "2024-01-01T00:00",
                "high": "2024-01-02T00:00",
                "step": "hour",
                "missing": True,
            },
        ],
    }
)


@pytest.fixture(scope="module")
def release():
    shares = {column.name: np.full(column.size, 1 / column.size) for column in SCHEMA}
    model = fit_tree(SCHEMA, total=200.0, shares=shares, pairs={})
    return TableRelease(
        dataset="types",
        guarantee=sf.PureDP(1),
        protect=sf.OneRow(),
        private=False,
        method={"name": "independent"},
        schema=SCHEMA,
        model=model,
        measurements=(),
        data=draw_table(model, n_rows=200, rng=sf.simulation_rng(1)),
        ledger={"id": "x", "head": {"seq": 1, "hash": "ab"}, "entries": []},
    )


def test_pandas_has_the_types_that_the_schema_means(release):
    frame = release.to_pandas()
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert kinds["children"] == kinds["id"] == "Int64"
    assert kinds["age"] == "int64"
    assert kinds["town"] == kinds["grade"] == "category"
    assert kinds["member"] == "boolean"
    assert kinds["smoker"] == "bool"
    assert kinds["pay"] == "float64"
    assert kinds["born"].startswith("datetime64")
    assert kinds["seen"].startswith("datetime64")
    assert list(frame.index) == list(range(200))


def test_a_category_keeps_all_declared_values_and_an_ordinal_their_order(release):
    frame = release.to_pandas()
    assert list(frame["town"].cat.categories) == ["B", "A", "nan", "(other)"]
    assert not frame["town"].cat.ordered
    assert list(frame["grade"].cat.categories) == ["low", "mid", "high"]
    assert frame["grade"].cat.ordered
    assert (frame["grade"].dropna() >= "mid").any()


def test_what_is_missing_is_missing_and_nothing_else_is(release):
    frame, polar = release.to_pandas(), release.to_polars()
    for name in SCHEMA.names:
        absent = release.data[name].null_count
        assert frame[name].isna().sum() == absent
        assert polar[name].null_count() == absent
        assert (absent > 0) == SCHEMA[name].missing
    assert (frame["town"] == "nan").any()
    assert not frame["grade"].isin(["None", "NaN", "nan", ""]).any()


def test_whole_numbers_beyond_floats_stay_exact(release):
    given = [value for value in release.data["id"].to_pylist() if value is not None]
    assert release.to_pandas()["id"].dropna().tolist() == given


def test_polars_has_enums_days_and_moments(release):
    kinds = dict(zip(release.to_polars().columns, release.to_polars().dtypes, strict=True))
    assert kinds["grade"] == pl.Enum(["low", "mid", "high"])
    assert kinds["town"] == pl.Enum(["B", "A", "nan", "(other)"])
    assert kinds["children"] == pl.Int64
    assert kinds["member"] == pl.Boolean
    assert kinds["born"] == pl.Date
    assert isinstance(kinds["seen"], pl.Datetime)


def test_new_rows_become_frames_of_the_same_types(release):
    rows = release.table(n_rows=30, rng=sf.simulation_rng(2))
    frame = release.to_pandas(rows)
    assert len(frame) == 30
    assert frame.dtypes.equals(release.to_pandas().dtypes)
    assert release.to_polars(rows).schema == release.to_polars().schema


def test_a_frame_reads_back_as_the_same_codes(release):
    wanted = [(name,) for name in SCHEMA.names]
    for frame in (release.to_pandas(), release.to_polars()):
        back = count_marginals(sf.open_table(frame, SCHEMA), wanted)
        given = count_marginals(sf.open_table(release.data, SCHEMA), wanted)
        for name in wanted:
            assert back[name].tolist() == given[name].tolist()


def test_some_columns_and_no_rows_are_frames_too(release):
    few = release.data.select(["grade", "age"]).slice(0, 0)
    assert list(release.to_pandas(few).columns) == ["grade", "age"]
    assert release.to_polars(few).shape == (0, 2)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_without_the_package_one_message_says_what_to_install(release, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(sf.InputError, match=f"pip install {package}"):
        getattr(release, f"to_{package}")()


@pytest.mark.parametrize(("mark", "written"), [(".", "0.0000009690"), (",", "0,0000009690")])
def test_tiny_numbers_are_written_without_an_exponent(mark: str, written: str) -> None:
    column = sf.Number(name="c", low=0, high=5e-5, resolution=1e-10, decimal=mark)
    texts = formats._written(column, pa.chunked_array([pa.array([9.69e-7, None])]))
    assert texts.to_pylist() == [written, None]
