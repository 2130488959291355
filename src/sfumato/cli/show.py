"""What commands print: progress on a terminal, plain lines otherwise, nothing with ``--json``."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from sfumato.jobs import Tell
    from sfumato.privacy import Ledger
    from sfumato.release import TableRelease


@contextmanager
def progress(*, quiet: bool) -> Iterator["Tell"]:
    """A callback for jobs: bars where a person watches, lines on standard error where not."""
    if quiet:
        yield lambda what, done, of: None
    elif not sys.stderr.isatty():
        yield _say_line
    else:
        with _bars() as tell:
            yield tell


def as_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False))


def release(made: "TableRelease", *, folder: str) -> None:
    """What was published and where."""
    if not made.private:
        typer.echo("A simulation: seeded noise protects nobody. Nothing was charged.")
    method = made.method["name"]
    reason = f" ({made.method['reason']})" if "reason" in made.method else ""
    typer.echo(f"method      {method}{reason}")
    promise = f"{made.guarantee}, {made.guarantee.kind}, for {made.protect}"
    typer.echo(f"guarantee   {promise if made.private else 'none'}")
    typer.echo(
        f"published   {made.data.num_rows:,} rows, {made.data.num_columns} columns: {folder}"
    )


def running_total(ledger: "Ledger") -> None:
    """What the data set has paid so far, in every run."""
    cap = ledger.cap
    limit = f" of the cap {cap}" if cap is not None else ", no cap is set"
    typer.echo(f"spent       {ledger.spent} on {ledger.dataset!r} in all{limit}")


def _say_line(what: str, done: int, of: int) -> None:
    if done == 0:
        sys.stderr.write(f"{what} ...\n")


@contextmanager
def _bars() -> Iterator["Tell"]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    shown = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, of: int) -> None:
            if what not in tasks:
                for earlier in tasks.values():
                    bars.update(earlier, completed=1, total=1)
                tasks[what] = bars.add_task(what, total=of or None)
            bars.update(tasks[what], completed=done, total=of or None)

        yield tell
