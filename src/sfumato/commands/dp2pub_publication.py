"""DP2-Pub under one of three kinds of trust: the work of ``sfumato dp2pub``.

The program that runs this holds the table, so under every kind the release promises pure epsilon to
whoever sees it; the kind says which party's work was done, or rehearsed, to make it.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from math import comb
from pathlib import Path
from typing import Final, Literal

from sfumato import check
from sfumato.commands.dp2pub import Dp2PubRequest
from sfumato.commands.inferred_schema import counted
from sfumato.commands.internal_folder import publishable
from sfumato.commands.publication import (
    Make,
    Publication,
    check_outputs,
    check_resume,
    check_size,
    dataset_name,
    inferred_before,
    loaded_schema,
    read_strictly,
    run,
)
from sfumato.commands.request import as_path, check_one_table, public_options
from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.local.probabilities import MAX_EPSILON, MIN_EPSILON
from sfumato.privacy.guarantees import PureDP
from sfumato.privacy.sensitivity import NEIGHBORS, Neighbors, OneRow
from sfumato.publishing.algorithm_release import ledger_part, released
from sfumato.publishing.methods import check_fits, check_promise
from sfumato.release import TableRelease
from sfumato.schema import Schema
from sfumato.survey.dp2pub.semi_honest import check_pairs
from sfumato.survey.dp2pub.table_survey import (
    answerable_columns,
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
"""The most parents of a column, if not given: the default of the paper."""
SERVER_DEGREE: Final = 2
"""The same where choosing parents costs budget: fewer."""
MAX_CLUSTER: Final = 3
"""The most columns redrawn together, if not given: their cells multiply."""
MOST_VALUES: Final = 10**9
"""Rows times columns of what is published: they are kept in memory."""
LONGEST_EPSILON: Final = 24
"""Characters of an epsilon; a limit against abuse."""
PROTECT: Final = OneRow(neighbors="replace")

MOST_PARENT_SETS: Final = 20_000_000
"""A network is chosen among at most this many sets of parents."""

_NO_GROUPS: Final = {
    "server": "a trusted server asks nobody, so there are no groups of people to ask",
    "semi-honest": "a semi-honest server gets one report a person, and groups need two rounds",
}


def publish(request: Dp2PubRequest) -> TableRelease:
    """Publish a table by DP2-Pub, under the requested kind of trust."""
    check_one_table(request.table)
    budget = PureDP(request.epsilon)
    known = read_strictly(loaded_schema(request.schema).without_bins(), request.strict)
    _check_neighbors(request.neighbors)
    check_resume(request.resume, request.seed)
    make = _maker(request, known, budget)
    if (out := as_path(request.out)) is not None:
        publishable(out)
    plan = Publication(
        request=request,
        table=request.table,
        schema=known,
        budget=budget,
        protect=PROTECT,
        dataset=dataset_name(known, request.dataset),
        command=public_options("dp2pub", request),
    )
    check_outputs(plan, *([request.schema] if isinstance(request.schema, str | Path) else []))
    inferred = inferred_before(plan)
    return run(plan, partial(counted, make, inferred), doing="randomizing rows")


def _check_neighbors(neighbors: Neighbors) -> None:
    check.one_of(NEIGHBORS, neighbors=neighbors)
    if neighbors != "replace":
        raise InputError(
            "neighbors must be 'replace' here, got 'add-remove': rows that are randomized one by "
            "one publish how many there are, and add-remove would have to hide that. Leave "
            "--neighbors out, or use `sfumato publish`."
        )


def _variant(trust: Trust, variant: Variant | None) -> Variant:
    """The requested variant, if this kind of trust has it; else its default."""
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


def _maker(request: Dp2PubRequest, schema: Schema, budget: PureDP) -> Make:
    """What makes the release, after everything about it that needs no data was checked."""
    trust = check.one_of(TRUSTS, trust=request.trust)
    variant, degree = _variant(trust, request.variant), request.degree
    rows = request.rows
    if rows is not None:
        check_size(rows, len(schema), values=MOST_VALUES)
    if trust == "nobody":
        _check_no_network(degree=degree, max_cluster=request.max_cluster)
        return _nobody(schema, budget, variant=variant, rows=rows)
    together = MAX_CLUSTER if request.max_cluster is None else request.max_cluster
    if trust == "server":
        parents = SERVER_DEGREE if degree is None else degree
        return _server(schema, budget, Dp2Pub(degree=parents, max_cluster=together), rows=rows)
    parents = DEGREE if degree is None else degree
    return _semi_honest(schema, budget, degree=parents, max_cluster=together, rows=rows)


def _server(schema: Schema, budget: PureDP, algorithm: Dp2Pub, *, rows: int | None) -> Make:
    """The server holds the records: a private network, and rows randomized by its clusters."""
    check_fits(algorithm, schema)
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
    columns = len(answerable_columns(schema))
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
    columns = len(answerable_columns(schema))
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
            f"{' and '.join(named)} can't be set with trust 'nobody': how the rounds ask is agreed "
            "with the devices. Leave it out, or choose another --trust."
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
            f"parents to compare, at most {MOST_PARENT_SETS:,} are. Lower "
            "--degree."
        )
