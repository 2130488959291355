"""An audit refutes what is broken and leaves alone what is not."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sfumato.auditing import Case, Check, audit
from sfumato.auditing.audit import exceeds
from sfumato.auditing.case import describe, largest_ratio, of_mechanism
from sfumato.auditing.checks import spread, whole
from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.unary import Oue
from sfumato.local.means.laplace import LocalLaplace
from sfumato.local.probabilities import exp_below
from sfumato.privacy import LocalDP
from sfumato.randomness import simulation_rng

GRR = Grr(categories=2, epsilon=1)


def claiming(epsilon, mechanism):
    return replace(of_mechanism(mechanism), guarantee=LocalDP(epsilon))


def test_the_bound_lies_between_most_of_the_loss_and_the_claim():
    found = audit(GRR, runs=100_000, rng=simulation_rng(0))
    assert found.claimed == 1
    assert found.exact == pytest.approx(1)
    assert 0.95 < found.lower_bound <= 1
    assert not found.refuted


def test_an_honest_claim_is_refuted_no_more_often_than_the_confidence_says():
    """100 audits at 95%: more than 18 false alarms would come once in 1,000,000."""
    rng = simulation_rng(1)
    found = [audit(GRR, runs=1_000, rng=rng, confidence=0.95) for _ in range(100)]
    assert sum(each.refuted_by_sample for each in found) <= 18
    assert not any(each.refuted_by_ratio for each in found)


def test_a_claim_of_half_the_loss_is_always_refuted():
    rng, broken = simulation_rng(2), claiming("0.5", GRR)
    found = [audit(broken, runs=1_000, rng=rng, confidence=0.95) for _ in range(50)]
    assert all(each.refuted_by_sample for each in found)
    assert all(each.refuted_by_ratio for each in found)


def test_a_loss_of_a_fifth_too_much_is_refuted_by_the_sample_alone():
    found = audit(claiming(1, Grr(categories=8, epsilon="1.2")), runs=50_000, rng=simulation_rng(3))
    assert found.refuted_by_sample
    assert 1 < found.lower_bound < 1.2


def test_the_same_seed_finds_the_same():
    first, second = (audit(GRR, runs=5_000, rng=simulation_rng(4)) for _ in range(2))
    assert replace(first, seconds=0.0) == replace(second, seconds=0.0)


def test_a_leak_beside_the_drawn_value_is_seen():
    """The values are randomized well; a second byte of the answer is the input."""

    def draw(code, n, *, rng):
        answers = GRR.answer_many(np.full(n, code), rng=rng)
        return np.stack([answers, np.full(n, code, dtype=np.uint8)], axis=1)

    found = audit(replace(of_mechanism(GRR), draw=draw), runs=5_000, rng=simulation_rng(5))
    assert found.lower_bound > 5


def test_a_rare_certain_event_among_many_outputs_is_found():
    """One answer in fifty gives the input away, and there are thousands of others."""

    def draw(code, n, *, rng):
        noise = rng.below(2_000, n)
        return np.where(rng.below(50, n) == 0, 5_000 + code, noise)

    case = Case(name="leaky", guarantee=LocalDP(1), inputs=(0, 1, 2), draw=draw, ratio=lambda: None)
    found = audit(case, runs=20_000, rng=simulation_rng(6))
    assert found.exact is None
    assert found.refuted
    assert found.lower_bound > 3


def test_local_hashing_is_audited_though_no_seed_comes_twice():
    found = audit(Olh(categories=20, epsilon=1), runs=50_000, rng=simulation_rng(7))
    assert 0.9 < found.lower_bound <= found.exact <= 1


def test_local_hashing_is_audited_however_many_categories():
    found = audit(FastOlh(categories=20_000, epsilon=1), runs=20_000, rng=simulation_rng(7))
    assert 0.6 < found.lower_bound <= found.exact <= 1


def test_a_matrix_too_large_to_write_out_leaves_the_exact_loss_open():
    found = audit(Grr(categories=5_000, epsilon=8), runs=10_000, rng=simulation_rng(8))
    assert found.exact is None
    assert 5 < found.lower_bound <= 8


def test_where_no_whole_numbers_are_the_ratio_is_that_of_floats():
    found = audit(LocalLaplace(points=5, epsilon=1), runs=20_000, rng=simulation_rng(9))
    assert isinstance(found.ratio, float)
    assert found.exact == pytest.approx(1)
    assert not found.refuted


def test_a_finding_is_plain_in_json():
    found = audit(GRR, runs=1_000, rng=simulation_rng(10)).to_dict()
    assert found == json.loads(json.dumps(found))
    assert found["mechanism"] == "Grr(epsilon=1, categories=2)"
    assert found["claimed"] == 1.0
    assert found["samples"] == 1_000
    assert found["pair"] in ("0 against 1", "1 against 0")
    assert found["refuted"] is False
    assert (found["conclusive"], found["verdict"]) == (True, "stands")
    assert all(check["passed"] for check in found["checks"])


def test_an_audit_that_could_not_have_seen_anything_is_no_pass():
    """64 bits hardly ever come twice: honest or not, nothing is told apart."""
    found = audit(Oue(categories=64, epsilon=1), runs=5_000, rng=simulation_rng(11))
    assert not found.refuted
    assert not found.conclusive
    assert found.to_dict()["conclusive"] is False
    assert str(found).startswith("Oue(epsilon=1, categories=64) claims epsilon 1: inconclusive.")


def test_half_the_claim_an_exact_ratio_or_a_refutation_is_conclusive():
    found = replace(audit(GRR, runs=1_000, rng=simulation_rng(12)), lower_bound=0.49)
    assert found.conclusive
    assert not replace(found, ratio=None).conclusive
    assert replace(found, ratio=None, lower_bound=0.5).conclusive
    failed = (Check(name="a check", passed=False),)
    assert replace(found, ratio=None, checks=failed).verdict == "refuted"


def test_an_excess_in_the_twentieth_digit_is_an_excess():
    just = exp_below(Fraction(1))
    assert not exceeds(just, Fraction(1))
    assert exceeds(just + Fraction(1, 10**20), Fraction(1))
    assert not exceeds(math.exp(1) * (1 + 1e-12), Fraction(1))
    assert exceeds(math.exp(1) * (1 + 1e-6), Fraction(1))
    assert exceeds(math.inf, Fraction(1))


def test_an_answer_that_one_input_alone_can_give_is_an_infinite_loss():
    assert largest_ratio(np.array([[0.5, 0.5, 0.0], [0.5, 0.4, 0.1]])) == math.inf
    assert largest_ratio(np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])) == pytest.approx(2.5)


@pytest.mark.parametrize(
    "outputs",
    [
        np.array([1, 256, 2], dtype=np.uint16),
        np.array([[1, 0], [0, 1], [2, 0]], dtype=np.uint8),
        np.array([[1] + [0] * 9, [0] * 9 + [1], [0] * 10], dtype=np.uint8),
        np.array([0.1, 0.1 + 2**-55, -0.1]),
        np.array([b"a\0b", b"a\0c", b"b"]),
    ],
    ids=["integers", "bytes", "many bytes", "floats", "texts"],
)
def test_different_outputs_stay_different_and_equal_ones_equal(outputs):
    found = whole(np.concatenate([outputs, outputs]))
    assert np.unique(found).size == 3
    assert (found[:3] == found[3:]).all()


def test_of_many_inputs_both_ends_are_tried():
    assert spread(8) == tuple(range(8))
    assert (spread(1_000)[0], spread(1_000)[-1], len(spread(1_000))) == (0, 999, 8)


def test_a_spec_is_described_as_it_is_written():
    assert describe(Grr(epsilon="0.5", categories=3)) == "Grr(epsilon=0.5, categories=3)"


def test_what_is_no_mechanism_is_refused_before_anything_is_drawn():
    with pytest.raises(InputError, match="local mechanism or a Case, got str"):
        audit("Grr", runs=1_000, rng=simulation_rng(0))
    with pytest.raises(InputError, match="runs must be a whole number >= 40"):
        audit(GRR, runs=10, rng=simulation_rng(0))
