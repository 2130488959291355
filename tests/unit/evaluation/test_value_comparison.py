"""Raw values, real against published: a bad bin is reported first, whatever codes say."""

import json
from datetime import date
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.evaluation.discrepancies import percent, shown
from sfumato.evaluation.evaluate import Classifiers, RawValues, TotalVariation, evaluate
from sfumato.evaluation.raw_rows import read_raw
from sfumato.ledger import Ledger
from sfumato.models.dense.model import DenseModel
from sfumato.privacy import OneRow, PureDP
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease
from sfumato.schema import Category, Date, Integer, Number, Schema

N = 20_000
RNG = np.random.default_rng(7)
BALANCE = np.round(np.where(RNG.random(N) < 0.3, 0, np.exp(RNG.normal(6.5, 1.1, N))))
SCHEMA = Schema(
    dataset="bank",
    columns=(
        Number(name="balance", edges=(-10_000.0, 0.0, 10_000.0, 100_000.0, 1_000_000.0)),
        Integer(name="age", low=18, high=90),
        Integer(name="paid", low=0, high=100_000),
        Category(name="job", values=("a", "b", "c")),
        Date(name="opened", low=date(2020, 1, 1), high=date(2022, 12, 31)),
    ),
)  # fmt: skip
"""One bin of the balance holds nearly all rows."""
AGES = RNG.integers(18, 80, N)
REAL = pa.table(
    {
        "balance": BALANCE,
        "age": AGES,
        "paid": (BALANCE / 2).astype(int),
        "job": np.array(["a", "b", "c"])[(AGES > 30).astype(int) + (AGES > 60)],
        "opened": pa.array(18_262 + RNG.integers(0, 1_000, N), pa.int32()).cast(pa.date32()),
    }
)


def in_bins(values: Any, edges: Any) -> Any:
    """The same bins, and a uniform value inside: what a release draws for a bad bin."""
    at = np.searchsorted(edges[1:-1], values, side="right")
    low, high = np.array(edges)[at], np.array(edges)[at + 1]
    return np.round(low + RNG.random(values.size) * (high - low))


BAD = REAL.set_column(0, "balance", pa.array(in_bins(BALANCE, SCHEMA["balance"].edges)))


def release(data: pa.Table, schema: Schema = SCHEMA) -> TableRelease:
    small = schema.pick([schema.names[0]])
    return TableRelease(
        dataset="bank",
        guarantee=PureDP(1),
        protect=OneRow(),
        private=True,
        method={"name": "made by hand"},
        schema=schema,
        model=DenseModel(schema=small, counts=np.ones(small.shape(small.names))),
        measurements=(),
        data=data,
        ledger={"head": {"seq": 0, "hash": ""}, "entries": []},
    )


def compare(
    data: pa.Table = BAD, *, checks: Any = (), real: pa.Table = REAL, more: Any = (), **options: Any
) -> Any:
    return evaluate(
        release(data), against=open_table(real, SCHEMA), rng=simulation_rng(0),
        measures=(RawValues(checks=checks), *more), ledger=Ledger.in_memory(dataset="bank"),
        **options,
    )  # fmt: skip


def test_a_bad_bin_is_reported_first_although_codes_agree() -> None:
    found = compare(more=(TotalVariation(degree=1),))
    balance = found.values.numbers["balance"]
    mean, real_mean = np.mean(BAD["balance"].to_numpy()), BALANCE.mean()
    assert mean > 3 * real_mean
    assert found.tv[1] < 0.004
    assert balance.mean_error == pytest.approx((mean - real_mean) / real_mean)
    first = found.discrepancies[0]
    assert first.columns == ("balance",)
    assert first.text.startswith(
        f"balance: mean {mean:,.0f} where the real one is {real_mean:,.0f}; "
    )
    assert "Do not use the values of balance as they are. 1 of 4 numbers is far" in found.verdict
    assert "The codes of balance agree with the real ones" in found.verdict
    assert not any(each.numeric for each in found.discrepancies[1:])


def test_a_release_of_the_real_rows_has_nothing_to_report() -> None:
    found = compare(REAL, checks=("paid <= balance",))
    assert found.discrepancies == ()
    assert "agree with the real ones: every figure" in found.verdict
    assert set(found.values.figures.values()) == {0.0}


