"""Every row answers about every column by randomized response: whole records, randomized."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.shuffle import mixed
from sfumato.counting.table import CodeBatch, Table
from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr
from sfumato.privacy.guarantees import PureDP
from sfumato.randomness import Rng
from sfumato.schema.schema import Marginal, Schema


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Responses:
    """Randomized rows, and what randomized them: public."""

    codes: Mapping[str, NDArray[Any]]
    """By column, one answer a row. Rows stand in a random order, the same one in all columns."""
    mechanisms: Mapping[str, Grr]
    """By column; ``p`` and ``q`` are the chances of the true value and of each other one."""

    @property
    def rows(self) -> int:
        """How many rows there are: public."""
        return len(next(iter(self.codes.values())))


def mechanisms_for(schema: Schema, epsilons: Mapping[str, Fraction]) -> dict[str, Grr]:
    """A randomized response for each column that is named; refused before anything is charged."""
    if not epsilons:
        raise InputError("no column is to be answered about.")
    for name in epsilons:
        if schema[name].size < 2:
            raise InputError(f"{name!r} has one value only: it needs no answer.")
    return {
        name: Grr(categories=schema[name].size, epsilon=epsilon)
        for name, epsilon in epsilons.items()
    }


def cost_of(mechanisms: Mapping[str, Grr]) -> PureDP:
    """The sum: a row that is replaced changes its own answers only, one for each column."""
    return PureDP(sum((made.epsilon for made in mechanisms.values()), Fraction(0)))


def responses(table: Table, mechanisms: Mapping[str, Grr], *, rng: Rng) -> Responses:
    """One pass over the table; the order that it has may tell what its rows say."""
    kernel = _Responding(mechanisms=mechanisms, rng=rng)
    whole = pa.Table.from_batches(list(mixed(table.map(kernel), rng=rng))).combine_chunks()
    codes = {name: whole[name].to_numpy() for name in kernel.columns}
    return Responses(codes=codes, mechanisms=mechanisms)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Responding:
    """Answers in the place of rows."""

    mechanisms: Mapping[str, Grr]
    rng: Rng

    @property
    def columns(self) -> Marginal:
        """The columns that are answered about."""
        return tuple(self.mechanisms)

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        """The answers of a batch."""
        arrays = [
            pa.array(made.answer_many(codes[name], rng=self.rng))
            for name, made in self.mechanisms.items()
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.columns))
