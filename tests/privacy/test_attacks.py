"""Attacks on releases in small: each breaks what is broken and fails on ours.

In full they are ``bench/attack.py``, with the same functions; docs/attacks.md has the figures. A
figure breaks a claim only if its lower limit, wrong once in 2,000, is above what is allowed; all
draws here that could come near are seeded.
"""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from math import exp
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import sfumato as sf
from attack import ATTACKS, keep
from attacks import (
    averaging,
    figures,
    floats,
    leaks_central,
    leaks_local,
    leaks_pncf,
    membership,
    reconstruction,
    replay,
    singling,
    timing,
    twister,
)
from environments import requirements
from sfumato.errors import BudgetError
from sfumato.ledger import Ledger
from sfumato.local.frequency.local_hashing import field_product
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema.values import code_of

ROOT = Path(__file__).parents[2]


def breaks(figure):
    return figure.verdict == "breaks"


def small(release, *, replaced, shadows=25, runs=50):
    return membership.attacked(release, replaced=replaced, shadows=shadows, runs=runs, n=60, seed=1)


def shown(sides):
    told = {"attack": "membership", "target": "", "ours": True}
    return figures.of_advantage(*sides, allowed=figures.advantage_allowed(1.0), **told)


# What a figure says


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 0.0), (1.0, 0.01), (3.0, 1e-6)])
def test_the_allowed_advantage_is_the_best_point_of_the_curve_of_errors(epsilon, delta):
    """By numbers: 1 less the smallest sum of both errors that (epsilon, delta) admits."""
    a, factor = np.linspace(0, 1, 1_000_001), np.exp(epsilon)
    errors = np.maximum(0, np.maximum(1 - delta - factor * a, (1 - delta - a) / factor))
    best = 1 - float((a + errors).min())
    assert figures.advantage_allowed(epsilon, delta) == pytest.approx(best, abs=1e-5)


def test_the_allowed_guess_is_what_randomized_response_reaches():
    assert figures.guess_allowed(1.0, 4) == pytest.approx(exp(1) / (exp(1) + 3))
    assert figures.guess_allowed(0.0, 4) == pytest.approx(1 / 4)
    assert figures.guess_allowed(1.0, 2, delta=0.01) > figures.guess_allowed(1.0, 2)


def test_a_figure_breaks_a_claim_only_beyond_its_limits():
    told = {"attack": "", "target": "", "allowed": 0.6}
    few = figures.of_share(7, 10, ours=False, **told)
    many = figures.of_share(700, 1_000, ours=False, **told)
    assert few.verdict == "stands"
    assert not few.as_meant
    assert breaks(many)
    assert many.as_meant
    assert not figures.of_share(700, 1_000, ours=True, **told).as_meant


def test_a_searched_event_shows_most_of_an_honest_epsilon_and_not_more():
    """One seed; honest response at 1 shows at least 0.9 of it with 40,000 draws a side."""
    sides = [leaks_local.our_rounds(code) for code in (1, 0)]
    told = {"attack": "", "target": "", "ours": True, "allowed": 1.0}
    figure = figures.searched_epsilon(*sides, runs=40_000, rng=simulation_rng(1), **told)
    assert 0.9 < figure.low <= 1.0


# Is this person in?


def test_rows_drawn_from_the_table_tell_who_is_in():
    sides = small(membership.copied, replaced=True, shadows=100, runs=500)
    assert breaks(shown(sides))


@pytest.mark.parametrize("name", ["histogram", "privbayes"])
def test_a_hundredth_of_the_noise_tells_who_is_in_and_the_right_noise_does_not(name):
    algorithm, neighbors = membership.methods()[name]
    replaced = neighbors == "replace"
    loud, honest = (
        shown(small(membership.ours(algorithm, epsilon, neighbors=neighbors), replaced=replaced))
        for epsilon in (100, 1)
    )
    assert breaks(loud)
    assert not breaks(honest)


@pytest.mark.parametrize("label", ["3", "2 to 4", "1 | 3"])
def test_the_attacker_reads_merged_cells(label):
    assert membership._holds(label, 3)
    assert not membership._holds(label, 0)


# Secrets from many releases


def test_many_releases_tell_secrets_and_a_ledger_refuses_them(tmp_path):
    common = {"times": 200, "folder": tmp_path}
    told = {"attack": "", "target": "", "allowed": figures.guess_allowed(1, 2)}
    right, given = reconstruction.attacked(
        "mean", capped=False, tables=1, rng=simulation_rng(5), **common
    )
    assert given == 200
    assert breaks(figures.of_share(right, reconstruction.PEOPLE, ours=False, **told))
    for way in ("mean", "equations"):
        right, given = reconstruction.attacked(
            way, capped=True, tables=2, rng=secure_rng(), **common
        )
        assert given == 2  # two of one half, and the cap is 1
        assert not breaks(figures.of_share(right, 2 * reconstruction.PEOPLE, ours=True, **told))


