"""``sfumato plan``: the error of each method, before anything is spent; opens no private table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from sfumato import check
from sfumato.commands import lines
from sfumato.commands.request import (
    Command,
    Encoding,
    Neighbors,
    Option,
    Progress,
    SchemaGiven,
    WorkloadGiven,
    function,
)

if TYPE_CHECKING:
    from sfumato.planning.plan import Plan

_METHOD: Final = 22
"""Columns of a method's name."""
_line = partial(lines.row, widths=(_METHOD, 11))
"""A line of figures."""
_MOST_MEASURED: Final = 5
"""Tables that the best method would measure, of which the figures are shown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanRequest:
    """Predict the error of each method, at and around an epsilon. Nothing is spent."""

    schema: SchemaGiven = field(kw_only=False)
    rows: Annotated[int, Option("About how many rows the table has.", kind=int)]
    epsilon: Annotated[check.Number, Option("The budget to plan for, for example 1.")]
    delta: Annotated[
        check.Number | None,
        Option("As in publish: allows Gaussian noise, for example 1e-9."),
    ] = None
    like: Annotated[
        Any,
        Option(
            "A PUBLIC table of the same columns to rehearse on, such as last year's. Never the "
            "private one: the figures would reveal it.",
            python="A path or a data frame. Without one, a made-up table stands in.",
        ),
    ] = None
    workload: WorkloadGiven = None
    neighbors: Neighbors = "add-remove"
    methods: Annotated[
        Sequence[str] | None,
        Option(
            "A method to compare; may be repeated. [default: all that can be used]",
            python="As a list.",
            names="--method",
            many=True,
        ),
    ] = None
    chart: Annotated[
        Path | None,
        Option("Write error against epsilon as an SVG file.", kind=Path, shell_only=True),
    ] = None
    encoding: Encoding = "utf-8"
    tell: Progress = None


def run(request: PlanRequest) -> "Plan":
    """Rehearse every method that can be used, and write the chart."""
    lines.check_chart(request.chart)
    from sfumato.commands.method_comparison import compare_methods

    made = compare_methods(request)
    if request.chart is not None:
        lines.write_text(request.chart, made.chart() + "\n")
    return made


def show(request: PlanRequest, made: "Plan") -> Iterator[str]:
    """The verdict, the methods, the epsilons, and what the best method would measure."""
    yield from _head(made)
    yield from _methods(made)
    yield from _epsilons(made)
    yield from _measured(made)
    yield from _refused(made)
    if request.chart is not None:
        yield f"chart       {request.chart}"


def _head(made: "Plan") -> Iterator[str]:
    from sfumato.planning.plan import TYPICAL_DEPENDENCE
    from sfumato.publishing.methods import DELTA

    delta = f", delta {float(DELTA):g} where a method needs one"
    if made.delta is not None:
        delta = f", delta {float(made.delta):g}"
    yield (
        f"plan        about {made.n_rows:,} rows, epsilon {float(made.epsilon):g}{delta}, "
        f"{made.protect}"
    )
    rehearsed = (
        f"made-up rows, where independence costs {TYPICAL_DEPENDENCE:g}; of real tables we know it "
        "costs .05 to .16, hence the range"
        if made.like is None
        else f"rows of {lines.label(made.like, 40)}, which must be public: this tells of them"
    )
    yield f"rehearsed   on {rehearsed} ({made.seconds:.0f} s)"
    yield f"verdict     {made.verdict}"
    if rules := made.schema.rules:
        yield (
            f"rules       {lines.counted(len(rules), 'rule')} between columns, kept in every drawn "
            "row: this costs no budget; what a repair would change is not predicted"
        )


def _methods(made: "Plan") -> Iterator[str]:
    """The methods at the epsilon that was asked for, the best first."""
    yield "\nmean error over the workload (of marginals: total variation)"
    yield _line("method", ["predicted", "from", "to", "by noise"])
    for each in made.at_epsilon:
        figures = (each.predicted, each.low, each.high, each.noise)
        yield _line(each.method, [f"{figure:.4f}" for figure in figures], note=each.verdict)


def _epsilons(made: "Plan") -> Iterator[str]:
    """The same against epsilon, with the non-adaptive optimum below."""
    from sfumato.planning.plan import OPTIMUM

    yield "\nagainst epsilon"
    yield _line("", [f"{float(epsilon):g}" for epsilon in made.epsilons])
    known = {(each.method, each.epsilon): each.predicted for each in made.predictions}
    for best in made.at_epsilon:
        errors = [known.get((best.method, epsilon)) for epsilon in made.epsilons]
        yield _line(best.method, ["" if error is None else f"{error:.4f}" for error in errors])
    least = {each.epsilon: each.optimum for each in made.predictions}
    if all(error is not None for error in least.values()):
        yield _line(OPTIMUM, [f"{least[epsilon]:.4f}" for epsilon in made.epsilons])


def _measured(made: "Plan") -> Iterator[str]:
    """What the best method would measure: the noisiest first."""
    best = made.at_epsilon[0]
    measured = sorted(best.measured, key=lambda each: -each.projected)
    yield f"\n{best.method} would measure {lines.counted(len(measured), 'table')}"
    if not measured:
        return
    yield _line("cells", ["noise", "projected", "sigma"])
    for each in measured[:_MOST_MEASURED]:
        figures = [f"{each.noise:.4f}", f"{each.projected:.4f}", f"{each.sigma_counts:,.1f}"]
        note = lines.label(each.box or ", ".join(each.columns), 44)
        yield _line(f"{each.cells:,}", figures, note=note)
    if len(measured) > _MOST_MEASURED:
        yield f"... and {len(measured) - _MOST_MEASURED} with less noise"


def _refused(made: "Plan") -> Iterator[str]:
    if made.refused:
        yield ""
    for method, reason in made.refused.items():
        yield f"{method:{_METHOD}}not compared: {lines.label(reason.split('. ')[0], 160)}"


plan = function(PlanRequest, run, name="plan")

COMMAND = Command(
    words="plan",
    request=PlanRequest,
    run=run,
    show=show,
    json=lambda _, made: made.to_dict()["rows"],
    json_help="Print a row for each method and epsilon as JSON.",
)
