"""``sfumato answers``: many clients in one process, estimates from their answers, and advice."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from sfumato import check
from sfumato.commands import lines
from sfumato.commands.request import (
    Cap,
    Command,
    Dataset,
    Delimiter,
    Encoding,
    LedgerGiven,
    OneTable,
    Option,
    Progress,
    SchemaGiven,
    Strict,
    as_path,
    function,
)

if TYPE_CHECKING:
    from sfumato.ledger import Ledger
    from sfumato.survey.estimate.advice import Advice
    from sfumato.survey.estimate.estimates import FrequencyEstimate, MeanEstimate
    from sfumato.survey.estimate.question import Estimate

_LABEL: Final = 32
"""Columns of a label, at most."""
_MOST_LINES: Final = 60
"""Frequencies that are shown; a CSV file has all of them."""

AnswerEpsilon = Annotated[check.Number, Option("The privacy loss of each answer, for example 1.")]


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulateRequest:
    """One randomized answer for each row; the table's ledger is charged."""

    table: OneTable = field(kw_only=False)
    schema: SchemaGiven
    column: Annotated[str, Option("The column that the question is about.")]
    epsilon: AnswerEpsilon
    out: Annotated[
        "str | Path",
        Option(
            "FILE.parquet or FILE.jsonl; spark::FOLDER for Spark's tables.",
            python="What was written is returned, and the number of answers in it.",
            names="--out/-o",
        ),
    ]
    protocol: Annotated[
        str,
        Option(
            "auto, grr, sue, oue, olh, fast-olh, hadamard, subset; for a mean duchi, piecewise, "
            "hybrid, laplace; square-wave for a distribution."
        ),
    ] = "auto"
    ledger: LedgerGiven = None
    dataset: Dataset = None
    cap: Cap = None
    force: Annotated[bool, Option("Replace an older file.", kind=bool)] = False
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = None
    strict: Strict = False
    seed: Annotated[
        int | None,
        Option(
            "Make a simulation that protects nobody.",
            python="The name of what is written ends in ``-internal``.",
            kind=int,
        ),
    ] = None
    tell: Progress = None


@dataclass(frozen=True, kw_only=True, eq=False)
class EstimateRequest:
    """Estimates with standard errors and intervals, from answers alone."""

    path: Annotated[
        "str | Path",
        Option(
            "What `answers simulate` wrote.",
            python="With ``spark::`` before the path of Parquet files, Spark counts the answers.",
            argument=True,
            metavar="FILE",
        ),
    ] = field(kw_only=False)
    confidence: Annotated[float, Option("The confidence level of the intervals.", kind=float)] = (
        0.95
    )
    chart: Annotated["str | Path | None", Option("Write a chart, FILE.svg.", kind=Path)] = None
    csv: Annotated["str | Path | None", Option("Write the whole table, FILE.csv.", kind=Path)] = (
        None
    )
    force: Annotated[bool, Option("Replace an older CSV file.", kind=bool)] = False
    tell: Progress = None


@dataclass(frozen=True, kw_only=True, eq=False)
class AdviseRequest:
    """Before a survey: the error to expect of each protocol, and how many people it takes.

    Opens no data.
    """

    epsilon: AnswerEpsilon
    people: Annotated[int, Option("The number of people expected to answer.", kind=int)]
    categories: Annotated[
        int | None, Option("The number of categories. Without it: the mean of a number.", kind=int)
    ] = None
    target: Annotated[
        float | None, Option("A standard error to reach, for example 0.01.", kind=float)
    ] = None
    chart: Annotated[
        "str | Path | None",
        Option("Write a chart of the methods over epsilon, FILE.svg.", kind=Path),
    ] = None


def simulate(request: SimulateRequest) -> "tuple[Path | str, int]":
    """Check, charge, answer and write, in that order."""
    from sfumato.commands.answer_files import simulate_rows

    return simulate_rows(request)


def estimate(request: EstimateRequest) -> "Estimate":
    """Count, estimate, and write the chart and the table that are named."""
    from sfumato.commands.answer_files import estimate_file

    return estimate_file(request)


def advise(request: AdviseRequest) -> "list[Advice]":
    """Every protocol for a question, the most accurate first."""
    from sfumato.survey.estimate import advice

    chart, categories = as_path(request.chart), request.categories
    lines.check_chart(chart)
    rows = advice.advise(
        people=request.people,
        epsilon=request.epsilon,
        categories=categories,
        target=request.target,
    )
    if chart is not None:
        drawn = advice.means_chart() if categories is None else advice.frequencies_chart(categories)
        lines.write_text(chart, drawn)
    return rows


