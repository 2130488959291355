"""Is this person in? Shadow releases teach an attacker who knows everybody else.

The attacker has the table with and without one unusual row, makes releases of both, and learns
what tells them apart: counts of the row's values in the published rows and in the noisy counts,
the number of rows, the distance to the closest published row, and the row that stands where the
person's did. The best rule on those shadows, one number or a linear score (Fisher 1936), is tried
on fresh releases. After Stadler, Oprisanu, Troncoso 2022, arXiv 2011.07018.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Final

import numpy as np

import sfumato as sf
from attacks.figures import Figure, advantage_allowed, of_advantage
from sfumato.ledger import Ledger
from sfumato.privacy import OneRow
from sfumato.randomness import Rng, simulation_rng
from sfumato.readers.array_table import ArrayTable

DELTA: Final = "1e-6"
SIZES: Final = {"age": 5, "help": 4, "grade": 3, "member": 2}
OUTLIER: Final = np.array([4, 3, 2, 1])
"""A row that nobody else has, nor any of its values but rarely."""
SCHEMA: Final = sf.Schema.from_dict(dict(SIZES))
SUBSETS: Final = tuple(
    chain.from_iterable(combinations(range(len(SIZES)), size) for size in range(1, 5))
)
Release = Callable[[np.ndarray, Rng], tuple[np.ndarray, dict[tuple[int, ...], float]]]
"""From rows (one a person) to published rows, and noisy counts of the outlier by columns."""


def people(n: int, *, rng: Rng) -> np.ndarray:
    """Rows of a made-up table in which most people have the first values."""
    columns = []
    for size in SIZES.values():
        rare = rng.below(size, n)
        columns.append(np.where(rng.below(10, n) < 7, rare % 2, np.minimum(rare, size - 2)))
    return np.stack(columns, axis=1)


def ours(algorithm: object, epsilon: float, *, neighbors: str = "add-remove") -> Release:
    """Our release by an algorithm: its rows and its noisy counts, all that a folder holds."""
    pure = isinstance(algorithm, sf.Histogram | sf.PrivBayes | sf.Dp2Pub)
    budget = sf.PureDP(epsilon) if pure else sf.ApproxDP(epsilon, DELTA)

    def release(rows: np.ndarray, rng: Rng):
        table = ArrayTable(SCHEMA, dict(zip(SIZES, rows.T.copy(), strict=True)))
        curator = sf.Curator(
            table,
            protect=OneRow(neighbors=neighbors),
            budget=budget,
            ledger=Ledger.in_memory(dataset="attacked"),
            rng=rng,
        )
        made = sf.publish(algorithm, curator)
        shown = np.stack([made.data[name].cast("int64").to_numpy() for name in SIZES], axis=1)
        return shown, _noisy(made)

    return release


def _noisy(made: sf.TableRelease) -> dict[tuple[int, ...], float]:
    """The noisy counts of the outlier's cells, by the places of their columns."""
    found: dict[tuple[int, ...], float] = {}
    names = list(SIZES)
    for row in () if made.noisy is None else made.noisy.to_pylist():
        own = tuple(place for place, name in enumerate(names) if row.get(name) is not None)
        if all(_holds(row[names[place]], OUTLIER[place]) for place in own):
            found[own] = float(row["noisy_count"])
    return found


def _holds(label: str, code: int) -> bool:
    """Whether a cell is of a code: "3", or "2 to 4", or "1 | 3" where codes were merged."""
    if " to " in label:
        first, last = label.split(" to ")
        return int(first) <= code <= int(last)
    return str(code) in label.split(" | ")


def copied(rows: np.ndarray, rng: Rng):
    """Broken: as many rows drawn from the table itself, as an over-fitted model would."""
    return rows[rng.below(len(rows), len(rows))], {}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A score of a release's numbers, and from where on it says "in"."""

    weights: np.ndarray
    threshold: float

    def says_in(self, numbers: np.ndarray) -> np.ndarray:
        return numbers @ self.weights > self.threshold


def numbers_of(shown: np.ndarray, noisy: dict[tuple[int, ...], float]) -> np.ndarray:
    """What the attacker looks at, of one release."""
    same = shown == OUTLIER
    counts = [float(same[:, list(own)].all(axis=1).sum()) for own in SUBSETS]
    closest = float((~same).sum(axis=1).min()) if len(shown) else float(len(SIZES))
    last = float(same[-1].sum()) if len(shown) else 0.0
    at_noisy = (noisy.get(own, 0.0) for own in SUBSETS)
    return np.array([*counts, *at_noisy, closest, last, float(len(shown))])


