"""Everybody answers every column twice; both rounds together cost what was agreed."""

import json
from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError
from sfumato.lab.tables import independent_table, integer_schema, tree_table
from sfumato.local.frequency.grr import Grr
from sfumato.local.probabilities import MIN_EPSILON, exp_below
from sfumato.models.answers.dependence import interaction_noise
from sfumato.models.answers.pair_tables import NoisyTable
from sfumato.models.answers.tree import fit_tree
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.release import TableRelease
from sfumato.schema import Boolean, Category, Integer, Schema
from sfumato.survey.device.device import Client, simulate_clients
from sfumato.survey.dp2pub.faithful_rounds import (
    answer_noise,
    debiased,
    first_question,
    helpful_ties,
    noisy_table,
    second_question,
    spelled_budgets,
    tie_helps,
)
from sfumato.survey.dp2pub.round_tally import count
from sfumato.survey.dp2pub.two_round import TwoRound
from sfumato.survey.protocol.messages import Answer
from sfumato.survey.protocol.rounds import Agreement, ColumnsQuestion, RecordRows

SMALL = Schema(
    dataset="village",
    columns=(
        Boolean(name="smoker"),
        Category(name="only", values=("one",)),
        Integer(name="age", low=1, high=8),
        Category(name="town", values=("a", "b", "c")),
    ),
)
AGREED = Agreement(schema=SMALL, epsilon=Fraction(3), variant="faithful")
TWO = Schema(columns=(Boolean(name="smoker"), Category(name="town", values=("a", "b", "c"))))


def asked_of(survey, codes, *, rng):
    """All people of a block through both rounds, and the release."""

    def answers(message):
        sent = json.loads(json.dumps(message))
        return simulate_clients(sent, codes, agreed=survey.manifest, rng=rng)

    second = survey.second_round(answers(survey.first_round()))
    return survey.publish(answers(second), rng=rng)


def mean_distance(schema, codes, model):
    """Mean total variation of two-way tables."""
    found = []
    for one, other in combinations(schema.names, 2):
        places = [schema.names.index(name) for name in (one, other)]
        true = np.zeros(schema.shape((one, other)))
        np.add.at(true, tuple(codes[places]), 1 / codes.shape[1])
        found.append(np.abs(true - model.marginal((one, other)) / model.total).sum() / 2)
    return float(np.mean(found))


def block_of(schema, people, *, rng):
    return np.stack([rng.below(column.size, people) for column in schema])


def heard_of(agreed, people, *, seed):
    rng = simulation_rng(seed)
    plan = first_question(agreed)
    codes = block_of(agreed.schema, people, rng=rng)
    rows = simulate_clients(plan.to_dict(), codes, agreed=agreed.manifest(), rng=rng)
    return codes, count(plan, agreed, rows)


def test_both_rounds_cost_exactly_epsilon_and_every_column_is_in_one_cluster():
    for seed in range(5):
        _, heard = heard_of(AGREED, 400, seed=seed)
        asked = second_question(AGREED, heard)
        assert set(heard.question.budgets.values()) == {Fraction(1, 2)}
        assert heard.question.cost + asked.question.cost == AGREED.epsilon
        assert sorted(name for c in asked.clusters for name in c) == sorted(AGREED.columns)
        assert all(len(cluster) <= 3 for cluster in asked.clusters)
        for cluster in asked.clusters:  # an even share of the cluster's, but for the rounding
            budgets = [asked.question.budgets[name] for name in cluster]
            assert max(budgets) - min(budgets) < Fraction(1, 10**6)
        assert ColumnsQuestion.from_dict(json.loads(json.dumps(asked.question.to_dict())), AGREED)


