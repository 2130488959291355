"""Singling out, linking and inferring from published rows, by Anonymeter in its own environment.

Half of a sample of Adult is published, the other half is the control. Who is in a table can't be
attacked much better than who is not: a rate c on the control allows at most e^epsilon c + delta on
those inside, and 1 - (1 - c - delta) / e^epsilon. For linking and inferring, where each attack is
about one person, that is a theorem; for singling out, which looks at all rows, only a yardstick.
"""

import csv
import os
import sys
import tempfile
from math import exp
from pathlib import Path
from typing import Final

import numpy as np

import sfumato as sf
from attacks.figures import Figure
from environments import HERE, ask, peer_python
from sfumato.ledger import Ledger
from sfumato.privacy import OneRow
from sfumato.randomness import Rng, simulation_rng
from sfumato.readers.array_table import ArrayTable

COLUMNS: Final = (
    "age",
    "workclass",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "sex",
    "hours-per-week",
    "income>50K",
)
SECRET: Final = "occupation"
CHANGED: Final = "the rows, one value in ten changed"
DELTA: Final = 1e-9


def read(folder: Path, rows: int, *, rng: Rng) -> tuple[sf.Schema, np.ndarray, np.ndarray]:
    """The columns of so many random people, and of as many others."""
    sizes = sf.Schema.load(folder / "adult" / "adult-domain.json")
    with (folder / "adult" / "adult.csv").open() as file:
        lines = list(csv.DictReader(file))
    chosen = rng.permutation(len(lines))[: 2 * rows]
    codes = np.array([[int(lines[place][name]) for name in COLUMNS] for place in chosen])
    schema = sf.Schema.from_dict({name: sizes[name].size for name in COLUMNS})
    return schema, codes[:rows], codes[rows:]


def copied(schema: sf.Schema, codes: np.ndarray, rng: Rng) -> np.ndarray:
    """Broken: the rows themselves in another order."""
    return codes[rng.permutation(len(codes))]


def swapped(schema: sf.Schema, codes: np.ndarray, rng: Rng) -> np.ndarray:
    """Names removed and one value in ten changed, as "anonymized" tables are; claims nothing."""
    changed = rng.below(10, codes.size).reshape(codes.shape) == 0
    other = np.stack([column[rng.permutation(len(codes))] for column in codes.T], axis=1)
    return np.where(changed, other, codes)


def ours(method: object):
    """Our rows at epsilon 1."""

    def release(schema: sf.Schema, codes: np.ndarray, rng: Rng) -> np.ndarray:
        table = ArrayTable(schema, dict(zip(schema.names, codes.T.copy(), strict=True)))
        curator = sf.Curator(
            table,
            protect=OneRow(),
            budget=sf.ApproxDP(1, "1e-9"),
            ledger=Ledger.in_memory(dataset="attacked"),
            rng=rng,
        )
        data = sf.publish(method, curator).data
        return np.stack([data[name].cast("int64").to_numpy() for name in schema.names], axis=1)

    return release


def allowed_risk(control: float) -> float:
    """What a rate on the control allows beyond it, as Anonymeter counts: (r - c) / (1 - c)."""
    inside = min(1.0, exp(1) * control + DELTA, 1 - (1 - control - DELTA) / exp(1))
    return max(0.0, inside - control) / max(1 - control, 1e-9)


def attacked(
    tables: dict[str, np.ndarray], names: tuple[str, ...], *, attacks: int
) -> list[dict[str, float]]:
    """Anonymeter's figures for one published table."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name in ("original", "control", "published"):
            paths.append(str(Path(folder) / f"{name}.csv"))
            with Path(paths[-1]).open("w", newline="") as file:
                csv.writer(file).writerows([names, *tables[name].tolist()])
        peer = str(HERE / "peers" / "anonymeter_peer.py")
        python = str(peer_python("anonymeter"))
        asked = ["--attacks", str(attacks), "--secret", SECRET]
        return ask([python, peer, *paths, *asked])


def figures(*, quick: bool) -> list[Figure]:
    """A copy, a table with changed values, and ours."""
    if "SFUMATO_DATA" not in os.environ:
        print("singling: skipped, SFUMATO_DATA does not say where Adult is", file=sys.stderr)
        return []
    rows, attacks = (600, 100) if quick else (3_000, 600)
    folder = Path(os.environ["SFUMATO_DATA"])
    schema, original, control = read(folder, rows, rng=simulation_rng(1))
    pairs = sf.all_marginals(schema, degree=2)
    tried = {
        "the rows themselves": (copied, False),
        CHANGED: (swapped, False),
        "sfumato mst, epsilon 1": (ours(sf.Mst()), True),
    }
    if not quick:
        tried["sfumato cliquetree, epsilon 1"] = (ours(sf.CliqueTree(workload=pairs)), True)
        tried["sfumato independent, epsilon 1"] = (ours(sf.Independent()), True)
    found = []
    for target, (release, mine) in tried.items():
        published = release(schema, original, simulation_rng(2))
        tables = {"original": original, "control": control, "published": published}
        for told in attacked(tables, schema.names, attacks=attacks):
            found.append(_figure(told, target, mine))
    return found


def _figure(told: dict[str, float], target: str, mine: bool) -> Figure:
    rates = f"{told['attack_rate']:.3f} inside, {told['control_rate']:.3f} in the control"
    return Figure(
        attack=told["attack"],
        target=target,
        ours=mine,
        measure="risk",
        value=told["risk"],
        low=told["low"],
        high=told["high"],
        allowed=None if target == CHANGED else allowed_risk(told["control_rate"]),
        runs=int(told["attacks"]),
        note=rates,
    )
