"""What every recommender algorithm keeps to, and what the automatic choice never falls below."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.evaluation.recommenders import compare_recommender, run_baselines
from sfumato.gate import Curator
from sfumato.ledger import Ledger
from sfumato.models.items.recommenders import History
from sfumato.privacy import ZCDP, ApproxDP, OnePerson, OneRow, PureDP
from sfumato.privacy.guarantees import zcdp_budget
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.recommend.auto import AutoRecommender
from sfumato.recommend.item_bias import ItemBias
from sfumato.recommend.item_neighbors import ItemNeighbors
from sfumato.recommend.item_popularity import ItemPopularity
from sfumato.recommend.item_ridge import ItemRidge
from sfumato.recommend.item_tastes import ItemTastes
from sfumato.schema import Integer, Schema

EVERY = [
    ItemBias(),
    ItemPopularity(),
    ItemRidge(),
    ItemNeighbors(),
    ItemTastes(),
    AutoRecommender(goal="lists"),
    AutoRecommender(goal="ratings"),
]
every = pytest.mark.parametrize("algorithm", EVERY, ids=lambda it: f"{it.name} {it.describe()}")
units = pytest.mark.parametrize("protect", [OneRow(), OnePerson(max_rows=200)], ids=str)
DELTA = "1e-6"


@every
@units
@pytest.mark.parametrize("epsilon", ["0.01", 3])
def test_one_charge_is_the_whole_budget(gate, algorithm, protect, epsilon):
    ledger, budget = Ledger.in_memory(dataset="films"), ApproxDP(epsilon, DELTA)
    algorithm.run(gate(protect=protect, budget=budget, rng=secure_rng(), ledger=ledger))
    paid = [entry.cost for entry in ledger.entries() if entry.event == "spend"]
    assert paid == [zcdp_budget(budget)]


@every
def test_the_looks_cost_what_was_charged_and_no_more(gate, algorithm, monkeypatch):
    costs = []
    curator = gate()
    for verb in ("item_sums", "gram"):
        real = getattr(Curator, verb)

        def noted(self, ask, *, cost, real=real):
            costs.append(cost.rho)
            return real(self, ask, cost=cost)

        monkeypatch.setattr(Curator, verb, noted)
    algorithm.run(curator)
    assert sum(costs) == zcdp_budget(curator.budget).rho


@every
def test_a_budget_without_a_delta_is_refused_before_any_spend(gate, algorithm):
    ledger = Ledger.in_memory(dataset="films")
    with pytest.raises(InputError, match="no delta"):
        algorithm.run(gate(budget=PureDP(1), ledger=ledger, rng=secure_rng()))
    assert not [entry for entry in ledger.entries() if entry.event == "spend"]


@every
def test_a_table_that_is_not_of_ratings_is_refused(algorithm):
    schema = Schema(dataset="films", columns=(Integer(name="age", low=0, high=4),))
    with pytest.raises(InputError, match="open_ratings"):
        algorithm.check(ArrayTable(schema, {"age": [1]}).schema)


@every
@units
def test_a_model_speaks_to_anybody_even_without_a_history(gate, algorithm, protect):
    model = algorithm.run(gate(protect=protect)).model
    nobody = History(np.zeros(0, dtype=np.int64), np.zeros(0))
    somebody = History(np.array([3, 70]), np.array([5.0, 1.0]))
    for history in (nobody, somebody):
        assert np.isfinite(model.scores(history)).all()
        told = model.predict(history)
        assert ((told >= 1) & (told <= 5)).all()


@every
def test_measurements_tell_the_noise_and_hold_no_values(gate, algorithm):
    fit = algorithm.run(gate())
    for told in fit.measurements:
        assert told["cost"].startswith("rho=")
        assert not any(isinstance(part, np.ndarray | list) for part in told.values())


@pytest.mark.parametrize("neighbors", [0, 1.5, 2_000])
def test_neighbors_are_a_whole_number(neighbors):
    with pytest.raises(InputError, match="k must be"):
        ItemNeighbors(k=neighbors)


def test_the_goal_is_lists_or_ratings():
    with pytest.raises(InputError, match="goal must be one of"):
        AutoRecommender(goal="fun")


def errors(algorithm, gate, split, *, epsilon, protect, seed):
    curator = gate(
        table=split.ratings,
        protect=protect,
        budget=ApproxDP(epsilon, DELTA),
        rng=simulation_rng(seed),
    )
    fit = algorithm.run(curator)
    return compare_recommender(fit.model, split, ledger=None), fit


@units
@pytest.mark.parametrize("epsilon", ["0.01", "0.1", 1, 10])
def test_the_choice_for_ratings_is_never_worse_than_the_free_local_mean(
    gate, split, protect, epsilon
):
    """Seeded: no false alarm. The local mean needs nobody's data, so it is the floor."""
    free = run_baselines(split, names=["own mean"], ledger=None)["own mean"].errors
    for seed in range(3):
        found, _ = errors(
            AutoRecommender(goal="ratings"),
            gate,
            split,
            epsilon=epsilon,
            protect=protect,
            seed=seed,
        )
        assert found.mae <= free.mae + 0.005
        assert found.rmse <= free.rmse + 0.005


