"""A scout, end to end: a column that nobody declared in, all that its three verbs return out."""

from fractions import Fraction
from typing import Final

import pyarrow as pa

from audits.end_to_end import EndToEnd, Tell, promised_within
from audits.facts import Facts, flattened
from sfumato.auditing.case import Case
from sfumato.gate.scout import Scout
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.composition import Totals
from sfumato.privacy.guarantees import MAX_EPSILON, ApproxDP, ApproxZCDP, zcdp_budget
from sfumato.privacy.sensitivity import OneRow
from sfumato.randomness import Rng
from sfumato.readers.open_table import source_of
from sfumato.readers.undeclared_table import UndeclaredTable

PROTECT: Final = OneRow()
SCOUTED: Final = ApproxDP(2, "1e-2")
_TIMES: Final = 16
_FOUND: Final = (("x",) * 6, *((own, *("x",) * 6) for own in ("x", "y", "7", "")))
"""A column of texts, and with a row more: the same, another one, a number, nothing."""


def whole_scout(larger: Fraction) -> Case:
    """All verbs of one scout, end to end: the number of rows, shapes and texts of a column."""
    whole = EndToEnd(
        name="GateScoutWhole",
        claimed=SCOUTED,
        inputs=_FOUND,
        pairs=tuple((0, place) for place in range(1, len(_FOUND))),
        tell=_telling(SCOUTED),
        runs=600,
        note="the number of rows, shapes and texts of a column of few rows, a row more or less",
    )
    spent = ApproxDP(SCOUTED.epsilon * _TIMES, SCOUTED.delta)
    return whole.case(
        {f"the budget used {_TIMES} times": _telling(spent)},
        checks=(promised_within(SCOUTED, lambda: _paid(SCOUTED)),),
        checked={
            "the budget used twice, by the ledger": promised_within(SCOUTED, lambda: _paid(_TWICE)),
            "the larger of the deltas of conversion and texts": promised_within(
                SCOUTED, lambda: _paid(SCOUTED, texts=SCOUTED.delta)
            ),
        },
    )


_TWICE: Final = ApproxDP(2 * SCOUTED.epsilon, SCOUTED.delta)


_Costs = tuple[ApproxDP, ApproxZCDP, ApproxZCDP]
"""Of the number of rows, shapes and texts."""


def _costs(whole: ApproxDP, texts: Fraction | None = None) -> _Costs:
    """A third of rho each, or less; half of delta for texts, if not said otherwise."""
    half = whole.delta / 2
    rho = zcdp_budget(ApproxDP(whole.epsilon, half)).rho
    tiny = half / 100
    rows = ApproxDP(whole.epsilon / 10, tiny)
    rest = (rho - Totals().plus(rows).rho) / 2
    texts = half - 2 * tiny if texts is None else texts
    return rows, ApproxZCDP(rest, tiny), ApproxZCDP(rest, texts)


def _paid(whole: ApproxDP, texts: Fraction | None = None) -> ApproxDP:
    """What the ledger says that all verbs of a scout cost, at the claim's delta."""
    ledger = Ledger.in_memory(dataset="audit")
    for cost in _costs(whole, texts):
        ledger.spend(cost, label="scout", protect=PROTECT)
    epsilon = ledger.spent.epsilon(SCOUTED.delta)
    return ApproxDP(MAX_EPSILON if epsilon is None else epsilon, SCOUTED.delta)


def _asked(table: UndeclaredTable, costs: _Costs, rng: Rng) -> Facts:
    ledger = Ledger.in_memory(dataset="audit")
    scout = Scout(table, protect=PROTECT, costs=costs, ledger=ledger, rng=rng)
    rows, shapes, texts = costs
    facts = dict(flattened("rows", [scout.rows(cost=rows)]))
    for name, seen in scout.shapes(cost=shapes).items():
        facts |= flattened(name, seen.values.tolist())
    return facts | dict(flattened("texts", scout.texts(["a"], cost=texts)["a"]))


def _telling(whole: ApproxDP) -> Tell:
    """Three verbs, together for a budget."""
    costs = _costs(whole)

    def tell(column: tuple[str, ...], rng: Rng) -> Facts:
        source = source_of(pa.table({"a": pa.array(column)}), ())
        return _asked(UndeclaredTable(source), costs, rng)

    return tell


CASES: Final = {"GateScoutWhole": whole_scout}
"""As ``registry.WHOLE_RUNS`` takes them."""
