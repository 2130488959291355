"""How the columns hang together: a view from what ``release.json`` says of the method.

The file may have been edited by hand, and a page must not break by it: what can't be used is left
out, and a note on the page says so. All of it is public; nothing here looks at data.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.report.view import BudgetView, StructureView

_FRACTION: Final = re.compile(r"[0-9]{1,400}(/0{0,9}[1-9][0-9]{0,399})?")
_DECIMAL: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,40})?(e-?[0-9]{1,2})?")
_DIGITS_OF_A_FLOAT: Final = 15
_LARGEST_BUDGET: Final = 10_000
_MOST_DECIMALS: Final = 12


def read_structure(
    method: Mapping[str, Any], *, columns: Sequence[str], epsilon: Fraction | None
) -> tuple[StructureView | None, tuple[str, ...]]:
    """The structure that a method tells of, if any, and notes on what of it can't be used.

    Args:
        method: Of a release: ``network``, ``ties``, ``clusters``, ``shares``, ``budgets`` and
            ``rounds`` are read where they are lists or objects.
        columns: Of the schema.
        epsilon: What the release promises, where that is an epsilon.
    """
    empty = StructureView(columns=tuple(columns), epsilon=epsilon)
    view, notes = empty, []
    for key, read in _PARTS.items():
        given = method.get(key)
        if given and isinstance(given, dict | list | tuple):  # a number is an option of a method
            try:
                view = read(view, given)
            except InputError as error:
                reason = str(error).removesuffix(".")
                notes.append(f"What release.json says of {key!r} is left out: {reason}.")
    return (None if view == empty else view), tuple(notes)


def sum_sentence(view: StructureView) -> str:
    """What the budgets of all columns are together, exactly, beside what is promised."""
    if any(budget.rounded for budget in view.budgets):
        about = f"{float(view.total):.6g}"
        return f"The budgets sum to about {about}: some are written with the digits of a float."
    exact = exact_text(view.total)
    if len(view.budgets) > 1:
        parts = [f"{budget.label} {exact_text(budget.total)}" for budget in view.budgets]
        sums = f"Summed over the columns: {', '.join(parts)}; together {exact} exactly"
    else:
        sums = f"The budgets of all columns sum to {exact} exactly"
    if view.epsilon is None:
        return f"{sums}."
    if view.total == view.epsilon:
        return f"{sums}: the whole epsilon of this release."
    promised = exact_text(view.epsilon)
    if view.total < view.epsilon:
        return f"{sums}, of an epsilon of {promised}; the ledger below says what took the rest."
    return f"{sums}. The promise to each person is another number, an epsilon of {promised}."


def exact_text(number: Fraction) -> str:
    """A decimal number where a short one is exact, else a fraction, and never a rounded number.

    >>> exact_text(Fraction(9, 20)), exact_text(Fraction(1)), exact_text(Fraction(1, 3))
    ('0.45', '1', '1/3')
    """
    scaled = number * 10**_MOST_DECIMALS
    if scaled.denominator == 1:
        whole, rest = divmod(scaled.numerator, 10**_MOST_DECIMALS)
        return f"{whole}.{rest:0{_MOST_DECIMALS}d}".rstrip("0").rstrip(".")
    return str(number)


def _network(view: StructureView, given: Any) -> StructureView:
    """``{child: [parents, ...]}``; a column without an entry has none."""
    parents = {child: tuple(_names(names)) for child, names in _object(given).items()}
    if unknown := parents.keys() - set(view.columns):
        raise InputError(f"{min(unknown)!r:.60} is not one of the columns")
    return replace(view, parents=tuple(parents.get(name, ()) for name in view.columns))


def _ties(view: StructureView, given: Any) -> StructureView:
    """``[[one, other, strength], ...]``, the strongest first."""
    ties = []
    for tie in _list(given):
        if len(_list(tie)) != 3:
            raise InputError("a tie is two columns and a strength")
        one, other = _names(tie[:2])
        ties.append((one, other, _number(tie[2])))
    return replace(view, ties=tuple(sorted(ties, key=lambda tie: -tie[2])))


def _clusters(view: StructureView, given: Any) -> StructureView:
    """``[[names, ...], ...]``."""
    return replace(view, clusters=tuple(tuple(_names(names)) for names in _list(given)))


def _shares(view: StructureView, given: Any) -> StructureView:
    """``[share, ...]`` of the clusters, numbers or fractions as text, where there are clusters."""
    if not view.clusters:
        return view
    each = _list(given)
    shares = tuple(float(_fraction(n)) if isinstance(n, str) else _number(n) for n in each)
    if not all(0 <= share <= 1 for share in shares):
        raise InputError("a share is between 0 and 1")
    return replace(view, shares=shares)


def _budgets(view: StructureView, given: Any) -> StructureView:
    """``{column: "1/16", ...}``."""
    return replace(view, budgets=(_budget(view, "budget", given),))


def _rounds(view: StructureView, given: Any) -> StructureView:
    """``[{"label": "round 1", "budgets": {column: "1/16", ...}}, ...]``."""
    rounds = [_object(each) for each in _list(given)]
    labels = [str(each.get("label", f"round {at}"))[:40] for at, each in enumerate(rounds, 1)]
    if len(set(labels)) < len(labels):
        raise InputError("the labels of rounds must be different")
    pairs = zip(labels, rounds, strict=True)
    budgets = tuple(_budget(view, label, each.get("budgets")) for label, each in pairs)
    return replace(view, budgets=budgets)


def _budget(view: StructureView, label: str, given: Any) -> BudgetView:
    each = {name: _fraction(text) for name, text in _object(given).items()}
    if unknown := each.keys() - set(view.columns):
        raise InputError(f"{min(unknown)!r:.60} is not one of the columns")
    return BudgetView(
        label=label,
        epsilons=tuple(each.get(name, Fraction(0)) for name in view.columns),
        rounded=any(_is_rounded(text) for text in given.values()),
    )


_PARTS: Final = {
    "network": _network,
    "ties": _ties,
    "clusters": _clusters,
    "shares": _shares,
    "budgets": _budgets,
    "rounds": _rounds,
}


def _object(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise InputError("an object is expected")
    return given


def _list(given: Any) -> Sequence[Any]:
    if not isinstance(given, list | tuple):
        raise InputError("a list is expected")
    return given


def _names(given: Any) -> list[str]:
    names = list(_list(given))
    if not all(isinstance(name, str) for name in names):
        raise InputError("names of columns are expected")
    return names


def _number(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not abs(given) < 1e100:
        raise InputError("a finite number is expected")
    return float(given)


def _fraction(given: Any) -> Fraction:
    text = str(given) if type(given) is int and abs(given) <= _LARGEST_BUDGET else given
    if not isinstance(text, str) or not (_FRACTION.fullmatch(text) or _DECIMAL.fullmatch(text)):
        raise InputError("a budget is a fraction like '1/16', as text")
    if Fraction(text) > _LARGEST_BUDGET:
        raise InputError(f"a budget is at most {_LARGEST_BUDGET:,}")
    return Fraction(text)


def _is_rounded(given: Any) -> bool:
    """Whether a text is a decimal number of as many digits as a float has."""
    mantissa = str(given).lower().split("e")[0]
    return "." in mantissa and sum(map(str.isdigit, mantissa)) >= _DIGITS_OF_A_FLOAT
