"""The judges of raw values, the tables they are tried on, and the page of what they found."""

import doctest
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp, spearmanr

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"


@pytest.fixture(scope="module")
def maker():
    spec = spec_from_file_location("make_values", ROOT / "docs" / "make_values.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def judges(maker):
    import value_judges

    return value_judges


@pytest.fixture(scope="module")
def tables(maker):
    import value_tables

    return value_tables


@pytest.fixture(scope="module")
def figures(maker):
    import value_figures

    return value_figures


@pytest.fixture(scope="module")
def skewed(tables):
    return tables.made_table("skewed", rows=6_000)


def judged(judges, tables, table, published):
    return judges.judge_values(
        table.frame,
        published,
        categories=table.categories,
        numbers=table.numbers,
        edges={name: tables.class_edges(table.columns[name]) for name in table.numbers},
    )


def drawn(table, seed=0):
    """Rows drawn again from the real ones: a release as right as sampling allows."""
    return table.frame.sample(len(table.frame), replace=True, random_state=seed).reset_index(
        drop=True
    )


# Against scipy


def test_the_distance_of_distributions_is_scipys(judges):
    rng = np.random.default_rng(0)
    one, other = rng.poisson(3, 500).astype(float), rng.poisson(4, 300).astype(float)
    assert judges.ks_distance(one, other) == pytest.approx(ks_2samp(one, other).statistic)


def test_the_error_of_rank_correlations_is_scipys(judges):
    rng = np.random.default_rng(1)
    real = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    real["b"] += real["a"]
    published = real.copy()
    published["b"] = rng.permutation(published["b"])
    expected = [
        abs(spearmanr(real[x], real[y])[0] - spearmanr(published[x], published[y])[0])
        for x, y in ("ab", "ac", "bc")
    ]
    found = judges.spearman_error(real, published, list("abc"))
    assert found == pytest.approx(np.mean(expected))


def test_pairs_of_categories_are_compared_by_total_variation(judges):
    real = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"]})
    published = pd.DataFrame({"a": ["x", "x", "x", "y"], "b": ["u", "v", "u", "w"]})
    found = judges.pair_distance(real, published, categories=["a", "b"], numbers=[])
    assert found == pytest.approx(0.5)  # (y, u) and (y, v) are lost; (x, u) and (y, w) have more


def test_the_error_of_a_mean_alone_is_what_gaussian_noise_gives(judges):
    rng = np.random.default_rng(2)
    rows, columns, rho, width = 500, 8, 0.01, 40.0
    sigma = width * np.sqrt(columns / (2 * rho))  # a sum of sensitivity `width`, rho / columns
    measured = np.sqrt(np.mean((rng.normal(0, sigma, 200_000) / rows) ** 2))
    found = judges.error_alone(-10, 30, rows=rows, columns=columns, rho=rho)
    assert found == pytest.approx(measured, rel=0.02)  # 9 standard errors


# Right and wrong releases


def test_a_table_compared_with_itself_has_no_error(judges, tables, skewed):
    found = judged(judges, tables, skewed, skewed.frame)
    assert found["mean"] == found["ks"] == found["pairs"] == found["group"] == 0
    assert found["spearman"] == pytest.approx(0)
    assert found["deciles_off"] == found["lost_values"] == 0


def test_a_tripled_mean_stands_out(judges, tables, skewed):
    """And nothing else that is independent of it does."""
    wrong = drawn(skewed)
    wrong["rent"] = 3 * wrong["rent"]
    found, right = (judged(judges, tables, skewed, table) for table in (wrong, drawn(skewed)))
    assert found["columns"]["rent"]["mean"] == pytest.approx(2, abs=0.1)
    assert found["worst_mean"] == found["columns"]["rent"]["mean"]
    assert found["columns"]["rent"]["ks"] > 0.3 > right["columns"]["rent"]["ks"] + 0.25
    assert found["columns"]["age"] == right["columns"]["age"]
    assert found["pairs"] > right["pairs"] + 0.03
    assert found["spearman"] == pytest.approx(right["spearman"])  # ranks are as they were


def test_a_lost_category_stands_out(judges, tables, skewed):
    wrong = drawn(skewed)
    wrong.loc[wrong["sex"] == "m", "sex"] = None
    found, right = (judged(judges, tables, skewed, table) for table in (wrong, drawn(skewed)))
    share = (skewed.frame["sex"] == "m").mean()
    assert found["lost_values"] == pytest.approx(share / len(skewed.categories))
    assert right["lost_values"] == 0
    groups = sum((skewed.frame[name].value_counts() >= 60).sum() for name in skewed.categories)
    assert found["group"] == pytest.approx(right["group"] + 1 / groups, abs=0.2 / groups)
    pairs = len(skewed.columns) - 1, len(skewed.columns) * (len(skewed.columns) - 1) / 2
    assert found["pairs"] > right["pairs"] + 0.8 * share * pairs[0] / pairs[1]


def test_a_lost_column_is_named_and_its_errors_count(judges, tables, skewed):
    found = judged(judges, tables, skewed, drawn(skewed).drop(columns="gain"))
    assert found["lost_columns"] == ["gain"]
    assert found["columns"]["gain"]["mean"] == found["columns"]["gain"]["ks"] == 1
    assert found["columns"]["gain"]["deciles_off"] == 9


def test_even_bins_over_a_skewed_column_stand_out(judges, tables, skewed):
    """The fault that a comparison of codes can't see: right counts, drawn evenly inside."""
    rng = np.random.default_rng(3)
    wrong = drawn(skewed)
    wrong["gain"] = wrong["gain"] // 5_000 * 5_000 + rng.integers(0, 5_000, len(wrong))
    found = judged(judges, tables, skewed, wrong)
    assert found["columns"]["gain"]["mean"] > 1
    assert found["columns"]["gain"]["zero"] > 0.85
    assert found["columns"]["gain"]["ks"] > 0.85
    assert found["columns"]["gain"]["deciles_off"] >= 8


def test_heavy_values_have_codes_of_their_own(judges):
    values = np.array([0.0] * 900 + list(np.linspace(1, 100, 100)) + [np.nan])
    coding = judges.coding_of(values, bins=16)
    codes = coding.codes(values)
    assert list(coding.heavy) == [0]
    assert codes[-1] == 0
    assert (codes[:900] == 1).all()
    counts = np.bincount(codes)[2:]
    assert coding.size == len(np.bincount(codes))
    assert counts.max() - counts.min() <= 2  # the rest in even mass


def test_decimal_commas_and_dates_are_numbers(judges):
    assert list(judges.as_numbers(pd.Series(["2,5", "1", None]))[:2]) == [2.5, 1]
    days = judges.as_numbers(pd.Series(pd.to_datetime(["1970-01-03", None])))
    assert days[0] == 2
    assert np.isnan(days[1])


def test_an_error_of_a_date_does_not_depend_on_where_days_are_counted_from(judges):
    rng = np.random.default_rng(6)
    real = rng.normal(20_000, 500, 1_000)
    for shift in (0, 1e6):
        errors = judges.number_errors(real + shift, real + shift + 25, has_zero=False)
        assert errors["mean"] == pytest.approx(25 / (0.1 * real.std()))


def test_true_and_false_are_the_words_of_the_real_column(judges):
    real = pd.Series(["yes", "no"])
    assert list(judges.as_texts(pd.Series(["true", "False"]), real)) == ["yes", "no"]


def test_a_model_learns_from_a_right_release_and_not_from_shuffled_labels(judges, tables):
    table = tables.made_table("balances", rows=6_000)
    kept = {"label": "agreed", "categories": table.categories, "numbers": table.numbers}
    right = judges.auc_on_real(table.frame, table.held_back, **kept)
    assert right > 0.7
    labels = (table.frame["agreed"].sample(frac=1, random_state=seed) for seed in range(4))
    shuffled = [
        judges.auc_on_real(table.frame.assign(agreed=one.to_numpy()), table.held_back, **kept)
        for one in labels
    ]
    assert np.mean(shuffled) == pytest.approx(0.5, abs=0.08)  # of one alone up to .08 either way
    lost = table.frame.assign(agreed="no")
    assert judges.auc_on_real(lost, table.held_back, **kept) == 0.5


# The tables


def test_generated_tables_fit_their_declarations_and_are_the_same_again(tables):
    for name in tables.MADE:
        table, again = (tables.made_table(name, rows=2_000) for _ in range(2))
        pd.testing.assert_frame_equal(table.frame, again.frame)
        assert len(table.held_back) == tables.HELD_BACK
        assert list(table.frame) == list(table.columns) == list(table.made)
        for title in table.numbers:
            import value_judges

            low, high = tables.limits(table.columns[title])
            values = value_judges.as_numbers(table.frame[title])
            assert low <= np.nanmin(values) <= np.nanmax(values) <= high, title
        for title in table.categories:
            assert set(table.frame[title]) <= set(table.columns[title]["values"]), title
        assert not {"step", "edges"} & {key for one in table.columns.values() for key in one}


def test_the_generated_tables_have_the_shapes_that_they_promise(tables):
    skewed = tables.made_table("skewed").frame
    assert len(skewed.columns) == 15
    assert (skewed["gain"] == 0).mean() == pytest.approx(0.90, abs=0.01)
    assert (skewed["gain"] == 99_999).mean() == pytest.approx(0.005, abs=0.002)
    bills = tables.made_table("bills").frame
    ranks = bills[[f"bill_{month}" for month in range(1, 7)]].corr("spearman").to_numpy()
    assert 0.88 < np.diag(ranks, 1).min() < np.diag(ranks, 1).max() < 0.95


def test_edges_by_hand_cover_the_limits_and_keep_zero_alone(tables):
    column = tables.integer(-100_000, 500_000)
    edges = tables.class_edges(column)
    assert (edges[0], edges[-1]) == (-100_000, 500_000)
    assert edges[edges.index(0) + 1] == 1
    assert edges == sorted(set(edges))


# Losses and the page


def release(who, table="skewed", *, seed=0, mean=0.01, ks=0.01, pairs=0.02, auc=0.8):
    errors = dict.fromkeys(("mean", "median", "ks", "zero", "heaviest", "deciles_off"), 0.0)
    errors |= {"mean": mean, "ks": ks, "alone": 0.01, "real_mean": 1.0, "published_mean": 1.0}
    figures = {"mean": mean, "worst_mean": mean, "median": 0.0, "ks": ks, "spearman": 0.0}
    figures |= {"group": 0.0, "pairs": pairs, "auc": auc, "auc_real": 0.9, "auc_gap": 0.9 - auc}
    figures |= {"sdmetrics": 0.99, "lost_columns": []}
    row = {"table": table, "who": who, "seed": seed, "version": "1", "outcome": "done"}
    row |= {"load": 1.0, "cpu_s": 1.0, "memory_mb": 100}
    return row | {"figures": figures, "columns": {"gain": errors}}


def lost(figures, *rows, before=()):
    found = figures.averages(rows)
    return [
        loss.what for loss in figures.losses(found, figures.averages(before), generated=("skewed",))
    ]


def test_what_is_within_its_bars_and_ahead_of_peers_is_no_loss(figures):
    assert lost(figures, release("sfumato declared"), release("peer mst", mean=0.02)) == []


def test_a_peer_that_is_ahead_is_a_loss(figures):
    rows = release("sfumato declared"), release("peer mst", mean=0.001, auc=0.7)
    assert lost(figures, *rows) == [
        "mean error: ahead of every peer",
        "worst mean: ahead of every peer",
    ]


def test_bars_that_are_missed_are_losses_by_size(figures):
    found = lost(figures, release("sfumato declared", mean=0.5, ks=0.03, pairs=0.2))
    assert found == ["mean of gain", "pairs", "KS of gain"]


def test_a_mean_may_be_as_wrong_as_three_times_the_mean_measured_alone(judges):
    assert judges.MeanBar(error=0.29, alone=0.1).passed
    assert not judges.MeanBar(error=0.31, alone=0.1).passed
    assert judges.MeanBar(error=0.09, alone=0.001).passed


def test_a_gap_that_did_not_close_is_a_loss(figures):
    before = [release("sfumato drafted", auc=0.75)]  # a gap of .15: now at most .10
    assert lost(figures, release("sfumato declared", auc=0.79), before=before) == ["AUC gap"]
    assert lost(figures, release("sfumato declared", auc=0.81), before=before) == []


def test_a_small_table_that_is_worse_than_independent_columns_is_a_loss(figures):
    rows = [release("sfumato declared", "small", pairs=p) for p in (0.2, 0.1)]
    rows[1]["who"] += ", independent"
    assert lost(figures, *rows) == ["pairs"]


def test_a_release_that_failed_is_the_first_loss(figures):
    failed = {key: release("sfumato none")[key] for key in ("table", "who", "seed", "version")}
    found = lost(figures, failed | {"outcome": "refused"}, release("sfumato declared", mean=0.5))
    assert found[0] == "releases"


def test_a_new_release_takes_the_place_of_the_old_one(figures):
    old, other, new = (release("a", mean=m, seed=s) for m, s in ((1, 0), (2, 1), (3, 0)))
    assert figures.merged([old, other], [new]) == [other, new]


def test_the_page_is_what_the_stored_results_say(maker):
    assert maker.OUT.read_text() == maker.page(), "run python docs/make_values.py"


def test_stored_releases_name_no_folder_of_a_machine(maker):
    for file in (maker.STORED, maker.BEFORE):
        if file.exists():
            assert "/tmp/" not in file.read_text()
            assert str(ROOT) not in file.read_text()


def test_the_examples_in_the_judges_are_right(judges, tables, maker):
    for module in (judges, tables, maker):
        assert doctest.testmod(module).failed == 0


def test_the_runner_offers_the_entry_that_is_documented(maker, monkeypatch):
    import values

    asked = ["values.py", "--ours", "declared", "--table", "skewed", "--seeds", "3"]
    monkeypatch.setattr(sys, "argv", asked)
    found = values.wanted_programs(values.options())
    assert [one.who for one in found] == ["sfumato declared"]


def test_every_peer_is_pinned_and_known_to_its_script(maker):
    import values

    script = (BENCH / "peers" / "values_peer.py").read_text()
    for peer, methods in values.PEER_METHODS.items():
        assert (BENCH / "peers" / f"synthesis_{peer}_requirements.txt").exists()
        assert all(f'("{peer}", "{method}")' in script for method in methods)
