"""From noisy counts of ever finer bins to counts that could exist, against dense least squares."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.models.numbers import (
    FEW_ROWS,
    GROUPS,
    MOST_BINS,
    Level,
    as_measurement,
    consistent,
    cut_at_classes,
    estimated_counts,
    even_groups,
    finer,
    group_count,
    improved,
    likely_counts,
    smoother,
    starts_of,
    tail_counts,
)
from sfumato.schema import Boolean, Date, Integer, Measurement, Number, Schema
from sfumato.schema.classes import first_classes, round_pieces
from sfumato.schema.measurement import Coarse, KnownNumbers

PAID = Integer(name="paid", low=0, high=100_000)
SIGNED = Integer(name="signed", low=-3_000, high=3_000, missing=True)
DAY = Date(name="day", low=date(2015, 1, 1), high=date(2020, 12, 31))
CENTS = Number(name="cents", low=0.0, high=50.0, resolution=0.01, missing=True)
COLUMNS = [PAID, SIGNED, DAY, CENTS]
over_all = pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)


def starts_with_missing(column, bins):
    return starts_of(replace(column, bins=tuple(bins)))


def true_values(column, rows, seed):
    """Cells of rows as people's numbers are: most near zero, few far out, some missing."""
    rng = np.random.default_rng(seed)
    zero = -column.low if isinstance(column, Integer) else 0
    sizes = np.exp(rng.normal(np.log(column.cells) / 3, 1.0, rows)).astype(np.int64)
    sign = rng.choice([-1, 1], rows) if zero else 1
    cells = np.clip(zero + sign * sizes, 0, column.cells - 1)
    cells[rng.random(rows) < 0.4] = zero
    if column.missing:
        cells[rng.random(rows) < 0.1] = column.cells
    return cells


def counted(column, bins, cells):
    starts = starts_with_missing(column, bins)
    which = np.searchsorted(starts, cells, side="right") - 1
    return np.bincount(which, minlength=starts.size).astype(np.float64)


def level_of(column, bins, cells, sigma, rng):
    counts = counted(column, bins, cells)
    return Level(
        starts=starts_with_missing(column, bins),
        counts=counts + rng.normal(0, sigma, counts.size),
        sigma_counts=sigma,
    )


def tree_of(column, *, rows=20_000, sigma=15.0, levels=3, seed=1):
    """Levels as ``grow`` makes them: each divides what its noisy counts say is heavy."""
    rng = np.random.default_rng(seed)
    cells = true_values(column, rows, seed)
    bins, result = first_classes(column), []
    for _ in range(levels):
        result.append(level_of(column, bins, cells, sigma, rng))
        bins = finer(replace(column, bins=bins), result[-1], rows=rows)
    return result, cells, bins


@st.composite
def ladders(draw):
    """Levels that each divide the one before, of different noise, also of single counts."""
    cells = draw(st.integers(2, 40))
    finest = sorted({0, *draw(st.lists(st.integers(1, cells - 1), max_size=12))})
    parts, result = [finest], []
    for _ in range(draw(st.integers(0, 3))):
        kept = [start for start in parts[0] if start == 0 or draw(st.booleans())]
        parts.insert(0, kept)
    for starts in parts:
        noise = st.floats(0.1, 50)
        each = draw(st.booleans())
        sigma = np.array([draw(noise) for _ in starts]) if each else draw(noise)
        counts = np.array([draw(st.floats(-500, 5_000)) for _ in starts])
        result.append(Level(starts=np.array(starts), counts=counts, sigma_counts=sigma))
    return result


def least_squares(levels):
    """The oracle: all counts as weighted sums of the finest bins, by a dense solver."""
    finest = levels[-1].starts
    rows, values = [], []
    for level in levels:
        parent = np.searchsorted(level.starts, finest, side="right") - 1
        sums = (parent == np.arange(level.starts.size)[:, None]).astype(float)
        weight = 1 / np.broadcast_to(level.sigma_counts, level.counts.shape)
        rows.append(sums * weight[:, None])
        values.append(level.counts * weight)
    design, answers = np.concatenate(rows), np.concatenate(values)
    leaves = np.linalg.lstsq(design, answers, rcond=None)[0]
    covariance = np.linalg.inv(design.T @ design)
    counts, variances = [], []
    for level in levels:
        parent = np.searchsorted(level.starts, finest, side="right") - 1
        sums = (parent == np.arange(level.starts.size)[:, None]).astype(float)
        counts.append(sums @ leaves)
        variances.append(np.diag(sums @ covariance @ sums.T))
    return counts, variances


