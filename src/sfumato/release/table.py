"""What may be published: a table, its guarantee, its ledger entries and how it was made.

Everything here is post-processing of measurements: the rows, drawn from a model in bounded memory,
and the noisy counts behind them. A folder written by ``save`` may be published whole; it appears
under its name only when it is complete.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError, StorageError
from sfumato.models.model import Model, PublishedRows, Rows, draw_possible
from sfumato.privacy import guarantees
from sfumato.privacy.guarantees import Guarantee, LocalDP
from sfumato.privacy.sensitivity import Protection, protection_from_json
from sfumato.randomness import Rng
from sfumato.release import formats
from sfumato.release.description import (
    describe_guarantee,
    promise,
    promise_facts,
    rows_card,
    versions,
)
from sfumato.release.folder import (
    as_copy,
    naming_copy,
    read_description,
    reading,
    save_release,
    write_description,
)
from sfumato.release.formats import as_written, without_formulas
from sfumato.release.rules import Moved, keep_rules, rule_facts
from sfumato.schema import Column, Marginal, Measurement, Range, Schema
from sfumato.schema.codes import code_type, decode

FORMAT: Final = 1
"""Of ``release.json``: raised when an older version could not read a new file."""
MOST_CSV_ROWS = 5_000_000
"""Of noisy counts; more are written as Parquet only."""


_MODELS: Final[Mapping[str, str]] = {
    "dense": "sfumato.models.dense.model:DenseModel",
    "bayes_net": "sfumato.models.bayes.model:BayesNet",
    "mixture": "sfumato.models.answers.mixture:MixtureModel",
    "graphical": "sfumato.models.graphical.model:GraphicalModel",
    "divided": "sfumato.models.divided:DividedModel",
    "none": "sfumato.models.model:PublishedRows",
}
"""The models that a release can save, by the name in ``release.json``; loaded when one is read."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TableRelease:
    """A published table and all that is needed to check what it promises."""

    dataset: str
    guarantee: Guarantee
    protect: Protection
    private: bool
    """False for what a seeded generator made: it protects nobody and may not be published."""
    method: Mapping[str, Any]
    schema: Schema
    model: Model
    """What the rows were drawn from, or ``PublishedRows`` if they were drawn from none."""
    measurements: tuple[Mapping[str, Any], ...]
    """What was measured and with how much noise, without the values."""
    data: pa.Table
    """The rows as published."""
    ledger: Mapping[str, Any]
    """The head of the ledger and this run's entries."""
    noisy: pa.Table | None = None
    """The counts as they were measured (``noisy_marginals``); None where they were not stored."""
    versions: Mapping[str, str] = field(default_factory=lambda: versions())
    command: Mapping[str, Any] = field(default_factory=dict)
    """The public options of the command that made it; empty where none did."""
    _copy: Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.guarantee, LocalDP) and self.protect.neighbors != "replace":
            raise InputError(
                "a local guarantee is about what a person answers, not about whether they answer: "
                f"protect must be of neighbors='replace', got {self.protect}."
            )
        if not self.model_kind:
            raise InputError(f"a release can't save {self.model!r:.60}.")

    @property
    def model_kind(self) -> str:
        """The name under which the model is saved, like ``dense``; empty for one that can't be."""
        path = f"{type(self.model).__module__}:{type(self.model).__qualname__}"
        return next((kind for kind, listed in _MODELS.items() if listed == path), "")

    @property
    def kept(self) -> Path | None:
        """The copy beside the ledger; None if there is none, or when ``save`` has deleted it."""
        return self._copy if self._copy is not None and self._copy.exists() else None

    def table(self, *, n_rows: int | None = None, rng: Rng) -> pa.Table:
        """New rows from the same model: post-processing, it costs nothing.

        Without a model, some or all of the published rows; more are refused.

        Args:
            n_rows: How many; by default as many as the model stands for, which is a noisy or
                public number, never the secret one.
            rng: Where the randomness comes from.
        """
        rows = round(self.model.total) if n_rows is None else n_rows
        with naming_copy(self.kept):
            return draw_table(self.model, n_rows=check.whole(at_least=0, n_rows=rows), rng=rng)

    def marginals(self) -> pa.Table:
        """Every noisy count that was measured, with its standard error: a row for each cell.

        About 19 times in 20 the true count is less than two standard errors away. The counts are
        as they were drawn: some lie below zero, and sums over different marginals do not agree.
        """
        if self.noisy is None:
            raise InputError(
                "this release holds no noisy counts: it was made from answers of devices, or by "
                "an older version. Use model.marginal or the rows."
            )
        return self.noisy

    @property
    def marginals_fit_csv(self) -> bool:
        """Whether the noisy counts are written as text too, where the rows are."""
        return self.noisy is not None and self.noisy.num_rows <= MOST_CSV_ROWS

    def to_pandas(self, rows: pa.Table | None = None) -> Any:
        """The published rows, or others from ``table``, as a ``pandas.DataFrame``.

        Types are the schema's: categories with all declared values, ordinals in order, ``Int64``
        and ``boolean`` where a value may be missing, ``datetime64`` for days and moments.
        """
        with naming_copy(self.kept):
            return formats.to_pandas(self.schema, self.data if rows is None else rows)

    def to_polars(self, rows: pa.Table | None = None) -> Any:
        """The published rows, or others from ``table``, as a ``polars.DataFrame``."""
        with naming_copy(self.kept):
            return formats.to_polars(self.schema, self.data if rows is None else rows)

    def __repr__(self) -> str:
        """One line: the rows themselves are in ``data``."""
        size = f"{self.data.num_rows:,} rows x {self.data.num_columns} columns"
        stated = promise(self.guarantee, self.protect, private=self.private)
        return f"<TableRelease {self.dataset!r}: {size}; {self.method.get('name')}; {stated}>"

    def _repr_html_(self) -> str:
        """For notebooks: the promise, a few rows, the first columns."""
        facts = promise_facts(
            self.guarantee,
            self.protect,
            private=self.private,
            method=self.method,
            ledger=self.ledger,
        )
        size = f"{self.data.num_rows:,} rows, {self.data.num_columns} columns"
        return rows_card(f"{self.dataset}: {size}", facts, self.schema, self.data)

    def to_dict(self) -> dict[str, Any]:
        """The content of ``release.json``."""
        return {
            "sfumato": FORMAT,
            "kind": "table",
            "dataset": self.dataset,
            "private": self.private,
            "guarantee": describe_guarantee(self.guarantee, self.protect),
            "method": dict(self.method),
            "rows": self.data.num_rows,
            "schema": self.schema.to_dict(),
            "model": self.model_kind,
            "measurements": [dict(entry) for entry in self.measurements],
            "ledger": dict(self.ledger),
            "versions": dict(self.versions),
            **({"command": dict(self.command)} if self.command else {}),
        }

    def save(self, folder: str | Path, *, csv: bool = False, force: bool = False) -> None:
        """Write the rows, the noisy marginals, ``release.json`` and the model into a new folder.

        The name of a folder for a simulation must end in ``-internal``; only its owner can read it.
        The copy beside the ledger is deleted then; if this fails, the error names it.

        Args:
            folder: Where to.
            csv: Write the rows as text, too.
            force: Replace a release that is there.
        """
        write = partial(self.write_into, csv=csv)
        save_release(self, Path(folder), force=force, write=write)

    def write_into(self, folder: Path, *, csv: bool = False) -> None:
        """Write the files into a folder that exists."""
        pyarrow.parquet.write_table(self.data, folder / "data.parquet")
        if self.noisy is not None:
            pyarrow.parquet.write_table(self.noisy, folder / "marginals.parquet")
        if csv:
            pyarrow.csv.write_csv(as_written(self.schema, self.data), folder / "data.csv")
            if self.marginals_fit_csv and self.noisy is not None:
                pyarrow.csv.write_csv(without_formulas(self.noisy), folder / "marginals.csv")
        write_description(folder, self.to_dict(), self.model.arrays())

    @staticmethod
    def load(folder: str | Path) -> "TableRelease":
        """Read what ``save`` wrote."""
        folder = Path(folder)
        with reading(folder, "release.json", "data.parquet", "model.npz"):
            value, arrays = read_description(folder)
            data = pyarrow.parquet.read_table(folder / "data.parquet")
            counts = folder / "marginals.parquet"
            noisy = pyarrow.parquet.read_table(counts) if counts.exists() else None
            release = _from_parts(value, data, arrays)
            return replace(release, noisy=noisy, _copy=as_copy(folder))


