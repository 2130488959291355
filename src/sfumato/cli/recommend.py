"""``sfumato recommend``: publish a private recommender, ask it, and see how good one would be."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import cap_text, options, progress, run_files, show
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.commands.recommend_evaluate import Accuracy
    from sfumato.release.recommender import Recommended, RecommenderRelease

app = typer.Typer(help="A private recommender: fit it, ask it, see how good one would be.")

TITLE_WIDTH = 48

RatingsTable = Annotated[
    str, typer.Argument(metavar="RATINGS", help="csv, parquet, json or sqlite (file.db::table).")
]
CatalogueFile = Annotated[
    Path | None,
    typer.Option(help="Required, and public: all items that can be rated, with or without title."),
]
Scale = Annotated[str, typer.Option(help="LOW..HIGH or LOW..HIGH/STEP: 1..5, 0.5..5/0.5.")]
Unit = Annotated[
    str, typer.Option(help="rating or person: whose presence is hidden, one rating or all of one.")
]
Delta = Annotated[str, typer.Option(help="The noise is Gaussian and needs one.")]
MaxRows = Annotated[
    int | None,
    typer.Option(help="Ratings of one person that count. [default: 200 with --unit person]"),
]
NeighborTables = Annotated[str, typer.Option(help="add-remove, or replace.")]
Method = Annotated[str, typer.Option(help="auto, bias, neighbors, popularity, ridge or tastes.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A method's option, like goal=ratings for auto."),
]
PersonColumn = Annotated[str, typer.Option(help="The column that names the person.")]
ItemColumn = Annotated[str, typer.Option(help="The column of item ids, in both files.")]
RatingColumn = Annotated[str, typer.Option(help="The column of ratings.")]
Dataset = Annotated[str | None, typer.Option(help="Required: the name the budget belongs to.")]


@app.command("fit")
def fit(
    context: typer.Context,
    ratings: RatingsTable,
    scale: Scale,
    epsilon: options.Epsilon,
    unit: Unit,
    out: options.Out,
    catalogue: CatalogueFile = None,
    delta: Delta = "1e-9",
    max_rows: MaxRows = None,
    neighbors: NeighborTables = "add-remove",
    method: Method = "auto",
    settings: Settings = None,
    person: PersonColumn = "user",
    item: ItemColumn = "item",
    rating: RatingColumn = "rating",
    ledger: options.LedgerPlace = None,
    dataset: Dataset = None,
    cap: options.Cap = None,
    force: options.Force = False,
    encoding: options.Encoding = "utf-8",
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse ratings that do not fit. By default a number that is not on the scale "
            "counts as the nearest, and a rating without a person or a known item as none.",
        ),
    ] = False,
    seed: options.Seed = None,
    save_run: options.SaveRun = None,
    quiet: options.Quiet = False,
    json: options.ReleaseJson = False,
) -> None:
    """Publish a recommender: a model, a machine-readable guarantee and a report."""
    from sfumato.commands.internal_folder import internal_folder
    from sfumato.commands.recommend import UNITS, fit_recommender
    from sfumato.ledger import Ledger
    from sfumato.privacy.protection import NEIGHBORS

    limit = None if cap is None else cap_text.cap(cap, name="--cap")
    run_files.keep(context, save_run, command=fit, force=force)
    with progress.shown(quiet=quiet or json) as tell:
        made = fit_recommender(
            ratings,
            catalogue=catalogue,
            scale=scale,
            epsilon=epsilon,
            unit=options.one_of(UNITS, unit=unit),
            delta=delta,
            max_rows=max_rows,
            neighbors=options.one_of(NEIGHBORS, neighbors=neighbors),
            method=method,
            options=options.settings(settings or []),
            person=person,
            item=item,
            rating=rating,
            out=out,
            dataset=dataset,
            ledger=ledger,
            cap=limit,
            force=force,
            encoding=encoding,
            strict=strict,
            seed=seed,
            tell=tell,
        )
    if json:
        show.as_json(made.to_dict())
        return
    folder = out if made.private else internal_folder(out)
    _print_release(made, folder)
    show.running_total(Ledger.open(ledger, dataset=made.dataset), place=ledger)
    typer.echo(f"report      {folder / 'report.html'}")
    typer.echo(f"next        sfumato recommend top {folder} --history FILE")


@app.command("top")
def top(
    folder: Annotated[Path, typer.Argument(help="A folder that `recommend fit` wrote.")],
    history: Annotated[
        Path | None,
        typer.Option(
            help="The person's own ratings: a table with item and rating, or JSON {item: rating}. "
            "Used for this answer and stored nowhere."
        ),
    ] = None,
    item: Annotated[
        str | None, typer.Option(help="Instead: the items most similar to this one.")
    ] = None,
    n: Annotated[int, typer.Option("-n", help="How many.")] = 10,
    candidates: Annotated[
        Path | None, typer.Option(help="A table with the column item: only these.")
    ] = None,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="List what is in the history, too.")
    ] = False,
    encoding: options.Encoding = "utf-8",
    json: Annotated[
        bool, typer.Option("--json", help="Print rows of item, title, score and rank.")
    ] = False,
) -> None:
    """What a published recommender says to one person, or which items are like one."""
    from sfumato.commands.recommend import recommend_top

    found = recommend_top(
        folder,
        history=history,
        item=item,
        n=n,
        candidates=candidates,
        include_seen=include_seen,
        encoding=encoding,
    )
    if json:
        show.as_json(
            [
                {"item": row.item, "title": row.title, "score": row.score, "rank": row.rank}
                for row in found
            ]
        )
        return
    _print_list(found, personal=history is not None)


@app.command("evaluate")
def evaluate(
    ratings: RatingsTable,
    scale: Scale,
    unit: Unit,
    epsilon: Annotated[
        str | None, typer.Option(help="The budget of one run, for example 1.")
    ] = None,
    epsilons: Annotated[
        str | None, typer.Option(help="Several, like .1,1,5,10: a table, and with --out a chart.")
    ] = None,
    catalogue: CatalogueFile = None,
    delta: Delta = "1e-9",
    max_rows: MaxRows = None,
    neighbors: NeighborTables = "add-remove",
    method: Method = "auto",
    settings: Settings = None,
    person: PersonColumn = "user",
    item: ItemColumn = "item",
    rating: RatingColumn = "rating",
    share: Annotated[float, typer.Option(help="Of the ratings that are held back.")] = 0.2,
    out: Annotated[
        Path | None, typer.Option(help="Write internal.html with charts into OUT-internal.")
    ] = None,
    ledger: options.LedgerPlace = None,
    dataset: Dataset = None,
    encoding: options.Encoding = "utf-8",
    seed: Annotated[int, typer.Option(min=0, help="Of the split and of the noise.")] = 0,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Internal: hold ratings back, fit to the rest, compare. Nothing is released or charged."""
    from sfumato.commands.internal_folder import internal_folder
    from sfumato.commands.recommend import UNITS
    from sfumato.commands.recommend_evaluate import evaluate_recommender
    from sfumato.privacy.protection import NEIGHBORS

    with progress.shown(quiet=quiet or json) as tell:
        found = evaluate_recommender(
            ratings,
            catalogue=catalogue,
            scale=scale,
            epsilons=_epsilons(epsilon, epsilons),
            unit=options.one_of(UNITS, unit=unit),
            delta=delta,
            max_rows=max_rows,
            neighbors=options.one_of(NEIGHBORS, neighbors=neighbors),
            method=method,
            options=options.settings(settings or []),
            person=person,
            item=item,
            rating=rating,
            share=share,
            out=out,
            dataset=dataset,
            ledger=ledger,
            encoding=encoding,
            seed=seed,
            tell=tell,
        )
    if json:
        show.as_json(found.to_dict())
        return
    _print_accuracy(found)
    if out is not None:
        typer.echo(f"internal    {internal_folder(out) / 'internal.html'}  (do not publish)")


