"""Attacks on central synthesis: what a careless or curious caller could try at the gate.

Each was tried against the code; those that a mutant of it survived are here too.
"""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.gate import Curator, L1Error
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OnePerson, OneRow, sensitivity
from sfumato.privacy.guarantees import ZCDP, PureDP
from sfumato.publishing.algorithm_release import publish
from sfumato.randomness import secure_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Range, Schema
from sfumato.schema.measurement import Coarse, PublicTotal
from sfumato.synthesis.independent import Independent
from sfumato.synthesis.mst import Mst

BUDGET = ApproxDP(1, "1e-6")
REPLACED = OneRow(neighbors="replace")
SCHEMA = Schema.from_dict({"a": 3, "b": 4})
ROWS = {"a": np.array([0, 1, 2, 0, 0]), "b": np.array([0, 1, 2, 3, 3])}


def gate(*, protect=REPLACED, rng=None, ledger=None, budget=BUDGET):
    """Without a cap: what a run may spend is then up to the curator alone."""
    book = ledger or Ledger.in_memory(dataset="red")
    table = ArrayTable(SCHEMA, ROWS)
    return Curator(table, protect=protect, budget=budget, ledger=book, rng=rng or secure_rng())


def spent(curator):
    return curator.ledger.spent.rho


class Changing(list):
    """A list that says something else from the second time on that it is gone through."""

    def __init__(self, first, then):
        super().__init__(first)
        self._then, self._times = then, 0

    def __iter__(self):
        self._times += 1
        return super().__iter__() if self._times == 1 else iter(self._then)

    def __getitem__(self, place):
        return self._then[place]


def test_what_was_checked_and_paid_for_is_what_is_counted():
    """A range moves by one where a row is replaced, a marginal in two cells: twice the rho."""
    targets = Changing([Range((("a", 0, 0),))], [("a",)])
    (seen,) = gate().measure(targets, costs=[ZCDP("0.001")])
    assert seen.target == Range((("a", 0, 0),))
    assert seen.values.shape == ()


def test_a_vector_of_scores_is_of_the_targets_that_were_checked():
    boxes = [Range((("a", code, code),)) for code in range(3)]
    targets = Changing(boxes, [("a",), ("b",), ("a", "b")])
    curator = gate(budget=ZCDP(5000))
    told = curator.score(targets, score=L1Error(answers=np.zeros(3)), cost=ZCDP(5000))
    assert np.round(told).tolist() == [3, 1, 1]


def test_narrow_integers_do_not_shrink_a_sensitivity():
    """17 rows of a person move a histogram by 289 in squares; as 8 bits that would be 33."""
    person = OnePerson(column="who", max_rows=np.uint8(17))
    assert sensitivity.histogram_l2_squared(person) == 289
    given, plain = (sensitivity.weighted_gram(OneRow(), c0) for c0 in (np.uint8(200), 200))
    assert given == plain


def public_total(*counts):
    return (PublicTotal(marginal=("a",), counts=np.array(counts, dtype=float)),)


def test_totals_of_another_table_are_refused_where_the_number_of_rows_is_public():
    curator = gate()
    with pytest.raises(InputError, match=r"of 6 rows, but the table has 5.*Nothing was spent"):
        publish(Independent(totals=public_total(3, 2, 1)), curator)
    assert spent(curator) == 0
    assert publish(Independent(totals=public_total(3, 1, 1)), curator).data.num_rows == 5


def test_totals_tell_nothing_of_the_number_of_rows_where_it_is_private():
    release = publish(Independent(totals=public_total(3, 2, 1)), gate(protect=OneRow()))
    assert release.data.num_rows == 6


def test_groups_do_not_change_after_they_were_checked():
    """A code taken out of its group would be counted twice, or not at all."""
    own = np.array([0, 1, 1, 0])
    view = Coarse(fine=SCHEMA, groups={"b": own[:]})
    own[:] = [0, 3, 3, 3]
    assert view.groups["b"].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("protect", [OneRow(), REPLACED])
@pytest.mark.parametrize("epsilon", [700, 10_000])
def test_a_budget_that_leaves_no_noise_is_not_spent_for_nothing(epsilon, protect):
    release = publish(Independent(), gate(budget=PureDP(epsilon), protect=protect))
    assert release.data.num_rows == 5


@pytest.mark.filterwarnings("error")
def test_a_tree_without_a_pair_worth_measuring_is_published_in_silence():
    schema = Schema.from_dict({"a": 1, "b": 4})
    table = ArrayTable(schema, {"a": np.zeros(5, dtype=np.int64), "b": ROWS["b"]})
    book = Ledger.in_memory(dataset="red")
    curator = Curator(table, protect=REPLACED, budget=BUDGET, ledger=book, rng=secure_rng())
    assert publish(Mst(), curator).data.num_rows == 5
