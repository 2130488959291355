"""What a command was asked for, in the forms in which people give it, checked without data."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from sfumato import check
from sfumato.commands.parameters import WORKLOADS
from sfumato.errors import InputError
from sfumato.models.dense.model import CELL_LIMIT
from sfumato.privacy.protection import Neighbors, OnePerson, OneRow, Protection
from sfumato.publishing.methods import LEAST_EPSILON
from sfumato.schema import Schema, Workload, all_marginals, load_workload
from sfumato.schema.measurement import PublicTotal, load_totals

MOST_VALUES: Final = 2 * 10**10
"""Rows times columns of what is published: a billion rows of twenty columns can be written."""
LEAST_SCHEMA_EPSILON: Final = Fraction(1, 10**6)
"""For finding a schema: with less, noise is all that is found."""


def loaded_schema(given: Schema | Mapping[str, Any] | str | Path) -> Schema:
    """A schema as it is given: itself, its content or its file."""
    if isinstance(given, Schema):
        return given
    return Schema.from_dict(given) if isinstance(given, Mapping) else Schema.load(given)


def read_strictly(schema: Schema, strict: bool) -> Schema:
    """The same schema, to be read strictly if that is asked for."""
    return replace(schema, file=replace(schema.file, strict=True)) if strict else schema


def asked_workload(schema: Schema, given: Workload | str | Path | None) -> Workload:
    """A workload as it is given: itself, a degree, its file, or none: then all pairs."""
    if isinstance(given, Workload):
        if given.schema.columns != schema.columns:
            raise InputError("the workload was made for another schema.")
        return given
    if given is None:
        return all_marginals(schema, degree=min(2, len(schema)))
    degree = WORKLOADS.get(str(given))
    if degree is not None:
        return all_marginals(schema, degree=degree)
    if not Path(given).is_file():
        raise InputError(f"workload must be 1-way, 2-way, 3-way or a file, got {str(given)!r}.")
    return load_workload(schema, given)


def check_ranges(workload: Workload) -> None:
    """Refuse, before anything is spent, a range that no report could answer."""
    for box in workload.ranges:
        cells = workload.schema.cells(box.marginal)
        if cells > CELL_LIMIT:
            raise InputError(
                f"the workload has a range over {len(box.bounds)} columns with "
                f"{Decimal(cells):.2e} cells; at most {CELL_LIMIT:,} can be answered. Limit fewer "
                "columns."
            )


def asked_totals(
    schema: Schema, given: Sequence[PublicTotal] | str | Path
) -> tuple[PublicTotal, ...]:
    """Public totals as they are given: themselves, or their file."""
    return load_totals(schema, given) if isinstance(given, str | Path) else tuple(given)


def check_rows(rows: int | None, neighbors: Neighbors) -> None:
    """Refuse a public number of rows that is none, or that the neighbors make public anyway."""
    if rows is None:
        return
    check.whole(at_least=1, at_most=MOST_VALUES, rows=rows)
    if neighbors == "replace":
        raise InputError("with replace the number of rows is public and counted: leave --rows out.")


def check_size(rows: int, columns: int, *, values: int = MOST_VALUES) -> int:
    """A number of rows that can be drawn and written; more are refused before any spend.

    Args:
        rows: To be published.
        columns: Of the schema.
        values: The most rows times columns.
    """
    most = values // columns
    if check.whole(at_least=1, rows=rows) > most:
        raise InputError(f"rows must be at most {most:,} for {columns} columns, got {rows:,}.")
    return rows


def check_schema_share(epsilon: check.Number, share: check.Number | None) -> None:
    """Refuse a share of epsilon that finds no schema or leaves no release, before it is spent."""
    if share is None:
        return
    whole, part = check.exact(epsilon=epsilon), check.exact(infer_share=share)
    if not 0 < part < 1 or whole < LEAST_EPSILON:
        return  # said by others
    if whole * part < LEAST_SCHEMA_EPSILON or whole * (1 - part) < LEAST_EPSILON:
        raise InputError(
            f"infer_share {share!s:.40} of epsilon {epsilon!s:.40} leaves nothing but noise: a "
            f"schema takes an epsilon of at least {float(LEAST_SCHEMA_EPSILON):g}, a release of at "
            f"least {float(LEAST_EPSILON):g}."
        )


def asked_protection(neighbors: Neighbors, person: str | None, max_rows: int | None) -> Protection:
    """Whom to protect: one row, or one person with a bounded number of rows."""
    if (person is None) != (max_rows is None):
        raise InputError(
            "one person with many rows needs both the column that names the person (--person) and "
            "the most rows that count (--max-rows)."
        )
    if person is None or max_rows is None:
        return OneRow(neighbors=neighbors)
    return OnePerson(column=person, max_rows=max_rows, neighbors=neighbors)


def dataset_name(schema: Schema, given: str | None) -> str:
    """The name that the budget belongs to; one must be given."""
    name = given if given is not None else schema.dataset
    if name is None or not name.strip():
        raise InputError(
            'the budget belongs to a data set, and none is named. Put "dataset" into the schema '
            "or give --dataset NAME."
        )
    return name


def check_resume(resume: bool | None, seed: int | None) -> None:
    """Refuse to resume what keeps no journal."""
    if resume and seed is not None:
        raise InputError(
            "a simulation costs nothing and keeps no journal, so it can't be resumed. Leave "
            "--resume or --seed out."
        )