@given(ladders())
def test_consistent_counts_and_their_variances_are_those_of_dense_least_squares(levels):
    counts, variances = consistent(levels)
    expected, spread = least_squares(levels)
    for own, right in zip(counts, expected, strict=True):
        assert np.allclose(own, right, rtol=1e-6, atol=1e-5)
    for own, right in zip(variances, spread, strict=True):
        assert np.allclose(own, right, rtol=1e-6)


@given(ladders())
def test_consistent_counts_of_a_level_sum_to_those_of_the_level_above(levels):
    counts, _ = consistent(levels)
    for upper, lower, above, below in zip(levels, levels[1:], counts, counts[1:], strict=False):
        parent = np.searchsorted(upper.starts, lower.starts, side="right") - 1
        assert np.allclose(np.bincount(parent, below), above, atol=1e-6)


@over_all
def test_least_squares_holds_for_grown_trees_with_missing_values(column):
    levels, _, _ = tree_of(column)
    counts, variances = consistent(levels)
    expected, spread = least_squares(levels)
    assert all(np.allclose(one, other) for one, other in zip(counts, expected, strict=True))
    assert all(np.allclose(one, other) for one, other in zip(variances, spread, strict=True))


def test_counts_without_noise_stay_as_they_are():
    levels, cells, _ = tree_of(SIGNED, sigma=1e-12)
    assert np.allclose(consistent(levels)[0][-1], levels[-1].counts)
    likely, _ = likely_counts(SIGNED, levels, levels[-1].starts, total=float(cells.size))
    assert np.allclose(likely, levels[-1].counts, atol=1e-3)


@over_all
@pytest.mark.parametrize("seed", range(3))
def test_likely_counts_could_exist(column, seed):
    levels, cells, bins = tree_of(column, sigma=80.0, seed=seed)
    starts = starts_with_missing(column, bins)
    likely, variances = likely_counts(column, levels, starts, total=float(cells.size))
    assert (likely >= 0).all()
    assert likely.sum() == pytest.approx(cells.size)
    assert (variances > 0).all()


@pytest.mark.parametrize("total", [0.0, 1.0, 37.5, 10_000_000.0])
def test_likely_counts_sum_to_the_number_of_rows_even_where_it_contradicts_them(total):
    levels, _, bins = tree_of(SIGNED, sigma=30.0)
    starts = starts_with_missing(SIGNED, bins)
    likely, _ = likely_counts(SIGNED, levels, starts, total=total)
    assert (likely >= 0).all()
    assert likely.sum() == pytest.approx(total, abs=1e-6)


def test_without_any_level_rows_are_spread_by_the_number_of_values():
    bins = first_classes(PAID)
    starts = starts_with_missing(PAID, bins)
    likely, variances = likely_counts(PAID, [], starts, total=1_000.0)
    assert likely.sum() == pytest.approx(1_000)
    assert likely[1] / likely[0] == pytest.approx(1)
    assert likely[-2] / likely[1] == pytest.approx(50_000)
    assert (variances >= 1_000**2).all()


@over_all
def test_likely_counts_are_nearer_to_the_truth_than_what_was_measured(column):
    """Mean over seeds; noise of 60 rows against bins of some hundred."""
    better = []
    for seed in range(5):
        levels, cells, _ = tree_of(column, sigma=60.0, seed=seed)
        starts = levels[-1].starts
        truth = np.bincount(np.searchsorted(starts, cells, side="right") - 1, minlength=starts.size)
        likely, _ = likely_counts(column, levels, starts, total=float(cells.size))
        better.append(np.abs(likely - truth).sum() / np.abs(levels[-1].counts - truth).sum())
    assert np.mean(better) < 0.9


def tails_of(noisy, variance: float, *, missing: bool, widths=None):
    widths = np.ones(noisy.size, dtype=np.int64) if widths is None else np.array(widths)
    return tail_counts(noisy, np.full(noisy.size, variance), widths=widths, missing=missing)


