"""PrivBayes: a private Bayesian network, noisy tables of its families, rows drawn from both.

Zhang, Cormode, Procopiuc, Srivastava, Xiao 2014, "PrivBayes: private data release via Bayesian
networks", SIGMOD, and 2017, TODS 42. A column joins with the parents that tell much about it; how
many it may have is decided by what the noise would leave of their table. The scores' noise needs
the number of rows, so only a row that is replaced is protected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import pi, sqrt
from typing import Any, ClassVar, Final

from sfumato import check
from sfumato.errors import InputError
from sfumato.gate import Curator, MutualInformation
from sfumato.models.bayes.model import elimination, fit_bayes_net
from sfumato.models.bayes.network import affordable, largest_useful_table, maximal_parent_sets
from sfumato.privacy import sensitivity
from sfumato.privacy.guarantees import PureDP, portion
from sfumato.privacy.protection import Protection
from sfumato.schema import Marginal, Measurement, Schema
from sfumato.synthesis.algorithm import Fit, columns_of_values
from sfumato.synthesis.independent import shares_by_cells

LARGEST_TABLE: Final = 2**15
"""Cells of the largest table of a column and its parents, even if the noise would allow more."""
MOST_CELLS: Final = 2**24
"""Cells of all tables that are compared, together: 128 MB."""
MOST_SETS: Final = 2**16
"""Tables of more than two columns that may come to be compared."""
MOST_LOOKUPS: Final = 2**35
"""Rows times such tables: a minute or two."""
MOST_COLUMNS: Final = 256
"""The most columns of more than one value; chosen by judgment, for the time of the selections."""
WIDEST: Final = 2**22
"""Cells that are gone through, at most, to sum a column out of the model."""

Network = dict[str, Marginal]
"""The parents of each column, in the order in which the columns joined."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivBayes:
    """Select parents by mutual information, measure each family, draw column by column.

    Formal guarantee: the curator's budget, for one row that is replaced: the sum of what the
    selections and the tables cost. All limits are decided by public facts.
    """

    theta: float = 4.0
    """The least usefulness of a table: the mean count of a cell over the size of its noise."""
    network_share: check.Number = Fraction(3, 10)
    """Of the budget, for all selections together; one that is not needed leaves its part to the
    tables."""
    degree: int = 16
    """The most parents of a column, as far as usefulness, memory and time allow."""

    name: ClassVar[str] = "privbayes"
    takes_many_bins: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check.positive(theta=self.theta)
        check.whole(at_least=1, degree=self.degree)
        if not 0 < self._share < 1:
            raise InputError(
                f"network_share must be above 0 and below 1, got {self.network_share!r}"
            )

    def check(self, schema: Schema) -> None:
        """Columns must not be too many, and one must have something to say."""
        columns = len(columns_of_values(schema))
        if not columns:
            raise InputError("no column has more than one value.")
        if columns > MOST_COLUMNS:
            raise InputError(
                f"privbayes compares all pairs of at most {MOST_COLUMNS} columns, and {columns} "
                "have more than one value. Use --method independent, or fewer columns."
            )

    def check_promise(self, protect: Protection) -> None:
        """Raise an InputError if it can't protect this; before any spend."""
        if sensitivity.total(protect) != 0:
            raise InputError(
                "privbayes selects by mutual information, whose sensitivity is known only for a "
                f"public number of rows. That protects one row that is replaced, and {protect} "
                "was to be protected. Use replace neighbors (--neighbors replace), which make the "
                "number of rows public, or another method."
            )

    def run(self, curator: Curator) -> Fit:
        """Spend all that is left: every column joins, then all tables are measured in one look."""
        schema, budget = curator.schema, curator.left
        self.check(schema)
        self.check_promise(curator.protect)
        curator.reserve(budget, label="privbayes: selections of parents, then their tables")
        rows = int(curator.total().values)
        limits = self._limits(curator, rows)
        network, selections = _select_network(curator, limits, rows)  # SELECT
        measured = _measure(curator, network)  # MEASURE
        model = fit_bayes_net(
            schema, total=float(rows), parents=network, measurements=measured
        )  # FIT
        spent = selections * limits.share_each
        return Fit(
            model=model,
            measurements=tuple(measured),
            facts={
                "network": {name: list(own) for name, own in network.items()},
                "largest_table": limits.cells,
                "split": {"network": str(spent), "tables": str(1 - spent)},
            },
        )

    def describe(self) -> dict[str, Any]:
        """Its options."""
        return {
            "theta": float(self.theta),
            "network_share": str(self._share),
            "degree": self.degree,
        }

    @property
    def _share(self) -> Fraction:
        return check.exact(network_share=self.network_share)

    def _limits(self, curator: Curator, rows: int) -> "_Limits":
        """From the schema, the budget and the public number of rows."""
        requested = columns_of_values(curator.schema)
        sizes = curator.schema.shape(requested)

        def useful(degree: int, most: int) -> int:
            return largest_useful_table(
                sizes,
                rows=rows,
                theta=self.theta,
                degree=degree,
                most=most,
                noise_counts=lambda tables: _noise(curator, (1 - self._share) / tables),
            )

        degree = max(1, min(self.degree, len(requested) - 1))
        degree, most = affordable(
            sizes,
            limit=useful(degree, LARGEST_TABLE),
            degree=degree,
            most_sets=min(MOST_SETS, MOST_LOOKUPS // max(rows, 1)),
            most_cells=MOST_CELLS,
        )
        cells = useful(degree, most)  # with fewer parents there are more tables, with more noise
        share_each = self._share / max(len(requested) - 1, 1)
        return _Limits(columns=requested, degree=degree, cells=cells, share_each=share_each)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Limits:
    """What public facts allow."""

    columns: Marginal
    """The columns of more than one value."""
    degree: int
    cells: int
    """Of a column and its parents together."""
    share_each: Fraction
    """Of the budget, for one selection."""


def _noise(curator: Curator, share: Fraction) -> float:
    """The mean size, in counts, of the noise of one cell that a share of the budget brings."""
    cost = portion(curator.left, share)
    sigma = curator.sigma_of(curator.schema.names, cost)
    return sigma * (sqrt(1 / 2) if isinstance(cost, PureDP) else sqrt(2 / pi))


def _select_network(curator: Curator, limits: _Limits, rows: int) -> tuple[Network, int]:
    """From a random root on, always a column and parents with much mutual information.

    A single candidate is taken without a look, and so is another random root where nothing fits:
    neither is charged. Returns how many selections were.
    """
    network: Network = {}
    cost, selections = portion(curator.left, limits.share_each), 0
    while left := [name for name in limits.columns if name not in network]:
        curator.tell("columns of the network", len(network), len(limits.columns))
        candidates = _candidates(curator.schema, tuple(network), left, limits)
        if not candidates:
            network[left[curator.pick(len(left))]] = ()
            continue
        chosen = 0
        if len(candidates) > 1:
            targets = [curator.schema.marginal((child, *own)) for child, own in candidates]
            score = MutualInformation(children=tuple(child for child, _ in candidates), rows=rows)
            chosen = curator.select(targets, score=score, cost=cost)
            selections += 1
        child, parents = candidates[chosen]
        network[child] = _narrowed(curator.schema, network, child, parents)
    return network, selections


def _candidates(
    schema: Schema, inside: Marginal, outside: Sequence[str], limits: _Limits
) -> list[tuple[str, Marginal]]:
    """Every column outside with each of the largest sets of parents inside that are useful."""
    sizes = dict(zip(inside, schema.shape(inside), strict=True))
    sets: dict[int, list[Marginal]] = {}
    result: list[tuple[str, Marginal]] = []
    for child in outside:
        room = limits.cells // schema[child].size
        if room not in sets:
            own = maximal_parent_sets(sizes, room=room, degree=limits.degree)
            sets[room] = [schema.marginal(parents) for parents in own if parents]
        result += [(child, parents) for parents in sets[room]]
    return result


def _narrowed(
    schema: Schema, network: Mapping[str, Marginal], child: str, parents: Marginal
) -> Marginal:
    """The parents, less the largest of them as long as marginals of the model would take too long.

    Post-processing: the network is public as soon as it is selected.
    """
    scopes = [frozenset((name, *own)) for name, own in network.items()]
    while parents and elimination([*scopes, frozenset((child, *parents))], schema)[1] > WIDEST:
        largest = max(parents, key=lambda name: schema[name].size)
        parents = tuple(name for name in parents if name != largest)
    return parents


def _measure(curator: Curator, network: Mapping[str, Marginal]) -> list[Measurement]:
    """Every column with its parents, in one look; what is inside another table needs no own."""
    schema = curator.schema
    families = {schema.marginal((name, *own)) for name, own in network.items()}
    widest = [one for one in families if not any(set(one) < set(other) for other in families)]
    tables = sorted(widest, key=lambda names: [schema.names.index(name) for name in names])
    costs = shares_by_cells(curator.left, [schema.cells(names) for names in tables])
    return curator.measure(tables, costs=costs)
