"""One round of answers: identities of what is redrawn, exact budgets, and figures on real data."""

import csv
from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.lab.tables import integer_schema, tree_table
from sfumato.local.frequency.grr import Grr
from sfumato.models.answers.dependence import spanning_tree
from sfumato.models.information import debiased_information, entropy
from sfumato.models.pram.clusters import joint_gain
from sfumato.models.pram.pram import pram, redrawing
from sfumato.privacy import OneRow
from sfumato.privacy.guarantees import LocalDP, PureDP
from sfumato.randomness import simulation_rng
from sfumato.release import TableRelease
from sfumato.survey.dp2pub import semi_honest
from sfumato.survey.dp2pub.semi_honest import channel_of, publish_answers


def respond(block, sizes, epsilon, rng):
    """Mechanisms with unequal parts of epsilon where columns differ, and their answers."""
    weights = [Fraction(place + 1) for place, _ in enumerate(sizes)]
    made = [
        None if size == 1 else Grr(categories=size, epsilon=Fraction(epsilon) * w / sum(weights))
        for size, w in zip(sizes, weights, strict=True)
    ]
    answers = [
        c if m is None else m.answer_many(c, rng=rng) for m, c in zip(made, block, strict=True)
    ]
    return made, np.array(answers)


@pytest.fixture(scope="module")
def tree():
    """Five tied columns and, in the middle, one of a single value."""
    sizes, block, _ = tree_table(
        5, sizes_between=(2, 4), rows=4_000, strength=0.8, rng=simulation_rng(3)
    )
    sizes = (*sizes[:2], 1, *sizes[2:])
    block = np.insert(block, 2, 0, axis=0)
    return integer_schema(sizes), block, sizes


def published(tree, epsilon=20, seed=0, **options):
    schema, block, sizes = tree
    rng = simulation_rng(seed)
    made, answers = respond(block, sizes, epsilon, rng)
    return publish_answers(schema, answers, made, rng=rng, **options), made, answers


@pytest.mark.parametrize("kind", ["attribute", "compound", "auto"])
@pytest.mark.parametrize("estimator", ["norm-sub", "em"])
@pytest.mark.parametrize("epsilon", ["0.5", "20"])
def test_what_is_redrawn_is_invariant_for_attributes_and_clusters(tree, kind, estimator, epsilon):
    result, made, _ = published(tree, epsilon, pram=kind, estimator=estimator)
    channels = {n: channel_of(m) for n, m in zip(tree[0].names, made, strict=True) if m is not None}
    for names, part in result.parts.items():
        whole = reduce(np.kron, [channels[name].matrix for name in names])
        pi = part.frequencies.reshape(-1)
        joint = (pi[:, None] * whole).T
        rows = joint / joint.sum(axis=1, keepdims=True)
        assert np.abs(pi @ whole @ rows - pi).max() < 1e-12
        if len(names) == 1:
            assert np.abs(redrawing(pi, channels[names[0]]) - rows).max() < 1e-12


def test_without_clipping_the_answers_redrawn_have_the_estimated_frequencies(tree):
    result, _, _ = published(tree, 60, pram="attribute")
    assert result.clipped == ()
    assert all(part.gap < 1e-12 for part in result.parts.values())


def test_clipping_is_told_and_may_leave_a_gap(tree):
    """May: where one code alone is left, everybody gets it and there is no gap."""
    result, _, _ = published(tree, 12, pram="compound")
    gaps = {names: part.gap for names, part in result.parts.items()}
    assert max(gaps[names] for names in result.clipped) > 0.01
    assert all(gap < 1e-12 for names, gap in gaps.items() if names not in result.clipped)


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), 1, 20])
def test_budgets_sum_to_epsilon_exactly(tree, epsilon):
    result, made, _ = published(tree, epsilon)
    spent = sum(m.epsilon for m in made if m is not None)
    assert result.guarantee == LocalDP(spent)
    assert sum(result.shares) == 1
    assert sum(result.importance) == 1
    assert sum(result.second_round.values()) == spent
    assert all(part > 0 for part in result.second_round.values())


