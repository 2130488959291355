"""Rules kept in drawn rows: never a violation, single columns as drawn, the price told."""

import operator
from collections import Counter
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.commands.dp2pub import dp2pub_table
from sfumato.commands.publish import publish_table
from sfumato.errors import SchemaError
from sfumato.models.dense.model import DenseModel
from sfumato.models.model import PublishedRows, repaired
from sfumato.randomness import simulation_rng
from sfumato.release import TableRelease, draw_rows, draw_table
from sfumato.release import table as release_table
from sfumato.release.rules import both_repairs, keep_rules, rule_facts
from sfumato.schema import (
    Category,
    Column,
    Date,
    DateTime,
    Integer,
    Number,
    Ordinal,
    Rule,
    Schema,
)
from sfumato.schema.codes import code_type, decode, encode
from sfumato.schema.impossible import Impossible
from sfumato.schema.schema import possible_rows


def breaks(schema: Schema, table: pa.Table) -> int:
    """Rows that break a rule, compared value by value as Python does."""
    wrong = 0
    for row in table.to_pylist():
        for rule in schema.rules:
            left, right = (_plain(schema[name], row[name]) for name in rule.names)
            if left is not None and right is not None:
                keeps = operator.lt if rule.strict else operator.le
                wrong += not keeps(left, right)
    return wrong


def _plain(column: Column, value: Any) -> Any:
    if isinstance(column, Ordinal):
        return column.values.index(value) if value in column.values else None
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def drawn(schema: Schema, codes: dict[str, Any], seed: int = 1) -> pa.Table:
    rng = simulation_rng(seed)
    return pa.table(
        {c.name: decode(c, np.asarray(codes[c.name], dtype=code_type(c)), rng=rng) for c in schema}
    )


NUMBERS = st.one_of(
    st.builds(
        lambda low, size, step: {"low": low, "high": low + size, "step": step, "kind": Integer},
        st.integers(-5, 5),
        st.integers(0, 9),
        st.integers(1, 3),
    ),
    st.builds(
        lambda low, size, resolution: {
            "low": low,
            "high": low + size * resolution + 1,
            "resolution": resolution,
            "kind": Integer,
        },
        st.integers(-5, 5),
        st.integers(0, 5),
        st.integers(1, 3),
    ),
    st.builds(
        lambda low, size, resolution: {
            "low": low,
            "high": low + size,
            "resolution": resolution,
            "kind": Number,
        },
        st.sampled_from([-4, -0.5, 0, 0.1, 2]),
        st.integers(1, 8),
        st.sampled_from([0.01, 0.1, 0.25, 1]),
    ),
    st.builds(
        lambda low, size, decimals: {
            "edges": (low, low + 1, low + 1 + size),
            "decimals": decimals,
            "kind": Number,
        },
        st.integers(-4, 4),
        st.integers(1, 8),
        st.sampled_from([None, 0, 1, 2]),
    ),
)
TIMES = st.one_of(
    st.just({"low": date(2020, 1, 1), "high": date(2020, 2, 15), "step": "week", "kind": Date}),
    st.just({"low": date(2020, 1, 10), "high": date(2020, 1, 30), "kind": Date}),
    st.sampled_from(["hour", "minute", "second", "microsecond"]).map(
        lambda precision: {
            "low": datetime(2020, 1, 3),
            "high": datetime(2020, 1, 20, 12),
            "precision": precision,
            "step": "day",
            "unit": "ms",
            "kind": DateTime,
        }
    ),
)
ORDINALS = st.booleans().map(
    lambda other: {"values": ("low", "mid", "high"), "other": other, "kind": Ordinal}
)


@st.composite
def ruled_tables(draw: Any) -> tuple[Schema, dict[str, Any]]:
    """Up to four columns of one scale with rules, at times with impossible combinations; codes."""
    kind = draw(st.sampled_from([NUMBERS, TIMES, ORDINALS]))
    names = "abcd"[: draw(st.integers(2, 4))]
    columns: list[Column] = []
    for name in names:
        fields = dict(draw(kind))
        make = fields.pop("kind")
        try:
            columns.append(make(name=name, missing=draw(st.booleans()), **fields))
        except SchemaError:  # a resolution beyond the limits
            assume(False)
    columns.append(Category(name="town", values=("x", "y")))
    pairs = [(x, y) for i, x in enumerate(names) for y in names[i + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=4, unique=True))
    rules = tuple(Rule(left=x, right=y, strict=draw(st.booleans())) for x, y in chosen)
    excluded = tuple(
        Impossible(parts=((name, (draw(st.integers(0, schema_size(columns, name) - 1)),)), town))
        for name in draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        for town in [("town", (draw(st.integers(0, 1)),))]
    )
    try:
        schema = Schema(columns=tuple(columns), rules=rules, impossible=excluded)
    except SchemaError:
        assume(False)
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    n = draw(st.integers(0, 40))
    codes = {column.name: generator.integers(0, column.size, n) for column in schema}
    return schema, dict(repaired(schema, codes, rng=simulation_rng(1)))


