"""A promise as numbers that a reader can check, and the account of what was paid for it.

What a guesser gains, what a feared event gains; from the part of a ledger that a release carries,
what each step cost and what they cost together.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple, Self

from sfumato import check
from sfumato.errors import InputError, SfumatoError
from sfumato.privacy.composition import BEYOND, Totals, composed
from sfumato.privacy.guarantees import (
    ZCDP,
    ApproxDP,
    Guarantee,
    LocalDP,
    as_epsilon_delta,
    epsilon_from_zcdp,
    from_json,
    price_from_json,
    zcdp_budget,
)
from sfumato.report.view import Account, ChanceTable, Formula, LedgerRow, SurveyAccount

Unit = Literal["row", "person", "answer", "rating"]

STRONG_UP_TO: Final = 3.0
"""A promise is strong if right guesses are at most 3 to 1 and no chance more than triples."""
WEAK_FROM: Final = 19.0
"""It is weak if right guesses may be 19 to 1, or a chance may become 19 times as large."""
CHANCES: Final = (0.001, 0.01, 0.1, 0.5)
"""Of events, in the table of chances."""
TWO: Final = "The first odds above are about whether; the second, weaker ones about what."
_HAIR: Final = 1 + 1e-9  # a factor above the rounding of floats: bounds stay bounds
_DELTAS: Final = (
    *(Fraction(1, 10**k) for k in range(1, 16)),
    *(Fraction(k, 100) for k in range(1, 60, 4)),
)
"""Where the curve of a rho is read; every point of it gives a valid bound."""
_ORDERS: Final = tuple(1 + 10 ** (step / 20) for step in range(-40, 81))
"""Of Renyi divergences that are tried, from 1.01 to 10,001; each gives a valid bound."""
_DEFINITION: Final = "epsilon and delta"

_KNOWS: Final[dict[Unit, str]] = {
    "row": "Suppose a reader knows every other row of the table and gives even odds to",
    "rating": "Suppose a reader knows every other rating and gives even odds to",
    "person": "Suppose a reader knows everybody else's data and gives even odds to",
    "answer": "Suppose a reader gives even odds to two possible truths about you and then sees "
    "the very answer that left your device. After that",
}
_REPLACED: Final[dict[Unit, str]] = {
    "row": "two possibilities about yours. After this release",
    "rating": "two possibilities about one of yours. After this release",
    "person": "two possibilities about yours. After this release",
}
_PRESENT: Final[dict[Unit, str]] = {
    "row": "yours being in it or not. After this release",
    "rating": "one of yours being there or not. After this release",
    "person": "yours being there or not. After this release",
}
_CONTENT: Final[dict[Unit, str]] = {
    "row": "If it is known that your row is there, and the even odds are on two possibilities of "
    "what it says,",
    "rating": "If it is known that the rating is there, and the even odds are on two "
    "possibilities of what it says,",
    "person": "If it is known that your data are there, and the even odds are on two "
    "possibilities of what they say,",
}
_CERTAIN: Final = "one may look all but certain: {} promises little"
_RIGHT: Final = "the reader picks the right one at most"
_MINE: Final[dict[Unit, str]] = {
    "row": "your row", "rating": "that rating", "person": "your data",
}  # fmt: skip


class Bound(NamedTuple):
    """The largest that a probability can be, from which inequality, and as a formula to redo."""

    value: float
    how: str
    formula: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Concentrated:
    """What is known of a release beyond its (epsilon, delta): all its steps were rho-zCDP.

    Zero-concentrated privacy bounds every Renyi divergence, D_a(P || Q) <= a rho for all a > 1 and
    both ways round, so the Kullback-Leibler divergence by rho. From that follow, for outputs P and
    Q of neighbors, their total variation TV and any event with probability q under Q:

    * TV <= sqrt(rho / 2) (Pinsker), TV <= sqrt(1 - e^-rho) (Bretagnolle, Huber 1979);
    * TV <= (e^eps - 1 + 2 delta) / (e^eps + 1) for every (eps, delta) that rho converts to
      (Canonne, Kamath, Steinke 2020, arXiv 2004.00010, corollary 13);
    * P(event) <= (q e^(a rho))^((a - 1) / a) for every a > 1 (Hoelder's inequality), the same of
      the contrary event with P and Q exchanged, and P(event) <= q + TV.

    A reader who starts at even odds is right with probability (1 + TV) / 2 at most. Where the
    steps were delta-approximate rho-zCDP, such as texts above a threshold, P and Q are as above
    but for events of probability delta: TV grows by delta at most. The exact TV of Gaussian noise
    is smaller still: up to rho = 1 these bounds are at most 1.4 times as large. It is not used, as
    selections and other steps are not Gaussian.
    """

    rho: float
    delta: float = 0.0
    """Of approximate steps, such as texts above a threshold."""
    changes: int = 1
    """How many changes one after another; without a delta, rho says it."""

    def guesses(self) -> Bound:
        """The largest share of right guesses.

        >>> bound = Concentrated(rho=0.02).guesses()
        >>> round(bound.value, 3), bound.how, bound.formula
        (0.55, "Pinsker's inequality", '(1 + sqrt(0.02 / 2)) / 2')
        """
        distance = self._distance()
        value = min(1.0, (1 + distance.value) / 2)
        return Bound(value, distance.how, f"(1 + {distance.formula}) / 2")

    def largest_chance(self, without: float) -> Bound:
        """The chance of any event with somebody's data, if it is ``without`` their data so large.

        >>> round(Concentrated(rho=0.02).largest_chance(0.01).value, 4)
        0.018
        """
        distance = self._distance()
        added = f"{without:g} + {distance.formula}"
        bounds = [Bound(min(1.0, without + distance.value), distance.how, added)]
        if not self.delta:
            bounds += [bound for order in _ORDERS for bound in self._of_order(order, without)]
        return min(bounds)

    def of_two(self) -> Self:
        """The same for two changes one after another.

        Group privacy: rho grows by their square; with a delta, total variations add up.
        """
        if self.delta:
            return replace(self, changes=2 * self.changes)
        return replace(self, rho=4 * self.rho)

    def named(self, changes: int) -> str:
        """What ``rho`` is called on a page: where it grew by group privacy, four times rho.

        >>> Concentrated(rho=0.02).of_two().named(2), Concentrated(rho=0.02, delta=1e-9).named(2)
        ('4 rho', 'twice the distance of rho')
        """
        if changes == 1:
            return "rho"
        return "twice the distance of rho" if self.delta else "4 rho"

    def _of_order(self, order: float, without: float) -> tuple[Bound, Bound]:
        """Hoelder's inequality for an event, and for its contrary."""
        a, rho, q = f"{order:.12g}", f"{self.rho:.12g}", f"{without:g}"
        log = (1 - 1 / order) * (math.log(without) + order * self.rho)
        left = order / (order - 1) * math.log1p(-without) - order * self.rho if without < 1 else 0.0
        return (
            Bound(
                math.exp(min(0.0, log)) * _HAIR,
                "Hoelder's inequality",
                f"({q} * e^({a} * {rho}))^(1 - 1 / {a})",
            ),
            Bound(
                1 - math.exp(left) / _HAIR if without < 1 else 1.0,
                "Hoelder's inequality of the contrary",
                f"1 - (1 - {q})^({a} / ({a} - 1)) * e^(-{a} * {rho})",
            ),
        )

    def _distance(self) -> Bound:
        """A bound of the total variation, a hair above what floats say."""
        rho, text = Fraction(self.rho), f"{self.rho:.12g}"
        points = ((float(epsilon_from_zcdp(rho, delta)), float(delta)) for delta in _DELTAS)
        epsilon, delta = min(points, key=lambda point: _distance_of(*point))
        best = min(
            Bound(math.sqrt(self.rho / 2), "Pinsker's inequality", f"sqrt({text} / 2)"),
            Bound(
                math.sqrt(-math.expm1(-self.rho)),
                "Bretagnolle and Huber's inequality",
                f"sqrt(1 - e^(-{text}))",
            ),
            Bound(
                _distance_of(epsilon, delta),
                "conversion to epsilon and delta",
                _distance_formula(epsilon, delta),
            ),
        )
        value, formula = best.value, best.formula
        if self.delta:
            value = self.changes * (value + self.delta)
            formula = f"{self.changes} * ({formula} + {self.delta:.12g})"
        return Bound(value * (1 + 1e-12), best.how, formula)


def _distance_of(epsilon: float, delta: float) -> float:
    """The largest total variation under (epsilon, delta)-DP."""
    rest = math.exp(-epsilon)
    return min(1.0, (1 - rest + 2 * delta * rest) / (1 + rest))


def _distance_formula(epsilon: float, delta: float) -> str:
    grown = f"e^{epsilon:.12g}"
    return f"({grown} - 1 + 2 * {delta:.12g}) / ({grown} + 1)"


def _of_two(epsilon: float, delta: float) -> tuple[float, float]:
    """Group privacy: what (epsilon, delta) promises of two changes one after another."""
    return 2 * epsilon, min(1.0, (1 + math.exp(min(epsilon, 700.0))) * delta)


def right_guesses(epsilon: float, delta: float) -> Bound:
    """The largest share of right guesses between two equally likely possibilities.

    Under epsilon-DP a belief that starts at 50% ends at most at e^epsilon / (1 + e^epsilon), by
    Bayes' rule. Under (epsilon, delta)-DP single beliefs have no bound, but the share of right
    guesses has: (e^epsilon + delta) / (1 + e^epsilon), from the two inequalities on the errors of
    any test (Wasserman, Zhou 2010, arXiv 0811.2501, theorem 2.4; Kairouz, Oh, Viswanath 2015,
    arXiv 1311.0776). Both are tight.
    """
    rest = math.exp(-epsilon)
    grown, loss = f"e^{epsilon:.12g}", f" + {delta:.12g}" if delta else ""
    formula = f"({grown}{loss}) / (1 + {grown})"
    return Bound((1 + delta * rest) / (1 + rest), _DEFINITION, formula)


def largest_chance(without: float, epsilon: float, delta: float) -> Bound:
    """The chance of any event with somebody's data, if it is ``without`` their data this large.

    min(e^epsilon q + delta, 1 - e^-epsilon (1 - q - delta)), the definition applied to the event
    and to its contrary; tight. Whatever is decided in view of a release is such an event. One at
    50% may gain more than a guess at even odds: who guesses by an event of chance p with the data
    and q without is right with probability (p + 1 - q) / 2.

    >>> round(largest_chance(0.01, 1.0, 0).value, 4), round(largest_chance(0.5, 1.0, 0).value, 3)
    (0.0272, 0.816)
    """
    loss, text = f" + {delta:.12g}" if delta else "", f"{epsilon:.12g}"
    left = f" - {delta:.12g}" if delta else ""
    q = f"{without:g}"
    grown = math.exp(min(epsilon, 700.0)) * without + delta  # e^700 is the end of a float
    rest = 1 - math.exp(-epsilon) * (1 - without - delta)
    return min(
        Bound(min(1.0, grown), _DEFINITION, f"e^{text} * {q}{loss}"),
        Bound(min(1.0, rest), _DEFINITION, f"1 - e^(-{text}) * (1 - {q}{left})"),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Loss:
    """What one change of the data may lose: bounds, the tightest that is known for each."""

    epsilon: float
    delta: float
    known: Concentrated | None
    changes: Literal[1, 2] = 1  # of the data, one after another

    def of_two(self) -> Self:
        epsilon, delta = _of_two(self.epsilon, self.delta)
        known = None if self.known is None else self.known.of_two()
        return replace(self, epsilon=epsilon, delta=delta, known=known, changes=2)

    @property
    def general(self) -> Bound:
        return right_guesses(self.epsilon, self.delta)

    @property
    def guesses(self) -> Bound:
        return self.general if self.known is None else min(self.general, self.known.guesses())

    def chance(self, without: float) -> Bound:
        general = largest_chance(without, self.epsilon, self.delta)
        return general if self.known is None else min(general, self.known.largest_chance(without))

    @property
    def word(self) -> str:
        """By right guesses as odds, and by how much a chance may grow, whichever is worse."""
        share = min(self.guesses.value, 1 - 1e-12)
        worst = max(share / (1 - share), *(self.chance(q).value / q for q in CHANCES))
        if worst <= STRONG_UP_TO * (1 + 1e-6):
            return "strong"
        return "moderate" if worst < WEAK_FROM else "weak"

    def end(self) -> str:
        """The bet's outcome by epsilon and delta alone."""
        twice = self.changes == 2
        named = f"{'2 ' if twice else ''}epsilon = {self.epsilon:g}"
        share = self.general.value
        if _tenths(share) > 99.9:
            return _CERTAIN.format(named)
        if not self.delta:
            return f"neither can look likelier than {_odds(share)} ({named})"
        loss = "(1 + e^epsilon) delta" if twice else "delta"
        return f"{_RIGHT} {_odds(share, ' of the time')} ({named}, {loss} = {self.delta:.3g})"

    def tightest(self) -> str:
        """The bet's outcome by the tightest figure that is known."""
        best = self.guesses
        if self.known is None or best.how == _DEFINITION:
            return self.end()
        named = f"{self.known.named(self.changes)} = {self.known.rho:.3g}"
        if _tenths(best.value) > 99.9:
            return _CERTAIN.format(named)
        return f"{_RIGHT} {_odds(best.value, ' of the time')} ({named}, by {best.how})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """What a page says of a promise. The reader knows all the rest of the data.

    What a whole population has in common may be learned, and is no breach. Where data are added
    or removed the guarantee is about whether they are there. What they say, if it is known that
    they are, is two changes away, one removed and one added: group privacy bounds it by 2 epsilon
    and (1 + e^epsilon) delta, or by 4 rho, and it stands beside the first.
    """

    epsilon: float
    delta: float | None = None
    unit: Unit = "row"
    replaced: bool = False
    """Whether data are replaced by others, instead of added or removed; so of every answer."""
    known: Concentrated | None = None
    """What is known of the noise beyond epsilon and delta; the smaller bound is shown."""

    def __post_init__(self) -> None:
        check.one_of(_KNOWS, unit=self.unit)
        check.positive(epsilon=self.epsilon)
        if self.delta is not None and not 0 <= self.delta < 1:
            raise InputError(f"delta must be at least 0 and below 1, got {self.delta!r}")

    @property
    def _losses(self) -> tuple[_Loss, ...]:
        loss = _Loss(epsilon=self.epsilon, delta=self.delta or 0.0, known=self.known)
        return (loss,) if self.replaced or self.unit == "answer" else (loss, loss.of_two())

    def odds(self) -> str:
        """The promise as a bet that a reader can check, percentages rounded up.

        >>> Promise(epsilon=1.0, replaced=True).odds().split("release ")[1]
        'neither can look likelier than 73.2%, odds of 73.2 to 26.8 (epsilon = 1).'
        """
        loss, *second = self._losses
        bet = _KNOWS[self.unit]
        if self.unit != "answer":
            bet += f" {(_PRESENT if second else _REPLACED)[self.unit]}"
        sentences = [f"{bet} {loss.tightest()}."]
        if loss.guesses.how != _DEFINITION:
            sentences.append(f"Epsilon and delta alone would say less: {loss.end()}.")
        sentences += [f"{_CONTENT[self.unit]} {two.tightest()}." for two in second]
        return " ".join(sentences)

    def strength(self) -> str:
        """What that many right guesses are worth, plainly: a coin is right half of the time.

        >>> Promise(epsilon=5.0, replaced=True).strength()
        'A coin is right 50 times in 100, such a reader nearly always. This is a weak promise.'
        """
        loss, *second = self._losses
        sentences = [
            f"A coin is right 50 times in 100, such a reader {_times(loss.guesses.value)}.",
            f"This is a {loss.word} promise.",
        ]
        for two in second:
            says = f"what {_MINE[self.unit]} {'say' if self.unit == 'person' else 'says'}"
            sentences.append(f"About {says}, {_times(two.guesses.value)}: a {two.word} promise.")
        return " ".join(sentences)

    def chances(self) -> ChanceTable:
        """How much likelier the data of one can make what somebody fears."""
        heads: tuple[str, ...]
        if self.unit == "answer":
            heads = ("Chance if your truth were another", "With your truth at most")
        elif self.replaced:
            mine = _MINE[self.unit]
            content = "they say" if self.unit == "person" else "it says"
            heads = (f"Chance with something else in {mine}", f"With what {content} at most")
        else:
            mine = f"With {_MINE[self.unit]} instead of"
            heads = ("Chance otherwise", f"{mine} none at most", f"{mine} another at most")
            if self.unit == "person":
                heads = (*heads[:2], f"{mine} another person's at most")
        rows = (
            (_percent(q), *(_percent(loss.chance(q).value) for loss in self._losses))
            for q in CHANCES
        )
        return ChanceTable(heads=heads, rows=tuple(rows))

    def formulas(self) -> tuple[Formula, ...]:
        """Where each figure of the sentence and of the table comes from."""
        formulas = []
        for loss in self._losses:
            bounds = [loss.guesses] if loss.changes == 2 else [loss.guesses, loss.general]
            what = "right guesses" if loss.changes == 1 else "right guesses of the content"
            for bound in dict.fromkeys(bounds):
                percent = _tenths(bound.value)
                figure = f"{percent:g}%" if percent <= 99.9 else "over 99.9%"
                formulas.append(_formula(bound, figure, what))
        for loss, head in zip(self._losses, self.chances().heads[1:], strict=True):
            for q in CHANCES:
                bound, what = loss.chance(q), f"{head}, from {_percent(q)}"
                formulas.append(_formula(bound, _percent(bound.value), what))
        return tuple(formulas)


def _formula(bound: Bound, figure: str, what: str) -> Formula:
    return Formula(figure=figure, what=what, how=bound.how, formula=bound.formula)


def _tenths(share: float) -> float:
    """A share in percent, rounded up to one digit."""
    return math.ceil(1000 * share) / 10


def _odds(share: float, of_what: str = "") -> str:
    percent = _tenths(share)
    return f"{percent:g}%{of_what}, odds of {percent:g} to {100 - percent:.3g}"


def _times(share: float) -> str:
    times = math.ceil(100 * share)
    return f"up to {times} times" if times < 100 else "nearly always"


def _percent(chance: float) -> str:
    """Rounded up to three digits; what rounds to all is written as nearly all.

    >>> _percent(0.0271829), _percent(0.99999), _percent(0.001)
    ('2.72%', 'over 99.9%', '0.1%')
    """
    percent = 100 * chance
    if percent > 99.9:
        return "over 99.9%"
    digits = 2 - math.floor(math.log10(percent))
    scaled = math.ceil(percent * 10**digits - 1e-9) / 10**digits
    return f"{scaled:.3g}%"


_DELTA_OF_ZCDP: Final = Fraction(1, 10**9)
"""At which a promise in zCDP is given as an epsilon."""


def account(ledger: Mapping[str, Any], guarantee: Guarantee) -> Account:
    """The account of a release, totals at the delta that it promises."""
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else None
    head = ledger["head"]
    return Account(
        rows=_rows(ledger["entries"], delta),
        head=f"{head['seq']}:{head['hash']}",
        spent=BEYOND if "spent_beyond" in ledger else _promise(ledger.get("spent")),
        cap=_promise(ledger.get("cap")),
    )


def made_on(ledger: Mapping[str, Any]) -> str:
    """The day of a release: that on which its ledger was opened, never one after a look.

    A release that names none, of an older version or of a survey, is of today.
    """
    return str(ledger.get("day") or datetime.now(UTC).date().isoformat())


def survey_account(
    method: Mapping[str, Any], ledger: Mapping[str, Any], guarantee: Guarantee
) -> SurveyAccount | None:
    """The account of a survey of devices, which keep their own; None for any other release."""
    if "survey" not in method or ledger["entries"] or not isinstance(guarantee, LocalDP):
        return None
    epsilon, answers = guarantee.epsilon, method.get("answers", ())
    variant = method.get("variant")
    own = epsilon / 2 if variant == "faithful" else epsilon
    up_to = "up to " if variant == "faithful" else ""
    words = {
        "faithful": f"Everybody answers in both rounds, with epsilon {epsilon} for both together.",
        "grouped": f"Everybody answers in one of the two rounds, with all of epsilon {epsilon}.",
    }.get(str(variant), f"Everybody answers once, with all of epsilon {epsilon}.")
    rows = enumerate(answers, start=1)
    rounds = tuple((str(number), f"{count:,}", f"{up_to}{own}") for number, count in rows)
    return SurveyAccount(rounds=rounds, words=words)


def epsilon_delta(guarantee: Guarantee) -> tuple[float, float | None]:
    """The numbers of a promise for sentences: its epsilon, and its delta if it has one.

    A promise in zCDP is given at a delta of 1e-9.
    """
    promise = (
        as_epsilon_delta(guarantee, _DELTA_OF_ZCDP) if isinstance(guarantee, ZCDP) else guarantee
    )
    delta = float(promise.delta) if isinstance(promise, ApproxDP) else None
    return float(promise.epsilon), delta


def promise_of(
    ledger: Mapping[str, Any], guarantee: Guarantee, *, unit: Unit, replaced: bool
) -> Promise:
    """What a page says of the promise of a release: the odds, their strength, the chances."""
    epsilon, delta = epsilon_delta(guarantee)
    known = concentrated(ledger, guarantee)
    return Promise(epsilon=epsilon, delta=delta, unit=unit, replaced=replaced, known=known)


def concentrated(ledger: Mapping[str, Any], guarantee: Guarantee) -> Concentrated | None:
    """What the noise of a release promises beyond its epsilon and delta, where that is known.

    A run with a delta that pays in rho is stopped at the rho of its budget (``zcdp_budget``), so
    it is zCDP with that rho, whatever its steps were and whenever they were chosen. Its entries
    show whether it did; their sum counts if it is more. Approximate costs, of inferring a schema,
    have a delta of their own. None where nothing was paid in rho, or an entry can't be read.
    """
    if isinstance(guarantee, ZCDP):
        return Concentrated(rho=float(guarantee.rho))
    if not isinstance(guarantee, ApproxDP):
        return None
    try:
        totals = Totals()
        for entry in ledger["entries"]:
            totals = totals.plus(price_from_json(entry["cost"]))
        if not totals.has_zcdp:
            return None
        rest = ApproxDP(guarantee.epsilon, guarantee.delta - totals.delta)
        rho = float(max(totals.rho, zcdp_budget(rest).rho))
    except (SfumatoError, KeyError, TypeError, ValueError):
        return None
    return Concentrated(rho=rho, delta=float(totals.delta))


def _rows(entries: list[Mapping[str, Any]], delta: Fraction | None) -> tuple[LedgerRow, ...]:
    rows, totals = [], Totals()
    for entry in entries:
        try:
            totals = totals.plus(price_from_json(entry["cost"]))
            together = str(composed(totals, delta) or "")
        except (InputError, ValueError):  # a file that was edited: it stands there, adds up to none
            together = ""
        rows.append(
            LedgerRow(
                seq=entry["seq"],
                label=entry["label"],
                cost=str(_known(entry["cost"])),
                hash=entry["hash"],
                total=together,
            )
        )
    return tuple(rows)


def _known(cost: Mapping[str, Any]) -> object:
    """A cost of any kind, also one of a device."""
    return from_json(cost) if cost["kind"] == LocalDP.kind else price_from_json(cost)


def _promise(value: object) -> str:
    return str(from_json(value)) if isinstance(value, Mapping) else ""