def test_exact_counts_of_ranges_determine_every_secret():
    bits = reconstruction.secrets(rng=simulation_rng(1))
    asked = reconstruction.ranges(4_000, rng=simulation_rng(2))
    counts = np.array([bits[first : last + 1].sum() for first, last in asked])
    assert (reconstruction.by_equations(asked, counts) == bits).all()


def test_the_refused_release_stays_refused_for_whoever_opens_the_ledger_again(tmp_path):
    bits, place = reconstruction.secrets(rng=simulation_rng(1)), tmp_path / "study.ledger"
    first = Ledger.open(place, dataset="ward", cap=sf.PureDP(1))
    assert len(reconstruction.histograms(bits, first, 5, rng=secure_rng())) == 2
    again = Ledger.open(place, dataset="ward")
    with pytest.raises(BudgetError):
        reconstruction.curator(bits, again, rng=secure_rng()).measure(
            [("person", "ill")], costs=[sf.PureDP(reconstruction.EACH)]
        )


# The same question again


@pytest.mark.parametrize(
    ("way", "broken"),
    [(averaging.fresh, True), (averaging.remembered, False), (averaging.of_client, False)],
)
def test_fresh_answers_add_up_and_remembered_ones_do_not(way, broken):
    right = averaging.attacked(way, 150, rng=simulation_rng(2))
    told = {"attack": "", "target": "", "ours": not broken}
    figure = figures.of_share(right, 150, allowed=figures.guess_allowed(1.0, 4), **told)
    assert breaks(figure) == broken


@pytest.mark.parametrize("way", [averaging.remembered, averaging.of_client])
def test_a_device_asked_thirty_times_gives_one_answer(way):
    answers = way(2, secure_rng())
    assert len(answers) >= averaging.TIMES // 3
    assert len(set(answers)) == 1


# Noise that can be drawn again


@pytest.mark.parametrize("size", [2, 4])
def test_a_seeded_round_gives_values_away_and_ours_does_not(size):
    common = {"size": size, "columns": 16 if size == 2 else 8, "rng": simulation_rng(1)}
    assert breaks(replay.two_rounds(200, **common))
    assert not breaks(replay.our_round(200, **common))


def test_with_two_categories_a_known_seed_gives_every_value():
    figure = replay.two_rounds(100, size=2, columns=4, rng=simulation_rng(3))
    assert figure.value == 1.0


def test_the_state_of_a_twister_that_the_system_seeded_follows_from_its_noise():
    generator = np.random.RandomState()
    noise = generator.laplace(0, 2.0, 1_000)
    found = twister.recovered(twister.words_of(noise[:640], 2.0))
    assert found is not None
    assert (found.laplace(0, 2.0, 1_000 - 312) == noise[312:]).all()


def test_too_little_noise_does_not_give_the_state():
    noise = np.random.RandomState(1).laplace(0, 2.0, 400)
    assert twister.recovered(twister.words_of(noise, 2.0)) is None


def test_a_seed_is_found_where_there_is_one_and_only_then():
    counts = replay.secret_counts(rng=simulation_rng(2))
    seeded, claims = replay.our_histogram(counts, rng=simulation_rng(7))
    honest, private = replay.our_histogram(counts, rng=secure_rng())
    assert not claims  # what can be replayed does not call itself private
    assert private
    assert (seeded - replay.our_seed_found(seeded, 10) == counts).all()
    assert replay.our_seed_found(honest, 10) is None


# Low bits and thresholds


@pytest.mark.parametrize("seed", [1, 2])
def test_our_copy_of_numpys_laplace_is_numpys(seed):
    uniform = np.random.RandomState(seed).random_sample(200)
    drawn = np.random.RandomState(seed).laplace(0, 1.5, 200)
    assert [floats.laplace(int(u * 2**53), 1.5) for u in uniform] == drawn.tolist()


def test_low_bits_prove_a_count_and_integers_prove_none():
    common = {"counts": (0, 1), "rng": simulation_rng(1)}
    proven = floats.float_laplace(400, epsilon=1.0, **common)
    assert proven.value > 0.7
    assert breaks(proven)
    ours = floats.integer_laplace(4_000, epsilon=1, **common)
    assert ours.value == 0
    assert not breaks(ours)


def test_float_thresholds_exceed_epsilon_and_ours_never():
    loose, ours = floats.thresholds(60, rng=simulation_rng(3))
    assert loose.value > 0.8
    assert ours.value == 0


# Time


def steps(call):
    """Lines of Python that run in a call."""
    count = 0

    def tracer(frame, event, argument):
        nonlocal count
        count += event == "line"
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def test_a_product_in_the_field_takes_as_many_steps_for_every_code():
    taken = {steps(lambda code=code: field_product(0b1011011, code, 7)) for code in range(128)}
    assert len(taken) == 1
    assert taken.pop() > 7  # the tracer saw the loop


