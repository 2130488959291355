"""``sfumato demo``: the whole main job on a survey that the package makes itself."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli import options, progress, show


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("demo"),
    epsilon: Annotated[str, typer.Option(help="The budget of the release.")] = "1",
    force: Annotated[bool, typer.Option("--force", help="Replace an older demo.")] = False,
    quiet: options.Quiet = False,
    json: options.ReleaseJson = False,
) -> None:
    """Make a survey, publish it privately, and compare the two."""
    from sfumato.cli import made_up_survey
    from sfumato.commands.internal_folder import check_internal, internal_folder, publishable
    from sfumato.commands.publish import publish_table
    from sfumato.ledger import Ledger
    from sfumato.privacy import PureDP
    from sfumato.release import check_free

    PureDP(epsilon)  # refuses before anything is made
    check_free(publishable(out), force=force)
    inside = internal_folder(out)
    made_up_survey.check_places(inside, force=force)
    check_internal(inside)
    inside.parent.mkdir(parents=True, exist_ok=True)
    inside.mkdir(mode=0o700, exist_ok=True)
    table, schema = made_up_survey.make(inside)
    book = _ledger_in(inside)
    if not json:
        typer.echo(f"a survey of {made_up_survey.PEOPLE:,} people who do not exist: {table}")
    with progress.shown(quiet=quiet or json) as tell:
        made = publish_table(
            table, schema=schema, epsilon=epsilon, out=out, ledger=book, evaluate=True,
            force=force, csv=True, resume=False, tell=tell,
        )  # fmt: skip
    if json:
        show.as_json(made.to_dict())
        return
    show.release(made, folder=str(out))
    show.running_total(Ledger.open(book, dataset=made.dataset), place=str(book))
    typer.echo(f"report      {out / 'report.html'}  (may be published)")
    typer.echo(f"internal    {inside / 'internal.html'}  (real against published: keep it)")


def _ledger_in(folder: Path) -> Path:
    """The demo's ledger, or a new name: one that was deleted is not replaced under its name."""
    from sfumato.randomness import secure_rng

    kept = sorted(folder.glob("demo-*.ledger"))
    return kept[0] if kept else folder / f"demo-{secure_rng().token()[:8]}.ledger"