@units
@pytest.mark.parametrize("epsilon", ["0.01", "0.1", 1, 10])
def test_the_choice_for_lists_is_never_worse_than_private_popularity(gate, split, protect, epsilon):
    """Means of 4 seeded runs each; at small epsilon both are near chance, so .02 is allowed."""
    chosen, popular = (
        np.mean(
            [
                errors(it, gate, split, epsilon=epsilon, protect=protect, seed=seed)[0].ndcg
                for seed in range(4)
            ]
        )
        for it in (AutoRecommender(goal="lists"), ItemPopularity())
    )
    assert chosen >= popular - 0.02


@pytest.mark.parametrize(
    ("goal", "epsilon", "chosen"),
    [
        ("lists", "0.01", "item-popularity"),
        ("lists", 50, "item-ridge"),
        ("ratings", "0.01", "item-bias"),
        ("ratings", 50, "item-tastes"),
    ],
)
def test_the_known_noise_decides_the_choice(gate, goal, epsilon, chosen):
    curator = gate(budget=ApproxDP(epsilon, DELTA))
    assert AutoRecommender(goal=goal).run(curator).facts["chosen"] == chosen


def test_pairs_bring_what_they_cost_when_there_is_little_noise(gate, split):
    asked = {"epsilon": 50, "protect": OneRow(), "seed": 1}
    ridge, _ = errors(ItemRidge(), gate, split, **asked)
    popular, _ = errors(ItemPopularity(), gate, split, **asked)
    assert ridge.ndcg > popular.ndcg + 0.05
    tastes, fit = errors(ItemTastes(), gate, split, **asked)
    bias, _ = errors(ItemBias(), gate, split, **asked)
    assert fit.facts["directions"] > 0
    assert tastes.rmse < bias.rmse - 0.005


@pytest.mark.parametrize("seed", range(4))
def test_a_ridge_without_any_direction_ranks_by_popularity(gate, seed):
    fit = ItemRidge().run(gate(budget=ApproxDP("0.001", DELTA), rng=simulation_rng(seed)))
    assert fit.facts["directions"] <= 1  # of noise, at the edge
    if fit.facts["directions"] == 0:
        ridge = fit.model.ridge
        scores = fit.model.scores(History(ridge.members[:1], np.array([5.0])))
        others = ridge.members[1:]
        order = others[np.argsort(-scores[others], kind="stable")]
        assert (np.diff(ridge.popularity[order]) <= 1e-3 * ridge.popularity.max()).all()


def test_costs_are_exact_fractions(gate):
    curator = gate()
    AutoRecommender().run(curator)
    paid = [entry.cost for entry in curator.ledger.entries() if entry.cost is not None]
    assert paid == [ZCDP(zcdp_budget(curator.budget).rho)]
