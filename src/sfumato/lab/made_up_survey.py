"""A made-up survey for the demo: 12,000 people who do not exist, in a table like real ones."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from sfumato.errors import InputError
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Integer, Number, Ordinal, Schema

PEOPLE = 12_000
"""Rows of the table: enough that a synthetic table looks like it, and a second of work."""

SCHEMA = Schema(
    dataset="demo-survey",
    columns=(
        Integer(name="age", low=18, high=89, step=6),
        Ordinal(name="education", values=("primary", "secondary", "tertiary"), missing=True),
        Boolean(name="smoker"),
        Number(name="income", edges=(0, 15_000, 30_000, 50_000, 80_000, 150_000)),
        Category(name="region", values=("north", "south", "east", "west")),
        Ordinal(name="health", values=("poor", "fair", "good", "very good")),
    ),
)


def paths(folder: Path) -> tuple[Path, Path]:
    """The paths of the survey and its schema in a folder."""
    return folder / "survey.csv", folder / "survey.schema.json"


def check_free(folder: Path, *, force: bool) -> None:
    """Refuse to overwrite files unless ``force``; never write through a link."""
    for path in (folder, *paths(folder)):
        if path.is_symlink():
            raise InputError(f"{path} is a link. Choose another --out.")
    for path in paths(folder):
        if path.exists() and not (force and path.is_file()):
            raise InputError(f"{path} exists. Choose another --out, or --force.")


def make(folder: Path) -> tuple[Path, Path]:
    """Write the survey and its schema; returns both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    table, schema = paths(folder)
    pyarrow.csv.write_csv(_people(), table)
    SCHEMA.save(schema)
    return table, schema


def _people() -> pa.Table:
    """People whose income rises with education, and whose health falls with age and smoking."""
    rng = simulation_rng(7)
    age = 18 + (72 * rng.uniform(PEOPLE) ** 1.3).astype(int)
    education = np.clip((3.2 * rng.uniform(PEOPLE) - age / 120).astype(int), 0, 2)
    smoker = rng.uniform(PEOPLE) < 0.32 - 0.09 * education
    income = (9_000 + 22_000 * education) * np.exp(1.1 * (rng.uniform(PEOPLE) - 0.4))
    region = (4 * rng.uniform(PEOPLE) ** 1.2).astype(int)
    health = np.clip((5.0 * rng.uniform(PEOPLE) + 0.4 - age / 60 - smoker).astype(int), 0, 3)
    unknown = rng.uniform(PEOPLE) < 0.04
    levels = SCHEMA["education"].labels
    return pa.table(
        {
            "age": age,
            "education": pa.array([levels[e] for e in education], mask=unknown),
            "smoker": np.where(smoker, "yes", "no"),
            "income": np.round(income, 2),
            "region": [SCHEMA["region"].labels[r] for r in region],
            "health": [SCHEMA["health"].labels[h] for h in health],
        }
    )