@pytest.fixture(scope="module")
def skewed():
    """Three columns whose codes become rarer by half, and their answers with 1, 2 and 3."""
    rng, sizes = simulation_rng(12), (4, 6, 3)
    block = np.array([
        np.minimum(np.floor(-np.log2(1 - rng.uniform(40_000))), size - 1) for size in sizes
    ]).astype(np.uint8)  # fmt: skip
    made, answers = respond(block, sizes, 6, rng)
    return integer_schema(sizes), block, made, answers


def misfit(result, made):
    """Chi-squared over its degrees of freedom of the redrawn codes behind each answer."""
    total, freedom = 0.0, 0
    for place, (name, mechanism) in enumerate(zip(result.asked, made, strict=True)):
        rows = redrawing(result.parts[(name,)].frequencies, channel_of(mechanism))
        size = len(rows)
        cells = size * result.answers[place].astype(int) + result.redrawn[place]
        counts = np.bincount(cells, minlength=size * size).reshape(size, size)
        expected = counts.sum(axis=1, keepdims=True) * rows
        total += float(((counts - expected) ** 2 / expected).sum())
        freedom += size * (size - 1)
    return total / freedom


def other_budget(mechanism):
    """The channel of twice the epsilon: as if the answers carried a second budget."""
    return channel_of(Grr(categories=mechanism.categories, epsilon=2 * mechanism.epsilon))


def test_answers_are_redrawn_with_the_channel_that_the_clients_used(skewed, monkeypatch):
    """48 degrees of freedom: above 2 once in 30,000 seeds. Another budget's Q is rejected."""
    schema, _, made, answers = skewed
    right = publish_answers(schema, answers, made, pram="attribute", rng=simulation_rng(1))
    assert right.clipped == ()
    assert misfit(right, made) < 2
    monkeypatch.setattr(semi_honest, "channel_of", other_budget)
    wrong = publish_answers(schema, answers, made, pram="attribute", rng=simulation_rng(1))
    assert misfit(wrong, made) > 2


def worst_distance(block, codes):
    """The largest total variation of a column to the truth."""
    tables = [[np.bincount(c, minlength=6) for c in x] for x in (block, codes)]
    return np.abs(np.subtract(*tables)).sum(axis=1).max() / (2 * block.shape[1])


def test_published_marginals_are_near_the_truth_and_the_answers_are_not(skewed, monkeypatch):
    """Standard errors of a share are .01 and less. Another Q, or none as by the "normalized
    inverse" that is the identity, would leave the answers' distance or double it."""
    schema, block, made, answers = skewed
    right = publish_answers(schema, answers, made, pram="attribute", rng=simulation_rng(1))
    assert right.helped
    assert worst_distance(block, answers) > 0.15
    assert worst_distance(block, right.codes) < 0.04
    monkeypatch.setattr(semi_honest, "channel_of", other_budget)
    wrong = publish_answers(schema, answers, made, pram="attribute", rng=simulation_rng(1))
    assert worst_distance(block, wrong.redrawn) > 0.1


def test_entropies_have_all_terms_and_are_not_those_of_the_answers_or_of_the_raw_data(skewed):
    schema, block, made, answers = skewed
    result = publish_answers(schema, answers, made, pram="attribute", rng=simulation_rng(1))
    for place, (name, found) in enumerate(result.entropies.items()):
        pi = result.parts[(name,)].frequencies
        assert found == pytest.approx(-float(pi @ np.log(pi)), abs=1e-12)
        assert abs(found - entropy(np.bincount(block[place]))) > 1e-6
        assert found < entropy(np.bincount(answers[place])) - 0.01
        assert abs(found - np.log(pi.size) / pi.size) > 0.1


