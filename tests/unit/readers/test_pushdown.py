"""Counting on the server: the counts of a whole read, bit for bit, whichever way they were had."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servers import Database
from sfumato import Curator, Independent, OneRow, PureDP, publish
from sfumato.counting.exact_counts import MarginalCounts, count_marginals, rows
from sfumato.counting.table import Table
from sfumato.errors import InternalError, StorageError, TableError
from sfumato.randomness import simulation_rng
from sfumato.readers import pushdown
from sfumato.readers.open_table import open_table, source_of
from sfumato.readers.pushdown import (
    MOST_GROUPS,
    Grouping,
    GroupingSource,
    PushdownTable,
    most_values,
    server_sets,
)
from sfumato.readers.source_table import SourceTable
from sfumato.schema import Category, Integer, Marginal, Number, Schema
from sfumato.schema.files import FileForm

YEAR = {"low": "2024-01-01", "high": "2024-12-31"}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "word": ("text", {"kind": "category", "values": ["a", "b"], "other": True, "missing": True}),
    "code": ("int2", {"kind": "category", "values": ["1", "2"], "other": True, "missing": True}),
    "float": ("float8", {"kind": "category", "values": ["0", "1"], "other": True, "missing": True}),
    "mood": ("mood", {"kind": "ordinal", "values": ["sad", "ok"], "missing": True}),
    "flag": ("boolean", {"kind": "boolean", "missing": True}),
    "spelled": ("varchar", {"kind": "boolean", "missing": True, "missing_texts": ["?"]}),
    "age": ("integer", {"kind": "integer", "low": 0, "high": 9, "step": 3, "missing": True}),
    "typed": ("text", {"kind": "integer", "low": 0, "high": 9, "missing": True}),
    "exact": ("numeric", {"kind": "integer", "low": -5, "high": 5, "missing": True}),
    "day": ("date", {"kind": "date", "step": "month", "missing": True, **YEAR}),
    "moment of a day": ("timestamp", {"kind": "date", "step": "month", "missing": True, **YEAR}),
    "weight": ("real", {"kind": "number", "edges": [-1, 0, 1.5, 9], "missing": True}),
    "instant": ("timestamptz", {
        "kind": "datetime", "step": "day", "zone": "Asia/Tehran", "missing": True,
        "low": "2024-01-01T00:00:00Z", "high": "2024-12-31T23:59:59Z",
    }),
}  # fmt: skip
VALUES: dict[str, list[str | None]] = {
    "word": ["a", "b", "A", " a ", "", "é", None],
    "code": ["1", "2", "7", None],
    "float": ["0", "-0", "1", "1.5", "NaN", None],
    "mood": ["sad", "ok", None],
    "flag": ["t", "f", None],
    "spelled": ["yes", "NO", " 1", "?", "junk", "", None],
    "age": ["0", "2", "3", "9", "44", "-3", None],
    "typed": ["1", "1.0", " 4", "0x1F", "junk", "99999999999999999999", "12", None],
    "exact": ["1", "1.00", "NaN", "-7", None],
    "day": ["2024-01-31", "2024-02-01", "infinity", "0044-03-15 BC", None],
    "moment of a day": ["2024-01-31 23:59:59.9", "2024-01-31 10:00", "2030-01-01", None],
    "weight": ["-0", "0", "NaN", "1.4999999", "77", None],
    "instant": ["2024-03-20 20:30+00", "2024-03-21 00:00+03:30", "infinity", None],
}
SCHEMA = Schema.from_dict({
    "sfumato": 1,
    "file": {"trim": True},
    "columns": [{"name": name, **form} for name, (_, form) in KINDS.items()],
})  # fmt: skip
PAIRS = list(combinations(SCHEMA.names, 2))


class Watched:
    """A source that remembers what it was asked for."""

    def __init__(self, source: GroupingSource) -> None:
        self._source = source
        self.sets: list[tuple[Marginal, ...]] = []
        self.reads: list[Marginal] = []
        self.full = False

    def names(self) -> tuple[str, ...]:
        return self._source.names()

    def describe(self) -> str:
        return self._source.describe()

    def batches(self, columns: Marginal) -> Iterator[pa.RecordBatch]:
        self.reads.append(columns)
        return self._source.batches(columns)

    def grouped(self, sets: Sequence[Marginal]) -> Iterator[tuple[Marginal, pa.RecordBatch]]:
        self.sets.append(tuple(sets))
        if self.full:
            raise StorageError("no space is left")
        return self._source.grouped(sets)


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every table were too large to be kept in memory."""
    monkeypatch.setattr("sfumato.counting.table.CACHE_BYTES", -1)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fill(database: Database, columns: dict[str, list[str | None]], types: dict[str, str]) -> None:
    """A table of typed columns from texts."""
    database.run("DROP TABLE IF EXISTS t, texts; DROP TYPE IF EXISTS mood")
    database.run("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    database.fill("texts", columns)
    cast = ", ".join(f"{quoted(n)}::{types.get(n, 'text')} AS {quoted(n)}" for n in columns)
    database.run(f"SET timezone = 'UTC'; CREATE TABLE t AS SELECT {cast} FROM texts")


def both(database: Database, schema: Schema) -> tuple[PushdownTable, SourceTable, Watched]:
    """A table that may count on the server, one that reads, and what the first one asked for."""
    address = f"{database.address}::t"
    watched = Watched(source_of(address, schema.names))
    return PushdownTable(schema, watched), SourceTable(schema, source_of(address, ())), watched


def assert_same(ours: Table, read: Table, marginals: Sequence[Marginal]) -> None:
    found, wanted = count_marginals(ours, marginals), count_marginals(read, marginals)
    for marginal in marginals:
        np.testing.assert_array_equal(found[marginal], wanted[marginal], err_msg=str(marginal))


def small(**columns: int) -> Schema:
    """Whole numbers from 0, as many as each column is given."""
    found = (Integer(name=name, low=0, high=size - 1) for name, size in columns.items())
    return Schema(columns=tuple(found))


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[str | None]]:
    n_rows = draw(st.integers(0, 9))
    lists = {name: st.sampled_from(values) for name, values in VALUES.items()}
    return {
        name: draw(st.lists(one, min_size=n_rows, max_size=n_rows)) for name, one in lists.items()
    }


@settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(columns=tables(), asked=st.lists(st.sampled_from(PAIRS), min_size=1, max_size=4))
@pytest.mark.usefixtures("nothing_kept")
def test_every_kind_of_column_is_counted_as_a_read_counts_it(
    database: Database, columns: dict[str, list[str | None]], asked: list[Marginal]
) -> None:
    fill(database, columns, {name: kind for name, (kind, _) in KINDS.items()})
    ours, read, watched = both(database, SCHEMA)
    assert_same(ours, read, [*((name,) for name in SCHEMA.names), *asked, ()])
    assert rows(ours) == rows(read) == len(columns["age"])
    assert watched.sets


def test_values_are_told_apart_by_their_bytes_whatever_a_collation_says(
    database: Database, nothing_kept: None
) -> None:
    database.run("""
        CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
        CREATE TABLE t (word text COLLATE blind);
        INSERT INTO t VALUES ('a'), ('A'), ('a');
    """)
    assert database.run("SELECT count(DISTINCT word) FROM t") == "1\n"  # it would merge them
    schema = Schema(columns=(Category(name="word", values=("a", "A")),))
    ours, _, watched = both(database, schema)
    assert count_marginals(ours, [("word",)])[("word",)].tolist() == [2, 1]
    assert watched.reads == []


def test_hostile_names_do_no_harm(database: Database, nothing_kept: None) -> None:
    names = ["نام", 'a"b', "select", "x'; DROP TABLE t; --", "%s $1", "c0", "c1"]
    fill(database, {name: [str(place), "1", "1"] for place, name in enumerate(names)}, {})
    schema = small(**dict.fromkeys(names, 7))
    ours, read, watched = both(database, schema)
    assert_same(ours, read, [(name,) for name in names])
    assert watched.reads == []


def test_missing_values_are_no_columns_that_a_set_lacks(
    database: Database, nothing_kept: None
) -> None:
    schema = Schema(
        columns=tuple(Integer(name=n, low=0, high=999, missing=True) for n in ("a", "b", "c"))
    )
    fill(database, {"a": [None, None, "1"], "b": [None, "2", None], "c": ["3", None, None]}, {})
    ours, read, watched = both(database, schema)
    assert_same(ours, read, [("a",), ("b",), ("c",), ()])
    assert watched.sets == [(("a",), ("b",), ("c",))]
    assert watched.reads == []


def test_more_columns_than_one_mask_holds(database: Database, nothing_kept: None) -> None:
    names = tuple(f"column {place}" for place in range(70))
    fill(database, {n: [str(p % 5), "1", None] for p, n in enumerate(names)}, {})
    schema = Schema(columns=tuple(Integer(name=n, low=0, high=9, missing=True) for n in names))
    ours, read, watched = both(database, schema)
    assert_same(ours, read, [(name,) for name in names])
    assert [len(sets) for sets in watched.sets] == [70]


def test_a_marginal_asked_for_in_two_orders_counts_every_row_once(
    database: Database, nothing_kept: None
) -> None:
    fill(database, {n: [str(row % 3) for row in range(50)] for n in ("a", "b", "c")}, {})
    ours, read, watched = both(database, small(a=30, b=40, c=400))
    assert_same(ours, read, [("a", "b"), ("b", "a"), ("b",)])
    assert watched.sets == [(("a", "b"), ("b",))]
    assert watched.reads == []


