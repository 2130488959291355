"""``sfumato publish``: a table in, a private table with its guarantee and report out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sfumato import check
from sfumato.commands import lines
from sfumato.commands.request import (
    Command,
    Epsilon,
    Neighbors,
    Option,
    Settings,
    Table,
    TableRun,
    WorkloadGiven,
    function,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sfumato.release import TableRelease
    from sfumato.schema import Schema
    from sfumato.schema.measurement import PublicTotal


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishRequest(TableRun):
    """Publish a table: a synthetic table, a machine-readable guarantee and a report."""

    table: Table = field(kw_only=False)
    epsilon: Epsilon
    schema: Annotated[
        "Schema | Mapping[str, Any] | str | Path | None",
        Option(
            "The public description of the columns. Without one, limits and values are inferred "
            "privately for a share of the budget; names of columns count as public.",
            python="As a schema, as the content of its file, or as the file.",
            kind=Path,
        ),
    ] = None
    infer_share: Annotated[
        check.Number | None,
        Option(
            "The share of the budget (in rho) for inferring a schema. [default: 0.15]",
            public=True,
        ),
    ] = None
    delta: Annotated[
        check.Number | None,
        Option(
            "For Gaussian noise, where that is smaller. A method that needs none stays pure; "
            "one that does takes 1e-9 by default, and the release says so.",
            public=True,
        ),
    ] = None
    method: Annotated[
        str,
        Option(
            "auto, histogram, independent, mwem, mst, cliquetree, aim, privbayes or dp2pub.",
            public=True,
        ),
    ] = "auto"
    workload: WorkloadGiven = None
    options: Settings = None
    rows: Annotated[
        int | None,
        Option(
            "The true number of rows of the table, if that is public knowledge: saves budget. "
            "It is not the number of rows to write.",
            kind=int,
            public=True,
        ),
    ] = None
    totals: Annotated[
        "Sequence[PublicTotal] | str | Path",
        Option(
            "A file of marginal counts that are public knowledge; the release agrees with them.",
            python="Or the totals themselves.",
            kind=Path,
        ),
    ] = ()
    neighbors: Neighbors = "add-remove"
    person: Annotated[str | None, Option("The column that names the person.", public=True)] = None
    max_rows: Annotated[
        int | None, Option("The most rows of one person that count.", kind=int, public=True)
    ] = None


def run(request: PublishRequest) -> "TableRelease":
    """Check, charge, look, write and compare, in that order."""
    from sfumato.commands.publication import publish

    return publish(request)


publish_table = function(PublishRequest, run, name="publish_table", spends=True)

COMMAND = Command(
    words="publish",
    request=PublishRequest,
    run=run,
    show=lines.published,
    json=lambda _, release: release.to_dict(),
    json_help="Print release.json and nothing else.",
    saved=True,
    spends=True,
)