@pytest.mark.parametrize("epsilon", [Fraction(3, 10_000), Fraction(1, 1_000), 1, Fraction(32)])
@pytest.mark.parametrize(
    "shares",
    [
        [Fraction(1, 3)] * 3,
        [Fraction(1, 2**40), Fraction(1, 7), Fraction(6, 7) - Fraction(1, 2**40)],
        [Fraction(1, 10), Fraction(1, 10), Fraction(8, 10)],
    ],
)
def test_budgets_sum_exactly_and_each_is_one_that_an_answer_may_have(epsilon, shares):
    found = spelled_budgets(dict(zip("abc", shares, strict=True)), Fraction(epsilon))
    assert sum(found.values()) == epsilon
    assert all(MIN_EPSILON <= budget <= 32 for budget in found.values())
    assert all(max(map(len, str(budget).split("/"))) <= 30 for budget in found.values())
    if min(shares) * epsilon >= MIN_EPSILON:
        asked = zip(found.values(), shares, strict=True)
        assert all(abs(budget / epsilon - share) < Fraction(1, 10**6) for budget, share in asked)


def worst_ratio(first, second):
    """Of the probabilities of all answers of both rounds under any two records, exactly."""
    rows = [
        Grr(categories=TWO[name].size, epsilon=epsilon).transition()
        for budgets in (first, second)
        for name, epsilon in budgets.items()
    ]
    sizes = [TWO[name].size for name in (*first, *second)]
    records = [record * 2 for record in product(range(2), range(3))]
    worst = Fraction(1)
    for answers in product(*map(range, sizes)):
        chances = [
            prod(
                Fraction(row.weights[code][answer], sum(row.weights[code]))
                for row, code, answer in zip(rows, record, answers, strict=True)
            )
            for record in records
        ]
        worst = max(worst, max(chances) / min(chances))
    return worst


def test_the_answers_of_both_rounds_together_tell_no_two_records_apart_by_more_than_epsilon():
    agreed = Agreement(schema=TWO, epsilon=Fraction(2), variant="faithful")
    first = first_question(agreed).budgets
    shares = {"smoker": Fraction(2, 7), "town": Fraction(5, 7)}
    second = spelled_budgets(shares, agreed.round_epsilon)
    allowed = exp_below(agreed.epsilon)
    assert allowed * Fraction(95, 100) < worst_ratio(first, second) <= allowed
    # As two rounds with epsilon each would be: far beyond.
    assert worst_ratio(spelled_budgets(shares, agreed.epsilon), second) > allowed * 2


def test_a_release_with_a_large_epsilon_is_the_truth():
    """Measured over 30 seeds: at most 0.004; without ties 0.27 to 0.56."""
    rng = simulation_rng(1)
    sizes, codes, _ = tree_table(3, sizes_between=(2, 4), rows=5_000, strength=0.8, rng=rng)
    schema = integer_schema(sizes)
    release = asked_of(TwoRound(schema, epsilon=60, variant="faithful"), codes, rng=rng)
    assert release.method["ties"]
    assert mean_distance(schema, codes, release.model) < 0.01
    assert mean_distance(schema, codes, independent_of(release.model)) > 0.15


def independent_of(model):
    shares = {name: model.marginal((name,)) / model.total for name in model.schema.names}
    return fit_tree(model.schema, total=model.total, shares=shares, pairs={})


def test_of_independent_columns_hardly_a_tie_is_invented():
    """Measured over 30 seeds: distances 0.008 to 0.023, all ties together 0.02 nats at most."""
    rng = simulation_rng(2)
    sizes, codes = independent_table(6, sizes_between=(2, 4), rows=20_000, rng=rng)
    schema = integer_schema(sizes)
    release = asked_of(TwoRound(schema, epsilon=12, variant="faithful"), codes, rng=rng)
    assert mean_distance(schema, codes, release.model) < 0.05
    assert sum(strength for _, _, strength in release.method["ties"]) < 0.03


