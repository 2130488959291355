"""How far one protected unit can move a statistic: the one table of sensitivities.

A unit is at most ``K = protect.rows`` rows (one, for ``OneRow``). Under add-remove a neighbor has
those rows or not; under replace they become any other rows: exactly one for ``OneRow``, between
none and K for ``OnePerson``. Results for counts are whole numbers and tight: some neighbor attains
them.

In the proofs u and v are the unit's own histograms before and after: u, v >= 0, each with sum at
most K, and v = 0 (or u = 0) under add-remove. The statistic of everyone else cancels.
"""

from math import log, log1p

from sfumato import check
from sfumato.errors import InputError
from sfumato.privacy.protection import OneRow, Protection


def histogram_l1(protect: Protection) -> int:
    """L1 norm of the change of one table of counts: K, under replace 2K.

    ``|u - v|_1 <= |u|_1 + |v|_1``; attained when u and v share no cell.

    >>> histogram_l1(OneRow(neighbors="replace"))
    2
    """
    return _sides(protect) * protect.rows


def histogram_l2_squared(protect: Protection) -> int:
    """Squared L2 norm of the change of one table of counts: K^2, under replace 2 K^2.

    ``|u - v|^2 = |u|^2 + |v|^2 - 2 <u, v> <= |u|_1^2 + |v|_1^2 <= 2 K^2``, as ``<u, v> >= 0``;
    attained when all rows lie in one cell before and in one other cell after.

    >>> histogram_l2_squared(OneRow(neighbors="replace"))
    2
    """
    return _sides(protect) * protect.rows**2


def marginals_l1(protect: Protection, k: int) -> int:
    """L1 norm of the change of k tables of counts taken together: k times that of one.

    Each row is counted once in each; attained by rows that move in all of them.
    """
    return check.whole(at_least=1, k=k) * histogram_l1(protect)


def marginals_l2_squared(protect: Protection, k: int) -> int:
    """Squared L2 norm of the change of k tables of counts together: k times that of one."""
    return check.whole(at_least=1, k=k) * histogram_l2_squared(protect)


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


def _sides(protect: Protection) -> int:
    """How many of u and v can differ from zero."""
    return 2 if protect.neighbors == "replace" else 1
