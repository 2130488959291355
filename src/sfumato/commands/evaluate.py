"""Comparing a published folder with the real table: internal, and never in that folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.commands.inputs import asked_workload, check_ranges
from sfumato.commands.internal_folder import (
    check_internal,
    compare,
    internal_folder,
    write_internal,
)
from sfumato.commands.publication import Tell, reading, silent
from sfumato.evaluation.classifiers import labels_of
from sfumato.evaluation.dependence import check_label
from sfumato.evaluation.result import Evaluation
from sfumato.ledger.ledger import Ledger
from sfumato.randomness import simulation_rng
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease


def evaluate_release(
    folder: str | Path,
    *,
    against: Any,
    workload: str | Path | None = None,
    label: str | Sequence[str] | None = None,
    all_labels: bool = False,
    ledger: str | Path | None = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    tell: Tell | None = None,
) -> Evaluation:
    """Compare a published folder with the real table: `sfumato evaluate` in one call.

    Writes ``internal.html`` and ``internal.json`` into ``FOLDER-internal``.

    Args:
        folder: What was published.
        against: The real table.
        workload: A file of ranges to compare.
        label: A column, or several, to be predicted by classifiers that learn from published
            rows and from real ones; needs scikit-learn.
        all_labels: Predict every column of 2 to 20 values in turn.
        ledger: The ledger file; by default the one of this user.
        encoding: Of a CSV file.
        delimiter: Of a CSV file; by default the one that explains its header.
        tell: Called with the progress.
    """
    folder = Path(folder)
    release = TableRelease.load(folder)
    chosen = asked_workload(release.schema, workload) if workload is not None else None
    if chosen is not None:
        check_ranges(chosen)
    named = (label,) if isinstance(label, str) else tuple(label or ())
    labels = labels_of(release.schema, named) if named or all_labels else ()
    for name in labels:
        check_label(release.schema, name)
    say = tell or silent
    table = open_table(against, release.schema, encoding=encoding, delimiter=delimiter)
    table.watch(reading(say))
    say("checking the table", 0, 0)
    table.validate()
    check_internal(internal_folder(folder))
    book = Ledger.open(ledger, dataset=release.dataset, create=False)
    rng = simulation_rng(0)
    found = compare(release, table, chosen, book, rng=rng, labels=labels, tell=say)
    write_internal(internal_folder(folder), release, found)
    return found