def schema_size(columns: list[Column], name: str) -> int:
    return next(column.size for column in columns if column.name == name)


# ---------------------------------------------------------------- what is promised


@settings(deadline=None, max_examples=300)
@given(ruled_tables())
def test_no_row_breaks_a_rule_and_none_becomes_impossible(
    made: tuple[Schema, dict[str, Any]],
) -> None:
    schema, codes = made
    before = drawn(schema, codes)
    table, moved = keep_rules(schema, before, codes, rng=simulation_rng(2))
    assert breaks(schema, table) == 0
    assert table.schema == before.schema
    after = {c.name: encode(c, table[c.name].combine_chunks()) for c in schema}
    assert possible_rows(schema, after).all()
    assert moved.broke == 0 or moved.changed > 0
    assert (moved.changed == 0) == table.equals(before)
    if not schema.impossible:
        for name in schema.names:
            assert table[name].is_null().equals(before[name].is_null())  # missing values stay
        assert table["town"].equals(before["town"])
    for name, most in moved.columns.items():
        if most == 0:  # told as unmoved: the same values, in another order
            assert Counter(table[name].to_pylist()) == Counter(before[name].to_pylist())
    again, nothing = keep_rules(schema, table, codes, rng=simulation_rng(3))
    assert again.equals(table)
    assert (nothing.broke, nothing.changed) == (0, 0)


INTEGERS = (Integer(name="a", low=0, high=100), Integer(name="b", low=0, high=120))
RULED = Schema(columns=INTEGERS, rules=(Rule.parse("a <= b"),))


def normal(mean: float, sd: float, high: int, n: int, seed: int) -> Any:
    drawn_values = np.random.default_rng(seed).normal(mean, sd, n)
    return np.clip(np.rint(drawn_values), 0, high).astype(int)


def test_single_columns_stay_as_they_were_drawn_where_they_are_in_order() -> None:
    codes = {"a": normal(40, 15, 100, 20_000, 1), "b": normal(65, 20, 120, 20_000, 2)}
    before = drawn(RULED, codes)
    table, moved = keep_rules(RULED, before, codes, rng=simulation_rng(1))
    assert 0.12 < moved.broke / 20_000 < 0.2
    assert breaks(RULED, table) == 0
    assert max(moved.columns.values()) <= 4  # of 20,000 rows
    for name in "ab":
        same = Counter(table[name].to_pylist()) & Counter(before[name].to_pylist())
        assert same.total() >= 20_000 - 20


def test_where_single_columns_contradict_the_rule_each_moves_about_half_of_the_way() -> None:
    codes = {"a": normal(60, 20, 100, 20_000, 1), "b": normal(50, 20, 120, 20_000, 2)}
    table, moved = keep_rules(RULED, drawn(RULED, codes), codes, rng=simulation_rng(1))
    assert breaks(RULED, table) == 0
    # the distributions are .197 apart (Kolmogorov); .0985 each would do, one standard error .005
    assert max(moved.columns.values()) / 20_000 < 0.12


def test_ties_to_other_columns_survive_where_few_rows_are_repaired() -> None:
    a = normal(40, 15, 100, 20_000, 1)
    b = np.clip(a + normal(20, 12, 60, 20_000, 2) - 6, 0, 120)
    table, moved = keep_rules(
        RULED, drawn(RULED, {"a": a, "b": b}), {"a": a, "b": b}, rng=simulation_rng(1)
    )
    assert moved.broke > 500
    before = np.corrcoef(a, b)[0, 1]
    after = np.corrcoef(table["a"].to_numpy(), table["b"].to_numpy())[0, 1]
    assert abs(after - before) < 0.08  # the rule itself ties them: what broke it was noise


