"""A table's rows as people: each in one of several groups, each answering one drawn question once.

This is how the rounds of a survey are run on a table. Rows are read once and held here, so that no
row can answer twice, whatever becomes of the file between two rounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.curator.alone import OnlyOne
from sfumato.curator.perturbing import ALLOWED
from sfumato.engine import Table
from sfumato.engine.table import CodeBatch
from sfumato.errors import BudgetError, InputError
from sfumato.mechanisms.local.parts import Part, answer_parts, check_weights
from sfumato.randomness import Rng
from sfumato.schema.codes import code_type
from sfumato.schema.table import Marginal, Schema


class Interview(OnlyOne):
    """Rows divided into groups by coins and put in a random order; each group is asked once.

    Formal guarantee: all that ``ask`` ever returns is epsilon-DP for one row that is replaced. A
    row is in one group, whatever it says, and gives one answer there, which is epsilon-local DP.
    """

    def __init__(
        self, table: Table, *, epsilon: Fraction, groups: int, columns: Marginal, rng: Rng
    ) -> None:
        super().__init__()
        self._schema = table.schema
        self._epsilon = epsilon
        self._rng = rng
        held = held_codes(table, columns)
        self._rows = len(next(iter(held.values())))
        order = rng.permutation(self._rows)  # that of the table may tell what its rows say
        self._codes = {name: codes[order] for name, codes in held.items()}
        self._group = rng.below(groups, self._rows)
        self._left = list(range(groups))

    @property
    def people(self) -> int:
        """How many rows there are in all groups: public."""
        return self._rows

    def ask(
        self, parts: Sequence[Part], weights: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """The next group: for each of its rows the part that it drew, and its answer.

        Args:
            parts: What may be answered about.
            weights: A part is drawn with its weight out of their sum.
        """
        self._check_process()
        self._check(parts, weights)
        with self._lock:
            if not self._left:
                raise BudgetError(
                    "every group has answered, and a second answer would cost epsilon again. "
                    "Nothing was answered."
                )
            mine = np.flatnonzero(self._group == self._left.pop(0))
            own = {name: codes[mine] for name, codes in self._codes.items()}
            return answer_parts(parts, weights, own, mine.size, rng=self._rng)

    def _check(self, parts: Sequence[Part], weights: Sequence[int]) -> None:
        if not parts:
            raise InputError("there is nothing to ask. Nothing was answered.")
        check_weights(weights, len(parts))
        for part in parts:
            if type(part) is not Part or type(part.mechanism) not in ALLOWED:
                names = ", ".join(kind.__name__ for kind in ALLOWED)
                raise InputError(f"rows answer parts by one of {names}. Nothing was answered.")
            if part.sizes != tuple(self._sizes(part.columns)):
                raise InputError("a part's sizes are not those of the table's columns.")
            if part.mechanism.epsilon > self._epsilon:
                raise BudgetError(
                    f"a part asks for epsilon {part.mechanism.epsilon}, but {self._epsilon} was "
                    "paid for. Nothing was answered."
                )

    def _sizes(self, names: Sequence[str]) -> list[int]:
        unknown = [name for name in names if name not in self._codes]
        if unknown:
            raise InputError(f"this interview is not about {unknown[0]!r}. Nothing was answered.")
        return [self._schema[name].size for name in names]


def held_codes(table: Table, columns: Marginal) -> Mapping[str, NDArray[Any]]:
    """The exact codes of all rows, in their order: sensitive."""
    batches = list(table.map(_Codes(columns=columns, schema=table.schema)))
    whole = pa.Table.from_batches(batches).combine_chunks()
    return {name: whole[name].to_numpy() for name in columns}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Codes:
    """Rows as they are."""

    columns: Marginal
    schema: Schema

    def apply(self, codes: CodeBatch) -> pa.RecordBatch:
        """The codes of a batch."""
        arrays = [
            pa.array(codes[name].astype(code_type(self.schema[name]))) for name in self.columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.columns))