def test_two_sets_of_the_same_columns_are_never_one_query() -> None:
    with pytest.raises(InternalError, match="same columns"):
        Grouping((("a", "b"), ("b", "a")))


def test_few_declared_combinations_are_asked_for_once_and_answer_everything(
    database: Database,
) -> None:
    fill(database, {n: [str(row % 3) for row in range(50)] for n in ("a", "b", "c")}, {})
    ours, read, watched = both(database, small(a=3, b=4, c=5))
    ours.validate()
    assert_same(ours, read, [(), ("a",), ("c", "b"), ("a", "b", "c")])
    assert watched.sets == [(("a", "b", "c"),)]
    assert watched.reads == []


def test_what_was_read_and_fits_in_memory_is_counted_from_there(database: Database) -> None:
    fill(database, {n: [str(row % 3) for row in range(50)] for n in ("a", "b")}, {})
    ours, read, watched = both(database, small(a=1000, b=1000))
    assert_same(ours, read, [("a", "b")])
    assert_same(ours, read, [("a",), ("b",)])
    assert watched.sets == []
    assert watched.reads == [("a", "b")]


def test_only_what_nobody_can_bound_is_read_beside(database: Database, nothing_kept: None) -> None:
    fill(database, {"a": ["1", "2"], "b": ["3", "4"], "w": ["0.5", "1.5"]}, {})
    columns = (*small(a=1000, b=1000), Number(name="w", edges=(0, 1, 2)))
    ours, read, watched = both(database, Schema(columns=columns))
    ours.validate()
    assert_same(ours, read, [("a",), ("b",), ("w",), ()])
    assert watched.sets == [(("a",), ("b",))]
    assert watched.reads == [("w",), ("w",)]


def test_a_misfit_is_named_by_its_row_and_without_its_value(
    database: Database, nothing_kept: None
) -> None:
    fill(database, {"a": ["1", "1", "SECRET", "x"], "b": ["1"] * 4}, {})
    strict = replace(small(a=1000, b=1000), file=FileForm(strict=True))
    ours, read, watched = both(database, strict)
    messages = []
    for table in (ours, read):
        with pytest.raises(TableError, match="column 'a', row 3: the value is not") as caught:
            table.validate()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "SECRET" not in messages[0]
    assert watched.sets


def test_misfits_are_counted_alike_by_the_server_and_by_a_read(
    database: Database, nothing_kept: None
) -> None:
    fill(database, {"a": ["1", "1", "SECRET", "x", "SECRET"], "b": ["1"] * 5}, {})
    ours, read, watched = both(database, small(a=1000, b=1000))
    for table in (ours, read):
        table.validate()
        assert table.unfit_values() == {"a": 3}
    assert_same(ours, read, [("a",), ("b",)])
    assert watched.sets


def test_a_column_that_is_not_asked_for_may_hold_anything(
    database: Database, nothing_kept: None
) -> None:
    fill(database, {"a": ["1", "1"], "b": ["x", None]}, {})
    ours, read, watched = both(database, small(a=1000, b=1000))
    assert_same(ours, read, [("a",)])
    assert watched.reads == []


def test_far_more_values_than_declared_end_counting_on_the_server(
    database: Database, nothing_kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushdown, "MOST_GROUPS", 50)
    fill(database, {"a": [f"v{row}" for row in range(300)], "b": ["x"] * 300}, {})
    columns = (Category(name=n, values=tuple(map(str, range(40))), other=True) for n in "ab")
    ours, read, watched = both(database, Schema(columns=tuple(columns)))
    for _ in range(2):
        assert_same(ours, read, [("a",), ("b",)])
    assert len(watched.sets) == 1
    assert len(watched.reads) == 2


def test_a_server_that_can_not_count_is_read(database: Database, nothing_kept: None) -> None:
    fill(database, {"a": ["1", "2"], "b": ["3", "4"]}, {})
    ours, read, watched = both(database, small(a=1000, b=1000))

    watched.full = True
    assert_same(ours, read, [("a",), ("b",)])
    assert watched.reads == [("a", "b")]


def test_an_empty_table_has_no_rows_on_either_way(database: Database, nothing_kept: None) -> None:
    database.run("CREATE TABLE t (a int, b int)")
    ours, read, watched = both(database, small(a=1000, b=1000))
    assert_same(ours, read, [("a",), ("b",), ()])
    with pytest.raises(TableError, match="nothing to publish"):
        ours.validate()
    assert watched.reads == []


