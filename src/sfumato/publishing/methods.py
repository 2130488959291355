"""Algorithms by the names that commands know, and the budget and promise that each can have."""

import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, Literal, TypeGuard, cast, get_args, get_origin

from sfumato import check
from sfumato.errors import InputError
from sfumato.gate import sigma_of
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ZCDP, ApproxDP, Cost, PureDP, zcdp_budget
from sfumato.privacy.sensitivity import Protection
from sfumato.publishing.auto import Auto, prefers_pure
from sfumato.schema import Schema, Workload
from sfumato.schema.measurement import PublicTotal
from sfumato.synthesis.algorithm import Algorithm

if TYPE_CHECKING:
    from sfumato.recommend.algorithm import RecommenderAlgorithm
    from sfumato.synthesis.clique_tree import CliqueTree
    from sfumato.synthesis.dp2pub import Dp2Pub
    from sfumato.synthesis.mwem import Mwem
    from sfumato.synthesis.privbayes import PrivBayes

METHODS: Final[Mapping[str, str]] = {
    "auto": "sfumato.publishing.auto:Auto",
    "histogram": "sfumato.synthesis.histogram:Histogram",
    "independent": "sfumato.synthesis.independent:Independent",
    "mwem": "sfumato.synthesis.mwem:Mwem",
    "mst": "sfumato.synthesis.mst:Mst",
    "cliquetree": "sfumato.synthesis.clique_tree:CliqueTree",
    "aim": "sfumato.synthesis.aim:Aim",
    "privbayes": "sfumato.synthesis.privbayes:PrivBayes",
    "dp2pub": "sfumato.synthesis.dp2pub:Dp2Pub",
}
"""By name, where the algorithm is: it is loaded when it is chosen."""

_LEVELS: Final = 4
"""Of a tree of counts, for a number without bins (``synthesis.number_bins``)."""
GAUSSIAN: Final = ("mst", "cliquetree", "aim")
"""Methods that draw Gaussian noise only."""

LEAST_EPSILON: Final = Fraction(1, 10**4)
"""With less every method gives noise; chosen by judgment."""
_DIVIDED: Final = 1_000
"""A step of a method has at least this part of the budget, for each column."""

DELTA: Final = Fraction(1, 10**9)
"""Where a method draws Gaussian noise and no delta was given."""

RECOMMENDERS: Final[Mapping[str, str]] = {
    "auto": "sfumato.recommend.auto:AutoRecommender",
    "bias": "sfumato.recommend.item_bias:ItemBias",
    "neighbors": "sfumato.recommend.item_neighbors:ItemNeighbors",
    "popularity": "sfumato.recommend.item_popularity:ItemPopularity",
    "ridge": "sfumato.recommend.item_ridge:ItemRidge",
    "tastes": "sfumato.recommend.item_tastes:ItemTastes",
}
"""By name, where the recommender is: it is loaded when it is chosen."""


def algorithm_named(
    name: str,
    *,
    workload: Workload,
    rows: int | None,
    options: Mapping[str, str],
    totals: tuple[PublicTotal, ...] = (),
) -> "Algorithm | Auto":
    """The algorithm that a command names, with its own options given as text."""
    spec = _spec_of(name, METHODS)
    if totals and not _takes_totals(spec):
        taking = [each for each, path in METHODS.items() if _takes_totals(resolve_name(path))]
        raise InputError(
            f"{name} can't use public totals. Leave them out, or choose one of {', '.join(taking)}."
        )
    given = {"workload": workload, "rows": rows, "totals": totals}
    made: Algorithm | Auto = _with_options(name, spec, given, options)
    return made


def _spec_of(name: str, listed: Mapping[str, str]) -> Any:
    if name not in listed:
        raise InputError(f"method must be one of {', '.join(listed)}, got {name!r}.")
    return resolve_name(listed[name])


def _takes_totals(spec: Any) -> bool:
    return any(field.name == "totals" for field in fields(spec))


def recommender_named(name: str, *, options: Mapping[str, str]) -> "RecommenderAlgorithm":
    """The recommender that a command names, with its own options given as text."""
    made: RecommenderAlgorithm = _with_options(name, _spec_of(name, RECOMMENDERS), {}, options)
    return made


def is_recommender(algorithm: object) -> "TypeGuard[RecommenderAlgorithm]":
    """Whether an algorithm is one of ``RECOMMENDERS``, none of which is loaded to find out."""
    return f"{type(algorithm).__module__}:{type(algorithm).__qualname__}" in RECOMMENDERS.values()


def check_fits(algorithm: "Algorithm | Auto", schema: Schema) -> None:
    """Refuse, before any spend, what a method refuses, on public bins of columns without bins."""
    if not schema.public_bins:
        algorithm.check(schema)
        return
    from sfumato.synthesis import number_bins  # only here: it loads models

    number_bins.check(algorithm, schema)