def test_a_release_says_how_it_was_made_and_can_be_saved(tmp_path):
    rng = simulation_rng(3)
    codes = block_of(SMALL, 1_000, rng=rng)
    survey = TwoRound(SMALL, epsilon=9, variant="faithful")
    release = asked_of(survey, codes, rng=rng)
    method = release.method
    assert release.guarantee == LocalDP(9)
    assert not release.private
    assert release.data.num_rows == 1_000
    assert release.data.column_names == list(SMALL.names)
    head = [method[key] for key in ("name", "trust", "variant", "answers")]
    assert head == ["dp2pub", "nobody", "faithful", [1_000, 1_000]]
    assert set(method["network"]) == {"smoker", "age", "town"}
    assert [entry["label"] for entry in method["rounds"]] == ["round 1", "round 2"]
    spent = [Fraction(e) for entry in method["rounds"] for e in entry["budgets"].values()]
    assert sum(spent) == 9
    within = [set(cluster) for cluster in method["clusters"]]
    assert all(any({a, b} <= cluster for cluster in within) for a, b, _ in method["ties"])
    assert json.loads(json.dumps(release.to_dict()["method"])) == method
    release.save(tmp_path / "out-internal")
    assert TableRelease.load(tmp_path / "out-internal").data.equals(release.data)


def test_clients_one_by_one_make_a_release():
    rng = simulation_rng(4)
    survey = TwoRound(SMALL, epsilon=6, variant="faithful")
    codes = block_of(SMALL, 60, rng=rng)
    people = [dict(zip(SMALL.names, row.tolist(), strict=True)) for row in codes.T]
    clients = [Client(p, agreed=survey.manifest, rng=rng, coded=True) for p in people]
    message = json.loads(json.dumps(survey.first_round()))
    message = json.loads(json.dumps(survey.second_round([c.answer(message) for c in clients])))
    answers = [client.answer(message).to_dict() for client in clients]
    release = survey.publish([*answers[:50], None], rng=rng)
    assert release.method["answers"] == [60, 50]
    assert release.data.num_rows == 60


def test_what_real_generators_answered_is_private_whatever_draws_the_rows():
    rng = secure_rng()
    survey = TwoRound(SMALL, epsilon=6, variant="faithful")
    codes = block_of(SMALL, 300, rng=rng)
    first = simulate_clients(survey.first_round(), codes, agreed=survey.manifest, rng=rng)
    second = survey.second_round(first)
    rows = simulate_clients(second, codes, agreed=survey.manifest, rng=rng)
    assert survey.publish(rows, rng=simulation_rng(0)).private
    faked = RecordRows(question=rows.question, codes=rows.codes[:, :1], simulated=True)
    assert not survey.publish([rows, faked], rng=simulation_rng(0)).private


def test_without_answers_in_the_second_round_the_first_is_published():
    rng = simulation_rng(5)
    codes = block_of(SMALL, 200, rng=rng)
    survey = TwoRound(SMALL, epsilon=6, variant="faithful")
    survey.second_round(
        simulate_clients(survey.first_round(), codes, agreed=survey.manifest, rng=rng)
    )
    release = survey.publish([], rng=rng)
    assert release.method["answers"] == [200, 0]
    assert release.data.num_rows == 200


def test_the_same_answers_make_the_same_second_round():
    """So a server that stopped between rounds counts again and goes on with the same plan."""
    _, heard = heard_of(AGREED, 500, seed=6)
    singles = [Answer(question=heard.question.id, value=row.tolist()) for row in heard.records.T]
    rows = RecordRows(question=heard.question.id, codes=heard.records)
    found = [
        TwoRound(SMALL, epsilon=3, variant="faithful").second_round(each)
        for each in (rows, singles[::-1])
    ]
    assert found[0] == found[1]


def noise_ratio(agreed, second, columns, *, seed):
    """Of a table of both rounds: the squared error, of a pair's tie alone, over what it says."""
    codes, first = heard_of(agreed, 4_000, seed=seed)
    rng = simulation_rng(1_000 + seed)
    rows = simulate_clients(second.to_dict(), codes, agreed=agreed.manifest(), rng=rng)
    table = noisy_table(agreed, [first, count(second, agreed, rows)], columns)
    true = np.zeros(SMALL.shape(columns))
    np.add.at(true, tuple(codes[SMALL.names.index(n)] for n in columns), 1 / codes.shape[1])
    error = table.frequencies - true
    assert error.sum() == pytest.approx(0, abs=1e-9)
    if len(columns) == 1:
        return float((error**2).sum()) / error.size / table.variance
    error = error - error.mean(axis=0) - error.mean(axis=1, keepdims=True)
    return float((error**2).sum()) / interaction_noise(error.shape, table.variance)