def test_counts_of_the_server_are_of_the_same_snapshot(
    database: Database, nothing_kept: None
) -> None:
    fill(database, {"a": ["1", "2"]}, {})
    table = open_table(f"{database.address}::t", small(a=2**17))
    assert isinstance(table, PushdownTable)
    database.run("INSERT INTO t VALUES ('1'); DELETE FROM t WHERE a = '2'")
    assert rows(table) == 2
    assert count_marginals(table, [("a",)])[("a",)][:4].tolist() == [0, 1, 1, 0]


def test_rows_of_people_are_bounded_by_reading(database: Database, nothing_kept: None) -> None:
    values = {"a": [str(row % 4) for row in range(40)], "who": [f"p{r % 7}" for r in range(40)]}
    fill(database, values, {})
    ours, read, watched = both(database, small(a=4))
    assert_same(ours.bounded("who", 2), read.bounded("who", 2), [("a",), ()])
    assert watched.sets == []


def test_a_release_is_the_same_whichever_way_was_taken(
    database: Database, nothing_kept: None
) -> None:
    fill(database, {n: [str(r * r % 7) for r in range(90)] for n in ("a", "b")}, {})
    schema = Schema(columns=small(a=700, b=700).columns, dataset="d")
    ours, read, watched = both(database, schema)
    releases = []
    for table in (ours, read):
        curator = Curator(
            table,
            protect=OneRow(neighbors="add-remove"),
            budget=PureDP(epsilon=1),
            rng=simulation_rng(3),
        )
        release = publish(Independent(), curator)
        releases.append(release.table(n_rows=200, rng=simulation_rng(4)))
    assert releases[0].equals(releases[1])
    assert watched.sets
    assert watched.reads == []


def test_most_values_of_a_declared_column() -> None:
    by_name = {column.name: most_values(column) for column in SCHEMA}
    assert by_name["word"] == 4
    assert by_name["flag"] == 3
    assert by_name["age"] == 11
    assert by_name["day"] == 367
    assert by_name["weight"] == by_name["instant"] == float("inf")


def test_all_columns_are_grouped_once_where_they_have_few_combinations() -> None:
    assert server_sets(small(a=10, b=10, c=10), [("a",)]) == (("a", "b", "c"),)


def test_no_more_marginals_than_columns_are_grouped_on_the_server() -> None:
    schema = small(a=15, b=15, c=15, d=999)
    marginals = (("a", "b"), ("b", "c"), ("c", "a"), ("d",))
    assert server_sets(schema, marginals) == marginals
    assert server_sets(schema, (*marginals, ("a",))) == ()


def test_many_marginals_are_read() -> None:
    names = [f"c{position}" for position in range(15)]
    schema = small(**dict.fromkeys(names, 30))
    for degree in (2, 3):
        assert server_sets(schema, tuple(combinations(names, degree))) == ()
    singles = tuple((name,) for name in names)
    assert server_sets(schema, singles) == singles


def test_large_and_unbounded_marginals_are_read() -> None:
    schema = Schema(columns=(*small(a=500, b=500), Number(name="w", edges=(0, 1))))
    assert server_sets(schema, [("a", "b")]) == ()
    assert server_sets(schema, [("w",)]) == ()
    assert server_sets(schema, [("a", "w"), ("a",)]) == ()  # a is read anyway
    assert server_sets(schema, [("a", "w"), ("b",)]) == (("b",),)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=3, max_size=6),
    chosen=st.sets(st.frozensets(st.integers(0, 5), min_size=1, max_size=3), min_size=1),
)
def test_the_server_groups_by_small_sets_and_by_marginals_or_all_columns(
    sizes: list[int], chosen: set[frozenset[int]]
) -> None:
    schema = small(**{f"c{position}": size for position, size in enumerate(sizes)})
    marginals = sorted({tuple(f"c{p % len(sizes)}" for p in sorted(m)) for m in chosen})
    marginals = [m for m in marginals if len({*m}) == len(m)] or [("c0",)]
    sets = server_sets(schema, marginals)
    assert sets == (schema.names,) or {*sets} <= {*marginals}
    assert all(schema.cells(names) <= MOST_GROUPS for names in sets)


def test_parts_of_a_state_are_its_own_counters() -> None:
    kernel = MarginalCounts(small(a=2, b=3), (("a",), ("b", "a"), ()))
    state = kernel.zero()
    kernel.parts(state)[("b", "a")][:] = 7
    assert state.tolist() == [0, 0, 7, 7, 7, 7, 7, 7, 0]


def test_a_query_of_several_sets_names_no_column() -> None:
    query = Grouping((("x'; --",), ("b", "x'; --"))).sql({"x'; --": "1", "b": "2"}, "t")
    assert query == (
        "SELECT c0, c1, count(*), GROUPING(c0, c1) FROM (SELECT 1 AS c0, 2 AS c1 FROM t) AS t "
        "GROUP BY GROUPING SETS ((c0), (c1, c0))"
    )
