"""Comparing a published folder with the real table: the work of ``sfumato evaluate``."""

from pathlib import Path

from sfumato.commands.evaluate import EvaluateRequest
from sfumato.commands.inputs import asked_workload, check_ranges
from sfumato.commands.internal_folder import (
    check_internal,
    compare,
    internal_folder,
    write_internal,
)
from sfumato.commands.publication import check_comparison, reading, silent
from sfumato.commands.release_check import check_described
from sfumato.evaluation.classifiers import labels_of
from sfumato.evaluation.dependence import check_label
from sfumato.evaluation.result import Evaluation
from sfumato.ledger.ledger import Ledger
from sfumato.randomness import simulation_rng
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease


def compare_release(request: EvaluateRequest) -> Evaluation:
    """Compare a release with the real table; the ledger notes the look, at cost 0."""
    folder = Path(request.folder)
    check_described(folder)
    check_comparison(folder, request.against, request.workload, request.ledger)
    release = TableRelease.load(folder)
    chosen = None
    if request.workload is not None:
        chosen = asked_workload(release.schema, request.workload)
        check_ranges(chosen)
    labels = _labels(request, release)
    tell = request.tell or silent
    table = open_table(
        request.against, release.schema, encoding=request.encoding, delimiter=request.delimiter
    )
    table.watch(reading(tell))
    tell("checking the table", 0, 0)
    table.validate()
    check_internal(internal_folder(folder))
    ledger = Ledger.open(request.ledger, dataset=release.dataset, create=False)
    rng = simulation_rng(0)
    found = compare(release, table, chosen, ledger, rng=rng, labels=labels, tell=tell)
    write_internal(internal_folder(folder), release, found)
    return found


def _labels(request: EvaluateRequest, release: TableRelease) -> tuple[str, ...]:
    """The columns that classifiers shall predict."""
    given = request.label
    named = (given,) if isinstance(given, str) else tuple(given or ())
    if not named and not request.all_labels:
        return ()
    labels = labels_of(release.schema, named)
    for name in labels:
        check_label(release.schema, name)
    return tuple(labels)
