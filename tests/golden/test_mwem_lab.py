"""The figures of the MWEM lab: seeded, so the same every time; the limits leave room for noise."""

import json

import numpy as np
import pytest

import sfumato as sf
from sfumato.models.dense.model import DenseModel
from sfumato.models.model import answer_ranges
from sfumato.readers.array_table import ArrayTable


def mean_error(table, workload, truth, algorithm, epsilon, runs):
    errors = []
    for run in range(runs):
        curator = sf.Curator(
            table,
            protect=sf.OneRow(neighbors="replace"),
            budget=sf.PureDP(epsilon),
            rng=sf.simulation_rng(run),
        )
        chosen = algorithm
        if isinstance(algorithm, sf.Auto):
            chosen = algorithm.choose(curator).algorithm
        model = chosen.run(curator).model
        errors.append(np.abs(answer_ranges(model, workload.ranges) - truth).mean())
    return np.mean(errors)


@pytest.fixture
def counts(real_data):
    return np.array(json.loads((real_data / "mwem_lab" / "histogram.json").read_text())["counts"])


@pytest.fixture
def one_dimension(real_data, counts):
    schema = sf.Schema(columns=(sf.Integer(name="age", low=0, high=13),), dataset="lab")
    ages = counts.sum(axis=1)
    queries = json.loads((real_data / "mwem_lab" / "queries_1d.json").read_text())["queries"]
    workload = sf.ranges(schema, [{"age": query} for query in queries])
    table = ArrayTable(schema, {"age": np.repeat(np.arange(14), ages)})
    truth = np.array([ages[low : high + 1].sum() for low, high in queries])
    return table, workload, truth


@pytest.mark.parametrize(("epsilon", "mwem_at_most", "auto_at_most"), [(1, 45, 5), (10, 6, 0.5)])
def test_one_dimension_at_least_as_well_as_promised(
    one_dimension, epsilon, mwem_at_most, auto_at_most
):
    """The course has 256 and 244. Over 300 runs MWEM's mean is 43.7 +- 0.6 and 4.6 +- 0.1."""
    _, workload, _ = one_dimension
    mwem = sf.Mwem(workload=workload, rounds=30, repetitions=20)
    assert mean_error(*one_dimension, mwem, epsilon, runs=100) <= mwem_at_most
    auto = sf.Auto(workload=workload)
    assert mean_error(*one_dimension, auto, epsilon, runs=100) <= auto_at_most


def test_the_average_of_the_iterates_is_far_worse_than_the_last(one_dimension):
    """It counts the first iterates, which are close to uniform, as much as the last."""
    _, workload, _ = one_dimension
    average = sf.Mwem(workload=workload, rounds=30, repetitions=20, average=True)
    assert 800 < mean_error(*one_dimension, average, 1, runs=10) < 1_000


def test_two_dimensions_with_honest_noise(counts):
    columns = (sf.Integer(name="age", low=0, high=13), sf.Integer(name="help", low=0, high=3))
    schema = sf.Schema(columns=columns, dataset="lab")
    codes = np.unravel_index(np.repeat(np.arange(56), counts.reshape(-1)), (14, 4))
    table = ArrayTable(schema, {"age": codes[0], "help": codes[1]})
    workload = sf.random_ranges(schema, n=400, rng=sf.simulation_rng(0))
    real = DenseModel(schema=schema, counts=counts.astype(float))
    truth = answer_ranges(real, workload.ranges)
    assert mean_error(table, workload, truth, sf.Auto(workload=workload), 1, runs=30) <= 7
