import math
import subprocess
import sys
import warnings
from fractions import Fraction
from typing import Any

import pytest

from made import exact_accounting as accounting
from made.exact_accounting import GaussianNoise, LaplaceNoise, epsilon_of_noise
from sfumato.errors import InputError, InternalError
from sfumato.privacy import epsilon_from_zcdp

DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(10), Fraction(1000)])
def test_one_discrete_laplace_matches_the_exact_formula(scale: Fraction) -> None:
    # delta(e) = (1 - exp(e - a)) / (1 + exp(-a)) with a = 1 / scale: the loss is a for x <= 0
    a = float(1 / scale)
    exact = a + math.log1p(-float(DELTA) * (1 + math.exp(-a)))
    found = float(epsilon_of_noise([LaplaceNoise(scale=scale)], DELTA))
    assert exact <= found <= exact + 1e-7


@pytest.mark.parametrize(("n", "sigma"), [(1, 1), (10, 5), (100, 20), (1000, 50)])
def test_gaussian_releases_cost_less_than_their_zcdp_conversion(n: int, sigma: int) -> None:
    found = epsilon_of_noise([GaussianNoise(sigma=Fraction(sigma))] * n, DELTA)
    converted = epsilon_from_zcdp(Fraction(n, 2 * sigma * sigma), DELTA)
    assert converted / 2 < found < converted


def test_laplace_releases_cost_less_than_both_sums() -> None:
    found = epsilon_of_noise([LaplaceNoise(scale=Fraction(100))] * 1000, DELTA)
    assert found < epsilon_from_zcdp(Fraction(1000, 2 * 100**2), DELTA)
    assert found < 10


def test_a_mixed_list_costs_more_than_each_part_and_less_than_their_sum() -> None:
    laplace, gauss = [LaplaceNoise(scale=Fraction(20))] * 5, [GaussianNoise(sigma=Fraction(20))] * 9
    parts = [epsilon_of_noise(part, DELTA) for part in (laplace, gauss)]
    together = epsilon_of_noise([*laplace, *gauss], DELTA)
    assert max(parts) < together < sum(parts) * Fraction(101, 100)


def test_a_larger_sensitivity_costs_as_much_as_a_smaller_scale() -> None:
    wide = epsilon_of_noise([GaussianNoise(sigma=Fraction(40), sensitivity=4)], DELTA)
    narrow = epsilon_of_noise([GaussianNoise(sigma=Fraction(10))], DELTA)
    assert float(wide) == pytest.approx(float(narrow), rel=0.02)


def test_a_warning_of_the_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def warns(*_: Any) -> float:
        warnings.warn("overflow encountered", RuntimeWarning, stacklevel=1)
        return 0.0

    monkeypatch.setattr(accounting, "_composed_epsilon", warns)
    with pytest.raises(InternalError, match="overflow"):
        epsilon_of_noise([LaplaceNoise(scale=Fraction(1))], DELTA)


@pytest.mark.parametrize("answer", [math.inf, math.nan, -1.0])
def test_an_answer_that_is_no_epsilon_is_an_error(
    answer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounting, "_composed_epsilon", lambda *_: answer)
    with pytest.raises(InternalError, match="no guarantee"):
        epsilon_of_noise([LaplaceNoise(scale=Fraction(1))], DELTA)


def test_a_delta_below_the_rounding_error_is_refused() -> None:
    with pytest.raises(InputError, match="at least"):
        epsilon_of_noise([LaplaceNoise(scale=Fraction(1))], Fraction(1, 10**11))


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(InputError, match="got none"):
        epsilon_of_noise([], DELTA)


def test_noise_without_scale_is_refused() -> None:
    with pytest.raises(InputError, match="sigma must be > 0"):
        GaussianNoise(sigma=Fraction(0))
    with pytest.raises(InputError, match="sensitivity"):
        LaplaceNoise(scale=Fraction(1), sensitivity=0)


def test_importing_privacy_loads_neither_dp_accounting_nor_scipy() -> None:
    code = (
        "import sys, sfumato.privacy; sys.exit(bool({'dp_accounting', 'scipy'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_its_library_the_composed_epsilon_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(InputError, match=r"needs the package dp-accounting.*sfumato\[accounting\]"):
        epsilon_of_noise([GaussianNoise(sigma=Fraction(1))], Fraction(1, 10**6))