def test_a_tail_of_pure_noise_gets_hardly_any_rows():
    """Ten empty classes beyond the last: cut at zero, noise alone would put four sigma there."""
    sigma, got, cut = 100.0, [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = np.array([0.0, 50_000, 30_000, *([0.0] * 10)])
        noisy = truth + rng.normal(0, sigma, truth.size)
        counts, tails, _ = tails_of(noisy, sigma**2, missing=False)
        if tails[3:].all():
            got.append(counts[4:].sum())
        cut.append(np.maximum(noisy[4:], 0).sum())
    assert len(got) > 180
    assert np.mean(got) < 0.2 * np.mean(cut)


def test_a_class_that_clearly_holds_rows_is_no_tail_however_far_out():
    noisy = np.array([5_000.0, 900.0, 30.0, -20.0, 10.0, 700.0, 15.0, 12.0, 40.0])
    counts, tails, _ = tails_of(noisy, 30.0**2, missing=True)
    assert np.flatnonzero(tails).tolist() == [6, 7]
    assert (counts[~tails] == noisy[~tails]).all()
    assert (counts[tails] <= 700 / 4 + 1).all()


def test_a_tail_never_gets_more_than_the_class_before_it():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        noisy = np.array([20_000.0, 600.0, *rng.normal(0, 100, 12)])
        counts, tails, _ = tails_of(noisy, 100.0**2, missing=False)
        far = np.flatnonzero(tails)
        assert (counts[far] <= counts[far - 1] + 1e-9).all()
        assert (counts[far] >= 0).all()


def test_a_class_that_limits_cut_short_is_expected_to_hold_less():
    noisy = np.array([9_000.0, 3_000.0, 10.0])
    whole, _, _ = tails_of(noisy, 300.0**2, missing=False, widths=[20, 20, 20])
    cut, _, _ = tails_of(noisy, 300.0**2, missing=False, widths=[20, 20, 1])
    assert cut[2] < whole[2] / 2


def test_a_tail_that_fell_steeply_goes_on_so():
    noisy = np.array([12_000.0, 4_000.0, 60.0, 20.0, 20.0])
    counts, _, _ = tails_of(noisy, 100.0**2, missing=False)
    assert counts[3] <= counts[2] / 4
    assert counts[4] <= counts[3] / 4
    steep = tails_of(np.array([12_000.0, 4_000.0, 150.0, 20.0]), 30.0**2, missing=False)[0]
    assert steep[3] < 150 / 4


def test_a_top_code_far_out_keeps_its_count_where_every_value_is_counted():
    """Ninety of a hundred values are noise; the last one holds rows by itself."""
    column = Integer(name="code", low=0, high=99)
    rng = np.random.default_rng(4)
    truth = np.zeros(100)
    truth[:4], truth[99] = (30_000, 4_000, 900, 300), 250
    schema = Schema(columns=(column,))
    one = Measurement(target=("code",), values=truth + rng.normal(0, 30, 100), sigma_counts=30.0)
    (better,) = improved(schema, [one], total=truth.sum())
    assert better.values[99] == one.values[99]
    assert better.values[20:99].sum() < 60


def test_the_few_rows_farthest_out_are_left_away():
    """A number of 30,000 rows below 100, with limits a hundred times as far: no lone row there."""
    column = Integer(name="paid", low=0, high=10_000)
    classes = np.array(first_classes(column))
    truth = np.zeros(classes.size)
    truth[:7] = (3_000, 5_000, 8_000, 8_000, 4_000, 1_500, 500)
    far = []
    for seed in range(40):
        noisy = truth + np.random.default_rng(seed).normal(0, 40, truth.size)
        level = Level(starts=classes, counts=noisy, sigma_counts=40.0)
        counts, _ = likely_counts(column, [level], classes, total=30_000)
        beyond = counts[classes >= 500]
        assert ((beyond == 0) | (np.cumsum(beyond[::-1])[::-1] >= 3)).all()
        far.append(beyond.sum())
    assert np.mean(far) < 20


def test_where_nothing_is_clear_there_is_no_tail():
    noisy = np.array([50.0, -20.0, 30.0, 10.0])
    counts, tails, _ = tails_of(noisy, 100.0**2, missing=False)
    assert not tails.any()
    assert (counts == noisy).all()


def test_missing_values_are_no_tail_of_the_numbers():
    noisy = np.array([10_000.0, 800.0, 3.0, 2_000.0])
    _, tails, _ = tails_of(noisy, 25.0, missing=True)
    assert tails.tolist() == [False, False, True, False]


@over_all
def test_finer_divides_bins_above_the_threshold_and_no_others(column):
    levels, _, _ = tree_of(column, levels=1)
    (level,) = levels
    bins = first_classes(column)
    divided = finer(replace(column, bins=bins), level, rows=20_000)
    ends = (*bins[1:], column.cells)
    assert set(bins) < set(divided)
    least = max(4 * 15.0, 20_000 / 128)
    for index, (first, past) in enumerate(zip(bins, ends, strict=True)):
        inside = [start for start in divided if first < start < past]
        if level.counts[index] <= least or past - first == 1:
            assert inside == []
        else:
            assert set(round_pieces(column, first, past - 1)[1:]) <= set(inside)


@pytest.mark.parametrize("sigma", [1.0, 200.0])
def test_a_bin_that_is_no_heavier_than_noise_or_a_small_share_is_not_divided(sigma):
    bins = first_classes(PAID)
    least = max(4 * sigma, 50_000 / 128)
    starts = starts_with_missing(PAID, bins)
    at = Level(starts=starts, counts=np.full(len(bins), least), sigma_counts=sigma)
    above = Level(starts=starts, counts=np.full(len(bins), least + 1), sigma_counts=sigma)
    assert finer(replace(PAID, bins=bins), at, rows=50_000) == bins
    assert len(finer(replace(PAID, bins=bins), above, rows=50_000)) > len(bins)


def test_missing_values_are_never_divided():
    bins = first_classes(SIGNED)
    counts = np.zeros(len(bins) + 1)
    counts[-1] = 1e6
    level = Level(starts=starts_with_missing(SIGNED, bins), counts=counts, sigma_counts=1.0)
    assert finer(replace(SIGNED, bins=bins), level, rows=1e6) == bins


def test_whatever_is_heavy_a_column_has_a_limited_number_of_bins():
    bins = tuple(range(0, PAID.cells, 100))[:1_000]
    counts = np.full(len(bins), 1e6)
    level = Level(starts=starts_with_missing(PAID, bins), counts=counts, sigma_counts=1.0)
    divided = finer(replace(PAID, bins=bins), level, rows=1e9)
    assert set(bins) <= set(divided)
    assert len(divided) <= MOST_BINS
    again = smoother(PAID, [replace(level, counts=counts)], divided, rows=1e9)
    assert len(again) <= MOST_BINS


@over_all
def test_smoother_bins_divide_those_that_were_found_and_lose_none(column):
    levels, cells, bins = tree_of(column)
    smooth = smoother(column, levels, bins, rows=float(cells.size))
    assert set(bins) <= set(smooth)
    assert len(smooth) > len(bins)
    assert smooth[0] == 0
    assert smooth[-1] < column.cells
    starts = starts_with_missing(column, smooth)
    likely, _ = likely_counts(column, levels, starts, total=float(cells.size))
    own = starts_with_missing(column, bins)
    before, _ = likely_counts(column, levels, own, total=float(cells.size))
    parent = np.searchsorted(own, starts, side="right") - 1
    moved = np.abs(np.bincount(parent, likely) - before).sum()
    assert moved <= 4 * FEW_ROWS  # of those that would stand farthest out


def test_without_levels_bins_stay_as_they_are():
    assert smoother(PAID, [], first_classes(PAID), rows=1e6) == first_classes(PAID)


@over_all
@pytest.mark.parametrize("number", [1, 4, 7, 32])
def test_groups_are_a_partition_of_bins_with_heavy_values_and_missing_ones_alone(column, number):
    levels, cells, bins = tree_of(column)
    binned = replace(column, bins=bins)
    counts, _ = likely_counts(column, levels, starts_of(binned), total=float(cells.size))
    groups = even_groups(binned, counts, groups=number)
    assert groups.shape == counts.shape
    assert sorted(set(groups.tolist())) == list(range(groups.max() + 1))
    first = [int(np.flatnonzero(groups == one)[0]) for one in range(groups.max() + 1)]
    assert first == sorted(first)
    assert groups.max() + 1 <= number + column.missing
    if column.missing:
        assert (groups == groups[-1]).sum() == 1
    if number > 1:
        ends = np.array(binned.bin_ends)
        single = np.flatnonzero(ends[:, 0] == ends[:, 1])
        heaviest = single[np.argmax(counts[single])]
        if counts[heaviest] > counts[: len(bins)].sum() / number:
            assert (groups == groups[heaviest]).sum() == 1


@over_all
def test_groups_beside_heavy_values_have_even_mass(column):
    """As even as bins allow: none is heavier than an even part and its heaviest bin."""
    levels, cells, bins = tree_of(column)
    binned = replace(column, bins=bins)
    counts, _ = likely_counts(column, levels, starts_of(binned), total=float(cells.size))
    groups = even_groups(binned, counts, groups=8)
    ends, mass = np.array(binned.bin_ends), counts[: len(bins)]
    heavy = (ends[:, 0] == ends[:, 1]) & (mass / mass.sum() >= 1 / 16)
    if heavy.sum() < 7:
        rest = mass[~heavy]
        sums = np.bincount(groups[: len(bins)][~heavy], rest)
        assert sums.max() <= rest.sum() / (8 - heavy.sum()) + rest.max() + 1e-6


def test_groups_of_nothing_are_one_group():
    binned = replace(PAID, bins=first_classes(PAID))
    groups = even_groups(binned, np.zeros(len(binned.bins)), groups=8)
    assert set(groups.tolist()) == {0}


@over_all
def test_groups_that_are_cut_at_classes_lie_in_one_class_each_and_within_a_group(column):
    levels, cells, bins = tree_of(column)
    binned = replace(column, bins=bins)
    counts, _ = likely_counts(column, levels, starts_of(binned), total=float(cells.size))
    groups = even_groups(binned, counts, groups=8)
    parts = cut_at_classes(binned, groups)
    classes = np.append(first_classes(column), [column.cells] * column.missing)
    class_of = np.searchsorted(classes, starts_of(binned), side="right") - 1
    assert sorted(set(parts.tolist())) == list(range(parts.max() + 1))
    for part in range(parts.max() + 1):
        inside = parts == part
        assert len(set(class_of[inside])) == 1
        assert len(set(groups[inside])) == 1
    pairs = {*zip(groups.tolist(), class_of.tolist(), strict=True)}
    assert parts.max() + 1 == len(pairs)


def test_more_rows_and_less_noise_make_more_groups_between_limits():
    counts = [group_count(rows, 30.0) for rows in (10, 1_000, 10_000, 100_000, 10**9)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == GROUPS
    assert group_count(10_000, 1.0) >= group_count(10_000, 100.0)


def known_numbers(column, *, sigma, seed=1):
    """Levels and views of a column, as ``number_bins.run`` hands them to a method."""
    levels, cells, bins = tree_of(column, sigma=sigma, seed=seed)
    schema = Schema(columns=(replace(column, bins=bins), Boolean(name="other")), dataset="study")
    published = [as_measurement(schema, column.name, level) for level in levels]
    counts = estimated_counts(schema, column.name, published, total=float(cells.size))
    groups = even_groups(schema.grid(column.name), counts, groups=12)
    parts = cut_at_classes(schema.grid(column.name), groups)
    known = KnownNumbers(
        levels=tuple(published),
        groups=Coarse(fine=schema, groups={column.name: groups}),
        parts=Coarse(fine=schema, groups={column.name: parts}),
    )
    return schema, known, cells


def measured_parts(schema, known, name, cells, sigma, seed):
    exact = np.bincount(
        np.searchsorted(starts_of(schema.grid(name)), cells, side="right") - 1,
        minlength=schema[name].size,
    )
    sums = known.parts.sum(exact, (name,)).astype(float)
    noise = np.random.default_rng(seed).normal(0, sigma, sums.shape)
    return exact, Measurement(
        target=(name,), values=sums + noise, sigma_counts=sigma, merged=known.parts
    )


@over_all
def test_an_improved_column_could_exist_and_says_what_it_came_from(column):
    schema, known, cells = known_numbers(column, sigma=40.0)
    _, one = measured_parts(schema, known, column.name, cells, 20.0, 7)
    (better,) = improved(schema, [one], known=known, total=float(cells.size))
    assert better.merged is None
    assert better.values.shape == (schema[column.name].size,)
    assert (better.values >= 0).all()
    assert better.values.sum() == pytest.approx(cells.size, rel=1e-6)
    assert better.as_measured == (one,)
    assert better.sigma_counts > 0


@over_all
def test_a_further_measurement_brings_sums_of_parts_nearer_to_the_truth(column):
    """A second look of 10 rows of noise against levels of 60: mean over seeds."""
    gained = []
    for seed in range(5):
        schema, known, cells = known_numbers(column, sigma=60.0, seed=seed)
        exact, one = measured_parts(schema, known, column.name, cells, 10.0, seed)
        (better,) = improved(schema, [one], known=known, total=float(cells.size))
        alone = estimated_counts(schema, column.name, known.levels, total=float(cells.size))
        truth = known.parts.sum(exact, (column.name,))
        parts = known.parts.groups[column.name]
        with_it, without = (
            np.abs(np.bincount(parts, counts) - truth).sum() for counts in (better.values, alone)
        )
        gained.append(with_it / without)
    assert np.mean(gained) < 0.8


def test_several_measurements_of_a_column_become_one_and_all_others_stay():
    schema, known, cells = known_numbers(PAID, sigma=40.0)
    _, one = measured_parts(schema, known, "paid", cells, 20.0, 7)
    _, again = measured_parts(schema, known, "paid", cells, 30.0, 8)
    other = Measurement(target=("other",), values=np.array([3.0, 4.0]), sigma_counts=1.0)
    pair = Measurement(
        target=("paid", "other"), values=np.zeros((schema["paid"].size, 2)), sigma_counts=5.0
    )
    result = improved(schema, [other, one, pair, again], known=known, total=float(cells.size))
    assert [each.target for each in result] == [("other",), ("paid",), ("paid", "other")]
    assert result[0] is other
    assert result[2] is pair
    assert result[1].as_measured == (one, again)
    twice = improved(schema, result, known=known, total=float(cells.size))
    assert twice[1].as_measured == (one, again)
    assert np.allclose(twice[1].values, result[1].values)


def test_public_counts_are_not_improved():
    schema, known, cells = known_numbers(PAID, sigma=40.0)
    public = Measurement(target=("paid",), values=np.ones(schema["paid"].size), sigma_counts=0.0)
    assert improved(schema, [public], known=known, total=float(cells.size)) == [public]


def test_a_small_count_keeps_its_values_and_loses_rows_that_only_noise_put_into_its_tail():
    """How often somebody called, 0 to 30, of which nobody calls more than four times."""
    column = Integer(name="calls", low=0, high=30)
    schema = Schema(columns=(column,), dataset="study")
    truth = np.zeros(31)
    truth[:5] = [900, 60, 30, 8, 2]
    far_before, far_after = [], []
    for seed in range(40):
        noisy = truth + np.random.default_rng(seed).normal(0, 12, 31)
        one = Measurement(target=("calls",), values=noisy, sigma_counts=12.0)
        (better,) = improved(schema, [one], total=1_000.0)
        assert better.values[0] == noisy[0]
        far_before.append(np.maximum(noisy[10:], 0).sum())
        far_after.append(np.maximum(better.values[10:], 0).sum())
    assert np.mean(far_after) < 0.35 * np.mean(far_before)


def test_a_rating_without_a_zero_stays_as_it_was_measured():
    column = Integer(name="rating", low=2, high=11)
    schema = Schema(columns=(column,), dataset="study")
    one = Measurement(target=("rating",), values=np.arange(10.0) - 3, sigma_counts=4.0)
    assert improved(schema, [one], total=100.0) == [one]
    worse = replace(one, values=np.arange(10.0), sigma_counts=8.0)
    (both,) = improved(schema, [one, worse], total=100.0)
    weights = np.array([4.0**-2, 8.0**-2])
    expected = (weights[0] * one.values + weights[1] * worse.values) / weights.sum()
    assert np.allclose(both.values, expected)
    assert both.sigma_counts == pytest.approx(weights.sum() ** -0.5)


@over_all
def test_a_level_as_a_measurement_says_the_same_counts_of_the_same_values(column):
    levels, _, bins = tree_of(column)
    schema = Schema(columns=(replace(column, bins=bins),), dataset="study")
    starts = starts_of(schema.grid(column.name))
    for level in levels:
        one = as_measurement(schema, column.name, level)
        groups = one.merged.groups[column.name]
        assert (starts[np.flatnonzero(np.diff(groups, prepend=-1))] == level.starts).all()
        assert (one.values == level.counts).all()


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(1, 300))
def test_nothing_that_levels_may_say_makes_counts_that_could_not_exist(seed, sigma):
    """Levels of nothing but noise, of any size."""
    rng = np.random.default_rng(seed)
    bins, levels = first_classes(SIGNED), []
    for _ in range(3):
        starts = starts_with_missing(SIGNED, bins)
        values = rng.normal(0, sigma, starts.size) * 10 ** rng.integers(0, 5)
        levels.append(Level(starts=starts, counts=values, sigma_counts=sigma))
        bins = finer(replace(SIGNED, bins=bins), levels[-1], rows=1.0)
    smooth = smoother(SIGNED, levels, bins, rows=500.0)
    starts = starts_with_missing(SIGNED, smooth)
    likely, variances = likely_counts(SIGNED, levels, starts, total=500.0)
    assert np.isfinite(likely).all()
    assert (likely >= 0).all()
    assert likely.sum() == pytest.approx(500)
    assert (variances > 0).all()