def _from_parts(value: Any, data: pa.Table, arrays: Mapping[str, Any]) -> TableRelease:
    if value["sfumato"] != FORMAT or value["kind"] != "table":
        raise InputError(f"no table release of format {FORMAT}")
    schema = Schema.from_dict(value["schema"])
    promise = value["guarantee"]
    return TableRelease(
        dataset=value["dataset"],
        guarantee=guarantees.from_json(promise["exact"]),
        protect=protection_from_json(promise),
        private=value["private"],
        method=value["method"],
        schema=schema,
        model=_model_from(schema, value["model"], arrays, data),
        measurements=tuple(value["measurements"]),
        data=data,
        ledger=value["ledger"],
        versions=value["versions"],
        command=value.get("command", {}),
    )


def _model_from(schema: Schema, kind: str, arrays: Mapping[str, Any], data: pa.Table) -> Model:
    if kind == "none":
        return PublishedRows.of(schema, data)
    if kind not in _MODELS:
        raise InputError(
            f"its model is of the kind {kind!r}, which this version does not know. The rows are in "
            "data.parquet."
        )
    model: Model = resolve_name(_MODELS[kind]).from_arrays(schema, arrays)
    return model


ALL_ROWS: Final = "(all rows)"
"""The name of the marginal of no columns: how many rows there are."""
FIGURES: Final = ("marginal", "noisy_count", "standard_error")
_TEXT: Final = pa.dictionary(pa.int32(), pa.string())


