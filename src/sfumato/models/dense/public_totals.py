"""A histogram made to agree with public totals: post-processing of both."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.models.dense.model import DenseModel
from sfumato.schema.measurement import PublicTotal
from sfumato.schema.schema import Schema, possible

MOST_ROUNDS: Final = 200
CLOSE: Final = 1e-9
"""Raking stops when no cell of a total is off by more than this part of all rows."""
_LIFT: Final = 1e-6
"""Rows that a cell gets where a total wants some and the histogram has none."""


def rake(model: DenseModel, totals: Sequence[PublicTotal]) -> DenseModel:
    """The histogram scaled along each total in turn until all agree.

    Iterative proportional fitting (Deming, Stephan 1940): what the histogram says beyond the
    totals, its odds ratios, stays. A group of cells without any rows can't be scaled; where a
    total wants some, its possible cells share them evenly.

    >>> schema = Schema.from_dict({"a": 2, "b": 2})
    >>> made = DenseModel(schema=schema, counts=np.array([[2.0, 2.0], [1.0, 3.0]]))
    >>> rake(made, [PublicTotal(marginal=("a",), counts=np.array([8, 2]))]).counts.tolist()
    [[4.0, 4.0], [0.5, 1.5]]
    """
    if not totals:
        return model
    schema, counts = model.schema, np.array(model.counts)
    lifted = possible(schema, schema.names) * _LIFT
    for _ in range(MOST_ROUNDS):
        worst = 0.0
        for total in totals:
            others = _others(schema, total)
            held, wanted = counts.sum(axis=others, keepdims=True), _spread(schema, total)
            worst = max(worst, float(np.abs(held - wanted).max()))
            if ((held <= 0) & (wanted > 0)).any():
                counts += np.where((held <= 0) & (wanted > 0), lifted, 0.0)
                held = counts.sum(axis=others, keepdims=True)
            counts *= np.divide(wanted, held, out=np.zeros_like(held), where=held > 0)
        if worst <= CLOSE * totals[0].rows:
            break
    return DenseModel(schema=schema, counts=counts)


def _others(schema: Schema, total: PublicTotal) -> tuple[int, ...]:
    return tuple(a for a, name in enumerate(schema.names) if name not in total.marginal)


def _spread(schema: Schema, total: PublicTotal) -> NDArray[np.float64]:
    """A total with an axis of length 1 for each column that it does not name."""
    return np.expand_dims(total.counts, _others(schema, total))