def _epsilons(one: str | None, several: str | None) -> list[str]:
    """The one that was asked for first, then the others."""
    listed = [] if several is None else [text.strip() for text in several.split(",")]
    if one is None and not listed:
        raise InputError("give --epsilon E, or several with --epsilons.")
    return list(dict.fromkeys([*([] if one is None else [one]), *listed]))


def _print_release(made: "RecommenderRelease", folder: Path) -> None:
    from sfumato.report.recommender_page import neighbor_words

    if not made.private:
        typer.echo("A simulation: seeded noise protects nobody. Nothing was charged.")
    name = made.method["name"]
    chosen = f" (chose {made.method['chosen']})" if "chosen" in made.method else ""
    typer.echo(f"method      {name}{chosen}")
    promise = f"{made.guarantee}, {made.guarantee.kind}, for {neighbor_words(made.protect)}"
    typer.echo(f"guarantee   {promise if made.private else 'none'}")
    typer.echo(
        f"published   a recommender of {show.counted(len(made.catalogue), 'item')}: {folder}"
    )
    if made.method.get("paired_items") and not made.method.get("directions"):
        typer.echo("            no pattern stands out of the noise: lists follow popularity")


def _print_list(found: "list[Recommended]", *, personal: bool) -> None:
    if personal and found and not found[0].personal:
        typer.echo("The history is empty: everybody's list is the same.")
    if not found:
        typer.echo("Nothing is known to list." if not personal else "No item is left to list.")
    for row in found:
        item = show.label(str(row.item), TITLE_WIDTH)
        title = f"  {item}" if row.title != str(row.item) else ""
        typer.echo(f"{row.rank:>4}  {show.label(row.title, TITLE_WIDTH):{TITLE_WIDTH}}{title}")


def _print_accuracy(found: "Accuracy") -> None:
    typer.echo("Internal: these figures come from the real ratings. Do not publish them.")
    view = found.view()
    width = max(len(row.label) for row in view.rows)
    names = ("MAE", "RMSE", f"NDCG@{view.k}", f"recall@{view.k}", "coverage")
    typer.echo(" " * width + "".join(f"{name:>11}" for name in names))
    for row in view.rows:
        texts = ("" if value != value else f"{value:.3f}" for value in row.figures)
        note = f"  ({row.note})" if row.note else ""
        typer.echo(f"{row.label:{width}}" + "".join(f"{text:>11}" for text in texts) + note)