def noisy_marginals(schema: Schema, measurements: Sequence[Measurement]) -> pa.Table | None:
    """All measurements as one long table, for analysts who weigh them; None where there are none.

    A row for each cell that was measured: the measured columns, the value of each as its label,
    the count as it came from the curator (below zero at times, and sums do not agree) and its
    standard error. What was public and exact has the standard error 0.
    """
    if not measurements:
        return None
    measured = {name for each in measurements for name in _columns(each)}
    names = tuple(name for name in schema.names if name in measured)
    parts = [_part(schema, each, names) for each in measurements]
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def value_column(name: str) -> str:
    """Where the values of a column stand: under its name, if that is free."""
    return f"{name} (column)" if name in FIGURES else name


def cell_labels(schema: Schema, measurement: Measurement, name: str) -> Sequence[str]:
    """A text for each index along one axis of a measurement's values."""
    target = measurement.target
    if isinstance(target, Range):
        low, high = next((low, high) for other, low, high in target.bounds if other == name)
        return (_label(schema[name], range(low, high + 1)),)
    if measurement.merged is None or name not in measurement.merged.groups:
        return schema[name].labels
    groups = measurement.merged.groups[name]
    merged = [np.flatnonzero(groups == group).tolist() for group in range(int(groups.max()) + 1)]
    return [_label(schema[name], codes) for codes in merged]


def _label(column: Column, codes: Sequence[int]) -> str:
    """Several codes in one text: from the first to the last where they follow each other."""
    labels = column.labels
    follow = column.ordered and codes[-1] - codes[0] + 1 == len(codes) > 1
    if follow and codes[-1] != column.missing_code:
        return f"{labels[codes[0]]} to {labels[codes[-1]]}"
    return " | ".join(labels[code] for code in codes)


def _columns(measurement: Measurement) -> Marginal:
    target = measurement.target
    return target.marginal if isinstance(target, Range) else target


def _part(schema: Schema, measurement: Measurement, names: Marginal) -> pa.Table:
    """One measurement: cells in the order of its values, with all columns that any has."""
    target, size = _columns(measurement), measurement.values.size
    labels = {name: cell_labels(schema, measurement, name) for name in target}
    shape = [len(own) for own in labels.values()]
    columns = {"marginal": _texts(np.zeros(size), [" × ".join(target) or ALL_ROWS])}
    for name in names:
        if name in labels:
            index = np.arange(len(labels[name])).reshape([-1 if name == n else 1 for n in target])
            column = _texts(np.broadcast_to(index, shape).reshape(-1), labels[name])
        else:
            column = pa.nulls(size, _TEXT)
        columns[value_column(name)] = column
    columns["noisy_count"] = pa.array(measurement.values.reshape(-1), pa.float64())
    columns["standard_error"] = pa.array(np.full(size, measurement.sigma_counts))
    return pa.table(columns)


