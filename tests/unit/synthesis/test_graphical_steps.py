"""What methods with a graphical model tell of it."""

import numpy as np

from sfumato.models.graphical.fit import fit_graphical
from sfumato.schema import Measurement, Range, Schema
from sfumato.schema.measurement import Coarse
from sfumato.synthesis.graphical_steps import structure

SCHEMA = Schema.from_dict({"a": 2, "b": 2, "c": 3})


def seen(*names: str, sigma: float = 1.0) -> Measurement:
    return Measurement(target=names, values=np.ones(SCHEMA.shape(names)), sigma_counts=sigma)


def test_marginals_stand_once_and_without_single_columns_totals_and_public_counts() -> None:
    model = fit_graphical(Coarse(fine=SCHEMA, groups={}), [seen("a", "b")], total=4.0)
    box = Range(bounds=(("a", 0, 0),))
    answer = Measurement(target=box, values=np.array(1.0), sigma_counts=1.0)
    everything = [
        seen("c"), seen("b", "c"), seen("a", "b"), seen("b", "c"), seen("a", "c", sigma=0.0),
        seen(), answer,
    ]  # fmt: skip
    told = structure(model, everything)
    assert told["measured"] == [["b", "c"], ["a", "b"]]
    assert {frozenset(names) for names in told["cliques"]} == {frozenset("ab"), frozenset("c")}
