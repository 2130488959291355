"""No rating and no person moves the weighted sums further than is claimed: tried on neighbors."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.gate.rating_sums import (
    Gram,
    Grid,
    ItemSums,
    measured_gram,
    measured_sums,
    most_ratings,
)
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP
from sfumato.privacy import sensitivity as claimed
from sfumato.privacy.guarantees import ZCDP
from sfumato.privacy.sensitivity import OnePerson, OneRow
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.ratings import open_ratings
from sfumato.schema.ratings import RatingScale

ITEMS = 12
STARS = RatingScale(1, 5)
OFFSETS = np.full(ITEMS, 3.0)
UNITS = [
    OneRow(),
    OneRow(neighbors="replace"),
    OnePerson(max_rows=ITEMS),
    OnePerson(max_rows=ITEMS, neighbors="replace"),
]


def contribution(person, c0):
    """Counts, sums and Gram matrix of one person {item: residual in [-1, 1]}, in exact units."""
    x, rated = np.zeros(ITEMS), np.zeros(ITEMS)
    for item, value in person.items():
        x[item], rated[item] = value, 1
    c = max(len(person), c0)
    return np.concatenate([rated, x]) / np.sqrt(c), np.outer(x, x) / c


def neighbors(protect, rng):
    """The persons who change, before and after: two lists of equal length."""

    def anyone(c):
        values = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], size=c)
        return dict(zip(rng.permutation(ITEMS)[:c].tolist(), values.tolist(), strict=True))

    def one_less(person):
        return dict(list(person.items())[:-1])

    if isinstance(protect, OnePerson):
        after = anyone(rng.integers(1, ITEMS + 1)) if protect.neighbors == "replace" else {}
        return [anyone(rng.integers(1, ITEMS + 1))], [after]
    one = anyone(rng.integers(1, ITEMS + 1))
    if protect.neighbors == "add-remove":
        return [one], [one_less(one)]
    other = anyone(rng.integers(1, ITEMS + 1))
    return [one, one_less(other)], [one_less(one), other]


def largest_moves(protect, c0, tries=20_000):
    rng, sums, gram = np.random.default_rng(1), 0.0, 0.0
    for _ in range(tries):
        before, after = neighbors(protect, rng)
        moved = [
            sum(contribution(p, c0)[k] for p in before) - sum(contribution(p, c0)[k] for p in after)
            for k in (0, 1)
        ]
        sums = max(sums, np.linalg.norm(moved[0]))
        gram = max(gram, np.linalg.norm(moved[1]))
    return sums, gram


@pytest.mark.parametrize(("protect", "c0"), list(product(UNITS, (1, 3, 8))), ids=str)
def test_neighbors_are_no_further_apart_than_claimed_and_nearly_so(protect, c0):
    sums, gram = largest_moves(protect, c0)
    assert sums <= claimed.weighted_sums(protect, c0) * (1 + 1e-12)
    assert gram <= claimed.weighted_gram(protect, c0) * (1 + 1e-12)
    assert sums > 0.5 * claimed.weighted_sums(protect, c0)
    assert gram > 0.5 * claimed.weighted_gram(protect, c0)


def test_a_person_s_claims_are_attained():
    for neighbors_, sums in (("add-remove", np.sqrt(2)), ("replace", 2.0)):
        protect = OnePerson(max_rows=ITEMS, neighbors=neighbors_)
        full, other = dict.fromkeys(range(ITEMS), 1.0), dict.fromkeys(range(ITEMS), -1.0)
        after = contribution(other, 1)[0] if neighbors_ == "replace" else 0.0
        assert np.linalg.norm(contribution(full, 1)[0] - after) == pytest.approx(sums)
        assert claimed.weighted_sums(protect, 1) == pytest.approx(sums)


def test_a_rating_s_claim_fails_when_the_person_s_own_mean_is_subtracted():
    """Then one rating moves all residuals of that person; the document's trap."""
    c0, worst = 50, 0.0
    rng = np.random.default_rng(2)
    for c in (1, 2, 10, 49, 50, 60):
        for _ in range(200):
            r = rng.choice([1.0, 5.0], size=c + 1)
            grams = []
            for kept in (r, r[:-1]):
                x = np.zeros(c + 1)
                x[: kept.size] = np.clip((kept - kept.mean()) / 2, -1, 1)
                grams.append(np.outer(x, x) / max(kept.size, c0))
            worst = max(worst, np.linalg.norm(grams[0] - grams[1]))
    assert worst > claimed.weighted_gram(OneRow(), c0)


def as_rows(persons):
    rows = [(p, i, 3 + 2 * x) for p, person in enumerate(persons) for i, x in person.items()]
    return pd.DataFrame(rows, columns=["user", "item", "rating"])