def test_the_network_is_learned_from_debiased_pairs_because_answers_favor_few_values():
    """Two wide columns tell most about each other, and their answers least: margins of 10% that
    no seed of 5 came near."""
    rng, n = simulation_rng(0), 40_000
    narrow = rng.below(2, n)
    wide = 6 * np.where(rng.uniform(n) < 0.95, narrow, 1 - narrow) + rng.below(6, n)
    alone = 6 * np.where(rng.uniform(n) < 0.8, narrow, rng.below(2, n)) + rng.below(6, n)
    block = np.array([wide, np.where(rng.uniform(n) < 0.4, wide, alone), narrow])
    made = [Grr(categories=size, epsilon=2) for size in (12, 12, 2)]
    answers = np.array([m.answer_many(c, rng=rng) for m, c in zip(made, block, strict=True)])

    def tree(codes):
        scores = debiased_information(codes, (12, 12, 2), [(1.0, 0.0)] * 3)
        edges = spanning_tree(dict(np.ndenumerate(np.triu(scores))))
        return {frozenset(edge) for edge in edges}

    result = publish_answers(integer_schema((12, 12, 2)), answers, made, degree=1, rng=rng)
    assert {frozenset(edge) for edge in result.learned.network.edges} == tree(block)
    assert tree(answers) != tree(block)


def test_a_cluster_of_less_entropy_gets_the_larger_share(tree):
    result, _, _ = published(tree, 40, max_cluster=2)
    order = np.argsort([float(part) for part in result.importance])
    shares = np.array([float(share) for share in result.shares])[order]
    assert len(shares) >= 3
    assert (np.diff(shares) <= 0).all()


def test_clusters_hold_every_asked_column_once_and_come_from_the_blankets(tree):
    result, _, _ = published(tree, 40)
    assert sorted(n for c in result.clusters for n in c) == ["0", "1", "3", "4", "5"]
    assert all(len(cluster) <= 3 for cluster in result.clusters)
    for cluster in result.clusters:
        assert any(set(cluster) <= {n, *result.blankets[n]} for n in cluster)


def test_entropies_are_those_of_the_estimate_and_near_the_truth(tree):
    result, _, _ = published(tree, 60)
    for name, found in result.entropies.items():
        exact = entropy(np.bincount(tree[1][int(name)]))
        assert found == pytest.approx(exact, abs=0.05)


def test_a_column_of_one_value_passes_and_has_no_part_in_anything(tree):
    result, _, answers = published(tree, pram="compound")
    assert "2" not in result.asked
    assert not result.codes[2].any()
    assert all("2" not in names for names in result.parts)
    assert result.redrawn.shape == answers.shape
    assert (result.redrawn.max(axis=1) < np.array(tree[2])).all()


def test_a_single_column_has_a_network_of_its_root(tree):
    made, answers = respond(tree[1][:1], (tree[2][0],), 2, simulation_rng(0))
    schema = integer_schema(tree[2][:1])
    result = publish_answers(schema, answers, made, rng=simulation_rng(1))
    assert (result.clusters, result.shares) == ((("0",),), (1,))
    assert result.second_round == {"0": 2}


def test_the_network_finds_the_tree_when_there_is_enough_epsilon():
    sizes, block, parents = tree_table(
        6, sizes_between=(2, 9), rows=20_000, strength=0.7, rng=simulation_rng(8)
    )
    rng = simulation_rng(0)
    made, answers = respond(block, sizes, 40, rng)
    result = publish_answers(integer_schema(sizes), answers, made, degree=1, rng=rng)
    edges = {frozenset(edge) for edge in result.learned.network.edges}
    assert edges == {frozenset((c, p)) for c, p in enumerate(parents) if p is not None}


def test_the_same_answers_and_seed_give_the_same_codes(tree):
    codes = [published(tree, 5, seed=4)[0].codes for _ in range(2)]
    assert np.array_equal(*codes)


def test_joint_redrawing_is_chosen_when_its_noise_is_below_what_it_restores(tree):
    strong, weak = (published(tree, epsilon)[0] for epsilon in (60, 1))
    assert any(len(names) > 1 for names in strong.parts)
    assert all(len(names) == 1 for names in weak.parts)


