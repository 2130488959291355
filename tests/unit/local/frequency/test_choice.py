"""The automatic choice: by variance, with ties to the shorter answer, or by length."""

import math
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.local.frequency.choice import best_for, candidates
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Oue

epsilons = st.fractions(Fraction(1, 10_000), 32, max_denominator=10**6)
sizes = st.integers(2, 1_000_000)


@given(epsilon=st.fractions(Fraction(1, 100), 8, max_denominator=1000), categories=sizes)
@example(epsilon=Fraction(1), categories=10)
@example(epsilon=Fraction(1), categories=11)
def test_grr_beats_oue_below_three_e_plus_two_categories(epsilon, categories):
    """The variances are (E + m - 2)/(E - 1)^2 and 4E/(E - 1)^2."""
    grr, oue = (kind(categories=categories, epsilon=epsilon).variance() for kind in (Grr, Oue))
    assert (grr < oue) == (categories < 3 * math.exp(epsilon) + 2)


@given(epsilon=epsilons, categories=sizes)
@example(epsilon=Fraction(32), categories=1_000_000)
@example(epsilon=Fraction(1, 10_000), categories=1_000_000)
def test_the_choice_is_never_more_than_two_percent_above_the_least_variance(epsilon, categories):
    least = min(mechanism.variance() for mechanism in candidates(categories, epsilon))
    assert best_for(categories, epsilon).variance() <= 1.02 * least * (1 + 1e-12)


@given(epsilon=epsilons, categories=sizes)
def test_the_shortest_answer_costs_at_most_twice_the_variance(epsilon, categories):
    found = candidates(categories, epsilon)
    least = min(mechanism.variance() for mechanism in found)
    near = [mechanism for mechanism in found if mechanism.variance() <= 2 * least]
    chosen = best_for(categories, epsilon, by="bytes")
    assert chosen.variance() <= 2 * least
    assert chosen.layout.width == min(mechanism.layout.width for mechanism in near)


@pytest.mark.parametrize(
    ("categories", "epsilon", "by_variance", "by_bytes"),
    [
        (2, 1, Grr, Grr),
        (8, 16, Grr, Grr),  # subset selection with sets of one is the same, but no simpler
        (16, 1, SubsetSelection, FastOlh),
        (16, 2, Grr, Grr),  # 0.8% behind subset selection, with half the bytes
        (128, 0.1, HadamardResponse, HadamardResponse),  # hashing to two values is no better
        (128, 1, SubsetSelection, HadamardResponse),
        (1000, 1, FastOlh, FastOlh),
        (1000, 8, Grr, Grr),
        (1_000_000, 2, FastOlh, FastOlh),
    ],
)
def test_the_choices_are_these(categories, epsilon, by_variance, by_bytes):
    assert type(best_for(categories, epsilon)) is by_variance
    assert type(best_for(categories, epsilon, by="bytes")) is by_bytes


def test_the_choice_promises_what_was_asked():
    chosen = best_for(1000, 0.1)
    assert chosen.categories == 1000
    assert chosen.epsilon == Fraction(1, 10)


@pytest.mark.parametrize(
    ("categories", "epsilon", "by", "named"),
    [
        (1, 1, "variance", "categories"),
        (4, 0, "variance", "epsilon"),
        (4, float("nan"), "variance", "epsilon"),
        (4, 1000, "variance", "epsilon"),
        (4, 1, "speed", "by must be one of 'variance', 'bytes'"),
    ],
)
def test_what_can_not_be_chosen_is_refused(categories, epsilon, by, named):
    with pytest.raises(InputError, match=named):
        best_for(categories, epsilon, by=by)


def test_one_answer_needs_no_compiler():
    """What a device runs loads no numba: the kernels are for many answers."""
    program = (
        "import sys\n"
        "from sfumato.local.frequency.grr import Grr\n"
        "from sfumato.local.frequency.hadamard import HadamardResponse\n"
        "from sfumato.local.frequency.local_hashing import FastOlh, Olh\n"
        "from sfumato.randomness import secure_rng\n"
        "for kind in (Grr, HadamardResponse, FastOlh, Olh):\n"
        "    kind(categories=100, epsilon=1).answer(7, rng=secure_rng())\n"
        "sys.exit('numba' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
