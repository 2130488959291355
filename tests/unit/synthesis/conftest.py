"""A table whose structure is known: a chain of columns, each telling the next."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from sfumato.gate import Curator
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OneRow
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Integer, Schema

ROWS = 4_000


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Columns a -> b -> c -> d, and e that nothing tells."""

    schema: Schema
    codes: dict[str, np.ndarray] = field(repr=False)

    def curator(self, *, budget=None, protect=None, rng=None, ledger=None, schema=None, codes=None):
        """A gate to the table or another one, without privacy unless told otherwise."""
        return Curator(
            ArrayTable(schema or self.schema, codes or self.codes),
            protect=protect or OneRow(),
            budget=budget or ApproxDP(1, "1e-6"),
            ledger=ledger or Ledger.in_memory(dataset="study"),
            rng=rng or simulation_rng(1),
        )

    def distance(self, model, names):
        """Total variation between a model's marginal and the table's."""
        exact = np.zeros(self.schema.shape(names))
        np.add.at(exact, tuple(self.codes[name] for name in names), 1 / ROWS)
        return float(np.abs(model.marginal(names) / model.total - exact).sum() / 2)


@pytest.fixture(scope="session")
def chain() -> Chain:
    """4,000 rows, 6 x 6 x 6 x 6 x 3 cells."""
    rng = simulation_rng(7)
    codes = {"a": rng.below(6, ROWS)}
    for before, name in zip("abc", "bcd", strict=True):
        stay = rng.uniform(ROWS) < 0.7
        codes[name] = np.where(stay, (codes[before] + 1) % 6, rng.below(6, ROWS))
    codes["e"] = rng.below(3, ROWS)
    columns = [Integer(name=name, low=0, high=2 if name == "e" else 5) for name in codes]
    return Chain(schema=Schema(columns=tuple(columns), dataset="study"), codes=codes)
