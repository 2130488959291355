"""The metric of the synthesis benchmarks, for sfumato and for its peers alike.

SFUMATO_DATA=... python bench/synthesis_metric.py

Mean total variation over all pairs of columns and over 64 triples, chosen once. Printed: the two
baselines without privacy, columns permuted independently (exact one-ways, no dependence) and rows
resampled (what a table of that many rows has to miss).
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.randomness import Rng, simulation_rng

Codes = NDArray[np.int64]

TABLES = ("adult", "nltcs", "br2000")
TRIPLES = 64


@dataclass(frozen=True, kw_only=True)
class BenchTable:
    """A real table as codes, one row a person."""

    name: str
    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: Codes


def read_table(name: str) -> BenchTable:
    """A table of SFUMATO_DATA; its domain file gives a size by column, bare or under "domain"."""
    folder = Path(os.environ["SFUMATO_DATA"]) / name
    domain = json.loads((folder / f"{name}-domain.json").read_text())
    sizes = [one["domain"] if isinstance(one, dict) else one for one in domain.values()]
    codes = np.loadtxt(folder / f"{name}.csv", dtype=np.int64, delimiter=",", skiprows=1)
    return BenchTable(name=name, columns=tuple(domain), sizes=tuple(sizes), codes=codes)


def chosen_triples(columns: int) -> list[tuple[int, ...]]:
    """64 triples of columns, or all where there are fewer: the same in every run.

    Drawn by numpy's legacy generator, whose streams never change again. Other choices of triples
    move the figures: permuted columns of Adult have .17 to .19.
    """
    every = list(combinations(range(columns), 3))
    order = np.random.RandomState(0).permutation(len(every))
    return [every[place] for place in sorted(order[:TRIPLES])]


def pairs_and_triples(
    real_codes: Codes, synthetic_codes: Codes, sizes: Sequence[int]
) -> tuple[float, float]:
    """Mean total variation over all pairs, and over the chosen triples.

    Shares are compared, so the tables may have different numbers of rows.

    >>> same = np.array([[0, 0, 1], [1, 1, 0]])
    >>> pairs_and_triples(same, same, (2, 2, 2))
    (0.0, 0.0)
    >>> pairs_and_triples(same, same[:, [0, 2, 1]], (2, 2, 2))
    (0.6666666666666666, 1.0)
    """
    for codes in (real_codes, synthetic_codes):
        _check_codes(codes, sizes)
    means = [
        float(np.mean([_distance(real_codes, synthetic_codes, sizes, one) for one in marginals]))
        for marginals in (list(combinations(range(len(sizes)), 2)), chosen_triples(len(sizes)))
    ]
    return means[0], means[1]


def permuted_columns(codes: Codes, *, rng: Rng) -> Codes:
    """Every column in an order of its own: exact one-ways and nothing else."""
    return np.column_stack([column[rng.permutation(len(codes))] for column in codes.T])


def resampled_rows(codes: Codes, *, rng: Rng) -> Codes:
    """As many rows drawn with replacement: the sampling error alone."""
    return codes[rng.below(len(codes), len(codes))]


def _distance(
    real: Codes, synthetic: Codes, sizes: Sequence[int], marginal: tuple[int, ...]
) -> float:
    """Total variation of one marginal: half the sum of |difference of shares|."""
    shape = tuple(sizes[column] for column in marginal)
    shares = []
    for codes in (real, synthetic):
        cells = np.ravel_multi_index(tuple(codes[:, column] for column in marginal), shape)
        shares.append(np.bincount(cells, minlength=int(np.prod(shape))) / len(codes))
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _check_codes(codes: Codes, sizes: Sequence[int]) -> None:
    if codes.ndim != 2 or codes.shape[1] != len(sizes) or len(codes) == 0:
        raise InputError(
            f"codes must be rows of {len(sizes)} columns, got an array of shape {codes.shape}. "
            "Nothing was compared."
        )
    if (codes < 0).any() or (codes >= np.asarray(sizes)).any():
        raise InputError(
            f"codes must be 0 up to the size of their column, {tuple(sizes)}; got up to "
            f"{tuple(codes.max(axis=0).tolist())}. Nothing was compared."
        )


def main() -> None:
    for name in TABLES:
        table = read_table(name)
        rows, columns = table.codes.shape
        print(f"{name}: {rows:,} x {columns}")
        for title, made in (
            ("columns permuted", permuted_columns(table.codes, rng=simulation_rng(0))),
            ("rows resampled", resampled_rows(table.codes, rng=simulation_rng(0))),
        ):
            tv2, tv3 = pairs_and_triples(table.codes, made, table.sizes)
            print(f"  {title:<18}{tv2:.4f} / {tv3:.4f}")


if __name__ == "__main__":
    main()
