"""DP2-Pub from file to folder: a table published as under one of three kinds of trust.

The program that runs this holds the table, so under every kind the release promises pure epsilon to
whoever sees it; the kind says which party's work was done, or rehearsed, to make it.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from math import comb
from pathlib import Path
from typing import Any, Final, Literal

from sfumato import check
from sfumato.commands.inferred_schema import counted, inferred_before
from sfumato.commands.inputs import (
    check_one_table,
    check_resume,
    check_size,
    dataset_name,
    loaded_schema,
    read_strictly,
    told,
)
from sfumato.commands.internal_folder import publishable
from sfumato.commands.publication import Make, Publication, Tell, check_outputs, run, silent
from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.ledger.outcome import spending_boundary
from sfumato.local.probabilities import MAX_EPSILON, MIN_EPSILON
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import PureDP
from sfumato.privacy.protection import NEIGHBORS, Neighbors, OneRow
from sfumato.publishing.algorithm_release import ledger_part, released
from sfumato.publishing.methods import check_promise
from sfumato.release import TableRelease
from sfumato.schema import Schema
from sfumato.survey.dp2pub.table_survey import (
    asked_columns,
    check_pairs,
    people_of,
    resized,
    semi_honest_release,
    two_round_release,
)
from sfumato.survey.dp2pub.two_round import TwoRound
from sfumato.survey.protocol.rounds import ROUNDS
from sfumato.synthesis.dp2pub import Dp2Pub

Trust = Literal["server", "semi-honest", "nobody"]
Variant = Literal["grouped", "faithful"]

TRUSTS: Final[Mapping[Trust, tuple[Variant, ...]]] = {
    "server": ("faithful",),
    "semi-honest": ("faithful",),
    "nobody": ("grouped", "faithful"),
}
"""The variants that each kind of trust has, the better one first: it is the default."""
VARIANTS: Final[tuple[Variant, ...]] = ("grouped", "faithful")

DEGREE: Final = 3
SERVER_DEGREE: Final = 2
"""The most parents of a column, if not given: fewer where choosing them costs budget."""
MAX_CLUSTER: Final = 3
MOST_VALUES: Final = 10**9
"""Rows times columns of what is published: they are held in memory."""
LONGEST_EPSILON: Final = 24
PROTECT: Final = OneRow(neighbors="replace")

MOST_PARENT_SETS: Final = 20_000_000
"""A network is chosen among at most so many sets of parents."""

_NO_GROUPS: Final = {
    "server": "a trusted server asks nobody, so there are no groups of people to ask",
    "semi-honest": "a semi-honest server gets one report a person, and groups need two rounds",
}


@spending_boundary()
def dp2pub_table(
    table: Any,
    *,
    schema: Schema | Mapping[str, Any] | str | Path,
    epsilon: check.Number,
    trust: Trust,
    variant: Variant | None = None,
    degree: int | None = None,
    max_cluster: int | None = None,
    rows: int | None = None,
    neighbors: Neighbors = "replace",
    out: str | Path | None = None,
    dataset: str | None = None,
    ledger: str | Path | None = None,
    cap: Cap | None = None,
    evaluate: bool = False,
    force: bool = False,
    csv: bool = False,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    strict: bool = False,
    seed: int | None = None,
    resume: bool | None = None,
    tell: Tell | None = None,
) -> TableRelease:
    """Publish a table by DP2-Pub: `sfumato dp2pub` in one call.

    Args:
        table: A path (csv, parquet, json, sqlite), or a data frame.
        schema: The public description of its columns, as a schema, as the content of its file,
            or as the file.
        epsilon: The budget of this release: pure, for one row that is replaced.
        trust: ``server`` (it holds the records), ``semi-honest`` (it sees one randomized report a
            person) or ``nobody`` (two rounds of randomized answers).
        variant: ``faithful``, the published method, or with ``nobody`` also ``grouped``, the
            better one, which is then the default.
        degree: The most parents of a column in the network; not with ``nobody``.
        max_cluster: The most columns that are redrawn together; not with ``nobody``.
        rows: How many rows to publish; by default as many as the table has, a public number here.
        neighbors: ``replace``: the method publishes the number of rows.
        out: The folder to write, which may then be published whole.
        dataset: The name that the budget belongs to; by default the schema's.
        ledger: The ledger file; by default the one of this user.
        cap: The most that all releases of this data set together may cost.
        evaluate: Compare with the real data, into ``OUT-internal``.
        force: Replace an older release.
        csv: Write ``data.csv`` too.
        encoding: Of a CSV file.
        delimiter: Of a CSV file; by default the one that explains its header.
        strict: Refuse a table with a value that does not fit. By default it counts as a public
            code, so that no single row decides whether there is a release.
        seed: Make a simulation that protects nobody, into ``OUT-internal``.
        resume: Go on with the last run of this very command that was stopped, without a new
            charge: only one that was stopped before it asked the rows. False leaves it and pays
            again; None, the default, refuses if there is one.
        tell: Called with the progress.
    """
    with spending_boundary():
        check_one_table(table)
        budget, known = PureDP(epsilon), read_strictly(loaded_schema(schema), strict)
        _check_neighbors(neighbors)
        check_resume(resume, seed)
        make = _maker(
            known,
            budget,
            trust=check.one_of(TRUSTS, trust=trust),
            variant=_variant(trust, variant),
            degree=degree,
            max_cluster=max_cluster,
            rows=None if rows is None else check_size(rows, len(known), values=MOST_VALUES),
        )
        command = told(
            command="dp2pub", epsilon=epsilon, trust=trust, variant=variant, degree=degree,
            max_cluster=max_cluster, rows=rows, neighbors=neighbors, dataset=dataset,
        )  # fmt: skip
        plan = Publication(
            schema=known,
            budget=budget,
            protect=PROTECT,
            dataset=dataset_name(known, dataset),
            command=command,
            resume=resume,
            out=None if out is None else publishable(Path(out)),
            ledger=None if ledger is None else Path(ledger),
            cap=cap,
            seed=seed,
            evaluate=evaluate,
            force=force,
            csv=csv,
        )
        check_outputs(plan, table)
        found = inferred_before(plan)
    return run(
        plan,
        table,
        partial(counted, make, found),
        encoding=encoding,
        delimiter=delimiter,
        tell=tell or silent,
        doing="randomizing rows",
    )


def _check_neighbors(neighbors: Neighbors) -> None:
    check.one_of(NEIGHBORS, neighbors=neighbors)
    if neighbors != "replace":
        raise InputError(
            "neighbors must be 'replace' here, got 'add-remove': rows that are randomized one by "
            "one publish how many there are, and add-remove would have to hide that. Leave "
            "--neighbors out, or use `sfumato publish`."
        )


def _variant(trust: Trust, variant: Variant | None) -> Variant:
    """The variant that was asked for, if this kind of trust has it; else its default."""
    allowed = TRUSTS[trust]
    if variant is None:
        return allowed[0]
    check.one_of(VARIANTS, variant=variant)
    if variant not in allowed:
        raise InputError(
            f"with trust {trust!r} variant must be {allowed[0]!r}, got {variant!r}: "
            f"{_NO_GROUPS[trust]}. Leave --variant out, or use --trust nobody."
        )
    return variant


def _maker(
    schema: Schema,
    budget: PureDP,
    *,
    trust: Trust,
    variant: Variant,
    degree: int | None,
    max_cluster: int | None,
    rows: int | None,
) -> Make:
    """What makes the release, after everything about it that needs no data was checked."""
    if trust == "nobody":
        _check_no_network(degree=degree, max_cluster=max_cluster)
        return _nobody(schema, budget, variant=variant, rows=rows)
    together = MAX_CLUSTER if max_cluster is None else max_cluster
    if trust == "server":
        parents = SERVER_DEGREE if degree is None else degree
        return _server(schema, budget, Dp2Pub(degree=parents, max_cluster=together), rows=rows)
    parents = DEGREE if degree is None else degree
    return _semi_honest(schema, budget, degree=parents, max_cluster=together, rows=rows)


def _server(schema: Schema, budget: PureDP, algorithm: Dp2Pub, *, rows: int | None) -> Make:
    """The server holds the records: a private network, and rows randomized by its clusters."""
    algorithm.check(schema)
    check_promise(algorithm, schema, protect=PROTECT, budget=budget)

    def make(curator: Curator) -> TableRelease:
        if rows is not None:
            people_of(curator, rows=rows)
        return resized(released(algorithm, curator), rows, rng=curator.rng)

    return make


def _semi_honest(
    schema: Schema, budget: PureDP, *, degree: int, max_cluster: int, rows: int | None
) -> Make:
    """The server gets one randomized report a person; all else is post-processing."""
    columns = len(asked_columns(schema))
    _check_epsilon(budget, least=MIN_EPSILON * columns, most=MAX_EPSILON * columns)
    check_pairs(schema)
    check.whole(at_least=1, degree=degree)
    check.whole(at_least=1, max_cluster=max_cluster)
    _check_degree(degree, columns)
    return partial(
        semi_honest_release,
        receipt=ledger_part,
        degree=degree,
        max_cluster=max_cluster,
        rows=rows,
    )


def _nobody(schema: Schema, budget: PureDP, *, variant: Variant, rows: int | None) -> Make:
    """Two rounds of answers: people answer in one of them, or in both with half of epsilon."""
    columns = len(asked_columns(schema))
    if variant == "grouped":
        _check_epsilon(budget, least=MIN_EPSILON, most=MAX_EPSILON)
    else:
        _check_epsilon(budget, least=ROUNDS * MIN_EPSILON * columns, most=ROUNDS * MAX_EPSILON)
        check_pairs(schema)
    TwoRound(schema, budget.epsilon, variant=variant).first_round()  # refuses what it can't ask
    return partial(two_round_release, variant=variant, receipt=ledger_part, rows=rows)


def _check_no_network(*, degree: int | None, max_cluster: int | None) -> None:
    """The rounds of a survey are agreed with the devices, without such options."""
    given = {"--degree": degree, "--max-cluster": max_cluster}
    if named := [option for option, value in given.items() if value is not None]:
        raise InputError(
            f"{' and '.join(named)} can't be set with trust 'nobody': how the rounds ask is "
            "agreed with the devices. Leave it out, or choose another --trust."
        )


def _check_epsilon(budget: PureDP, *, least: Fraction, most: Fraction) -> None:
    """Refuse, before any spend, what no randomized response can have, or no message spell."""
    if len(str(budget.epsilon)) > LONGEST_EPSILON:
        raise InputError(
            f"epsilon must be a number of few digits, such as 0.5, got {float(budget.epsilon):g} "
            "with more than a message to a device spells. Round it."
        )
    if not least <= budget.epsilon <= most:
        raise InputError(
            f"epsilon must be between {float(least):g} and {float(most):g} for these columns and "
            f"this trust, as one answer has {float(MIN_EPSILON):g} to {MAX_EPSILON} of it; got "
            f"{float(budget.epsilon):g}."
        )


def _check_degree(degree: int, columns: int) -> None:
    sets = columns * comb(columns - 1, max(0, min(degree, columns - 1) - 1))
    if sets > MOST_PARENT_SETS:
        raise InputError(
            f"a network of {columns} columns with up to {degree} parents has {sets:,} sets of "
            f"parents to compare, at most {MOST_PARENT_SETS:,} are. Lower --degree."
        )