def test_two_rules_with_the_same_right_column_do_not_tie_their_left_ones() -> None:
    """Food and rent are independent, and neither is above the total: pairs by rank made them .8."""
    food, rent = normal(30, 14, 100, 20_000, 1), normal(30, 14, 100, 20_000, 2)
    total = np.clip(food + rent + normal(30, 15, 60, 20_000, 3) - 30, 0, 100)
    columns = tuple(Integer(name=name, low=0, high=100) for name in ("food", "rent", "total"))
    rules = (Rule.parse("food <= total"), Rule.parse("rent <= total"))
    schema = Schema(columns=columns, rules=rules)
    codes = {"food": food, "rent": rent, "total": total}
    table, moved = keep_rules(schema, drawn(schema, codes), codes, rng=simulation_rng(1))
    assert breaks(schema, table) == 0
    assert moved.broke > 500
    tie = np.corrcoef(table["food"].to_numpy(), table["rent"].to_numpy())[0, 1]
    assert abs(tie) < 0.2


def test_pairs_in_order_stay_as_far_apart_as_they_were_drawn() -> None:
    """Stays keep their spread: pairs by rank made all of about the same length."""
    start = np.random.default_rng(1).integers(0, 90, 20_000)
    stop = np.clip(start + normal(8, 12, 100, 20_000, 2) - 6, 0, 120)
    codes = {"a": start, "b": stop}
    table, _ = keep_rules(RULED, drawn(RULED, codes), codes, rng=simulation_rng(1))
    far = table["b"].to_numpy() - table["a"].to_numpy()
    assert np.quantile(far, 0.9) - np.quantile(far, 0.1) > 6


def test_a_strict_rule_on_a_grid_needs_a_gap_of_one_step() -> None:
    columns = (
        Number(name="paid", edges=(0, 1), decimals=1),
        Number(name="billed", edges=(0, 1), decimals=2),
    )
    schema = Schema(columns=columns, rules=(Rule.parse("paid < billed"),))
    codes = {name: np.zeros(500, dtype=int) for name in schema.names}
    table, _ = keep_rules(schema, drawn(schema, codes), codes, rng=simulation_rng(1))
    paid, billed = (table[name].to_pylist() for name in schema.names)
    assert all(left < right for left, right in zip(paid, billed, strict=True))
    assert {round(value, 1) for value in paid} == set(paid)
    assert {round(value, 2) for value in billed} == set(billed)
    assert max(billed) <= 1


def test_the_price_is_told_as_shares_of_the_drawn_rows() -> None:
    codes = {"a": normal(40, 15, 100, 1_000, 1), "b": normal(60, 20, 120, 1_000, 2)}
    _, moved = keep_rules(RULED, drawn(RULED, codes), codes, rng=simulation_rng(1))
    told = rule_facts(RULED, [moved, moved])["rules"]
    assert told["kept"] == ["a <= b"]
    assert told["rows"] == 2_000
    assert told["repaired"] == 2 * moved.broke
    assert told["repaired_share"] == moved.broke / 1_000
    assert told["moved"].keys() == {"a", "b"}
    free = Schema(columns=INTEGERS)
    model = DenseModel(schema=free, counts=np.ones(free.shape(free.names)))
    assert draw_rows(model, n_rows=10, rng=simulation_rng(1)).facts == {}


# ---------------------------------------------------------------- every path that draws rows

SMALL = Schema(
    columns=(Integer(name="a", low=0, high=3), Integer(name="b", low=0, high=3, missing=True)),
    dataset="towns",
    rules=(Rule.parse("a < b"),),
)


def test_rows_of_a_model_keep_the_rules_in_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_table, "BLOCK_ROWS", 7)
    model = DenseModel(schema=SMALL, counts=np.ones((4, 5)))
    made = draw_rows(model, n_rows=100, rng=simulation_rng(1))
    assert made.table.num_rows == 100
    assert breaks(SMALL, made.table) == 0
    assert made.facts["rules"]["rows"] == 100
    assert made.facts["rules"]["repaired"] > 20


def test_published_rows_are_those_that_keep_the_rules() -> None:
    codes = {"a": np.array([3, 0, 2, 1]), "b": np.array([0, 3, 4, 1])}
    rows = PublishedRows(schema=SMALL, codes=codes)
    made = draw_rows(rows, n_rows=4, rng=simulation_rng(1))
    assert breaks(SMALL, made.table) == 0
    again = draw_table(made.model, n_rows=4, rng=simulation_rng(2))
    assert Counter(map(str, again.to_pylist())) == Counter(map(str, made.table.to_pylist()))