class Compared(str):
    """A text that counts with how many others it was compared."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.times += 1
        return str(self) == str(other)


def test_a_late_category_is_found_as_soon_as_an_early_one():
    column = sf.Category(name="place", values=tuple(f"place {code}" for code in range(100)))
    for value in ("place 0", "place 99"):
        Compared.times = 0
        assert code_of(column, Compared(value)) == int(value.split()[1])
        assert Compared.times <= 4


def test_an_answer_that_counts_up_takes_longer_in_steps_and_would_be_seen():
    rng = simulation_rng(1)
    assert steps(lambda: timing.scanned(127, rng)) > steps(lambda: timing.scanned(0, rng)) + 100


def test_times_that_differ_are_told_apart_and_equal_ones_are_not():
    one, other = (simulation_rng(seed).uniform(500) for seed in (1, 2))
    assert timing._figure((one + 0.5, other), "", False).low > 0.6
    same = timing._figure((one, other), "", True)
    assert same.low < 0.5 < same.high


# What published methods give away


@pytest.mark.parametrize(
    ("sides", "claim", "broken"),
    [
        ([leaks_local.published_unary(c, symmetric=True) for c in (0, 1)], 0.1, True),
        ([leaks_local.published_unary(c, symmetric=False) for c in (0, 1)], 0.1, True),
        ([leaks_local.our_unary(c, sf.Sue(categories=2, epsilon="0.1")) for c in (0, 1)], 0.1, 0),
        ([leaks_local.our_unary(c, sf.Oue(categories=2, epsilon="0.1")) for c in (0, 1)], 0.1, 0),
        ([leaks_local.value_and_square(v) for v in (1, 0)], 1.0, True),
        ([leaks_local.two_rounds(v) for v in (1, 0)], 1.0, True),
        ([leaks_local.key_values(held, every=True) for held in (True, False)], 1.0, True),
        ([leaks_local.key_values(held, every=False) for held in (True, False)], 1.0, False),
    ],
)
def test_published_local_methods_exceed_their_epsilon_and_ours_do_not(sides, claim, broken):
    told = {"attack": "", "target": "", "ours": not broken, "allowed": claim}
    figure = figures.searched_epsilon(*sides, runs=10_000, rng=simulation_rng(4), **told)
    assert breaks(figure) == bool(broken)


def test_a_number_or_its_square_costs_epsilon_once():
    sides = [leaks_local.our_variance(value) for value in (1, 0)]
    told = {"attack": "", "target": "", "ours": True, "allowed": 1.0}
    figure = figures.searched_epsilon(*sides, runs=1_500, rng=simulation_rng(5), **told)
    assert figure.value > 0.5
    assert not breaks(figure)


@pytest.mark.parametrize("part", ["mwem_noise", "domain_and_size", "copies", "entropies"])
def test_published_central_methods_exceed_their_claim_and_ours_do_not(part):
    found = getattr(leaks_central, part)(quick=True)
    assert any(not figure.ours for figure in found)
    assert [figure.target for figure in found if not figure.as_meant] == []


def test_pncf_exceeds_its_claim_and_our_sums_do_not():
    assert [figure.verdict for figure in leaks_pncf.figures(quick=True)] == ["breaks", "stands"]


# The command and its page


def test_what_a_control_group_allows_is_nothing_at_no_rate_and_at_certainty():
    assert singling.allowed_risk(0.0) == pytest.approx(0, abs=1e-8)
    assert singling.allowed_risk(1.0) == pytest.approx(0, abs=1e-8)
    assert 0.4 < singling.allowed_risk(0.3) < 0.65


def test_the_tool_of_others_is_pinned():
    lines = requirements("anonymeter").read_text().splitlines()
    named = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in line for line in named)


def test_figures_are_kept_by_attack(tmp_path):
    place = tmp_path / "attacks.json"
    figure = figures.of_share(99, 100, attack="a", target="b", ours=False, allowed=0.5)
    keep({"replay": [figure]}, place, quick=False)
    keep({"averaging": []}, place, quick=False)
    stored = json.loads(place.read_text())
    assert list(stored["attacks"]) == ["averaging", "replay"]
    assert stored["attacks"]["replay"][0]["verdict"] == "breaks"
    keep({"floats": []}, place, quick=True)
    assert list(json.loads(place.read_text())["attacks"]) == ["floats"]


@pytest.fixture(scope="module")
def maker():
    spec = spec_from_file_location("make_attacks", ROOT / "docs" / "make_attacks.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_stored_figures_say(maker):
    stored = json.loads(maker.STORED.read_text())
    assert maker.OUT.read_text() == maker.page(stored), "run python docs/make_attacks.py"
    assert set(stored["attacks"]) == set(ATTACKS) == set(maker.WORDS)
    assert not stored["quick"]


def test_every_stored_figure_is_as_it_should_be(maker):
    rows = [
        row for part in json.loads(maker.STORED.read_text())["attacks"].values() for row in part
    ]
    assert [row["target"] for row in rows if not row["as_meant"]] == []