@pytest.mark.parametrize(("columns", "freedom"), [(("age",), 7), (("age", "town"), 14)])
def test_tables_of_both_rounds_are_as_noisy_as_they_say(columns, freedom):
    """5 standard errors of a mean chi-square: less than 1 false alarm in 10,000 runs."""
    agreed, runs = Agreement(schema=SMALL, epsilon=Fraction(9), variant="faithful"), 40
    second = second_question(agreed, heard_of(agreed, 4_000, seed=99)[1]).question
    found = np.mean([noise_ratio(agreed, second, columns, seed=seed) for seed in range(runs)])
    bound = 5 * (2 / freedom / runs) ** 0.5
    assert abs(found - 1) < bound
    assert abs(found / 2 - 1) > bound  # a variance that says twice or half of it would be seen
    assert abs(found * 2 - 1) > bound


def test_a_person_who_answered_once_counts_where_they_did():
    plan = first_question(AGREED)
    answers = [Answer(question=plan.id, value=[1, code, 0]) for code in range(8)]
    once = count(plan, AGREED, answers)
    nobody = count(plan, AGREED, [])
    alone, both = (noisy_table(AGREED, heard, ("age",)) for heard in ([once], [once, nobody]))
    assert np.allclose(alone.frequencies, 1 / 8)
    assert np.array_equal(alone.frequencies, both.frequencies)
    assert noisy_table(AGREED, [once, once], ("age",)).variance == pytest.approx(alone.variance / 2)
    with pytest.raises(InputError, match="nobody answered"):
        noisy_table(AGREED, [nobody], ("age",))


def test_the_noise_of_tables_is_that_of_exact_probabilities():
    made = [Grr(categories=2, epsilon=Fraction(1)), Grr(categories=3, epsilon=Fraction(2))]
    left, right = (m.transition().probabilities() for m in made)
    chances = np.multiply.outer(left[1], right[2])  # of each answer under the codes 1 and 2
    cells = np.zeros((2, 3, 2, 3))
    for i, j in np.ndindex(2, 3):
        answer = np.zeros((2, 3), dtype=np.int64)
        answer[i, j] = 1
        cells[i, j] = debiased(answer, made)
    mean = np.tensordot(chances, cells, axes=2)
    assert np.allclose(mean, [[0, 0, 0], [0, 0, 1]], atol=1e-12)
    apart = cells - cells.mean(axis=2, keepdims=True) - cells.mean(axis=3, keepdims=True) + 1 / 6
    apart_mean = np.tensordot(chances, apart, axes=2)
    noise = np.tensordot(chances, apart**2, axes=2) - apart_mean**2
    assert answer_noise(made) == pytest.approx(noise.sum())
    for axis, response in enumerate(made):
        ways = cells.sum(axis=3 - axis)
        expected = np.tensordot(chances, ways, axes=2)
        alone = np.tensordot(chances, ways**2, axes=2) - expected**2
        assert answer_noise([response]) == pytest.approx(alone.sum())


def test_a_tie_helps_where_it_is_clearly_more_than_noise():
    gap, half = np.array([[1, -1], [-1, 1]]), np.full(2, 0.5)
    schema, shares = integer_schema([2, 2]), {"0": half, "1": half}
    noise = interaction_noise((2, 2), 3e-4)
    for part, helps in ((0.9, False), (2.9, False), (3.1, True), (100, True)):
        tie = gap * (part * noise / 4) ** 0.5  # its square is so many times the noise
        table = NoisyTable(frequencies=0.25 + tie, variance=3e-4)
        assert tie_helps(table, half, half) is helps
        ties = helpful_ties(shares, {("0", "1"): table})
        assert list(ties) == ([("0", "1")] if helps else [])
        model = fit_tree(schema, total=1.0, shares=shares, pairs=ties)
        kept = tie * (1 - 1 / part) if helps else 0 * tie
        assert np.allclose(model.marginal(("0", "1")), 0.25 + kept, atol=1e-5)


