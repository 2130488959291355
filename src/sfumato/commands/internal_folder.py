"""What may not be published: the folder beside a release, and what a comparison writes there."""

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sfumato import report
from sfumato.counting.table import Table
from sfumato.durable import write_file
from sfumato.errors import InputError, StorageError
from sfumato.ledger.ledger import Ledger
from sfumato.randomness import Rng
from sfumato.release import INTERNAL, TableRelease, is_internal, release_around
from sfumato.schema import Schema, Workload

if TYPE_CHECKING:
    from sfumato.evaluation.evaluate import Measure, RangeQueries
    from sfumato.evaluation.result import Evaluation

_COMPARISON: Final = ("internal.html", "internal.json")
_OWNER: Final = 0o600
"""The mode of files that only their owner reads."""
_RANGES: Final = 500
"""Random range queries of a comparison."""
NO_VALUES: Final = (
    "Raw values were not compared: that needs a file, a data frame or a database, not a Spark "
    "table. The figures are of codes only, which do not show what bins do to values."
)
_FEW_COLUMNS: Final = 3
"""Columns up to which a random range over all of them holds rows."""


def internal_folder(folder: Path) -> Path:
    """Beside a folder that may be published, the one that may not; itself, if it is one of these.

    ``.`` and ``..`` have no name to add to: the folder that they stand for does.
    """
    if folder.name in ("", ".."):
        folder = Path(os.path.realpath(folder))
    if not folder.name:
        raise InputError(f"{folder} has no name, so nothing can lie beside it.")
    return folder if is_internal(folder) else folder.with_name(folder.name + INTERNAL)


def publishable(out: Path) -> Path:
    """Refuse a name that is none, or that would mark the folder as not to be published."""
    if out.name in ("", ".."):
        raise InputError(f"out must name a folder, got {str(out)!r}.")
    if is_internal(out):
        raise InputError(
            f"the output {out} ends in {INTERNAL}, the name of folders that may not be published. "
            "Choose another --out."
        )
    return out


def compare(
    release: TableRelease,
    table: Table,
    workload: Workload | None,
    ledger: Ledger,
    *,
    rng: Rng,
    labels: Sequence[str] = (),
    checks: Sequence[str] = (),
    held_back: Table | None = None,
    tell: Callable[[str, int, int], None] | None = None,
) -> "Evaluation":
    """Every measure that is possible here beside its baselines, and classifiers of labels.

    Args:
        release: What was published.
        table: The real table.
        workload: Ranges to compare, if it has some.
        ledger: Where the look is noted.
        rng: For whatever is drawn.
        labels: Columns to predict.
        checks: Rules between columns.
        held_back: Real rows that took no part in the release, for classifiers.
        tell: Called with the progress.
    """
    from sfumato.evaluation.correlations import MOST_VALUES
    from sfumato.evaluation.evaluate import (
        Classifiers,
        InformationError,
        Misclassification,
        PairCorrelations,
        RawValues,
        TotalVariation,
        evaluate,
    )
    from sfumato.evaluation.marginals import comparable_degrees
    from sfumato.readers.source import RawTable

    schema = release.schema
    degrees = comparable_degrees(schema)
    measures: list[Measure] = [TotalVariation(degree=degree) for degree in degrees]
    notes: tuple[str, ...] = ()
    if checks or isinstance(table, RawTable):
        measures.insert(0, RawValues(checks=tuple(checks)))
    else:
        notes = (NO_VALUES,)
    measures.append(_queries(schema, workload))
    if 2 in degrees:
        measures.append(InformationError())
    if sum(column.size <= MOST_VALUES for column in schema) > 1:
        measures.append(PairCorrelations())
    measures += [Misclassification(label=label) for label in labels]
    if labels:
        measures.append(Classifiers(labels=tuple(labels)))
    result = evaluate(
        release,
        against=table,
        measures=measures,
        rng=rng,
        ledger=ledger,
        baselines=True,
        held_back=held_back,
        tell=tell,
    )
    return replace(result, notes=(*result.notes, *notes, *table.misfits()))


def _queries(schema: Schema, workload: Workload | None) -> "RangeQueries":
    """The ranges of a workload; else random ones, of 1 to 3 columns where there are more."""
    from sfumato.evaluation.evaluate import RangeQueries

    if workload is not None and workload.ranges:
        return RangeQueries(workload=workload)
    if len(schema) > _FEW_COLUMNS:
        return RangeQueries(n=_RANGES, most_columns=_FEW_COLUMNS)
    boxes = math.prod(column.size * (column.size + 1) // 2 for column in schema)
    return RangeQueries(n=min(_RANGES, boxes))


def write_internal(folder: Path, release: TableRelease, result: "Evaluation") -> None:
    """The comparison as a page and as JSON, for its owner only."""
    from sfumato.report.comparison import internal_view

    text = json.dumps(result.to_dict(), indent=1)
    write_comparison(folder, text, report.render(internal_view(release, result)))


def write_comparison(folder: Path, text: str, page: str) -> None:
    """A comparison, as JSON and as a page, for its owner only."""
    check_internal(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(f"can't write {folder}: {error.strerror}") from None
    write_whole(folder / "internal.json", text + "\n", mode=_OWNER)
    write_whole(folder / "internal.html", page, mode=_OWNER)


def write_whole(path: Path, text: str, *, mode: int) -> None:
    """The file as a whole or not at all, never to be read by others than ``mode`` says."""
    try:
        write_file(path, text.encode(), mode=mode)
    except OSError as error:
        raise StorageError(f"can't write {path}: {error.strerror}") from None


def remove_comparison(folder: Path) -> None:
    """An evaluation of the release that was replaced says nothing of the new one."""
    if folder.is_symlink() or not folder.is_dir():
        return
    try:
        for name in _COMPARISON:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"the release is written, but the old evaluation in {folder} can't be removed: "
            f"{error.strerror}. Remove it; it is not of this release."
        ) from None


def check_internal(folder: Path) -> None:
    """Refuse a folder for real counts that may be published, or that leads somewhere else."""
    for path in (folder, *(folder / name for name in _COMPARISON)):
        if path.is_symlink():
            raise InputError(f"{path} is a link: real counts are never written through a link.")
    if (around := release_around(folder)) is not None:
        raise InputError(
            f"{around} holds a release that may be published: real counts do not belong there. "
            "Move it, or choose another --out."
        )


def check_described(folder: Path) -> None:
    """Refuse a release whose ``release.json`` does not hold what commands read in it.

    A file that can't be read at all is left to whoever loads the release.
    """
    try:
        _try_parts(json.loads((folder / "release.json").read_text(encoding="utf-8")))
    except OSError:
        return
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise StorageError(
            f"can't read the release {folder}: it is not a complete release, as its release.json "
            "is damaged."
        ) from None


def _try_parts(value: Any) -> None:
    """What reports and the ledger do with it, as far as it needs no rows."""
    from sfumato.ledger import Head
    from sfumato.privacy import guarantees
    from sfumato.report.promise import account

    account(value["ledger"], guarantees.from_json(value["guarantee"]["exact"]))
    head = Head(**value["ledger"]["head"])
    if not _whole(head.seq) or not isinstance(head.hash, str):
        raise ValueError("a head is a number and a hash")
    value["method"]["name"], value["versions"]["sfumato"]
    for each in value["measurements"]:
        dict(each)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
