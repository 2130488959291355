"""Which cells and which rows the declared impossible combinations leave possible."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.schema import impossible
from sfumato.schema.impossible import Impossible
from sfumato.schema.schema import Marginal, Schema


def possible(schema: Schema, names: Marginal) -> NDArray[np.bool_]:
    """The cells of a marginal, in the order of the names, that no declared combination excludes.

    A combination counts only if all its columns are among the names: in a smaller marginal its
    cells hold other rows too.

    >>> schema = Schema.from_dict({"sex": 2, "pregnant": 2})
    >>> possible(schema.excluding([{"sex": [0, 0], "pregnant": [1, 1]}]), ("sex", "pregnant"))
    array([[ True, False],
           [ True,  True]])
    """
    found = np.ones(schema.shape(names), dtype=np.bool_)
    for combination in schema.impossible:
        if set(combination.names) <= set(names):
            found &= ~_holds(schema, combination, names)
    return found


def possible_rows(schema: Schema, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """For each row whether no declared combination holds in it."""
    found = np.ones(len(codes[schema.names[0]]), dtype=np.bool_)
    for combination in schema.impossible:
        holds = np.ones_like(found)
        for name, own in combination.parts:
            holds &= _named(schema[name].size, own)[codes[name]]
        found &= ~holds
    return found


def possible_codes(schema: Schema) -> dict[str, int]:
    """A code for each column that a combination names, with which none of them holds."""
    sizes = {column.name: column.size for column in schema}
    found = impossible.witness(sizes, schema.impossible)
    return found if found is not None else {}  # a schema that excludes everything is never made


def _holds(schema: Schema, combination: Impossible, names: Marginal) -> NDArray[np.bool_]:
    """Where a combination holds, with axes of length 1 for columns that it does not name."""
    holds = np.ones([1] * len(names), dtype=np.bool_)
    for name, codes in combination.parts:
        shape = [-1 if name == other else 1 for other in names]
        holds = holds & _named(schema[name].size, codes).reshape(shape)
    return holds


def _named(size: int, codes: tuple[int, ...]) -> NDArray[np.bool_]:
    named = np.zeros(size, dtype=np.bool_)
    named[list(codes)] = True
    return named
