"""``sfumato answers``: many clients in one process, estimates from their answers, and advice."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import cap_text, options, progress, show
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.survey.estimate.estimates import FrequencyEstimate, MeanEstimate

LABEL_WIDTH = 32
MOST_LINES = 60
HEADER = "label,frequency,standard_error,low,high,adjusted"
"""What a table of estimates begins with."""

app = typer.Typer(help="Answers randomized on the device: simulate, estimate, advise.")


@app.command("simulate")
def simulate(
    table: options.TableArgument,
    schema: options.SchemaFile,
    column: Annotated[str, typer.Option(help="The column that is asked about.")],
    epsilon: Annotated[str, typer.Option(help="What each answer promises, for example 1.")],
    out: Annotated[
        str,
        typer.Option(
            "-o", "--out", help="FILE.parquet or FILE.jsonl; spark::FOLDER for Spark's tables."
        ),
    ],
    protocol: Annotated[
        str,
        typer.Option(
            help="auto, grr, sue, oue, olh, fast-olh, hadamard, subset; for a mean duchi, "
            "piecewise, hybrid, laplace; square-wave for a distribution."
        ),
    ] = "auto",
    ledger: options.LedgerPlace = None,
    dataset: options.Dataset = None,
    cap: options.Cap = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an older file.")] = False,
    encoding: options.Encoding = "utf-8",
    delimiter: options.Delimiter = None,
    strict: options.Strict = False,
    seed: options.Seed = None,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """One randomized answer for each row; the table's ledger is charged."""
    from sfumato.commands.answers import question_at, simulate_answers
    from sfumato.commands.inputs import loaded_schema
    from sfumato.ledger import Ledger
    from sfumato.privacy import guarantees

    limit = None if cap is None else cap_text.cap(cap, name="--cap")
    with progress.shown(quiet=quiet or json) as tell:
        path, answers = simulate_answers(
            table,
            schema=schema,
            column=column,
            epsilon=epsilon,
            out=out,
            protocol=protocol,
            dataset=dataset,
            ledger=ledger,
            cap=limit,
            force=force,
            encoding=encoding,
            delimiter=delimiter,
            strict=strict,
            seed=seed,
            tell=tell,
        )
    question = question_at(path)
    name = dataset if dataset is not None else loaded_schema(schema).dataset
    book = Ledger.open(ledger, dataset=str(name))
    if json:
        promise = guarantees.to_json(question.guarantee) if seed is None else None
        made = {"file": str(path), "answers": answers, "private": seed is None}
        told = {"guarantee": promise, "spent": str(book.spent), "question": question.manifest()}
        show.as_json({**made, **told})
        return
    if seed is not None:
        typer.echo("A simulation: seeded noise protects nobody. Nothing was charged.")
    typer.echo(f"answers     {answers:,} by {question.protocol}: {path}")
    promised = f"{question.guarantee}, for each person who answers once"
    typer.echo(f"guarantee   {promised if seed is None else 'none'}")
    if question.about_numbers and question.column.kind == "number":
        typer.echo("note        a table holds bins: each row answered for the middle of its bin")
    if seed is None:
        show.running_total(book, place=ledger)
    typer.echo(f"next        sfumato answers estimate {path}")


