"""What every synthesis algorithm is: a frozen spec whose ``run`` talks to the curator only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.models.model import Model
from sfumato.privacy.guarantees import Cost, portion
from sfumato.schema import Marginal, Measurement, Schema, Workload
from sfumato.schema.workload import check_targets

TOTAL_SHARE = Fraction(1, 20)
"""The part of the budget that pays for the number of rows where it is neither public nor given."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """A model and the measurements that it was fitted to: public numbers."""

    model: Model
    measurements: tuple[Measurement, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Public facts that were learned on the way; a release states them with its method."""


class Algorithm(Protocol):
    """SELECT, MEASURE, FIT; every look at data goes through the curator."""

    name: ClassVar[str]
    takes_many_bins: ClassVar[bool]
    """Whether a column of hundreds of bins costs it little: else it runs on few bins of numbers."""

    def check(self, schema: Schema) -> None:
        """Raise an InputError if it can't work on this schema; before any spend."""

    def run(self, curator: Curator) -> Fit:
        """Spend what is left of the curator's budget on a model."""

    def describe(self) -> dict[str, Any]:
        """Its options, for ``release.json``."""


def columns_of_values(schema: Schema) -> Marginal:
    """The columns of more than one value: of the others there is nothing to learn."""
    return tuple(column.name for column in schema if column.size > 1)


def check_workload(schema: Schema, workload: Workload) -> None:
    """Refuse, before anything is spent, a workload of other columns."""
    try:
        check_targets(schema, workload.targets)
    except InputError as error:
        raise InputError(f"the workload does not fit the table: {error}") from None


def total_and_rest(curator: Curator, *, rows: int | None) -> tuple[float, Cost]:
    """The number of rows to work with, and what is left of the budget after learning it.

    Public where one row is replaced; otherwise the declared number, or a paid noisy count.
    """
    if curator.knows_rows:
        return float(curator.total().values), curator.left
    if rows is not None:
        return float(rows), curator.left
    counted = curator.total(cost=portion(curator.left, TOTAL_SHARE))
    return max(1.0, float(counted.values)), curator.left
