"""How a release was made, from what ``release.json`` says of its method: words, trust, structure.

The file may have been edited by hand, and a page must not break by it: what can't be used is left
out, and a note on the page says so. All of it is public; nothing here looks at data.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, Literal

from sfumato.errors import InputError
from sfumato.models.model import PublishedRows
from sfumato.privacy.guarantees import LocalDP
from sfumato.release import TableRelease
from sfumato.report.view import BudgetView, StructureView

_COUNTED: Final = {
    "histogram": "Every combination of values was counted at once, and every count got noise. "
    "Counts that fell below zero were cut, and the rest fitted to the total.",
    "independent": "Every column was counted by itself, and every count got noise. Rows were drawn "
    "column by column, so the table says nothing of how columns go together.",
    "mwem": "The method starts from a table that knows nothing. In each round it looked, with "
    "noise, for the question that this table answers worst, measured the answer, with noise, and "
    "bent the table towards it.",
    "mst": "Every column was counted, with noise. Then the method looked, with noise, for the "
    "pairs of columns that go together most, enough of them to join all columns, counted these "
    "pairs, with noise, and fitted one model to all counts.",
    "cliquetree": "Every column was counted, with noise. Then the method scored all sets of "
    "columns, with noise, by what counting them would add to the model, counted those worth their "
    "noise, and fitted one model to all counts.",
    "aim": "In each round the method looked, with noise, for the set of columns that its model "
    "knows worst, counted it, with noise, and fitted the model again to all counts so far.",
    "privbayes": "The method chose, with noise, for each column a few others that help to predict "
    "it, and counted each such group, with noise. Rows are drawn column by column along these "
    "predictions.",
    "dp2pub": "The values of each row were replaced by others at random, with known chances that "
    "depend on nothing else. How often each value and pair really occurs was then estimated from "
    "these chances.",
    "survey": "Every person's device drew one column and answered about it, with a value that it "
    "replaced by others at random, with known chances. How often each value really occurs was then "
    "estimated from these chances. Rows were drawn column by column.",
}
_BY_DEVICES: Final = (
    "Every person's device drew one question, or answered about every column, and replaced its "
    "answers by others at random, with known chances. The answers of a first round decided the "
    "questions of the second. A model was fitted to the answers, and the rows were drawn from it."
)


def method_words(method: Mapping[str, Any]) -> str:
    """One paragraph on a method; nothing of one that is not known here.

    >>> method_words({"name": "histogram"}).partition(",")[0]
    'Every combination of values was counted at once'
    """
    name = method.get("name")
    if name == "dp2pub" and method.get("trust") == "nobody":
        return _BY_DEVICES
    return _COUNTED.get(name, "") if isinstance(name, str) else ""


Situation = Literal["devices", "rehearsal", "server", "table"]

_MADE: Final = {
    "redrawn": "They are {what}, drawn anew so that their frequencies fit",
    "answers": "They are {what} as they came, as drawing them anew would have made them worse",
    "model": "They were drawn from a model, and the model was fitted to {what}",
}
_WHO: Final = {
    "devices": "People's devices randomized the answers; nothing else of the people was used.",
    "rehearsal": "The answers were drawn by one program that held the table: this is the rehearsal "
    "of a survey. Whoever ran it saw the table; the promise is about everybody who sees what was "
    "published.",
    "server": "The server held the raw records, and whoever ran it saw them; the promise is about "
    "everybody who sees what was published.",
}
_TRUST: Final = {
    "server": "the server, which held the raw records",
    "semi-honest": "a semi-honest server, which saw randomized answers only",
    "nobody": "nobody: raw records stay on the devices",
}
_REHEARSED: Final = {"semi-honest": "a semi-honest server", "nobody": "nobody"}
_VARIANT: Final = {
    "faithful": "faithful: every column gets its part of epsilon",
    "grouped": "grouped: one question for each person, with the whole epsilon",
    "single": "one round: one question about one column for each person, with the whole epsilon",
}
_ROWS_ARE: Final = {
    "redrawn": "{what}, drawn anew",
    "answers": "{what}, as they came",
    "model": "rows drawn from a model",
}
_STRUCTURE: Final = {
    "none": "independent columns",
    "tree": "a tree of pairs of columns",
    "pairs": "pairs of columns",
}


def origin(release: TableRelease) -> str:
    """Where the published rows come from, and who saw more than these."""
    head, situation = "The rows are not real rows.", _situation(release)
    if situation == "table":
        return (
            f"{head} They were drawn from a model, and the model was fitted to counts with noise; "
            "nothing else of the data was used."
        )
    made = _MADE[_published(release)].format(what=_randomized(release))
    return f"{head} {made}. {_WHO[situation]}"


def method_facts(release: TableRelease) -> list[tuple[str, str]]:
    """What a person wants to know of how a DP2-Pub release was made; of others nothing."""
    method = release.method
    if "trust" not in method:
        return []
    facts = {
        "Trusted": _trusted(release),
        "Variant": _word(_VARIANT, method.get("variant")),
        "What the rows are": _ROWS_ARE[_published(release)].format(what=_randomized(release)),
        "Dependence kept": _word(_STRUCTURE, method.get("structure")),
        "Answers": _people(method.get("answers")),
        "Second round": _round_shares(method.get("asked")),
        "Questions about pairs": _by_round(method.get("asked_about_pairs")),
    }
    return [(name, text) for name, text in facts.items() if text]


def _situation(release: TableRelease) -> Situation:
    if isinstance(release.guarantee, LocalDP):
        return "devices"
    if "trust" not in release.method and not isinstance(release.model, PublishedRows):
        return "table"
    return "server" if release.method.get("trust") == "server" else "rehearsal"


def _trusted(release: TableRelease) -> str:
    trust = release.method.get("trust")
    if _situation(release) == "rehearsal" and (server := _word(_REHEARSED, trust)):
        return f"{server}, in a rehearsal: one program held the table"
    return _word(_TRUST, trust)


def _randomized(release: TableRelease) -> str:
    """What the rows or the model come from."""
    if _situation(release) != "server":
        return "randomized answers"
    measured = _published(release) == "model"
    return "measurements with noise" if measured else "randomized values of real rows"


def _published(release: TableRelease) -> Literal["redrawn", "answers", "model"]:
    if not isinstance(release.model, PublishedRows):
        return "model"
    return "answers" if release.method.get("published") == "answers" else "redrawn"


def _word(words: dict[str, str], key: object) -> str:
    """A known word as a person reads it; a file that was edited may hold anything."""
    return words.get(key, "") if isinstance(key, str) else ""


def _people(counts: object) -> str:
    if not isinstance(counts, list | tuple) or not counts:
        return ""
    if not all(type(count) is int and count >= 0 for count in counts):
        return ""
    rounds = [f"{count:,} in round {number}" for number, count in enumerate(counts, 1)]
    return ", ".join(rounds)


def _round_shares(shares: object) -> str:
    if not isinstance(shares, dict):
        return ""
    known = [part for part in ("columns", "pairs") if _is_share(shares.get(part))]
    return ", ".join(f"{shares[part]:.0%} about {part}" for part in known)


def _by_round(shares: object) -> str:
    if not isinstance(shares, list | tuple) or not all(_is_share(share) for share in shares):
        return ""
    return ", ".join(f"{share:.0%} in round {number}" for number, share in enumerate(shares, 1))


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


_FRACTION: Final = re.compile(r"[0-9]{1,400}(/0{0,9}[1-9][0-9]{0,399})?")
_DECIMAL: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,40})?(e-?[0-9]{1,2})?")
_DIGITS_OF_A_FLOAT: Final = 15  # that a decimal number keeps in IEEE 754 double precision
_LARGEST_BUDGET: Final = 10_000  # a limit against abuse: files may be edited
_MOST_DECIMALS: Final = 12  # of a number that is written exactly; else it is a fraction


def read_structure(
    method: Mapping[str, Any], *, columns: Sequence[str], epsilon: Fraction | None
) -> tuple[StructureView | None, tuple[str, ...]]:
    """The structure in the description of a method, if any, and notes on what of it can't be used.

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
