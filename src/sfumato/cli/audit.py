"""``sfumato audit``: claimed, exact and measured loss of every mechanism, and the planted bugs."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options, progress, show, streams
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.auditing import Row
    from sfumato.auditing.cases.registry import Cases

REFUTED = 1
"""The exit code when a claim does not stand, or a planted bug was missed."""


def audit_command(
    cases: "Cases | None" = None, *, command: str = "sfumato audit", explained: str = ""
) -> Callable[..., None]:
    """The command over a list of cases.

    Args:
        cases: What can be audited; by default what comes with the package.
        command: How it is typed.
        explained: What the page says about the rows of these cases.
    """

    def audit(
        mechanisms: Annotated[
            list[str] | None,
            typer.Argument(metavar="[MECHANISM]...", help="By class or protocol. [default: all]"),
        ] = None,
        runs: Annotated[
            int | None, typer.Option(min=1_000, help="Fresh draws on each side. [default: enough]")
        ] = None,
        quick: Annotated[
            bool, typer.Option("--quick", help="A tenth of the draws; plants twice the epsilon.")
        ] = False,
        seed: Annotated[int, typer.Option(min=0, help="Of the simulation.")] = 0,
        markdown: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Write the table as a page, too.")
        ] = None,
        jobs: Annotated[
            int, typer.Option(min=0, help="Processes at once; 0 is one for each core.")
        ] = 0,
        listed: Annotated[
            bool, typer.Option("--list", help="Name the mechanisms, and stop.")
        ] = False,
        quiet: options.Quiet = False,
        json: Annotated[
            bool, typer.Option("--json", help="Print the rows, or the list, as JSON.")
        ] = False,
    ) -> None:
        """Try to refute every guarantee: claimed, exact and measured epsilon."""
        from sfumato import auditing
        from sfumato.auditing.cases import registry

        audited = auditing.CASES if cases is None else cases
        if listed:
            _list_names([*audited], as_json=json)
            return
        names = [*dict.fromkeys(registry.known(name, audited) for name in mechanisms or audited)]
        _check_page(markdown)
        effort = auditing.QUICK if quick else auditing.FULL
        with progress.shown(quiet=quiet or json) as tell:
            rows = auditing.audit_cases(
                names,
                effort=effort,
                runs=runs,
                seed=seed,
                processes=jobs or _cores(),
                cases=audited,
                tell=tell,
            )
        if markdown is not None:
            named = names if mechanisms else []
            made_by = _command(command, named, runs, quick, seed)
            page = auditing.markdown(rows, command=made_by, explained=explained)
            markdown.write_text(page, encoding="utf-8")
        if json:
            show.as_json([row.to_dict() for row in rows])
        else:
            typer.echo(auditing.text(rows))
        for reason in () if mechanisms else registry.NOT_RUN.values():
            typer.echo(f"not run: {reason}", err=True)
        _tell_problems(rows)

    return audit


audit = audit_command()


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _list_names(names: list[str], *, as_json: bool) -> None:
    if as_json:
        show.as_json(names)
    else:
        typer.echo("\n".join(names))


def _check_page(path: Path | None) -> None:
    """Refuses what can't be written before a minute is spent; replaces only what an audit wrote."""
    from sfumato.auditing.results_table import HEADING

    if path is None:
        return
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(
            f"{path} can't be written: its folder does not exist or is not yours to change. Make "
            "the folder, or name another file"
        )
    if not path.exists():
        return
    if not path.is_file() or not path.read_bytes().startswith(HEADING.encode() + b"\n"):
        raise InputError(
            f"{path} exists and is not a page of audits. Name another file, or remove that one"
        )


def _command(typed: str, names: list[str], runs: int | None, quick: bool, seed: int) -> str:
    """What makes the same page."""
    options = [f"--runs {runs}"] * (runs is not None)
    options += ["--quick"] * quick + [f"--seed {seed}"] * (seed != 0)
    return " ".join([typed, *names, *options])


def _tell_problems(rows: "list[Row]") -> None:
    """One message and its exit code, if anything is not as it should be."""
    problems = [problem for row in rows for problem in row.problems]
    if problems:
        streams.complain(f"sfumato: the audit failed. {'; '.join(problems)}.\n")
        raise typer.Exit(REFUTED)