def show_simulation(request: SimulateRequest, written: "tuple[Path | str, int]") -> Iterator[str]:
    """How many answers there are, what they promise, and what to do next."""
    from sfumato.commands.answer_files import question_at

    path, answers = written
    question, private = question_at(path), request.seed is None
    if not private:
        yield "A simulation: seeded noise protects nobody. Nothing was charged."
    yield f"answers     {answers:,} by {question.protocol}: {path}"
    promise = f"{question.guarantee}, for each person who answers once"
    yield f"guarantee   {promise if private else 'none'}"
    if question.about_numbers and question.column.kind == "number":
        yield "note        a table holds bins: each row answered for the middle of its bin"
    if private:
        yield lines.running_total(_ledger(request), location=request.ledger)
    yield f"next        sfumato answers estimate {path}"


def _simulation_json(request: SimulateRequest, written: "tuple[Path | str, int]") -> dict[str, Any]:
    from sfumato.commands.answer_files import question_at
    from sfumato.privacy import guarantees

    path, answers = written
    question, private = question_at(path), request.seed is None
    return {
        "file": str(path),
        "answers": answers,
        "private": private,
        "guarantee": guarantees.to_json(question.guarantee) if private else None,
        "spent": str(_ledger(request).spent),
        "question": question.manifest(),
    }


def _ledger(request: SimulateRequest) -> "Ledger":
    from sfumato.commands.publication import dataset_name, loaded_schema
    from sfumato.ledger import Ledger

    name = dataset_name(loaded_schema(request.schema), request.dataset)
    return Ledger.open(request.ledger, dataset=name)


def show_estimate(request: EstimateRequest, result: "Estimate") -> Iterator[str]:
    """The estimates with their errors, and what was written."""
    from sfumato.survey.estimate.estimates import MeanEstimate

    if not result.private:
        yield "Made from a simulation: seeded noise protects nobody."
    yield f"column      {result.column}"
    yield f"answers     {result.answers:,} by {result.protocol}"
    promise = f"{result.guarantee}, for each person who answered once"
    yield f"guarantee   {promise if result.private else 'none'}"
    if isinstance(result, MeanEstimate):
        yield from _mean(result, request.confidence)
    else:
        yield from _frequencies(result, request.confidence)
    if result.protocol == "square-wave":
        yield "note        the errors leave out what smoothing changes (docs/limits.md)"
    for what, path in (("chart", request.chart), ("table", request.csv)):
        if path is not None:
            yield f"{what:11} {path}"


def _mean(result: "MeanEstimate", confidence: float) -> Iterator[str]:
    low, high = result.interval(confidence)
    yield f"mean        {result.mean:.6g}  +- {result.standard_error:.3g}"
    yield f"            {confidence:.0%} between {low:.6g} and {high:.6g}"


def _frequencies(result: "FrequencyEstimate", confidence: float) -> Iterator[str]:
    lows, highs = result.interval(confidence)
    width = min(_LABEL, max(len(label) for label in result.labels))
    yield f"{'':{width}}  frequency  std. error  {confidence:.0%} interval"
    rows = zip(result.labels, result.frequencies, result.standard_errors, lows, highs, strict=True)
    for label, value, error, low, high in islice(rows, _MOST_LINES):
        shown = lines.label(label, width)
        yield f"{shown:{width}}  {value:9.4f}  {error:10.4f}  {low:7.4f} .. {high:.4f}"
    if (more := len(result.labels) - _MOST_LINES) > 0:
        yield f"... and {more:,} more: --csv FILE writes all"


def show_advice(request: AdviseRequest, rows: "list[Advice]") -> Iterator[str]:
    """A line for each protocol."""
    categories, target = request.categories, request.target
    what = "a mean on [-1, 1]" if categories is None else f"one of {categories} categories"
    yield f"Standard error of {what}, {request.people:,} people, epsilon {request.epsilon} each:"
    people = "" if target is None else f"  people for {target:g}"
    yield f"{'protocol':12}  standard error  bytes{people}"
    for row in rows:
        needed = "" if row.people_needed is None else f"  {row.people_needed:>14,}"
        yield f"{row.protocol:12}  {row.standard_error:>14.4g}  {row.answer_bytes:>5}{needed}"
    if request.chart is not None:
        yield f"chart       {request.chart}"


simulate_answers = function(SimulateRequest, simulate, name="simulate_answers", spends=True)
estimate_answers = function(EstimateRequest, estimate, name="estimate_answers")

SIMULATE = Command(
    words="answers simulate",
    request=SimulateRequest,
    run=simulate,
    show=show_simulation,
    json=_simulation_json,
    json_help="Print what was done as JSON.",
    spends=True,
)
ESTIMATE = Command(
    words="answers estimate",
    request=EstimateRequest,
    run=estimate,
    show=show_estimate,
    json=lambda request, result: result.to_dict(request.confidence),
    json_help="Print the estimates as JSON.",
)
ADVISE = Command(
    words="answers advise",
    request=AdviseRequest,
    run=advise,
    show=show_advice,
    json=lambda _, rows: [row.to_dict() for row in rows],
    json_help="Print the table as JSON.",
)
COMMANDS: Final = (SIMULATE, ESTIMATE, ADVISE)