def learned(inside: np.ndarray, outside: np.ndarray) -> Rule:
    """The best rule on shadow releases: one number, or Fisher's direction."""
    both = np.concatenate([inside, outside])
    scale = both.std(axis=0) + 1e-9
    gap = (inside.mean(axis=0) - outside.mean(axis=0)) / scale
    within = np.concatenate([inside - inside.mean(axis=0), outside - outside.mean(axis=0)]) / scale
    spread = within.T @ within / len(within) + 0.1 * np.eye(gap.size)
    directions = [np.linalg.solve(spread, gap) / scale]
    directions += [side * row for row in np.eye(gap.size) for side in (1.0, -1.0)]
    tried = [_cut(inside @ weights, outside @ weights) for weights in directions]
    best = max(range(len(tried)), key=lambda place: tried[place][0])
    return Rule(weights=directions[best], threshold=tried[best][1])


def _cut(inside: np.ndarray, outside: np.ndarray) -> tuple[float, float]:
    """The largest advantage of a threshold, and the threshold."""
    cuts = np.unique(np.concatenate([inside, outside]))
    if cuts.size == 1:
        return 0.0, float(cuts[0])
    cuts = (cuts[1:] + cuts[:-1]) / 2
    above = [np.searchsorted(np.sort(side), cuts, side="right") for side in (inside, outside)]
    gains = above[1] / outside.size - above[0] / inside.size
    return float(gains.max()), float(cuts[np.argmax(gains)])


def attacked(
    release: Release, *, replaced: bool, shadows: int, runs: int, n: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """What the rule said of fresh releases, with the target in and out."""
    others = people(n, rng=simulation_rng(seed))
    with_target = np.vstack([others, OUTLIER])
    without = np.vstack([others, others[:1]]) if replaced else others

    def seen(rows: np.ndarray, count: int, base: int) -> np.ndarray:
        return np.stack(
            [numbers_of(*release(rows, simulation_rng(base + run))) for run in range(count)]
        )

    first = 1_000_000 * (seed + 1)
    rule = learned(seen(with_target, shadows, first), seen(without, shadows, first + 200_000))
    return (
        rule.says_in(seen(with_target, runs, first + 400_000)),
        rule.says_in(seen(without, runs, first + 600_000)),
    )


def methods() -> dict[str, tuple[object, str]]:
    """Every central method, with the neighbors it protects."""
    pairs = sf.all_marginals(SCHEMA, degree=2)
    return {
        "histogram": (sf.Histogram(), "add-remove"),
        "independent": (sf.Independent(), "add-remove"),
        "mwem": (sf.Mwem(workload=pairs, rounds=3), "add-remove"),
        "mst": (sf.Mst(), "add-remove"),
        "cliquetree": (sf.CliqueTree(workload=pairs), "add-remove"),
        "aim": (sf.Aim(workload=pairs), "add-remove"),
        "privbayes": (sf.PrivBayes(), "replace"),
        "dp2pub": (sf.Dp2Pub(), "replace"),
    }


SLOW: Final = ("mst", "cliquetree", "aim")
LOUD: Final = ("histogram", "privbayes", "mst")


def figures(*, quick: bool) -> list[Figure]:
    """Membership against copies, against a hundredth of the noise, and against each method."""
    sizes = {"shadows": 60, "runs": 100} if quick else {"shadows": 150, "runs": 400}
    sides = attacked(copied, replaced=True, shadows=200, runs=1_000, n=120, seed=1)
    found = [_figure(sides, "rows drawn from the table", mine=False)]
    for name in ("histogram",) if quick else (m for m in methods() if m not in SLOW):
        found += _of_method(name, sizes)
    return found


def of_models(*, quick: bool) -> list[Figure]:
    """The same against the methods that fit graphical models, which take longer."""
    sizes = {"shadows": 20, "runs": 40} if quick else {"shadows": 80, "runs": 250}
    return [figure for name in SLOW for figure in _of_method(name, sizes)]


def _of_method(name: str, sizes: dict[str, int]) -> list[Figure]:
    algorithm, neighbors = methods()[name]
    common = {"replaced": neighbors == "replace", "n": 120, "seed": 1, **sizes}
    found = []
    if name in LOUD:
        sides = attacked(ours(algorithm, 100, neighbors=neighbors), **common)
        found.append(_figure(sides, f"{name} with epsilon 100, called 1", mine=False))
    sides = attacked(ours(algorithm, 1, neighbors=neighbors), **common)
    return [*found, _figure(sides, f"sfumato {name}, epsilon 1, {neighbors}", mine=True)]


def _figure(sides: tuple[np.ndarray, np.ndarray], target: str, *, mine: bool) -> Figure:
    allowed = advantage_allowed(1.0, float(DELTA))
    return of_advantage(*sides, attack="membership", target=target, ours=mine, allowed=allowed)
