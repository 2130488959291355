"""What the steps of a run ask for, and of which table: checked before the charge.

The noise that a cost brings and what the ledger says of a step; the table with at most the
protected number of rows of each person.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.ratings import Ratings
from sfumato.counting.table import Table
from sfumato.durable import One, in_turn
from sfumato.errors import InputError
from sfumato.ledger.ledger import spending_boundary
from sfumato.noise import Noise, Selection, noise_for, selection_for
from sfumato.privacy import sensitivity
from sfumato.privacy.guarantees import ZCDP, Cost, PureDP
from sfumato.privacy.sensitivity import OnePerson, OneRow, Protection
from sfumato.randomness import Rng
from sfumato.schema.measurement import Coarse, Measurement
from sfumato.schema.schema import Schema
from sfumato.schema.workload import Range, Target

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


def noisy(target: Target, exact: NDArray[np.int64], noise: Noise, rng: Rng) -> Measurement:
    """Exact counts with noise: what may be published."""
    values = exact + noise.sample(exact.size, rng=rng).reshape(exact.shape)
    return Measurement(
        target=target, values=values.astype(np.float64), sigma_counts=noise.sigma_counts
    )


def measurements(
    schema: Schema,
    targets: Sequence[Target],
    noises: Sequence[Noise],
    values: NDArray[np.float64],
    merged: Coarse | None = None,
) -> list[Measurement]:
    """The measurements of some targets, from their noisy counts in one flat vector."""
    shown = schema if merged is None else merged.schema
    shapes = [shown.shape(target) if isinstance(target, tuple) else () for target in targets]
    parts = np.split(values, np.cumsum([prod(shape) for shape in shapes])[:-1])
    return [
        Measurement(
            target=target, values=part.reshape(shape), sigma_counts=n.sigma_counts, merged=merged
        )
        for target, shape, n, part in zip(targets, shapes, noises, parts, strict=True)
    ]


def question(
    verb: str, targets: str, noises: Sequence[object], merged: Coarse | None = None
) -> str:
    """Everything public that says how to read an answer: for the journal's digest.

    Not the model that a score compares with: an answer about another one is still an answer, and
    the last digits of a model may differ from run to run.
    """
    groups = {} if merged is None else {n: g.tolist() for n, g in merged.groups.items()}
    return f"{verb} {targets} with {list(noises)!r} merged {groups!r}"


def sigma_of(cost: Cost, *, is_range: bool, protect: Protection) -> float:
    """The standard deviation, in counts, of what a cost buys for a marginal or a range."""
    return noise_of(cost, is_range, protect).sigma_counts


def noise_of(cost: Cost, is_range: bool, protect: Protection) -> Noise:
    """The noise that a cost buys for a marginal or a range."""
    check_cost(cost)
    check_protection(protect)
    return _noise_of(cost, is_range, protect)


def check_cost(cost: Cost) -> None:
    """Refuse what is no plain cost: a subclass could tell the charge and the noise two amounts."""
    if type(cost) not in (PureDP, ZCDP):
        raise InputError(f"a step costs PureDP or ZCDP, got {cost!r:.60}.")


def check_protection(protect: Protection) -> None:
    """Refuse what is no plain protection, which could change between two looks at it."""
    if type(protect) not in (OneRow, OnePerson):
        raise InputError(f"protect must be OneRow or OnePerson, got {protect!r:.60}.")


@lru_cache(maxsize=256)
def _noise_of(cost: Cost, is_range: bool, protect: Protection) -> Noise:
    if is_range:
        moved = sensitivity.range_query(protect)
        return noise_for(cost, moved, moved**2)
    l1, l2_squared = sensitivity.histogram_l1(protect), sensitivity.histogram_l2_squared(protect)
    return noise_for(cost, l1, l2_squared)


def selection_of(cost: Cost, moved: int) -> Selection:
    """The selection that a cost buys among scores of that sensitivity."""
    check_cost(cost)
    return _selection_for(cost, moved)


_selection_for = lru_cache(maxsize=256)(selection_for)


def amount(cost: Cost) -> Fraction:
    """Epsilon or rho."""
    return cost.epsilon if isinstance(cost, PureDP) else cost.rho


def same_kind(cost: Cost, amount: Fraction) -> Cost:
    """A cost of the same kind."""
    return PureDP(amount) if isinstance(cost, PureDP) else ZCDP(amount)


def label_of(verb: str, targets: Sequence[Target]) -> str:
    """What the ledger says of a step: public names only."""
    if not targets:
        return verb
    if len(targets) > 1:
        return f"{verb} {len(targets)} targets"
    (target,) = targets
    text = str(target) if isinstance(target, Range) else ", ".join(target) or "total"
    return f"{verb} ({text})"


def check_allowed(allowed: NDArray[np.bool_] | None, targets: int) -> NDArray[np.bool_] | None:
    """A plain copy; a choice among none, or among other targets than were given, is refused."""
    if allowed is None:
        return None
    own = np.array(allowed)
    if own.dtype != np.bool_ or own.shape != (targets,) or not own.any():
        raise InputError(f"allowed must name at least one of the {targets} targets, by True.")
    return own


def check_choice(index: int, allowed: NDArray[np.bool_] | None) -> int:
    """Refuse a journaled choice that is not among those that are allowed now."""
    if allowed is not None and not allowed[index]:
        raise InputError(
            "this run can't be resumed: it chose something that it would not be offered now. What "
            "was charged stays in the ledger. Use the same version of sfumato, or start anew with "
            "--no-resume, which is charged again."
        )
    return index


def check_merged(merged: Coarse | None, schema: Schema, targets: Sequence[Target]) -> None:
    """Refuse a coarser view of another schema, and ranges, which are of single codes."""
    if merged is None:
        return
    if type(merged) is not Coarse or merged.fine is not schema:
        raise InputError("merged must be a view of this table's schema.")
    if any(isinstance(target, Range) for target in targets):
        raise InputError("ranges can't be asked of merged codes.")


def check_kinds(targets: Sequence[Target]) -> None:
    """Refuse what is neither a marginal nor a range: a text would be read letter by letter."""
    for target in targets:
        if type(target) not in (tuple, Range):  # a subclass could be read in two ways
            raise InputError(
                f"a target is a tuple of names of columns or a Range, got {target!r:.60}."
            )


def check_row_by_row(table: Table | Ratings, protect: Protection) -> None:
    """Answers row by row show how many rows there are: only a row that is replaced is protected.

    Under add-remove the number of answers would tell the number of rows. Ratings are refused: they
    stand by person and item, and a row without a rating is none, so one row that is replaced can
    move all others and change their number.
    """
    if isinstance(table, Ratings):
        raise InputError(
            "ratings do not answer row by row: a row without a rating is none, so their number is "
            "not public. Open them as a table, with open_table."
        )
    if not isinstance(protect, OneRow) or protect.neighbors != "replace":
        raise InputError(
            "one answer for each row shows how many rows there are, so it protects one row that "
            "is replaced: use OneRow(neighbors='replace')."
        )


def check_counted(table: Table | Ratings, protect: Protection) -> None:
    """Refuse counts of ratings of which one row is replaced: that may move two of them alike.

    An item that a person rated twice does not count. If one of both rows becomes a rating of
    another item, two ratings appear: more than the sensitivity of one replaced row allows for.
    """
    if (
        isinstance(table, Ratings)
        and isinstance(protect, OneRow)
        and protect.neighbors == "replace"
    ):
        raise InputError(
            "ratings of which one row is replaced are not counted as a table is: a row may add "
            "two ratings, as an item that was rated twice does not count. Use item_sums and gram, "
            "or neighbors='add-remove'."
        )


def named(protect: Protection, table: Table | Ratings) -> Protection:
    """The same protection with the person's column named, which ratings know."""
    if isinstance(protect, OneRow) or protect.column is not None:
        return protect
    if not isinstance(table, Ratings):
        raise InputError("protecting a person needs the column that names the person")
    return replace(protect, column=table.person)


def bounded(table: Table | Ratings, protect: Protection) -> Table | Ratings:
    """The table with at most as many rows of each person as are protected."""
    if isinstance(protect, OneRow) or protect.column is None:
        if table.max_rows is not None:
            raise InputError(
                "the rows were bounded by person already: one row more can push another one out, "
                "so a single row is not what changes. Protect one person, or open the table anew."
            )
        return table
    return table.bounded(protect.column, protect.max_rows)


def log_misfits(table: Table | Ratings) -> None:
    """Report to the owner of the table what did not fit, before anything is spent.

    In the log, which is the owner's, and nowhere else: the numbers are exact and never published.
    """
    for misfit in table.misfits():
        log.warning("Internal, not to be passed on: %s: %s", table.describe(), misfit)


def verb(method: Callable[Concatenate[One, P], T]) -> Callable[Concatenate[One, P], T]:
    """One at a time; an error before its charge says that nothing was spent."""
    return spending_boundary()(in_turn(method))
