"""What may be published: a table, its guarantee, its ledger entries and how it was made.

Everything here is post-processing of measurements. A folder written by ``save`` may be published
whole; it appears under its name only when it is complete.
"""

import json
import math
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from sfumato import check
from sfumato.errors import InputError, SfumatoError, StorageError
from sfumato.models.dense import DenseModel
from sfumato.models.mixture import MixtureModel
from sfumato.models.model import Model
from sfumato.models.product import ProductModel
from sfumato.models.rows import PublishedRows
from sfumato.models.tree import TreeModel
from sfumato.privacy import guarantees, protection
from sfumato.privacy.guarantees import Guarantee, LocalDP, PureDP
from sfumato.privacy.protection import Protection
from sfumato.randomness import Rng
from sfumato.schema import Measurement, Schema
from sfumato.schema.codes import code_type, decode

FORMAT = 1
_MARKS = ("release.json", "internal.html")
_OURS = {*_MARKS, "data.parquet", "data.csv", "model.npz", "report.html", "internal.json"}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


_MODELS: Mapping[type[object], str] = {
    DenseModel: "dense",
    ProductModel: "product",
    TreeModel: "tree",
    MixtureModel: "mixture",
    PublishedRows: "none",
}


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
    versions: Mapping[str, str] = field(default_factory=lambda: versions())

    def __post_init__(self) -> None:
        if isinstance(self.guarantee, LocalDP) and self.protect.neighbors != "replace":
            raise InputError(
                "a local guarantee is about what a person answers, not about whether they answer: "
                f"protect must be of neighbors='replace', got {self.protect}. Nothing was released."
            )
        if type(self.model) not in _MODELS:
            raise InputError(f"a release can't save {self.model!r:.60}. Nothing was released.")

    def table(self, *, n_rows: int | None = None, rng: Rng) -> pa.Table:
        """New rows from the same model: post-processing, it costs nothing.

        Without a model, some or all of the published rows; more are refused.

        Args:
            n_rows: How many; by default as many as the model stands for, which is a noisy or
                public number, never the secret one.
            rng: Where the randomness comes from.
        """
        rows = round(self.model.total) if n_rows is None else n_rows
        return draw_table(self.model, n_rows=check.whole(at_least=0, n_rows=rows), rng=rng)

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
            "model": _MODELS[type(self.model)],
            "measurements": [dict(entry) for entry in self.measurements],
            "ledger": dict(self.ledger),
            "versions": dict(self.versions),
        }

    def save(self, folder: str | Path, *, csv: bool = False) -> None:
        """Write ``data.parquet``, ``release.json`` and the model into a new folder."""
        check_free(Path(folder), force=False)
        with new_folder(Path(folder), force=False) as inside:
            self.write_into(inside, csv=csv)

    def write_into(self, folder: Path, *, csv: bool = False) -> None:
        """Write the files into a folder that exists."""
        pyarrow.parquet.write_table(self.data, folder / "data.parquet")
        if csv:
            pyarrow.csv.write_csv(_without_formulas(self.data), folder / "data.csv")
        np.savez_compressed(folder / "model.npz", allow_pickle=False, **self.model.arrays())
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False)
        (folder / "release.json").write_text(text + "\n", encoding="utf-8")

    @staticmethod
    def load(folder: str | Path) -> "TableRelease":
        """Read what ``save`` wrote."""
        folder = Path(folder)
        try:
            value = json.loads((folder / "release.json").read_text(encoding="utf-8"))
            data = pyarrow.parquet.read_table(folder / "data.parquet")
            with np.load(folder / "model.npz", allow_pickle=False) as saved:
                arrays = dict(saved)
            return _from_parts(value, data, arrays)
        except SfumatoError as error:
            raise InputError(f"{folder}: {error}") from None
        except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
            reason = getattr(error, "strerror", None) or "it is not a complete release"
            raise StorageError(f"can't read the release {folder}: {reason}") from None


def draw_table(model: Model, *, n_rows: int, rng: Rng) -> pa.Table:
    """Rows of a model as values of its schema."""
    rows = model.draw(n_rows, rng=rng)
    columns = {
        column.name: decode(column, rows[column.name].astype(code_type(column)), rng=rng)
        for column in model.schema
    }
    return pa.table(columns)


def describe_guarantee(guarantee: Guarantee, protect: Protection) -> dict[str, Any]:
    """A promise for programs: numbers rounded up, exact fractions beside them."""
    exact = guarantees.to_json(guarantee)
    numbers = {name: _rounded_up(Fraction(text)) for name, text in exact.items() if name != "kind"}
    return {
        "kind": guarantee.kind,
        **({"delta": 0.0} if isinstance(guarantee, PureDP | LocalDP) else {}),
        **numbers,
        **protection.to_json(protect),
        "exact": exact,
    }


def describe_measurements(measurements: tuple[Measurement, ...]) -> tuple[Mapping[str, Any], ...]:
    """What a release says of its measurements."""
    return tuple(measurement.to_dict() for measurement in measurements)


def versions() -> dict[str, str]:
    """The versions of what made a release."""
    packages = ("sfumato", "numpy", "numba", "pyarrow", "duckdb", "cryptography")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


