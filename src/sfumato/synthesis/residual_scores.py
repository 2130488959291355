"""A spanning forest first, then scores of what it leaves unexplained.

Where columns are tied in a chain, independence is wrong about every pair of the chain, but the
pairs of the forest explain the others. A second vector of scores, against the model of the
forest, tells which pairs are still wrong: only these are worth their noise.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from sfumato.gate import Curator, L1Error
from sfumato.models.graphical.fit import fit_graphical
from sfumato.models.graphical.structure import Limits
from sfumato.models.graphical.tree_search import Scored, first_forest, precision_of
from sfumato.privacy.guarantees import ZCDP, Cost, portion
from sfumato.schema import Measurement
from sfumato.synthesis.independent import shares_by_cells

_FOREST: Final = Fraction(1, 4)
"""Of what is left besides the scores."""


def look_again(
    curator: Curator,
    scored: Scored,
    seen: Sequence[Measurement],
    *,
    cost: Cost,
    limits: Limits,
    limit_mb: float,
) -> tuple[Scored, list[Measurement]]:
    """Measure a spanning forest and score all targets against its model.

    Args:
        curator: The gate.
        scored: Targets with their distance from independence.
        seen: What was measured so far, public counts too.
        cost: What the scores cost.
        limits: How large the model may get.
        limit_mb: The same for the fit.

    Returns:
        The targets with their distance from the forest, which the model will hold in any case,
        and the pairs that were measured.
    """
    left = curator.left
    if not isinstance(left, ZCDP) or not isinstance(cost, ZCDP):
        return scored, []
    spare = portion(ZCDP(left.rho - cost.rho), _FOREST)
    precision = precision_of(curator.sigma_of(curator.schema.names[:1], spare))
    pairs = first_forest(scored, precision=precision, limits=limits)
    measured: list[Measurement] = []
    if pairs:
        sizes = [scored.view.schema.cells(pair) for pair in pairs]
        costs = shares_by_cells(spare, sizes)
        curator.tell(f"measuring {len(pairs):,} pairs of a tree", 0, 0)
        measured = curator.measure(pairs, costs=costs, merged=scored.view)  # MEASURE
    model = fit_graphical(  # FIT
        scored.view, [*seen, *measured], total=scored.rows, limit_mb=limit_mb
    )
    curator.tell(f"scoring {len(scored.targets):,} marginals again", 0, 0)
    answers = [one.reshape(-1) for one in model.coarse_marginals(scored.targets)]
    score = L1Error(answers=np.concatenate(answers))
    l1 = curator.score(scored.targets, score=score, cost=cost, merged=scored.view)  # SELECT
    return replace(scored, errors=l1 / 2, held=[*scored.held, *pairs]), measured