def test_rows_that_nothing_else_can_help_take_the_columns_of_a_public_row() -> None:
    """All rows are of one kind: none can lend its values, so the declaration alone decides."""
    columns = (*INTEGERS, Category(name="town", values=("x", "y")))
    schema = Schema(columns=columns, rules=(Rule.parse("b < a"),)).excluding(
        [{"town": ["x"], "b": [0, 49]}, {"town": ["x"], "a": [51, 100]}]
    )
    codes = {"a": np.full(9, 20), "b": np.full(9, 100), "town": np.zeros(9, dtype=int)}
    table, _ = keep_rules(schema, drawn(schema, codes), codes, rng=simulation_rng(1))
    assert breaks(schema, table) == 0
    after = {c.name: encode(c, table[c.name].combine_chunks()) for c in schema}
    assert possible_rows(schema, after).all()


# ---------------------------------------------------------------- through the front door


def bills() -> tuple[Schema, pa.Table]:
    generator = np.random.default_rng(7)
    billed = generator.integers(0, 1_000, 1_500)
    paid = (billed * generator.uniform(0, 1, 1_500)).astype(int)
    columns = tuple(
        Integer(name=name, low=0, high=999, step=100, missing=True) for name in ("billed", "paid")
    )
    schema = Schema(columns=columns, dataset="bills", rules=(Rule.parse("paid < billed"),))
    return schema, pa.table({"billed": billed, "paid": pa.array(paid, mask=paid < 50)})


@pytest.mark.parametrize("method", ["independent", "histogram", "mst", "dp2pub"])
def test_every_file_of_a_release_keeps_the_rules(method: str, tmp_path: Path) -> None:
    schema, table = bills()
    neighbors = "replace" if method == "dp2pub" else "add-remove"
    publish_table(
        table,
        schema=schema,
        epsilon=1,
        method=method,
        neighbors=neighbors,
        seed=3,
        csv=True,
        out=tmp_path / "out",
    )
    (folder,) = tmp_path.glob("out*")
    release = TableRelease.load(folder)
    assert release.schema.rules == schema.rules
    assert breaks(schema, release.data) == 0
    assert breaks(schema, pyarrow.csv.read_csv(folder / "data.csv")) == 0
    assert breaks(schema, release.table(n_rows=400, rng=simulation_rng(1))) == 0
    frame = release.to_pandas()
    assert not (frame["paid"] >= frame["billed"]).fillna(False).any()
    told = release.method["rules"]
    assert told["kept"] == ["paid < billed"]
    assert told["rows"] == release.data.num_rows
    assert 0 < told["repaired_share"] < 1
    page = (folder / "report.html").read_text()
    assert "paid &lt; billed" in page
    assert "of the drawn rows broke a rule between columns" in page


@pytest.mark.parametrize("trust", ["server", "semi-honest", "nobody"])
@pytest.mark.parametrize("rows", [None, 700])
def test_answers_of_people_keep_the_rules_too(trust: Any, rows: int | None, tmp_path: Path) -> None:
    schema, table = bills()
    release = dp2pub_table(
        table, schema=schema, epsilon=4, trust=trust, rows=rows, seed=3, out=tmp_path / "out"
    )
    assert release.data.num_rows == (rows or 1_500)
    assert breaks(schema, release.data) == 0
    assert breaks(schema, release.table(n_rows=500, rng=simulation_rng(1))) == 0
    assert release.method["rules"]["rows"] == release.data.num_rows


def test_rows_repaired_twice_tell_of_both_repairs() -> None:
    def facts(rows: int, repaired_rows: int, moved: float) -> dict[str, Any]:
        figures = {"repaired": repaired_rows, "changed": repaired_rows, "moved": {"a": moved}}
        return {"rules": {"kept": ["a <= b"], "rows": rows, "repaired_share": 0.0, **figures}}

    told = both_repairs(facts(1_000, 300, 0.01), facts(100, 5, 0.02))["rules"]
    assert (told["rows"], told["repaired"], told["repaired_share"]) == (100, 35, 0.35)
    assert told["moved"] == pytest.approx({"a": 0.03})
    assert both_repairs({}, facts(100, 5, 0.02)) == facts(100, 5, 0.02)