def _texts(codes: NDArray[Any], labels: Sequence[str]) -> pa.Array:
    indices = pa.array(codes.astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(labels, pa.string()))


BLOCK_ROWS: Final = 2**20
"""Rows that are drawn together."""
MEMORY_BYTES: Final = 2**29
"""Larger tables lie in a temporary file."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Rows drawn from a model, and what the rules between columns changed in them."""

    table: pa.Table
    model: Model
    """What they were drawn from; of published rows, these rows themselves."""
    facts: Mapping[str, Any]
    """For a release's ``method``: the rules and their price; empty without rules."""


def draw_table(model: Model, *, n_rows: int, rng: Rng) -> pa.Table:
    """Rows of a model as values of its schema: none is impossible, all keep all rules."""
    return draw_rows(model, n_rows=n_rows, rng=rng).table


def draw_rows(model: Model, *, n_rows: int, rng: Rng) -> Drawn:
    """The same rows, with the price of the rules.

    Many rows are drawn in blocks, each rounded to the model by itself: codes never take more
    memory than a block of them, and a row costs the same however many there are. What is too large
    for the memory is in a temporary file, from which the table is read as it is used.
    """
    parts = (
        _whole(model, n_rows, rng)
        if isinstance(model, PublishedRows)
        else (
            draw_possible(model, min(BLOCK_ROWS, n_rows - start), rng=rng)
            for start in _starts(n_rows)
        )
    )
    moved: list[Moved] = []
    table = _together(_values(model.schema, part, rng, moved) for part in parts)
    if moved and isinstance(model, PublishedRows):
        model = PublishedRows.of(model.schema, table)
    return Drawn(table=table, model=model, facts=rule_facts(model.schema, moved) if moved else {})


def _whole(model: Model, n_rows: int, rng: Rng) -> Iterator[Rows]:
    """Rows that are drawn without replacement, and so at once; their blocks."""
    rows = draw_possible(model, n_rows, rng=rng)
    for start in _starts(n_rows):
        yield {name: codes[start : start + BLOCK_ROWS] for name, codes in rows.items()}


def _starts(n_rows: int) -> range:
    return range(0, max(n_rows, 1), BLOCK_ROWS)


def _values(schema: Schema, rows: Rows, rng: Rng, moved: list[Moved]) -> pa.Table:
    table = pa.table(
        {
            column.name: decode(column, rows[column.name].astype(code_type(column)), rng=rng)
            for column in schema
        }
    )
    if not schema.rules:
        return table
    table, what = keep_rules(schema, table, rows, rng=rng)
    moved.append(what)
    return table


def _together(blocks: Iterator[pa.Table]) -> pa.Table:
    drawn: deque[pa.Table] = deque()
    for block in blocks:
        drawn.append(block)
        if sum(each.nbytes for each in drawn) > MEMORY_BYTES:
            return _mapped(_emptied(drawn, blocks))
    return pa.concat_tables(drawn)


def _emptied(drawn: deque[pa.Table], more: Iterator[pa.Table]) -> Iterator[pa.Table]:
    while drawn:
        yield drawn.popleft()
    yield from more


def _mapped(blocks: Iterator[pa.Table]) -> pa.Table:
    """The blocks in a file that has no name any more: it is gone when the table is."""
    first = next(blocks)
    try:
        with TemporaryDirectory(prefix="sfumato-rows-", ignore_cleanup_errors=True) as folder:
            path = str(Path(folder, "rows.arrow"))
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, first.schema) as writer:
                writer.write_table(first)
                for block in blocks:
                    writer.write_table(block)
            return pa.ipc.open_file(pa.memory_map(path)).read_all()
    except OSError as error:
        raise StorageError(
            "the drawn rows do not fit in memory, and can't be written to a temporary file: "
            f"{error.strerror or 'the disk is full'}. TMPDIR names the folder for such files."
        ) from None