WRONG = {
    "another plan": {"question": "0" * 32},
    "no list": {"answer": 1},
    "too short": {"answer": [0, 1]},
    "too long": {"answer": [0, 1, 2, 0]},
    "code too large": {"answer": [0, 8, 0]},
    "code negative": {"answer": [0, -1, 0]},
    "code not whole": {"answer": [0, 0.5, 0]},
    "code a truth value": {"answer": [True, 0, 0]},
    "code huge": {"answer": [0, 10**40, 0]},
    "more fields": {"more": 1},
    "version": {"sfumato": 2},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_is_no_answer_to_the_plan_is_refused_and_nothing_is_counted(change):
    survey = TwoRound(SMALL, epsilon=3, variant="faithful")
    good = {"sfumato": 1, "question": first_question(AGREED).id, "answer": [0, 1, 2]}
    with pytest.raises(InputError):
        survey.second_round([good, {**good, **change}])
    survey.second_round([good])  # nothing was kept of the refused ones
    assert survey.publish([], rng=simulation_rng(0)).data.num_rows == 1


@pytest.mark.parametrize(
    "block",
    [np.zeros((2, 5), int), np.zeros(3, int), np.zeros((3, 5)), np.full((3, 5), 2), -np.eye(3)],
)
def test_rows_that_do_not_fit_the_plan_are_refused(block):
    plan = first_question(AGREED)
    with pytest.raises(InputError, match=r"of the question; got|are from 0 to"):
        count(plan, AGREED, RecordRows(question=plan.id, codes=block))


def test_what_can_not_be_surveyed_is_refused_before_anybody_is_asked():
    for epsilon in (0, -1, "nan", 65, Fraction(5, 10_000)):
        with pytest.raises(InputError, match="epsilon"):
            TwoRound(SMALL, epsilon=epsilon, variant="faithful")
    with pytest.raises(InputError, match="too many digits"):
        TwoRound(SMALL, epsilon="1.0000000000000000000000001", variant="faithful")
    with pytest.raises(InputError, match="variant must be one of"):
        TwoRound(SMALL, epsilon=1, variant="other")
    wide = Schema(columns=tuple(Integer(name=name, low=1, high=3_000) for name in "ab"))
    with pytest.raises(InputError, match="are compared"):
        TwoRound(wide, epsilon=1, variant="faithful").first_round()
    with pytest.raises(InputError, match="answers must be"):
        TwoRound(SMALL, epsilon=1, variant="faithful").second_round("yes")
    with pytest.raises(InputError, match="nobody answered"):
        TwoRound(SMALL, epsilon=1, variant="faithful").second_round([None])


def test_a_second_plan_gets_only_what_the_first_round_left():
    record = {"smoker": True, "only": "one", "age": 3, "town": "b"}
    client = Client(record, agreed=AGREED.manifest(), rng=secure_rng())
    client.answer(first_question(AGREED).to_dict())
    assert Fraction(client.to_dict()["spent"]["1"]) == Fraction(3, 2)
    each = Fraction(3, 2) / len(AGREED.columns)
    names = AGREED.columns
    greedy = ColumnsQuestion(
        survey=AGREED.id, round=2, budgets={name: each + Fraction(1, 100) for name in names}
    )
    with pytest.raises(BudgetError, match=r"3/2 is left of the agreed 3"):
        client.answer(greedy.to_dict())
    again = Client.restore(client.to_dict(), record, agreed=AGREED.manifest(), rng=secure_rng())
    with pytest.raises(BudgetError, match=r"3/2 is left of the agreed 3"):
        again.answer(greedy.to_dict())
    fair = ColumnsQuestion(survey=AGREED.id, round=2, budgets=dict.fromkeys(names, each))
    assert again.answer(fair.to_dict()) is not None
    assert sum(map(Fraction, again.to_dict()["spent"].values())) == 3
