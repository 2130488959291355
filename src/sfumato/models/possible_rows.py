"""Rows of any model without those that the schema declares impossible: post-processing.

Where a model knows nothing of the declaration, rows that contradict it are drawn again. That is
the model given that the row is possible: it moves the marginals of the columns concerned a little.
"""

from typing import Final

import numpy as np

from sfumato.models.model import Model, Rows
from sfumato.randomness import Rng
from sfumato.schema.schema import Schema, possible_codes, possible_rows

MOST_ROUNDS: Final = 64
"""How often impossible rows are drawn again: of a model that is possible in one row of ten, one
impossible row in 850 is left, which then borrows from a possible one."""


def draw_possible(model: Model, n_rows: int, *, rng: Rng) -> Rows:
    """Rows of the model, none of which is impossible."""
    rows = dict(model.draw(n_rows, rng=rng))
    if not model.schema.impossible:
        return rows
    wrong = np.flatnonzero(~possible_rows(model.schema, rows))
    for _ in range(MOST_ROUNDS):
        if not wrong.size:
            break
        fresh = model.draw(wrong.size, rng=rng)
        good = possible_rows(model.schema, fresh)
        for name in rows:
            rows[name][wrong[good]] = fresh[name][good]
        wrong = wrong[~good]
    return repaired(model.schema, rows, rng=rng) if wrong.size else rows


def repaired(schema: Schema, rows: Rows, *, rng: Rng) -> Rows:
    """Rows in which each impossible one borrows the columns concerned from a possible one.

    The columns that no declaration names stay as they are. Where no row is possible, all take the
    same values, found from the declaration alone.
    """
    good = possible_rows(schema, rows)
    wrong, donors = np.flatnonzero(~good), np.flatnonzero(good)
    if not wrong.size:
        return rows
    out = {name: np.array(codes) for name, codes in rows.items()}
    for name, code in possible_codes(schema).items():
        out[name][wrong] = code
    if donors.size:
        taken = donors[rng.below(donors.size, wrong.size)]
        for name in {name for each in schema.impossible for name in each.names}:
            out[name][wrong] = rows[name][taken]
    return out