@pytest.mark.parametrize("protect", UNITS, ids=str)
def test_the_whole_numbers_that_noise_is_added_to_move_no_further_than_the_noise_is_made_for(
    protect, monkeypatch
):
    """Grid and rounding included: the kernels' own integers, on a grid coarse enough to feel it."""
    monkeypatch.setattr("sfumato.gate.rating_sums._SIGMA_STEPS", 64.0)
    rng, c0, cost = np.random.default_rng(3), 4, ZCDP("0.5")
    crowd = dict.fromkeys(range(0, ITEMS, 2), 1.0)
    for _ in range(200):
        before, after = neighbors(protect, rng)
        exact = [
            integers([*persons, crowd], cost, protect, c0)
            for persons in ([quantized(p) for p in before], [quantized(p) for p in after])
        ]
        for (one, grid), (other, _) in zip(*exact, strict=True):
            assert ((one - other) ** 2).sum() <= grid.squared


def quantized(person):
    return {item: round(2 * x) / 2 for item, x in person.items()}


def integers(persons, cost, protect, c0):
    """The kernels' sums without noise, as vectors whose squares add up to the norm."""
    from sfumato.counting.kernels import add_people

    found = open_ratings(as_rows(persons), catalogue=range(ITEMS), scale=STARS).by_person
    parts = found.starts, found.items, found.codes, np.array(STARS.values)
    most = most_ratings(protect, ITEMS)
    grid = Grid.of(cost, claimed.weighted_sums(protect, c0), claimed.rounding(protect, 2 * most))
    sums = np.zeros((2, ITEMS), dtype=np.int64)
    add_people(*parts, OFFSETS, 2.0, np.arange(ITEMS), c0, grid.steps, False, sums)
    finer = Grid.of(cost, claimed.weighted_gram(protect, c0), claimed.rounding(protect, most**2))
    gram = np.zeros((ITEMS, ITEMS), dtype=np.int64)
    add_people(*parts, OFFSETS, 2.0, np.arange(ITEMS), c0, finer.steps, True, gram)
    whole = gram + np.triu(gram, 1).T
    return (sums.reshape(-1), grid), (whole.reshape(-1), finer)


def small(protect):
    rows = [(p, i, 1 + (p + i) % 5) for p in range(30) for i in range(ITEMS) if (p * i) % 3]
    found = open_ratings(
        pd.DataFrame(rows, columns=["user", "item", "rating"]),
        catalogue=range(ITEMS),
        scale=STARS,
    )
    return found if isinstance(protect, OneRow) else found.bounded("user", protect.max_rows)


@pytest.mark.parametrize("protect", UNITS, ids=str)
def test_noise_has_the_stated_size_beside_and_on_the_diagonal(protect):
    """1,000 draws: the standard deviation of an estimate of sigma is 2% over 12 diagonal cells
    taken together 0.65%: 5 of them, a false alarm in 1.7 million; sigma without the sqrt(2)
    would be 41% off.
    """
    rng, found = simulation_rng(4), small(protect)
    ask = Gram(items=np.arange(ITEMS), c0=5)
    seen = [measured_gram(found, ask, ZCDP(1), protect, rng=rng) for _ in range(1_000)]
    matrices = np.array([one.matrix for one in seen])
    spread = matrices.std(axis=0)
    diagonal = np.sqrt((np.diag(spread) ** 2).mean())
    beside = np.sqrt((spread[np.triu_indices(ITEMS, 1)] ** 2).mean())
    assert abs(diagonal / seen[0].sigma_diagonal - 1) < 0.0325
    assert abs(beside / seen[0].sigma - 1) < 0.0325
    assert seen[0].sigma_diagonal / seen[0].sigma == pytest.approx(np.sqrt(2), rel=1e-3)
    assert seen[0].sigma_diagonal == pytest.approx(
        claimed.weighted_gram(protect, 5) / np.sqrt(2), rel=1e-3
    )
    sums = measured_sums(
        found, ItemSums(offsets=OFFSETS, bound=2.0, c0=5), ZCDP(1), protect, rng=rng
    )
    assert sums.sigma_counts == pytest.approx(
        claimed.weighted_sums(protect, 5) / np.sqrt(2), rel=1e-3
    )
    assert sums.sigma_sums == pytest.approx(2 * sums.sigma_counts)