def gains(epsilon, runs, people=2_000):
    """Predicted and true gains of redrawing two tied binary columns jointly, a row each."""
    rng = simulation_rng(7)
    first = rng.below(2, people)
    block = np.array([first, np.where(rng.uniform(people) < 0.8, first, 1 - first)])
    made = Grr(categories=2, epsilon=Fraction(epsilon))
    channels, truth = [channel_of(made)] * 2, np.bincount(2 * block[0] + block[1]) / people
    found = []
    for _ in range(runs):
        answers = np.array([made.answer_many(column, rng=rng) for column in block])
        single = [pram(c, q, rng=rng) for c, q in zip(answers, channels, strict=True)]
        seen = np.bincount(2 * answers[0].astype(int) + answers[1], minlength=4) / people
        rows = [redrawing(p.frequencies, q) for p, q in zip(single, channels, strict=True)]
        alone = np.square(seen @ np.kron(*rows) - truth).sum()
        joint = np.square(seen @ np.kron(*[q.inverse for q in channels]) - truth).sum()
        found.append(
            (joint_gain(answers, channels, [part.frequencies for part in single]), alone - joint)
        )
    return np.array(found)


@pytest.mark.parametrize("epsilon", ["1", "3"])
def test_the_predicted_gain_is_on_average_the_true_one(epsilon):
    """Standard errors of 200 runs are below 3%; what is neglected adds 5%."""
    predicted, true = gains(epsilon, 200).mean(axis=0)
    assert true > 0
    assert predicted == pytest.approx(true, rel=0.1)


def test_the_predicted_gain_is_a_loss_under_strong_noise():
    """The means of 200 runs are 9 standard errors below 0."""
    assert (gains("0.1", 200).mean(axis=0) < 0).all()


def test_the_release_holds_the_rows_and_a_local_promise(tree, tmp_path):
    result, _, _ = published(tree, 5)
    made = result.release(dataset="tree", private=False, ledger={}, rng=simulation_rng(1))
    made.save(tmp_path / "out-internal")
    found = TableRelease.load(tmp_path / "out-internal")
    assert (found.guarantee, found.protect) == (result.guarantee, OneRow(neighbors="replace"))
    assert found.to_dict() == made.to_dict()
    assert found.method["published"] == ("redrawn" if result.helped else "answers")
    for place, name in enumerate(tree[0].names):
        counts = np.bincount(result.codes[place], minlength=tree[2][place])
        assert found.model.marginal((name,)).tolist() == counts.tolist()


def test_the_rows_of_a_release_are_shuffled_whole(tree):
    result, _, _ = published(tree, 5)
    made = result.release(dataset="tree", private=False, ledger={}, rng=simulation_rng(1))
    rows = np.array([made.model.codes[name] for name in tree[0].names])
    assert not np.array_equal(rows, result.codes)
    assert sorted(map(tuple, rows.T.tolist())) == sorted(map(tuple, result.codes.T.tolist()))


def test_who_held_the_table_and_paid_otherwise_says_so(tree):
    result, _, _ = published(tree, 5)
    paid = PureDP(Fraction(5))
    made = result.release(
        dataset="tree", private=False, ledger={}, rng=simulation_rng(1), guarantee=paid
    )
    assert made.guarantee == paid
    assert result.guarantee == LocalDP(sum(result.budgets.values()))


def test_the_method_names_network_clusters_shares_and_budgets(tree):
    result, made, _ = published(tree, 5)
    found = result.describe()
    assert (found["name"], found["trust"], found["variant"]) == (
        "dp2pub", "semi-honest", "faithful",
    )  # fmt: skip
    assert found["published"] in {"redrawn", "answers"}
    edges = {(p, child) for child, own in found["network"].items() for p in own}
    named = {(result.asked[p], result.asked[c]) for p, c in result.learned.network.edges}
    assert set(found["network"]) == set(result.asked)
    assert edges == named
    assert found["clusters"] == [list(cluster) for cluster in result.clusters]
    assert sum(map(Fraction, found["shares"])) == 1
    asked = [m for m in made if m is not None]
    assert sum(map(Fraction, found["budgets"].values())) == sum(m.epsilon for m in asked)
    assert list(found["budgets"].values()) == [str(m.epsilon) for m in asked]
    assert [part["columns"] for part in found["redrawn"]] == [list(names) for names in result.parts]


