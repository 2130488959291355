"""Checks of the code that draws: broken mechanisms fail the one that is meant for them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.auditing import audit, planted_bugs
from sfumato.auditing.case import of_mechanism
from sfumato.auditing.checks import (
    LEVEL,
    Paths,
    apart,
    bulk_size,
    by_weights,
    device_size,
    fits_declared,
    local_paths,
    misfit,
    seed_is_blind,
    strangers,
    supports,
)
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.unary import Oue
from sfumato.randomness import simulation_rng

GRR = Grr(categories=4, epsilon=1)


def failed(found):
    return [check.name for check in found.checks if not check.passed]


@pytest.mark.parametrize(
    ("bug", "caught_by"),
    [
        (planted_bugs.truthful_device(), "device answers fit"),
        (planted_bugs.truthful_device(), "a device's answers stay below"),
        (
            planted_bugs.truthful_device(categories=5_000),
            "a device's answers stay below",
        ),
        (planted_bugs.shared_words(), "people who answer in one call"),
        (planted_bugs.one_code_in_the_open(), "bulk answers fit"),
        (planted_bugs.revealing_seed(), "the seed of the hash"),
    ],
    ids=lambda value: getattr(value, "bug", value),
)
def test_what_the_bound_does_not_see_a_check_does(bug, caught_by):
    found = audit(bug.case, runs=10_000, rng=simulation_rng(0))
    assert not found.refuted_by_sample
    assert not found.refuted_by_ratio
    assert any(name.startswith(caught_by) for name in failed(found))
    assert found.refuted
    assert found.verdict == "refuted"
    assert f"Failed: {caught_by}" in str(found)


@pytest.mark.parametrize(
    "mechanism",
    [
        GRR,
        Grr(categories=2, epsilon=8),
        Oue(categories=64, epsilon=1),
        Olh(categories=4, epsilon=1),
        FastOlh(categories=20, epsilon=1),
        FastOlh(categories=5_000, epsilon=1),
    ],
    ids=lambda mechanism: f"{type(mechanism).__name__} {mechanism.inputs}",
)
def test_an_honest_mechanism_passes_all_of_them(mechanism):
    """Each check fails once in 1,000,000."""
    found = audit(mechanism, runs=10_000, rng=simulation_rng(1))
    assert failed(found) == []
    assert len(found.checks) >= 4


def test_honest_checks_hardly_ever_come_near_an_alarm():
    """30 audits of 4 checks with one false alarm in 1,000,000 each."""
    rng = simulation_rng(2)
    assert not any(failed(audit(GRR, runs=1_000, rng=rng)) for _ in range(30))


def asking(bulk):
    """GRR, asked in bulk in another way."""
    paths = local_paths(GRR, GRR.transition)
    return replace(paths, bulk=bulk)


@pytest.mark.parametrize("distance", [1, 7, 4_000])
def test_an_answer_that_follows_another_persons_code_is_seen_at_any_distance(distance):
    """A tenth of the people answer about somebody else."""

    def bulk(codes, *, rng):
        other = np.where(rng.below(10, codes.size) == 0, np.roll(codes, distance), codes)
        return GRR.answer_many(other, rng=rng)

    assert not strangers(asking(bulk))(2**17, simulation_rng(3)).passed


@pytest.mark.parametrize("distance", [1, 100, 5_000])
def test_words_that_some_people_share_are_seen_at_any_distance(distance):
    """A tenth of the answers repeat that of somebody with the same code."""

    def bulk(codes, *, rng):
        answers = GRR.answer_many(codes, rng=rng)
        again = (rng.below(10, codes.size) == 0) & (codes == np.roll(codes, distance))
        return np.where(again, np.roll(answers, distance), answers)

    assert not strangers(asking(bulk))(2**17, simulation_rng(4)).passed


def test_one_shared_bit_of_many_is_seen():
    mechanism = Oue(categories=64, epsilon=1)

    def bulk(codes, *, rng):
        answers = mechanism.answer_many(codes, rng=rng)
        answers[1::2, 3] = answers[::2, 3]
        return answers

    paths = replace(local_paths(mechanism, lambda: None), bulk=bulk)
    assert not strangers(paths)(2**14, simulation_rng(5)).passed
    assert strangers(local_paths(mechanism, lambda: None))(2**14, simulation_rng(5)).passed


def test_answers_too_much_alike_are_reported_and_no_alarm():
    mechanism = Grr(categories=2, epsilon=20)
    found = strangers(local_paths(mechanism, mechanism.transition))(2**14, simulation_rng(6))
    assert found.passed
    assert "too much alike to show shared words" in found.detail


def test_a_device_that_spends_half_as_much_again_does_not_fit():
    spender = Grr(categories=4, epsilon="1.5")

    def device(codes, *, rng):
        return np.array([spender.answer(code, rng=rng) for code in codes.tolist()])

    paths = replace(local_paths(GRR, GRR.transition), device=device)
    assert not fits_declared(paths, "device")(200_000, simulation_rng(7)).passed
    assert fits_declared(paths, "bulk")(200_000, simulation_rng(7)).passed


def test_an_answer_that_is_not_declared_at_all_does_not_fit():
    declared = by_weights(np.array([0, 1]), [[1, 1], [1, 1]])
    counts = declared.count(np.array([0, 0, 1]), np.array([0, 7, 1], dtype=np.uint8))
    assert counts.tolist() == [[1, 0, 1], [0, 1, 0]]
    paths = Paths(
        inputs=2,
        bulk=lambda codes, *, rng: np.where(rng.below(1_000, codes.size) == 0, 7, codes % 2),
        device=lambda codes, *, rng: codes,
        declared=lambda: by_weights(np.array([0, 1]), [[999, 0], [0, 999]]),
    )
    assert not fits_declared(paths, "bulk")(10_000, simulation_rng(8)).passed


def test_a_matrix_that_is_not_written_out_is_said_not_to_be_compared():
    mechanism = Grr(categories=5_000, epsilon=1)
    found = fits_declared(local_paths(mechanism, lambda: None), "bulk")
    assert found(1_000, simulation_rng(9)).passed  # about single categories, from p and q
    large = replace(local_paths(mechanism, lambda: None), declared=lambda: None)
    told = fits_declared(large, "bulk")(1_000, simulation_rng(9))
    assert told.detail == "not written out: not compared"


def test_a_wide_category_in_the_open_does_not_fit_what_it_supports():
    """64 bits are too many to write out: p and q are compared."""
    mechanism = Oue(categories=64, epsilon=1)

    def bulk(codes, *, rng):
        answers = mechanism.answer_many(codes, rng=rng)
        answers[codes == 5] = np.packbits(np.arange(64) == 5, bitorder="little")
        return answers

    paths = replace(local_paths(mechanism, lambda: None), bulk=bulk)
    assert not fits_declared(paths, "bulk")(10_000, simulation_rng(10)).passed


def test_a_seed_that_decides_how_true_the_answer_is_does_not_go_unseen():
    """The seed is uniform, but under one in sixteen seeds the truth is told."""
    mechanism = Olh(categories=4, epsilon=1)
    values = np.uint64(mechanism.response.values)

    def bulk(codes, *, rng):
        answers = mechanism.answer_many(codes, rng=rng)
        seeds = answers // values
        told = mechanism.hashed(seeds, codes.astype(np.uint64))
        return np.where(seeds % 16 == 3, seeds * values + told, answers)

    paths = local_paths(mechanism, lambda: None)
    leaky = replace(paths, bulk=bulk)
    assert not seed_is_blind(mechanism, leaky)(2**17, simulation_rng(11)).passed
    assert seed_is_blind(mechanism, paths)(2**17, simulation_rng(11)).passed


@pytest.mark.parametrize(
    "mechanism", [Olh(categories=50, epsilon=2), FastOlh(categories=50, epsilon=2)]
)
def test_support_is_that_of_the_plain_hash(mechanism):
    answers = mechanism.answer_many(np.arange(50, dtype=np.uint32), rng=simulation_rng(12))
    seeds, values = apart(mechanism, answers)
    for code in (0, 1, 49):
        plain = [
            mechanism.hashed(int(s), code) == int(v) for s, v in zip(seeds, values, strict=True)
        ]
        assert supports(mechanism, seeds, values, code).tolist() == plain


@pytest.mark.parametrize(("p", "n"), [(0.5, 20), (0.01, 50), (0.9, 8)])
def test_the_limit_of_a_misfit_is_never_below_the_binomial_tail(p, n):
    for hits in range(n + 1):
        tail = binom.sf(hits - 1, n, p) if hits > n * p else binom.cdf(hits, n, p)
        limit = misfit(np.array([[hits]]), np.array([[p]]), n)
        assert limit >= min(1, 2 * tail) * (1 - 1e-9)


def test_the_sizes_follow_the_runs_within_limits():
    assert [bulk_size(runs) for runs in (100, 10_000, 10**7)] == [2**12, 2**13, 2**17]
    assert [device_size(runs) for runs in (100, 50_000, 10**7)] == [1_000, 5_000, 20_000]
    assert LEVEL == 1e-6


def test_a_case_without_a_device_is_attacked_in_bulk_alone():
    case = replace(of_mechanism(GRR), device=None, checks=())
    assert audit(case, runs=1_000, rng=simulation_rng(13)).checks == ()
