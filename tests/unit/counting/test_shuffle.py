"""Rows in a random order: none is lost, and each order is as likely as any other."""

from collections import Counter
from collections.abc import Iterator
from math import factorial

import pyarrow as pa
import pytest

from sfumato.counting import shuffle
from sfumato.randomness import simulation_rng

RUNS = 1_200


def batches(rows: int, size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, size):
        yield pa.record_batch({"x": range(start, min(start + size, rows))})


def column(found: Iterator[pa.RecordBatch]) -> list[int]:
    return [value for batch in found for value in batch["x"].to_pylist()]


@pytest.mark.parametrize("held", [10, 10**6], ids=["piles", "in memory"])
def test_every_row_comes_once(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "MEMORY_ROWS", held)
    found = column(shuffle.mixed(batches(1_000, 300), rng=simulation_rng(0)))
    assert sorted(found) == list(range(1_000))
    assert found != list(range(1_000))


def test_few_rows_of_many_bytes_are_put_on_piles_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "MEMORY_BYTES", 100)
    monkeypatch.setattr(shuffle, "PILES", 3)
    wide = [pa.record_batch({"x": [n], "bytes": [b"." * 60]}) for n in range(20)]
    assert sorted(column(shuffle.mixed(iter(wide), rng=simulation_rng(0)))) == list(range(20))
    made = [pa.record_batch({"x": [0], "bytes": [b"." * 600]})]  # one row needs no order
    assert column(shuffle.mixed(iter(made), rng=simulation_rng(0))) == [0]


@pytest.mark.parametrize("held", [0, 10**6], ids=["piles", "in memory"])
def test_each_order_is_as_likely_as_any_other(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-squared of 24 orders; the bound is passed by chance once in a million (23 degrees)."""
    monkeypatch.setattr(shuffle, "MEMORY_ROWS", held)
    monkeypatch.setattr(shuffle, "PILES", 2)
    runs = RUNS // 5 if held == 0 else RUNS  # files take longer
    assert chi_squared(held_runs(runs, seed=3), runs) < 71.5


def test_the_check_above_rejects_an_order_that_one_row_in_five_keeps() -> None:
    rng = simulation_rng(1)
    stays = rng.below(5, RUNS) == 0
    found = held_runs(RUNS, seed=4)
    kept = [(0, 1, 2, 3) if stay else order for stay, order in zip(stays, found, strict=True)]
    assert chi_squared(kept, RUNS) > 71.5


def held_runs(runs: int, seed: int) -> list[tuple[int, ...]]:
    rng = simulation_rng(seed)
    return [tuple(column(shuffle.mixed(batches(4, 2), rng=rng))) for _ in range(runs)]


def chi_squared(orders: list[tuple[int, ...]], runs: int) -> float:
    expected = runs / factorial(4)
    counts = Counter(orders)
    missing = factorial(4) - len(counts)
    return sum((n - expected) ** 2 for n in counts.values()) / expected + missing * expected


def test_no_rows_are_no_batches() -> None:
    assert list(shuffle.mixed(iter([]), rng=simulation_rng(0))) == []
