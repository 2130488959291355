"""``sfumato plan``: the error of each method, before anything is spent; opens no private table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato import check
from sfumato.cli import options, progress, show

if TYPE_CHECKING:
    from sfumato.planning.plan import Plan

_METHOD = 22
_FIGURE = 11
_MOST_MEASURED = 5


def plan(
    schema: options.SchemaFile,
    rows: Annotated[int, typer.Option(help="About how many rows the table has.")],
    epsilon: Annotated[str, typer.Option(help="The budget that is considered, for example 1.")],
    delta: Annotated[
        str | None, typer.Option(help="As for publish: allows Gaussian noise, for example 1e-9.")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            help="A PUBLIC table of the same columns to rehearse on, such as last year's. Never "
            "the private one: what is printed would tell of it."
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="1-way, 2-way, 3-way or a file. [default: 2-way]")
    ] = None,
    neighbors: Annotated[
        str, typer.Option(help="add-remove, or replace: then the number of rows is public.")
    ] = "add-remove",
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method to compare; may be repeated. [default: all that can be used]"),
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(help="Write error against epsilon as an SVG file.")
    ] = None,
    encoding: options.Encoding = "utf-8",
    quiet: options.Quiet = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print a row for each method and epsilon as JSON.")
    ] = False,
) -> None:
    """Predict the error of each method, at and around an epsilon. Nothing is spent."""
    show.check_chart(chart)
    from sfumato.commands.plan import plan as plan_table
    from sfumato.privacy.protection import NEIGHBORS

    with progress.shown(quiet=quiet or json) as tell:
        made = plan_table(
            schema,
            rows=rows,
            epsilon=epsilon,
            delta=delta,
            like=like,
            workload=workload,
            neighbors=check.one_of(NEIGHBORS, neighbors=neighbors),
            methods=method or None,
            encoding=encoding,
            tell=tell,
        )
    if chart is not None:
        show.write_text(chart, made.chart() + "\n")
    if json:
        show.as_json(made.to_dict()["rows"])
        return
    _print_head(made)
    _print_methods(made)
    _print_epsilons(made)
    _print_measured(made)
    _print_refused(made)
    if chart is not None:
        typer.echo(f"chart       {chart}")


def _print_head(made: "Plan") -> None:
    from sfumato.planning.plan import TYPICAL_DEPENDENCE
    from sfumato.publishing.methods import DELTA

    delta = f", delta {float(DELTA):g} where a method needs one"
    if made.delta is not None:
        delta = f", delta {float(made.delta):g}"
    typer.echo(
        f"plan        about {made.n_rows:,} rows, epsilon {float(made.epsilon):g}{delta}, "
        f"{made.protect}"
    )
    rehearsed = (
        f"made-up rows, where independence costs {TYPICAL_DEPENDENCE:g}; of real tables we know it "
        "costs .05 to .16, hence the range"
        if made.like is None
        else f"rows of {show.label(made.like, 40)}, which must be public: this tells of them"
    )
    typer.echo(f"rehearsed   on {rehearsed} ({made.seconds:.0f} s)")
    typer.echo(f"verdict     {made.verdict}")


def _print_methods(made: "Plan") -> None:
    """The methods at the epsilon that was asked for, the best first."""
    typer.echo("\nmean error over the workload (of marginals: total variation)")
    _print_line("method", ["predicted", "from", "to", "by noise"])
    for each in made.at_epsilon:
        figures = (each.predicted, each.low, each.high, each.noise)
        _print_line(each.method, [f"{figure:.4f}" for figure in figures], note=each.verdict)


def _print_epsilons(made: "Plan") -> None:
    """The same against epsilon, with the non-adaptive optimum below."""
    from sfumato.planning.plan import OPTIMUM

    typer.echo("\nagainst epsilon")
    _print_line("", [f"{float(epsilon):g}" for epsilon in made.epsilons])
    known = {(each.method, each.epsilon): each.predicted for each in made.predictions}
    for best in made.at_epsilon:
        found = [known.get((best.method, epsilon)) for epsilon in made.epsilons]
        _print_line(best.method, ["" if one is None else f"{one:.4f}" for one in found])
    least = {each.epsilon: each.optimum for each in made.predictions}
    if all(one is not None for one in least.values()):
        _print_line(OPTIMUM, [f"{least[epsilon]:.4f}" for epsilon in made.epsilons])


def _print_measured(made: "Plan") -> None:
    """What the best method would measure: the noisiest first."""
    best = made.at_epsilon[0]
    measured = sorted(best.measured, key=lambda each: -each.projected)
    typer.echo(f"\n{best.method} would measure {show.counted(len(measured), 'table')}")
    if not measured:
        return
    _print_line("cells", ["noise", "projected", "sigma"])
    for each in measured[:_MOST_MEASURED]:
        figures = [f"{each.noise:.4f}", f"{each.projected:.4f}", f"{each.sigma_counts:,.1f}"]
        _print_line(
            f"{each.cells:,}", figures, note=show.label(each.box or ", ".join(each.columns), 44)
        )
    if len(measured) > _MOST_MEASURED:
        typer.echo(f"... and {len(measured) - _MOST_MEASURED} with less noise")


def _print_refused(made: "Plan") -> None:
    if made.refused:
        typer.echo("")
    for method, reason in made.refused.items():
        typer.echo(f"{method:{_METHOD}}not compared: {show.label(reason.split('. ')[0], 160)}")


def _print_line(name: str, figures: list[str], *, note: str = "") -> None:
    line = f"{name:{_METHOD}}" + "".join(f"{figure:>{_FIGURE}}" for figure in figures)
    typer.echo(f"{line}  {note}" if note else line)