@contextmanager
def new_folder(folder: Path, *, force: bool, internal: bool = False) -> Iterator[Path]:
    """A folder to write into that takes its name only when the block ends well.

    What goes in is paid for, so a name that was taken meanwhile is no reason to lose it: the
    complete folder is then kept under a free name beside, and the error says where.

    Args:
        folder: The name; ``check_free`` says, before anything is paid, whether it is free.
        force: Replace a release of that name.
        internal: Not to be read by other users.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        inside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise StorageError(f"can't write beside {folder}: {error.strerror}") from None
    try:
        yield inside
        if not internal:
            inside.chmod(_usual_mode())
    except BaseException as error:
        shutil.rmtree(inside, ignore_errors=True)
        if isinstance(error, OSError):
            raise StorageError(f"can't write {folder}: {error.strerror or error}") from None
        raise
    _place(inside, folder, force=force)


def _place(inside: Path, folder: Path, *, force: bool) -> None:
    """Give a complete folder its name, or a free one beside it and say so."""
    try:
        problem = _take(inside, folder, force=force)
    except BaseException:  # Ctrl-C between two renames
        if inside.exists():
            _keep_beside(inside, folder)
        raise
    if problem is not None:
        kept = _keep_beside(inside, folder)
        raise StorageError(
            f"{folder} {problem}; the release is in {kept}. It is complete and was paid for: "
            "keep it there, or move it."
        )


def _take(inside: Path, folder: Path, *, force: bool) -> str | None:
    """Rename a folder, after moving a release that is to be replaced aside; else say why not."""
    there = folder.exists() or folder.is_symlink()
    if there and not (force and _not_ours(folder) is None):
        return "was taken meanwhile"
    old = inside.with_name(f"{inside.name}.old")
    try:
        if there:
            folder.rename(old)
        inside.rename(folder)
    except BaseException as error:
        with suppress(OSError):
            old.rename(folder)
        if isinstance(error, OSError):
            return f"can't be {'replaced' if there else 'made'} ({error.strerror or error})"
        raise
    shutil.rmtree(old, ignore_errors=True)
    return None


def _keep_beside(inside: Path, folder: Path) -> Path:
    """The first free name among OUT-2, OUT-3, ...; if no rename works, where it is already."""
    for number in range(2, 100):
        beside = folder.with_name(f"{folder.name}-{number}")
        if _take(inside, beside, force=False) is None:
            return beside
    return inside


def _usual_mode() -> int:
    """What a new folder may be used for by others, which the user decides (umask)."""
    hidden = os.umask(0o077)
    os.umask(hidden)
    return 0o777 & ~hidden


def check_free(folder: Path, *, force: bool) -> None:
    """Refuse an output that exists or can't be written, before anything is spent."""
    there = folder.exists() or folder.is_symlink()
    if there and not force:
        raise InputError(f"{folder} exists. Nothing was spent. Choose another --out, or --force.")
    if there and (why := _not_ours(folder)) is not None:
        raise InputError(
            f"{folder} {why}: --force replaces releases only. Nothing was spent. "
            "Choose another --out."
        )
    check_usable(folder.absolute().parent)


def check_usable(folder: Path) -> None:
    """Refuse a folder that can't be written into or made, before anything is spent."""
    place = folder.absolute()
    nearest = next(part for part in (place, *place.parents) if part.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        reason = f"can't write into {nearest}: {error.strerror}. Nothing was spent."
        raise StorageError(reason) from None


def _not_ours(folder: Path) -> str | None:
    """Why a folder is not one that only a release of ours fills; None if it is."""
    if folder.is_symlink() or not folder.is_dir():
        return "is not a folder"
    if not any((folder / name).is_file() for name in _MARKS):
        return "holds no release"
    others = sorted(path.name for path in folder.iterdir() if path.name not in _OURS)
    return f"holds other files, like {others[0]}" if others else None


def _from_parts(value: Any, data: pa.Table, arrays: Mapping[str, Any]) -> TableRelease:
    if value["sfumato"] != FORMAT or value["kind"] != "table":
        raise InputError(f"no table release of format {FORMAT}")
    schema = Schema.from_dict(value["schema"])
    promise = value["guarantee"]
    return TableRelease(
        dataset=value["dataset"],
        guarantee=guarantees.from_json(promise["exact"]),
        protect=protection.from_json(promise),
        private=value["private"],
        method=value["method"],
        schema=schema,
        model=_model_from(schema, value["model"], arrays, data),
        measurements=tuple(value["measurements"]),
        data=data,
        ledger=value["ledger"],
        versions=value["versions"],
    )


def _model_from(schema: Schema, kind: str, arrays: Mapping[str, Any], data: pa.Table) -> Model:
    if kind == "none":
        return PublishedRows.of(schema, data)
    if kind == "tree":
        return TreeModel.from_arrays(schema, arrays)
    if kind == "mixture":
        return MixtureModel.from_arrays(schema, arrays)
    if kind == "dense":
        return DenseModel(schema=schema, counts=arrays["counts"])
    if kind == "product":
        shares = {name: arrays[f"column_{place}"] for place, name in enumerate(schema.names)}
        return ProductModel(schema=schema, total=float(arrays["total"]), shares=shares)
    raise InputError(f"its model is of the kind {kind!r}, which this version does not know")


def _rounded_up(number: Fraction) -> float:
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)


def _without_formulas(table: pa.Table) -> pa.Table:
    """Text that a spreadsheet would run, names of columns too, gets a quote in front."""
    table = table.rename_columns(
        [f"'{name}" if name.startswith(_FORMULA_STARTS) else name for name in table.column_names]
    )
    for place, field_ in enumerate(table.schema):
        if not pa.types.is_string(field_.type):
            continue
        texts = table.column(place)
        risky = pc.is_in(pc.utf8_slice_codeunits(texts, 0, 1), value_set=pa.array(_FORMULA_STARTS))
        quoted = pc.binary_join_element_wise("'", texts, "")
        table = table.set_column(place, field_, pc.if_else(risky, quoted, texts))
    return table