def test_budgets_are_told_exactly_also_with_many_digits():
    sizes, rng = (2, 2), simulation_rng(0)
    long = Fraction(10**30 + 1, 10**30)
    made = [Grr(categories=2, epsilon=long), Grr(categories=2, epsilon=1)]
    result = publish_answers(integer_schema(sizes), rng.below(2, 80).reshape(2, 40), made, rng=rng)
    assert result.describe()["budgets"] == {"0": str(long), "1": "1"}
    assert sum(result.budgets.values()) == long + 1


def test_what_does_not_fit_is_refused(tree):
    schema, block, sizes = tree
    rng = simulation_rng(0)
    made, answers = respond(block, sizes, 5, rng)
    wrong = [Grr(categories=7, epsilon=1), *made[1:]]
    cases = [
        (answers, wrong, "needs the mechanism that its answers went through, got one of 7"),
        (answers, [None, *made[1:]], "went through, got none"),
        (answers, made[1:], "an entry for each of the 6 columns, got 5"),
        (answers[1:], made, "a row for each of the 6 columns"),
        (answers / 2, made, "block must hold whole codes"),
        (answers + 9, made, "no codes of the column"),
        (answers[:, :0], made, "there are no answers"),
    ]
    for given, mechanisms, says in cases:
        with pytest.raises(InputError, match=says):
            publish_answers(schema, given, mechanisms, rng=rng)
    with pytest.raises(InputError, match="pram must be one of 'auto', 'attribute', 'compound'"):
        publish_answers(schema, answers, made, pram="both", rng=rng)


def mean_distance(left, right):
    """Mean total variation over all three-way marginals of binary columns."""
    found = []
    for i, j, k in combinations(range(len(left)), 3):
        tables = [np.bincount(4 * x[i] + 2 * x[j] + x[k], minlength=8) for x in (left, right)]
        found.append(np.abs(tables[0] - tables[1]).sum() / (2 * left.shape[1]))
    return np.mean(found)


@pytest.fixture
def nltcs(real_data):
    with (real_data / "nltcs" / "nltcs.csv").open() as file:
        return np.array(list(csv.reader(file))[1:], dtype=np.uint8).T.copy()


def on_nltcs(block, epsilon, seed, **options):
    rng = simulation_rng(seed)
    made = [Grr(categories=2, epsilon=Fraction(epsilon) / 16)] * 16
    answers = np.array([m.answer_many(c, rng=rng) for m, c in zip(made, block, strict=True)])
    return publish_answers(integer_schema((2,) * 16), answers, made, rng=rng, **options)


@pytest.mark.parametrize(("epsilon", "at_most"), [("1", 0.31), ("4", 0.26)])
def test_on_nltcs_attributes_are_redrawn_as_well_as_promised(nltcs, epsilon, at_most):
    runs = [on_nltcs(nltcs, epsilon, seed, pram="attribute") for seed in range(5)]
    assert all(run.helped for run in runs)
    assert np.mean([mean_distance(nltcs, run.codes) for run in runs]) <= at_most


def test_on_nltcs_the_answers_are_kept_where_redrawing_would_be_worse(nltcs):
    result = on_nltcs(nltcs, "0.2", seed=0)
    assert not result.helped
    assert np.array_equal(result.codes, result.answers)
    assert mean_distance(nltcs, result.codes) < mean_distance(nltcs, result.redrawn)


def test_on_nltcs_clusters_are_redrawn_jointly_only_where_it_pays(nltcs):
    weak, strong = (on_nltcs(nltcs, epsilon, seed=0) for epsilon in ("1", "16"))
    assert all(len(names) == 1 for names in weak.parts)
    assert any(len(names) > 1 for names in strong.parts)
    alone = on_nltcs(nltcs, "16", seed=0, pram="attribute")
    assert mean_distance(nltcs, strong.codes) < mean_distance(nltcs, alone.codes) - 0.01


def test_on_nltcs_a_doubt_about_clusters_falls_back_to_attributes_and_not_to_answers(nltcs):
    """At epsilon 4 chance makes joint redrawing look better in one run of five: here the third."""
    runs = [on_nltcs(nltcs, "4", seed) for seed in range(3)]
    assert all(run.helped for run in runs)
    assert all(len(names) == 1 for run in runs for names in run.parts)
