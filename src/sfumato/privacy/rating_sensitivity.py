"""How far one rating, or one person, can move weighted sums over ratings: proofs and numbers.

A person with c ratings x (one for each rated item, |x_i| <= 1) has the weight
w = 1/sqrt(max(c, c0)): many ratings count less, so that |w x| <= 1, and few are not blown up.
Sums are of w 1 and w x by item, the Gram matrix is of w^2 x x'. All norms are L2 (Frobenius).
"""

from math import sqrt

from sfumato import check
from sfumato.privacy.protection import OneRow, Protection


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
