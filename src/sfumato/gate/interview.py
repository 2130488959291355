"""A table's rows as people: each in one of several groups, each answering one drawn question once.

This is how the rounds of a survey are run on a table. Rows are read once and held here, so that no
row can answer twice, whatever becomes of the file between two rounds.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.exact_counts import exact_codes
from sfumato.counting.table import Table
from sfumato.durable import SingleProcess
from sfumato.errors import BudgetError, InputError
from sfumato.gate.row_answers import ALLOWED
from sfumato.local.records.parts import Part, answer_parts, check_weights
from sfumato.randomness import Rng
from sfumato.schema.schema import Marginal


class Interview(SingleProcess):
    """Rows divided into groups by coins and put in a random order; each group is asked once.

    Formal guarantee: all that ``ask`` ever returns is epsilon-DP for one row that is replaced. A
    row is in one group, whatever it says, and gives one answer there, which is epsilon-local DP.
    """

    __slots__ = ("__codes", "__epsilon", "__group", "__left", "__rng", "__rows", "__schema")

    def __init__(
        self, table: Table, *, epsilon: Fraction, groups: int, columns: Marginal, rng: Rng
    ) -> None:
        super().__init__()
        self.__schema = table.schema
        self.__epsilon = epsilon
        self.__rng = rng
        held = exact_codes(table, columns)
        self.__rows = len(next(iter(held.values())))
        order = rng.permutation(self.__rows)  # that of the table may tell what its rows say
        self.__codes = {name: codes[order] for name, codes in held.items()}
        self.__group = rng.below(groups, self.__rows)
        self.__left = list(range(groups))

    @property
    def people(self) -> int:
        """How many rows there are in all groups: public."""
        return self.__rows

    def ask(
        self, parts: Sequence[Part], weights: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """The next group: for each of its rows the part that it drew, and its answer.

        Args:
            parts: What may be answered about.
            weights: A part is drawn with its weight out of their sum.
        """
        self._check(parts, weights)
        with self._turn():
            if not self.__left:
                raise BudgetError(
                    "every group has answered, and a second answer would cost epsilon again."
                )
            mine = np.flatnonzero(self.__group == self.__left.pop(0))
            own = {name: codes[mine] for name, codes in self.__codes.items()}
            return answer_parts(parts, weights, own, mine.size, rng=self.__rng)

    def _check(self, parts: Sequence[Part], weights: Sequence[int]) -> None:
        if not parts:
            raise InputError("there is nothing to ask.")
        check_weights(weights, len(parts))
        for part in parts:
            if type(part) is not Part or type(part.mechanism) not in ALLOWED:
                names = ", ".join(kind.__name__ for kind in ALLOWED)
                raise InputError(f"rows answer parts by one of {names}.")
            if part.sizes != tuple(self._sizes(part.columns)):
                raise InputError("a part's sizes are not those of the table's columns.")
            if part.mechanism.epsilon > self.__epsilon:
                raise BudgetError(
                    f"a part asks for epsilon {part.mechanism.epsilon}, but {self.__epsilon} was "
                    "paid for."
                )

    def _sizes(self, names: Sequence[str]) -> list[int]:
        unknown = [name for name in names if name not in self.__codes]
        if unknown:
            raise InputError(f"this interview is not about {unknown[0]!r}.")
        return [self.__schema[name].size for name in names]
