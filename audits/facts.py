"""A whole release as named facts: every row, noisy count, number of the model and word of the file.

What a publication writes into its folder is taken apart, so that an attack can weigh each part.
Nothing is left out but what lies beyond the first ``MOST`` entries of a list or array.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sfumato.auditing.checks import Outputs
from sfumato.release import TableRelease
from sfumato.release.recommender import RecommenderRelease

Fact = float | str
Facts = Mapping[str, Fact]
"""What an output says, by where it says it."""

MOST: Final = 256
"""Entries of a list or array that are facts of their own."""


def stacked_facts(outputs: Iterable[Facts]) -> Outputs:
    """Outputs as an array of mappings."""
    found = [*outputs]
    out = np.empty(len(found), dtype=object)
    out[:] = found
    return out


def facts_of(release: TableRelease | RecommenderRelease) -> Facts:
    """All that the folder of a release holds."""
    facts = dict(flattened("file", release.to_dict()))
    arrays = release.model.arrays()
    for name in arrays:
        facts |= flattened(f"model {name}", np.ravel(arrays[name]).tolist())
    if isinstance(release, TableRelease):
        facts |= rows_told("row", release.data)
        if release.noisy is not None:
            facts |= _noisy_counts(release.noisy)
    return facts


def flattened(name: str, value: Any) -> Iterator[tuple[str, Fact]]:
    """The leaves of plain values, each with its path; how long a list is is a fact too.

    >>> dict(flattened("x", {"a": [1, None]}))
    {'x.a': 2.0, 'x.a.0': 1.0, 'x.a.1': 'None'}
    """
    if isinstance(value, Mapping):
        for key in value:
            yield from flattened(f"{name}.{key}", value[key])
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield name, float(len(value))
        for place, entry in enumerate(value[:MOST]):
            yield from flattened(f"{name}.{place}", entry)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)
    else:
        yield name, str(value)


def rows_told(name: str, table: pa.Table) -> dict[str, Fact]:
    """Rows by their place, and how many there are of each kind."""
    rows = [str(row) for row in zip(*table.to_pydict().values(), strict=True)]
    facts: dict[str, Fact] = {f"{name} {place}": row for place, row in enumerate(rows[:MOST])}
    for row in rows:
        kind = f"{name}s like {row}"
        facts[kind] = float(facts.get(kind, 0.0)) + 1
    return facts


def _noisy_counts(noisy: pa.Table) -> dict[str, Fact]:
    """Each measured count by its cell; a cell that is measured again is another fact."""
    *cells, counts, errors = noisy.to_pydict().values()
    facts: dict[str, Fact] = {}
    for cell, count, error in zip(zip(*cells, strict=True), counts, errors, strict=True):
        name = f"noisy {cell}"
        while name in facts:
            name += "+"
        facts[name] = float(count)
        facts[f"error of {name}"] = float(error)
    return facts