def test_with_hardly_any_noise_the_sums_are_the_exact_ones():
    found, protect, rng = small(OneRow()), OneRow(), simulation_rng(5)
    people = found.by_person.people
    tables = np.zeros((people, ITEMS)), np.zeros((people, ITEMS))
    for person in range(people):
        own = slice(*found.by_person.starts[person : person + 2])
        tables[0][person, found.by_person.items[own]] = 1
        values = (found.by_person.codes[own] + 1.0 - 3.0) / 2.0
        tables[1][person, found.by_person.items[own]] = values
    weight = 1 / np.sqrt(np.maximum(tables[0].sum(axis=1), 5))[:, None]
    rated, x = tables[0] * weight, tables[1] * weight
    ask = ItemSums(offsets=OFFSETS, bound=2.0, c0=5)
    sums = measured_sums(found, ask, ZCDP(5_000), protect, rng=rng)
    assert np.allclose(sums.counts, rated.sum(axis=0), atol=0.04)
    assert np.allclose(sums.sums, 2 * x.sum(axis=0), atol=0.08)
    items = np.array([7, 2, 9])
    few = tables[0][:, items] / np.sqrt(np.maximum(tables[0][:, items].sum(axis=1), 5))[:, None]
    ask = ItemSums(offsets=OFFSETS, bound=2.0, c0=5, items=items)
    counts = measured_sums(found, ask, ZCDP(5_000), protect, rng=rng).counts
    assert np.allclose(counts, few.sum(axis=0), atol=0.04)
    for ask, table in (
        (Gram(items=np.arange(ITEMS), c0=5), rated),
        (Gram(items=np.arange(ITEMS), c0=5, bound=2.0, offsets=OFFSETS), x),
    ):
        gram = measured_gram(found, ask, ZCDP(5_000), protect, rng=rng)
        assert np.allclose(gram.matrix, table.T @ table, atol=0.04)
    some = tables[0][:, items] / np.sqrt(np.maximum(tables[0][:, items].sum(axis=1), 5))[:, None]
    gram = measured_gram(found, Gram(items=items, c0=5), ZCDP(5_000), protect, rng=rng)
    assert np.allclose(gram.matrix, some.T @ some, atol=0.04)


def test_a_grid_is_public_and_rounding_is_paid_for():
    fine = Grid.of(ZCDP(1), 1.0, rounding=0.0)
    paid = Grid.of(ZCDP(1), 1.0, rounding=100.0)
    assert fine.steps == paid.steps
    assert paid.squared >= (fine.steps + 100) ** 2


def test_the_grid_s_square_can_be_halved():
    """Entries beside the diagonal get noise for half of it, which must not be rounded down."""
    for rho in ("0.001", "0.03", "1", "7"):
        for sensitivity in (0.199, 1.0, np.sqrt(2)):
            for rounding in (0.0, 0.51, 25.5):
                grid = Grid.of(ZCDP(rho), sensitivity, rounding)
                assert grid.squared % 2 == 0
                assert grid.squared >= (sensitivity * grid.steps + rounding) ** 2


def test_rounding_counts_every_contribution_that_changes():
    whole = 0.51 * np.sqrt(7)
    assert [claimed.rounding(unit, 7) for unit in UNITS] == [
        pytest.approx(whole * times) for times in (2, 4, 1, 2)
    ]


@pytest.mark.parametrize("protect", UNITS, ids=str)
def test_what_the_gate_tells_of_its_noise_is_what_was_charged_for(protect, monkeypatch):
    """sigma = (sensitivity + rounding) / sqrt(2 rho), on a grid coarse enough to feel rounding."""
    monkeypatch.setattr("sfumato.gate.rating_sums._SIGMA_STEPS", 4096.0)
    rows = [(p, i, 1 + (p + i) % 5) for p in range(30) for i in range(ITEMS)]
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    ratings = open_ratings(frame, catalogue=range(ITEMS), scale=STARS, dataset="d")
    ledger, c0, cost = Ledger.in_memory(dataset="d"), 5, ZCDP("0.02")
    gate = Curator(
        ratings, protect=protect, budget=ApproxDP(3, "1e-6"), ledger=ledger, rng=secure_rng()
    )
    sums = gate.item_sums(ItemSums(offsets=OFFSETS, bound=2.0, c0=c0), cost=cost)
    gram = gate.gram(Gram(items=np.arange(ITEMS), c0=c0), cost=cost)
    assert [entry.cost for entry in ledger.entries() if entry.event == "spend"] == [cost, cost]
    most = most_ratings(protect, ITEMS)
    for sigma, sensitivity, entries in (
        (sums.sigma_counts, claimed.weighted_sums(protect, c0), 2 * most),
        (gram.sigma_diagonal, claimed.weighted_gram(protect, c0), most**2),
    ):
        rounding = claimed.rounding(protect, entries)
        steps = Grid.of(cost, sensitivity, rounding).steps
        expected = (sensitivity + rounding / steps) / np.sqrt(2 * float(cost.rho))
        assert sigma == pytest.approx(expected, rel=1e-5)
        assert sigma > sensitivity / np.sqrt(2 * float(cost.rho)) * 1.0001


def test_ratings_that_were_bounded_already_do_not_protect_one_rating():
    """One rating more could push another one out: two would change."""
    found = small(OneRow()).bounded("user", 3)
    with pytest.raises(InputError, match="push another one out"):
        Curator(
            found, protect=OneRow(), budget=ApproxDP(1, "1e-6"), rng=secure_rng(),
            ledger=Ledger.in_memory(dataset="d"),
        )  # fmt: skip


@pytest.mark.parametrize("c0", [0, -1, 1.5])
def test_a_weight_needs_a_whole_number_above_zero(c0):
    with pytest.raises(InputError):
        claimed.weighted_gram(OneRow(), c0)
