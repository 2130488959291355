"""``sfumato dp2pub``: a table published as under one of three kinds of trust."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from sfumato.commands import lines
from sfumato.commands.request import (
    Command,
    Epsilon,
    Option,
    SchemaGiven,
    Table,
    TableRun,
    function,
)

if TYPE_CHECKING:
    from sfumato.commands.dp2pub_publication import Trust, Variant
    from sfumato.privacy.sensitivity import Neighbors
    from sfumato.release import TableRelease


@dataclass(frozen=True, kw_only=True, eq=False)
class Dp2PubRequest(TableRun):
    """Publish a high-dimensional table by DP2-Pub, under one of three kinds of trust.

    The promise is pure epsilon, for one row that is replaced.
    """

    table: Table = field(kw_only=False)
    schema: SchemaGiven
    epsilon: Epsilon
    trust: Annotated[
        "Trust",
        Option(
            "server: it holds the records. semi-honest: it gets one randomized report a person. "
            "nobody: two rounds of randomized answers.",
            public=True,
        ),
    ]
    variant: Annotated[
        "Variant | None",
        Option(
            "grouped (nobody only) or faithful. [default: grouped with nobody, else faithful]",
            public=True,
        ),
    ] = None
    degree: Annotated[
        int | None,
        Option(
            "The most parents of a column in the network; not with nobody. "
            "[default: 2 with server, else 3]",
            kind=int,
            public=True,
        ),
    ] = None
    max_cluster: Annotated[
        int | None,
        Option(
            "The most columns redrawn together; not with nobody. [default: 3]",
            kind=int,
            public=True,
        ),
    ] = None
    rows: Annotated[
        int | None,
        Option(
            "The number of rows to publish. [default: as many as the table has]",
            kind=int,
            public=True,
        ),
    ] = None
    neighbors: Annotated[
        "Neighbors", Option("replace: this method publishes the number of rows.", public=True)
    ] = "replace"


def run(request: Dp2PubRequest) -> "TableRelease":
    """Check, charge, randomize, write and compare, in that order."""
    from sfumato.commands.dp2pub_publication import publish

    return publish(request)


dp2pub_table = function(Dp2PubRequest, run, name="dp2pub_table", spends=True)

COMMAND = Command(
    words="dp2pub",
    request=Dp2PubRequest,
    run=run,
    show=lines.published,
    json=lambda _, release: release.to_dict(),
    json_help="Print release.json and nothing else.",
    saved=True,
    spends=True,
)
