"""Argument checks: the message names the argument, and only usable numbers pass."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import check
from sfumato.errors import InputError


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check.positive(rounds=0), "rounds must be > 0, got 0"),
        (lambda: check.positive(sigma=-1.5), "sigma must be > 0, got -1.5"),
        (lambda: check.positive(sigma=math.nan), "sigma must be > 0, got nan"),
        (lambda: check.positive(sigma=math.inf), "sigma must be > 0, got inf"),
        (lambda: check.positive(sigma=True), "sigma must be > 0, got True"),
        (lambda: check.positive(sigma="1"), "sigma must be > 0, got '1'"),
        (lambda: check.whole(at_least=1, n=0), "n must be a whole number >= 1, got 0"),
        (lambda: check.whole(at_least=1, n=1.0), "n must be a whole number >= 1, got 1.0"),
        (lambda: check.whole(at_least=0, n=True), "n must be a whole number >= 0, got True"),
        (
            lambda: check.whole(at_least=1, at_most=3, degree=4),
            "degree must be a whole number between 1 and 3, got 4",
        ),
        (lambda: check.one_of(["a", "b"], kind="c"), "kind must be one of 'a', 'b', got 'c'"),
        (lambda: check.exact(epsilon="one"), "epsilon must be a finite number, got 'one'"),
        (lambda: check.exact(epsilon=None), "epsilon must be a number, got None"),
    ],
)
def test_a_refusal_names_the_argument_what_is_allowed_and_what_was_given(call, message):
    with pytest.raises(InputError) as refusal:
        call()
    assert str(refusal.value) == message


def test_a_value_that_passes_comes_back():
    assert check.positive(x=2.5) == 2.5
    assert check.positive(x=Fraction(1, 3)) == Fraction(1, 3)
    assert check.whole(at_least=0, x=np.int64(7)) == 7
    assert type(check.whole(at_least=0, x=np.int64(7))) is int
    assert check.one_of(("a", "b"), x="b") == "b"


@pytest.mark.parametrize(
    ("given_number", "fraction"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (1, Fraction(1)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.int64(4), Fraction(4)),
        (Fraction(1, 3), Fraction(1, 3)),
        ("1e-9", Fraction(1, 10**9)),
        (1e-9, Fraction(1, 10**9)),
        ("0", Fraction(0)),
        (0.0, Fraction(0)),
        ("-2.50", Fraction(-5, 2)),
    ],
)
def test_a_number_is_the_fraction_that_its_decimal_text_says(given_number, fraction):
    assert check.exact(epsilon=given_number) == fraction


@given(st.integers(-(10**15), 10**15), st.integers(0, 12))
def test_decimal_text_and_its_float_mean_the_same_fraction(digits, places):
    text = f"{digits}e-{places}"
    assert check.exact(x=text) == Fraction(digits, 10**places)
    assert check.exact(x=float(text)) == Fraction(repr(float(text)))


@pytest.mark.parametrize(
    "unusable",
    [
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "inf",
        "1e400",
        "1e-400",
        "１.５",
        "٣",
        "",
        " ",
        "1/3",
        "0x10",
        True,
        None,
        [1],
        b"1",
        "1" * 61,
    ],
)
def test_what_is_no_finite_number_is_refused_by_name(unusable):
    with pytest.raises(InputError, match=r"^epsilon must be a"):
        check.exact(epsilon=unusable)


@pytest.mark.parametrize("text", ["1e-400000000", "1e400000000", "9" * 10**6])
def test_a_number_that_would_take_forever_is_refused_unread(text):
    with pytest.raises(InputError) as refusal:
        check.exact(epsilon=text)
    assert len(str(refusal.value)) < 200