@app.command("estimate")
def estimate(
    file: Annotated[str, typer.Argument(help="What `answers simulate` wrote.")],
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    chart: Annotated[Path | None, typer.Option(help="Write a chart, FILE.svg.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the whole table, FILE.csv.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an older CSV file.")] = False,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="Print the estimates as JSON.")] = False,
) -> None:
    """Estimates with standard errors and intervals, from answers alone."""
    from sfumato.commands.answers import estimate_answers
    from sfumato.survey.estimate.estimates import FrequencyEstimate, z_of

    z_of(confidence)
    show.check_chart(chart)
    _check_csv(csv, file, force=force)
    with progress.shown(quiet=quiet or json) as tell:
        found = estimate_answers(file, tell=tell)
    if not isinstance(found, FrequencyEstimate) and (chart or csv):
        raise InputError("a mean is one number: leave --chart and --csv out.")
    if isinstance(found, FrequencyEstimate):
        if chart is not None:
            show.write_text(chart, found.chart(confidence))
        if csv is not None:
            show.write_text(csv, found.to_csv(confidence))
    if json:
        show.as_json(found.to_dict(confidence))
        return
    if not found.private:
        typer.echo("Made from a simulation: seeded noise protects nobody.")
    typer.echo(f"column      {found.column}")
    typer.echo(f"answers     {found.answers:,} by {found.protocol}")
    promise = f"{found.guarantee}, for each person who answered once"
    typer.echo(f"guarantee   {promise if found.private else 'none'}")
    _print(found, confidence)
    if found.protocol == "square-wave":
        typer.echo("note        the errors leave out what smoothing changes (docs/limits.md)")
    for what, path in (("chart", chart), ("table", csv)):
        if path is not None:
            typer.echo(f"{what:11} {path}")


@app.command("advise")
def advise(
    epsilon: Annotated[str, typer.Option(help="What each answer promises, for example 1.")],
    people: Annotated[int, typer.Option(help="How many are expected to answer.")],
    categories: Annotated[
        int | None, typer.Option(help="Of the question. Without it: the mean of a number.")
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="A standard error to reach, for example 0.01.")
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(help="Write a chart of the methods over epsilon, FILE.svg.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Before anybody is asked: the error to expect of each protocol, and how many people it takes.

    Opens no data.
    """
    from sfumato.survey.estimate import advice

    show.check_chart(chart)
    rows = advice.advise(people=people, epsilon=epsilon, categories=categories, target=target)
    if chart is not None:
        drawn = advice.means_chart() if categories is None else advice.frequencies_chart(categories)
        show.write_text(chart, drawn)
    if json:
        show.as_json([row.to_dict() for row in rows])
        return
    what = "a mean on [-1, 1]" if categories is None else f"one of {categories} categories"
    typer.echo(f"Standard error of {what}, {people:,} people, epsilon {epsilon} each:")
    wanted = "" if target is None else f"  people for {target:g}"
    typer.echo(f"{'protocol':12}  standard error  bytes{wanted}")
    for row in rows:
        needed = "" if row.people_needed is None else f"  {row.people_needed:>14,}"
        typer.echo(f"{row.protocol:12}  {row.standard_error:>14.4g}  {row.answer_bytes:>5}{needed}")
    if chart is not None:
        typer.echo(f"chart       {chart}")


def _print(found: "FrequencyEstimate | MeanEstimate", confidence: float) -> None:
    from sfumato.survey.estimate.estimates import MeanEstimate

    if isinstance(found, MeanEstimate):
        low, high = found.interval(confidence)
        typer.echo(f"mean        {found.mean:.6g}  +- {found.standard_error:.3g}")
        typer.echo(f"            {confidence:.0%} between {low:.6g} and {high:.6g}")
        return
    lows, highs = found.interval(confidence)
    width = min(LABEL_WIDTH, max(len(label) for label in found.labels))
    typer.echo(f"{'':{width}}  frequency  std. error  {confidence:.0%} interval")
    rows = zip(found.labels, found.frequencies, found.standard_errors, lows, highs, strict=True)
    for label, value, error, low, high in islice(rows, MOST_LINES):
        shown = show.label(label, width)
        typer.echo(f"{shown:{width}}  {value:9.4f}  {error:10.4f}  {low:7.4f} .. {high:.4f}")
    if (more := len(found.labels) - MOST_LINES) > 0:
        typer.echo(f"... and {more:,} more: --csv FILE writes all")


def _check_csv(path: Path | None, file: str, *, force: bool) -> None:
    if path is None:
        return
    if path.suffix != ".csv" or path == Path(file):
        raise InputError(f"the table is a CSV file: its name ends in .csv, got {path.name!r}.")
    if path.exists() and not force:
        raise InputError(f"{path} exists. Name another file, or add --force.")
    if path.exists() and not _is_ours(path):
        raise InputError(
            f"{path} is no table of estimates: --force replaces such only. Name another file."
        )


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline().rstrip() == HEADER.encode()
