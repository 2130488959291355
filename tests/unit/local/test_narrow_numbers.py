"""A whole number of numpy becomes a plain one: narrow ones wrap around when they are added.

2 * np.uint8(200) is 144: such a parameter would have drawn too little noise.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from made.exact_accounting import GaussianNoise, LaplaceNoise, epsilon_of_noise
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.unary import BitResponse
from sfumato.local.keyvalue.pckv import PckvGrr
from sfumato.local.keyvalue.privkvm import PrivKvm
from sfumato.local.keyvalue.sampled_key import PrivKv
from sfumato.local.layout import BitLayout, IntegerLayout
from sfumato.local.means.duchi import Duchi, DuchiVector
from sfumato.local.means.grid import Grid
from sfumato.local.means.sampled import SampledMeans
from sfumato.local.memo import total_guarantee
from sfumato.local.records.parts import Part, check_weights, draw_part, draw_parts
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.noise.selection import ExponentialMechanism, PermuteAndFlip
from sfumato.privacy import ZCDP, PureDP
from sfumato.privacy.composition import scaled
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Number

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # numpy tells when it wraps

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)

SPECS = {
    "the length of bits": lambda n: BitResponse(length=n, p=HALF, q=THIRD, ones=1),
    "the points of a mean": lambda n: Duchi(epsilon=1, points=n),
    "the points of a grid": lambda n: Grid(low=0.0, high=1.0, points=n),
    "the points of several means": lambda n: SampledMeans(epsilon=1, dimensions=2, points=n),
    "the numbers of a vector": lambda n: DuchiVector(epsilon=1, dimensions=n),
    "the keys of pairs": lambda n: PrivKv(epsilon=1, keys=n),
    "the padding of pairs": lambda n: PckvGrr(epsilon=1, keys=200, padding=n),
    "the keys of rounds": lambda n: PrivKvm(epsilon=1, keys=n),
    "the end of answers": lambda n: IntegerLayout(below=n),
    "the length of answers": lambda n: BitLayout(length=n),
    "the change of a Laplace count": lambda n: LaplaceNoise(scale=HALF, sensitivity=n),
    "the change of a Gaussian count": lambda n: GaussianNoise(sigma=HALF, sensitivity=n),
    "the limits of whole numbers": lambda n: Integer(name="x", low=0, high=n, step=3),
    "the decimals of numbers": lambda n: Number(name="x", edges=(0.0, 1.0), decimals=n - 197),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_narrow_number_of_numpy_is_kept_as_a_plain_one(name: str) -> None:
    plain, narrow = SPECS[name](200), SPECS[name](np.uint8(200))
    assert plain == narrow
    assert repr(plain) == repr(narrow)  # np.uint8(200) would show itself


LIMITS = {
    "Laplace noise": lambda n: DiscreteLaplace.for_cost(PureDP("0.01"), n),
    "the loss of Laplace noise": lambda n: DiscreteLaplace(scale=Fraction(7)).guarantee(n),
    "Gaussian noise": lambda n: DiscreteGaussian.for_cost(ZCDP("0.01"), n),
    "the loss of Gaussian noise": lambda n: DiscreteGaussian.for_sigma(7).guarantee(n),
    "the rate of permute and flip": lambda n: PermuteAndFlip(epsilon=HALF, sensitivity=n).rate,
    "the rate of a selection": lambda n: ExponentialMechanism(epsilon=HALF, sensitivity=n).rate,
    "group privacy": lambda n: scaled(ZCDP("0.0001"), n),
    "the loss of many answers": lambda n: total_guarantee("0.001", rounds=n, values=n),
    "the composed loss": lambda n: epsilon_of_noise(
        [GaussianNoise(sigma=Fraction(400), sensitivity=n)], Fraction(1, 10**6)
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_narrow_sensitivity_means_the_same_noise(name: str) -> None:
    assert LIMITS[name](np.uint8(200)) == LIMITS[name](200)


def test_narrow_weights_draw_the_same_parts() -> None:
    plain: list[Any] = [200, 100, 50]
    narrow = np.array(plain, dtype=np.uint8)
    check_weights(narrow, 3)
    draws = [draw_parts(w, 2_000, rng=simulation_rng(1)) for w in (plain, narrow)]
    assert np.array_equal(*draws)
    assert set(draws[0].tolist()) == {0, 1, 2}
    one = [draw_part(w, rng=simulation_rng(2)) for w in (plain, narrow)]
    assert one[0] == one[1]


def test_a_part_of_narrow_sizes_and_bins_finds_the_same_cells() -> None:
    sizes, bins = np.array([2, 200], np.uint8), (None, np.arange(200, dtype=np.uint8) // 2)
    mechanism = Grr(categories=200, epsilon=1)
    part = Part(columns=("a", "b"), sizes=sizes, bins=bins, mechanism=mechanism)
    assert part.cell({"a": 1, "b": 199}) == 199
    assert {type(number) for number in (*part.sizes, *part.bins[1])} == {int}