def check_promise(
    algorithm: "Algorithm | Auto", schema: Schema, *, protect: Protection, budget: Cap
) -> None:
    """Refuse, before a table is opened, what an algorithm can't promise, or not usefully."""
    if algorithm.name == "dp2pub":
        binned = schema.with_bins(schema.public_bins)
        cast("Dp2Pub", algorithm).check_promise(binned, protect, budget)
        if schema.public_bins and isinstance(budget, PureDP):
            from sfumato.synthesis.number_bins import SHARE  # only here: it loads models

            left = PureDP(budget.epsilon * (1 - SHARE))  # what trees of numbers leave at least
            cast("Dp2Pub", algorithm).check_promise(binned, protect, left)
        return
    if algorithm.name == "privbayes":
        cast("PrivBayes", algorithm).check_promise(protect)
    if algorithm.name == "cliquetree":
        cast("CliqueTree", algorithm).check_promise(budget)
    _check_noise(_DIVIDED * len(schema) + 20 * _steps(algorithm, schema), protect, budget)


def _check_noise(steps: int, protect: Protection, budget: Cap) -> None:
    """Refuse a budget of which a step gets too little for an exact draw, before one is paid."""
    if isinstance(budget, PureDP):
        part: Cost = PureDP(budget.epsilon / steps)
    else:
        rho = budget.rho if isinstance(budget, ZCDP) else zcdp_budget(budget).rho
        part = ZCDP(rho / (100 * steps))  # scores are drawn in finer units
    try:
        sigma_of(part, is_range=False, protect=protect)
    except InputError:
        raise InputError(
            f"{budget} for {protect}, divided among the steps of the method, brings more noise "
            "than can be drawn: nothing would be left of the table. Choose a larger epsilon or "
            "delta, or let fewer rows of a person count."
        ) from None


def budget_for(
    algorithm: "Algorithm | Auto",
    schema: Schema,
    *,
    epsilon: check.Number,
    delta: check.Number | None,
) -> Cap:
    """The kind of budget with which an algorithm has the least noise, from public facts.

    Methods that draw Gaussian noise have a delta, ``DELTA`` if none was given. The others are
    pure where that brings less noise, no delta was given or rows are randomized one by one:
    k equal steps have Laplace noise of sqrt(2) k / epsilon, or Gaussian of sqrt(k / 2 rho).
    """
    pure = PureDP(epsilon)
    if algorithm.name == "dp2pub":
        return pure
    if pure.epsilon < LEAST_EPSILON:
        raise InputError(
            f"{pure} leaves nothing but noise: choose an epsilon of at least "
            f"{float(LEAST_EPSILON):g}."
        )
    approximate = ApproxDP(epsilon, DELTA if delta is None else delta)
    if algorithm.name in GAUSSIAN:
        return approximate
    laplace = math.sqrt(2) / float(pure.epsilon)
    gaussian = math.sqrt(1 / (2 * float(zcdp_budget(approximate).rho)))
    if isinstance(algorithm, Auto):
        if any(column.adaptive for column in schema):
            return approximate  # a tree of counts has many steps
        less = prefers_pure(algorithm, schema, laplace=laplace, gaussian=gaussian)
        return pure if less else approximate
    if delta is None:
        return pure
    steps = _steps(algorithm, schema)
    return approximate if gaussian * math.sqrt(steps) < laplace * steps else pure


def _steps(algorithm: "Algorithm | Auto", schema: Schema) -> int:
    """About how many steps divide the budget."""
    if algorithm.name == "independent":
        return len(schema) + _LEVELS * sum(column.adaptive for column in schema)
    if algorithm.name == "privbayes":
        return 2 * len(schema)  # a selection and a table for each column
    return 2 * cast("Mwem", algorithm).rounds if algorithm.name == "mwem" else 1


def _with_options(
    name: str, kind: Any, given: Mapping[str, Any], options: Mapping[str, str]
) -> Any:
    """A spec of a kind: what is given where it has such fields, and options read as their types."""
    known = {entry.name: entry.type for entry in fields(kind)}
    settable = sorted(set(known) - set(given))
    chosen = {field: value for field, value in given.items() if field in known}
    for option, text in options.items():
        if option not in settable:
            listed = ", ".join(settable) or "none"
            message = f"{name} has no option {option!r}; its options: {listed}."
            raise InputError(message)
        chosen[option] = _option(option, text, kind=known[option])
    return kind(**chosen)


def _option(name: str, text: str, *, kind: Any) -> int | bool | str | float | Fraction:
    if get_origin(kind) is Literal:
        return str(check.one_of(get_args(kind), **{name: text}))
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise InputError(f"{name} must be a whole number, got {text!r}") from None
    if kind in (float, check.Number):
        exact = check.exact(**{name: text})
        return float(exact) if kind is float else exact
    if str(text).lower() not in ("true", "false"):  # in Python also True
        raise InputError(f"{name} must be true or false, got {text!r}")
    return str(text).lower() == "true"
