"""Whom a guarantee protects, and how far one such unit can move a statistic: all sensitivities.

A unit is at most ``K = protect.rows`` rows (one, for ``OneRow``). Under add-remove a neighbor has
those rows or not; under replace they become any other rows: exactly one for ``OneRow``, between
none and K for ``OnePerson``. Results for counts are whole numbers and tight: some neighbor attains
them.

In the proofs u and v are the unit's own histograms before and after: u, v >= 0, each with sum at
most K, and v = 0 (or u = 0) under add-remove. The statistic of everyone else cancels.

Weighted sums over ratings: a person with c ratings x (one for each rated item, |x_i| <= 1) has the
weight w = 1/sqrt(max(c, c0)): many ratings count less, so that |w x| <= 1, and few are not blown
up. Sums are of w 1 and w x by item, the Gram matrix is of w^2 x x'. Norms are L2 (Frobenius).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, log1p, sqrt
from typing import Any, Literal

from sfumato import check
from sfumato.errors import InputError

Neighbors = Literal["add-remove", "replace"]
NEIGHBORS: tuple[Neighbors, ...] = ("add-remove", "replace")


@dataclass(frozen=True, kw_only=True, slots=True)
class OneRow:
    """One row added or removed, or one row replaced by any other (the number of rows is public)."""

    neighbors: Neighbors = "add-remove"

    def __post_init__(self) -> None:
        check.one_of(NEIGHBORS, neighbors=self.neighbors)

    @property
    def rows(self) -> int:
        """The number of rows that may change."""
        return 1

    def __str__(self) -> str:
        verb = "added or removed" if self.neighbors == "add-remove" else "replaced"
        return f"one row {verb}"


@dataclass(frozen=True, kw_only=True, slots=True)
class OnePerson:
    """One person with at most ``max_rows`` rows, added or removed, or their rows replaced.

    The engine keeps at most ``max_rows`` rows of each person; which ones depends on that
    person's rows alone.
    """

    max_rows: int
    column: str | None = None
    """The column that names the person; a table needs it, ratings know theirs."""
    neighbors: Neighbors = "add-remove"

    def __post_init__(self) -> None:
        rows = check.whole(at_least=1, max_rows=self.max_rows)
        object.__setattr__(self, "max_rows", rows)  # a narrow int of numpy would wrap if squared
        check.one_of(NEIGHBORS, neighbors=self.neighbors)

    @property
    def rows(self) -> int:
        """The number of rows that may change."""
        return self.max_rows

    def __str__(self) -> str:
        verb = "added or removed" if self.neighbors == "add-remove" else "replaced"
        return f"one person with at most {self.max_rows} rows {verb}"


Protection = OneRow | OnePerson


def protection_to_json(protect: Protection) -> dict[str, Any]:
    """Unit and relation as they stand in ``release.json``: not which column names the person."""
    unit = {"unit": "row"} if isinstance(protect, OneRow) else {"unit": "person"}
    rows = {} if isinstance(protect, OneRow) else {"max_rows": protect.max_rows}
    return {**unit, **rows, "neighbors": protect.neighbors}


def protection_to_ledger(protect: Protection) -> dict[str, Any]:
    """As it stands in the ledger, where persons of two columns are two different units."""
    column = protect.column if isinstance(protect, OnePerson) else None
    unit = protection_to_json(protect)
    return unit if column is None else {**unit, "column": column}


def protection_from_json(value: Mapping[str, Any]) -> Protection:
    """The value that ``protection_to_json`` or ``protection_to_ledger`` wrote."""
    if value["unit"] == "row":
        return OneRow(neighbors=value["neighbors"])
    return OnePerson(
        max_rows=value["max_rows"], column=value.get("column"), neighbors=value["neighbors"]
    )


def histogram_l1(protect: Protection) -> int:
    """L1 norm of the change of one table of counts: K, under replace 2K; of k tables k times that.

    ``|u - v|_1 <= |u|_1 + |v|_1``; attained when u and v share no cell.

    >>> histogram_l1(OneRow(neighbors="replace"))
    2
    """
    return _sides(protect) * protect.rows


def histogram_l2_squared(protect: Protection) -> int:
    """Squared L2 norm of the same change: K^2, under replace 2 K^2; of k tables k times that.

    ``|u - v|^2 = |u|^2 + |v|^2 - 2 <u, v> <= |u|_1^2 + |v|_1^2 <= 2 K^2``, as ``<u, v> >= 0``;
    attained when all rows lie in one cell before and in one other cell after.

    >>> histogram_l2_squared(OneRow(neighbors="replace"))
    2
    """
    return _sides(protect) * protect.rows**2


def range_query(protect: Protection) -> int:
    """Change of the number of rows in a set fixed in advance: K, also under replace.

    With a and b the unit's rows in the set, ``|a - b| <= max(a, b) <= K``; attained when all lie
    inside before and outside after.

    >>> range_query(OneRow(neighbors="replace"))
    1
    """
    return protect.rows


def l1_error(protect: Protection) -> int:
    """Change of ``|counts - model|_1`` where the model's counts are public: that of the counts.

    By the triangle inequality at most ``|u - v|_1``; attained by a model that lies above all
    counts in the cells of u and below all counts in those of v.
    """
    return histogram_l1(protect)


def total(protect: Protection) -> int:
    """Change of the number of rows: K, but 0 when one row is replaced by one (it is public).

    When a person's rows are replaced their number may change by up to K.

    >>> total(OneRow(neighbors="replace"))
    0
    """
    if isinstance(protect, OneRow) and protect.neighbors == "replace":
        return 0
    return protect.rows


def mutual_information(protect: Protection, *, rows: int, binary: bool) -> float:
    """Change of the mutual information of two sides of a table of n rows when one is replaced.

    In nats: (1/n) ln n + ((n-1)/n) ln(n/(n-1)) if one side has at most two values, otherwise
    (2/n) ln((n+1)/2) + ((n-1)/n) ln((n+1)/(n-1)). Zhang, Cormode, Procopiuc, Srivastava, Xiao
    2014, "PrivBayes", section 4, and 2017, TODS 42. Rounded up by 2^-40 of it, which is more than
    floating point loses. Over all small tables (a test) some neighbor attains the first, and for
    odd n the second.

    Args:
        protect: One row that is replaced: otherwise n is no public number, and it stands here.
        rows: The true number of rows n.
        binary: Whether one side has at most two values by its declaration. What the data happen
            to hold is no reason: a neighbor may hold more.

    >>> round(mutual_information(OneRow(neighbors="replace"), rows=1_000, binary=True), 6)
    0.007907
    """
    if total(protect) != 0:
        raise InputError(
            "how far mutual information can move depends on the number of rows, which is public "
            f"only if one row is replaced, but {protect} is protected here. Use "
            "OneRow(neighbors='replace')."
        )
    n = check.whole(at_least=1, rows=rows)
    if n == 1:
        return 0.0  # one row tells nothing of one column by another
    if binary:
        nats = log(n) / n - (n - 1) / n * log1p(-1 / n)
    else:
        nats = 2 / n * log((n + 1) / 2) + (n - 1) / n * log1p(2 / (n - 1))
    return nats * (1 + 2.0**-40)


def weighted_sums(protect: Protection, c0: int) -> float:
    """Of the counts sum_u w_u 1[u rated i] and the sums sum_u w_u x_ui, taken together.

    A person adds two vectors of norm at most 1 each: sqrt(2). For a replaced person let an item
    weigh a before and b after, with |u| <= a and |v| <= b: (a - b)^2 + (u - v)^2 <= 2 a^2 + 2 b^2,
    in sum at most 4, so 2; attained by all ratings at one end and then at the other.
    One rating more, for a person with c < c0: each vector moves by w = 1/sqrt(c0) in one place.
    With c >= c0 the others shrink too: c (1/sqrt(c) - 1/sqrt(c+1))^2 + 1/(c+1)
    = 2 - 2 sqrt(c/(c+1)) <= 1/c <= 1/c0. Together sqrt(2/c0); a replaced rating is one less and
    one more.
    """
    c0 = check.whole(at_least=1, c0=c0)  # a plain int: narrow ones of numpy wrap around
    if isinstance(protect, OneRow):
        return (2 if protect.neighbors == "replace" else 1) * sqrt(2 / c0)
    return 2.0 if protect.neighbors == "replace" else sqrt(2)


def weighted_gram(protect: Protection, c0: int) -> float:
    """Of the matrix sum_u w_u^2 x_u x_u', all its entries.

    A person adds a matrix of norm w^2 |x|^2 <= 1; two such matrices are positive semidefinite, so
    their inner product is not negative and they are at most sqrt(2) apart. One rating b more: for
    c < c0 the squared change is (2 b^2 |x|^2 + b^4)/c0^2 <= (2 c0 - 1)/c0^2, as |x|^2 <= c0 - 1.
    For c >= c0 it is |x|^4/(c (c+1))^2 + (2 b^2 |x|^2 + b^4)/(c+1)^2 <= 2/(c+1), which is not
    larger. This needs x not to depend on the person's other ratings: with their own mean
    subtracted it fails.

    >>> round(weighted_gram(OneRow(), 50), 3)
    0.199
    """
    c0 = check.whole(at_least=1, c0=c0)  # a plain int: narrow ones of numpy wrap around
    if isinstance(protect, OneRow):
        return (2 if protect.neighbors == "replace" else 1) * sqrt(2 * c0 - 1) / c0
    return sqrt(2) if protect.neighbors == "replace" else 1.0


def rounding(protect: Protection, entries: int) -> float:
    """What rounding each entry of a person's contribution to whole numbers can add.

    Half a step for each of their entries in each contribution that changes: one when a person
    comes or goes, else two (before and after); a replaced rating may change two persons'. 0.51
    instead of a half pays for the floating-point error of the weights, below 1e-8 of a step.
    """
    contributions = 2 if isinstance(protect, OneRow) else 1
    if protect.neighbors == "replace":
        contributions *= 2
    return 0.51 * contributions * sqrt(entries)


def _sides(protect: Protection) -> int:
    """How many of u and v can differ from zero."""
    return 2 if protect.neighbors == "replace" else 1
