"""Made-up ratings, and curators over them."""

import pyarrow as pa
import pytest

from sfumato.evaluation.rating_splits import RatingFormat, random_split
from sfumato.gate import Curator
from sfumato.lab.ratings import made_ratings
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OneRow
from sfumato.randomness import simulation_rng
from sfumato.readers.ratings import open_ratings
from sfumato.schema.ratings import Catalogue, RatingScale

PEOPLE, ITEMS, RATINGS = 800, 120, 16_000


@pytest.fixture(scope="session")
def made() -> pa.Table:
    """16,000 ratings of 120 items by 800 people."""
    rows = made_ratings(PEOPLE, items=ITEMS, ratings=RATINGS, rng=simulation_rng(3))
    return pa.table(rows.columns())


@pytest.fixture(scope="session")
def ratings(made):
    titles = [f"film {code}" for code in range(ITEMS)]
    return open_ratings(
        made,
        catalogue=Catalogue.of(range(ITEMS), titles=titles),
        scale=RatingScale(1, 5),
        dataset="films",
    )


@pytest.fixture(scope="session")
def split(made):
    form = RatingFormat(
        catalogue=Catalogue.of(range(ITEMS)), scale=RatingScale(1, 5), dataset="films"
    )
    return random_split(made, form=form, rng=simulation_rng(4))


@pytest.fixture
def gate(ratings):
    """Makes a curator; by default for one rating and epsilon 5."""

    def make(*, table=ratings, protect=None, budget=None, rng=None, ledger=None):
        return Curator(
            table,
            protect=protect or OneRow(),
            budget=budget or ApproxDP(5, "1e-6"),
            rng=rng or simulation_rng(5),
            ledger=ledger or Ledger.in_memory(dataset="films"),
        )

    return make