def test_figures_are_those_of_the_columns() -> None:
    found = compare().values.numbers["balance"]
    real, published = BALANCE, BAD["balance"].to_numpy()
    for summary, values in ((found.real, real), (found.published, published)):
        assert summary.mean == pytest.approx(values.mean())
        assert summary.sd == pytest.approx(values.std())
        assert summary.deciles == pytest.approx(np.quantile(values, np.arange(1, 10) / 10))
        assert summary.median == pytest.approx(np.median(values))
        assert summary.zeros == pytest.approx(np.mean(values == 0))
        assert summary.heaviest == summary.zeros
    stats = pytest.importorskip("scipy.stats")
    assert found.ks == pytest.approx(stats.ks_2samp(real, published).statistic)
    moved = stats.wasserstein_distance(real, published) / real.std()
    assert found.wasserstein == pytest.approx(moved)
    assert found.heaviest_value == 0


def test_values_beyond_the_limits_count_as_themselves_and_as_clipped() -> None:
    ages = np.where(np.arange(N) < N // 10, 120, AGES)
    clipped = REAL.set_column(1, "age", pa.array(np.clip(ages, 18, 90)))
    found = compare(clipped, real=REAL.set_column(1, "age", pa.array(ages)))
    age = found.values.numbers["age"]
    assert age.clipped == pytest.approx(0.1)
    assert age.real.mean == pytest.approx(ages.mean())
    assert age.published.mean == pytest.approx(np.clip(ages, 18, 90).mean())
    (first, *_) = found.discrepancies
    assert first.text.startswith("age: 10% of the real values lie outside the declared limits 18")
    assert "bins of the schema" not in found.verdict


def test_values_that_do_not_fit_are_lost_and_said() -> None:
    jobs = np.where(np.arange(N) < N // 5, "Z", np.array(REAL["job"].to_pylist()))
    found = compare(REAL, real=REAL.set_column(3, "job", pa.array(jobs)))
    job = found.values.columns["job"]
    assert (job.unfit, job.became) == (pytest.approx(0.2), "a")
    texts = [each.text for each in found.discrepancies]
    assert "job: 20% of the real values do not fit the schema and became a" in texts


def test_days_are_compared_as_days() -> None:
    days = REAL["opened"].to_numpy().astype("datetime64[D]").astype(int)
    later = pa.array(days + 365, pa.int32())
    data = REAL.set_column(4, "opened", later.cast(pa.date32()))
    found = compare(data)
    opened = found.values.numbers["opened"]
    assert opened.mean_error == pytest.approx(365 / opened.real.sd)
    assert found.discrepancies[0].text.startswith("opened: mean 2022-05-")
    assert "where the real one is 2021-05-" in found.discrepancies[0].text


def test_declared_rules_are_counted_on_both_sides() -> None:
    found = compare(checks=("paid <= balance", "balance >= 0"))
    rule = {each.rule: each for each in found.values.checks}["paid <= balance"]
    real = np.mean(REAL["paid"].to_numpy() > BALANCE)
    published = np.mean(BAD["paid"].to_numpy() > BAD["balance"].to_numpy())
    assert (rule.real, rule.published) == (real, pytest.approx(published))
    assert rule.judged == (N, N)
    assert any(each.text.startswith("paid <= balance: broken in") for each in found.discrepancies)


def test_lost_dependence_shows_in_ranks_groups_and_pairs() -> None:
    data = REAL.set_column(1, "age", pa.array(RNG.permutation(AGES)))
    data = data.set_column(0, "balance", pa.array(RNG.permutation(BALANCE)))
    found = compare(data)
    assert found.values.numbers["age"].mean_error == 0
    assert found.values.ranks.worst[0] == ("balance", "paid")
    texts = " ".join(each.text for each in found.discrepancies)
    assert "balance × paid: rank correlation" in texts
    assert "age where job is" in texts
    assert found.values.pairs.worst == ("balance", "paid")
    group = next(each for each in found.values.groups if each.number == "age")
    assert group.error > 0.2


def test_baselines_say_what_chance_and_single_columns_reach() -> None:
    found = compare(REAL, baselines=True)
    permuted, resampled = (each.values.figures for each in found.baselines.values())
    assert permuted["mean_error"] == permuted["ks"] == 0
    assert permuted["rank_error"] > 0.1
    assert permuted["group_error"] > resampled["group_error"]
    assert 0 < resampled["ks"] < 0.02
    chance = found.values.pair_chance
    assert resampled["pair_distance"] == pytest.approx(chance, rel=0.2)


def test_programs_get_all_of_it_and_json_has_no_other_numbers() -> None:
    endless = REAL.set_column(0, "balance", pa.array(np.where(BALANCE > 5_000, np.inf, BALANCE)))
    found = compare(BAD, real=endless, checks=("age >= 18",), baselines=True)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["worst_values"][0]["columns"] == ["balance"]
    assert told["values"]["numbers"]["balance"]["clipped"] > 0
    assert told["values"]["checks"][0]["rule"] == "age >= 18"
    assert told["baselines"]["resampled rows"]["values"]["ks"] >= 0
    assert "worst: balance" in repr(found)
    assert "balance: mean" in found._repr_html_()
    assert sf.ValueComparison is type(found.values)


@pytest.mark.parametrize("which", ["published", "real"])
def test_a_side_without_rows_or_values_is_far_away_and_no_crash(which: str) -> None:
    empty = REAL.slice(0, 0)
    found = compare(empty) if which == "published" else compare(REAL, real=empty)
    json.dumps(found.to_dict(), allow_nan=False)
    if which == "published":
        assert found.values.numbers["age"].ks == 1
        assert found.values.numbers["age"].published.mean is None


def test_what_can_not_be_compared_is_refused_before_the_look() -> None:
    book = Ledger.in_memory(dataset="bank")
    codes = ArrayTable(SCHEMA, {name: [0] for name in SCHEMA.names})
    real = open_table(REAL, SCHEMA)
    labelled: Any = {"against": real, "held_back": real}
    for options, measure, says in (
        ({"against": codes}, RawValues(), "not of codes"),
        ({"against": real}, RawValues(checks=("age <= height",)), "'height'"),
        (labelled, RawValues(), "Name a label"),
        ({**labelled, "held_back": REAL}, Classifiers(), "held_back must be an open table"),
    ):
        with pytest.raises(InputError, match=says):
            evaluate(
                release(REAL), measures=(measure,), rng=simulation_rng(0), ledger=book, **options
            )
    assert book.entries() == ()
    with pytest.raises(InputError, match="checks must be a tuple"):
        RawValues(checks="a <= b")  # type: ignore[arg-type]


def test_of_very_many_values_some_rows_are_compared_and_the_result_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_module("sfumato.evaluation.raw_rows"), "MOST_VALUES", N)
    rows = read_raw(open_table(REAL, SCHEMA), rng=simulation_rng(1))
    assert (rows.rows, rows.of) == (pytest.approx(N / 5, rel=0.1), N)
    found = compare(REAL)
    assert "of 20,000 real and" in found.notes[0]


def test_python_objects_of_several_types_are_read_each_by_itself() -> None:
    pandas = pytest.importorskip("pandas")
    columns = (Integer(name="n", low=0, high=9), Category(name="c", values=("1", "b")))
    schema = Schema(columns=columns)
    frame = pandas.DataFrame({"n": [1, "7", 2.0, "x", None], "c": ["b", 1, "1", None, "b"]})
    rows = read_raw(open_table(frame, schema), rng=simulation_rng(0))
    assert rows.columns["n"].tolist() == pytest.approx([1, 7, 2, np.nan, np.nan], nan_ok=True)
    assert rows.columns["c"].tolist() == [1, 0, 0, 0, 1]
    assert rows.unfit == {"n": 2, "c": 1}


def test_classifiers_learn_from_values_and_are_tested_on_rows_held_back() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(8)
    money = np.round(np.exp(rng.normal(6, 1, 3_000)), 2)
    schema = Schema(
        dataset="bank",
        columns=(
            Number(name="money", edges=(0.0, 1e6)),
            Category(name="rich", values=("no", "yes")),
        ),
    )
    table = pa.table({"money": money, "rich": np.where(money > 400, "yes", "no")})
    turned = pa.table({"money": money, "rich": np.where(money > 400, "no", "yes")})
    measure = Classifiers(labels=("rich",), models=("random forest",))

    def scores(held_back: Any) -> Any:
        found = evaluate(
            release(table, schema), against=open_table(table, schema), measures=(measure,),
            rng=simulation_rng(0), ledger=Ledger.in_memory(dataset="bank"), held_back=held_back,
        )  # fmt: skip
        return found, found.classifiers["rich"]

    found, own = scores(None)
    assert found.held_back is None
    assert own.published["random forest"].accuracy > 0.98  # one bin: codes alone tell nothing
    found, other = scores(open_table(turned, schema))
    assert found.held_back == found.to_dict()["held_back"] == 3_000
    assert other.real["random forest"].accuracy < 0.02  # they, and no others, are tested on


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [(4660.4, "integer", "4,660"), (-0.25, "number", "-0.25"), (1e300, "date", "1e+300"),
     (86_400.0, "datetime", "1970-01-02 00:00:00"), (None, "number", "none")],
)  # fmt: skip
def test_values_are_shown_in_their_own_units(value: Any, kind: str, text: str) -> None:
    assert shown(value, kind) == text


def test_shares_are_shown_with_two_digits() -> None:
    assert [percent(share) for share in (0, 0.00012, 0.034, 0.5, 1)] == [
        "0%", "0.012%", "3.4%", "50%", "100%",
    ]  # fmt: skip
