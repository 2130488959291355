"""A scout, end to end: a column that nobody declared in, all that its three verbs return out."""

from fractions import Fraction
from typing import Final

import pyarrow as pa

from audits.end_to_end import EndToEnd, Tell, promised_within
from audits.facts import Facts, flattened
from sfumato.auditing.case import Case
from sfumato.gate.scout import Scout
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.guarantees import ApproxDP
from sfumato.privacy.sensitivity import OneRow
from sfumato.randomness import Rng, simulation_rng
from sfumato.readers.open_table import source_of
from sfumato.readers.undeclared_table import UndeclaredTable
from sfumato.schema import Category, Schema

PROTECT: Final = OneRow()
SCOUTED: Final = ApproxDP(2, "1e-2")
_TIMES: Final = 16
_FOUND: Final = (("x",) * 6, *((own, *("x",) * 6) for own in ("x", "y", "7", "")))
"""A column of texts, and with a row more: the same, another one, a number, nothing."""
_KNOWN: Final = Schema(
    columns=(Category(name="a", values=("x", "y"), missing=True),),
    dataset="audit",
)


def whole_scout(larger: Fraction) -> Case:
    """All verbs of one scout, end to end: shapes, texts and counts of a found column."""
    whole = EndToEnd(
        name="GateScoutWhole",
        claimed=SCOUTED,
        inputs=_FOUND,
        pairs=tuple((0, place) for place in range(1, len(_FOUND))),
        tell=_telling(SCOUTED),
        runs=600,
        note="shapes, texts and counts of a column of few rows, a row more or less",
    )
    spent = ApproxDP(SCOUTED.epsilon * _TIMES, SCOUTED.delta)
    return whole.case(
        {f"the budget used {_TIMES} times": _telling(spent)},
        checks=(promised_within(SCOUTED, lambda: _paid(SCOUTED)),),
        checked={"the budget used twice, by the ledger": promised_within(SCOUTED, _paid_twice)},
    )


def _paid(budget: ApproxDP, verbs: int = 3) -> ApproxDP:
    """The largest sum of costs that a scout with a budget lets verbs have."""
    cost = ApproxDP(budget.epsilon / 3, budget.delta / 3)
    ledger = Ledger.in_memory(dataset="audit")
    source = source_of(pa.table({"a": pa.array(_FOUND[0])}), ())
    scout = Scout(
        UndeclaredTable(source),
        protect=PROTECT,
        budget=budget,
        ledger=ledger,
        rng=simulation_rng(0),
    )
    for _ in range(verbs):
        scout.shapes(cost=cost)
    return ApproxDP(cost.epsilon * verbs, cost.delta * verbs)


def _paid_twice() -> ApproxDP:
    return _paid(ApproxDP(2 * SCOUTED.epsilon, 2 * SCOUTED.delta))


def _telling(budget: ApproxDP) -> Tell:
    """Three verbs, each for a third of a budget."""
    cost = ApproxDP(budget.epsilon / 3, budget.delta / 3)

    def tell(column: tuple[str, ...], rng: Rng) -> Facts:
        source = source_of(pa.table({"a": pa.array(column)}), ())
        ledger = Ledger.in_memory(dataset="audit")
        scout = Scout(
            UndeclaredTable(source), protect=PROTECT, budget=budget, ledger=ledger, rng=rng
        )
        counts = {**scout.shapes(cost=cost), "values": scout.measure(_KNOWN, cost=cost)["a"]}
        facts = dict(flattened("texts", scout.texts(["a"], cost=cost)["a"]))
        for name, seen in counts.items():
            facts |= flattened(name, seen.values.tolist())
        return facts

    return tell


CASES: Final = {"GateScoutWhole": whole_scout}
"""As ``registry.WHOLE_RUNS`` takes them."""
