"""``sfumato audit``: claimed, exact and measured loss of every mechanism, and the planted bugs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from sfumato.commands.request import Command, Option, Progress
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.auditing import Row
    from sfumato.auditing.cases import Cases

REFUTED: Final = 1
"""The exit code when a claim does not stand, or a planted bug was missed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditRequest:
    """Try to refute every guarantee: claimed, exact and measured epsilon."""

    mechanisms: Annotated[
        tuple[str, ...],
        Option(
            "Mechanisms, by class or protocol. [default: all]",
            argument=True,
            many=True,
            metavar="MECHANISM",
        ),
    ] = ()
    runs: Annotated[
        int | None,
        Option(
            "Random draws for each of the two neighbors. [default: enough]", kind=int, least=1_000
        ),
    ] = None
    quick: Annotated[
        bool, Option("A tenth of the draws; planted bugs have twice the epsilon.", kind=bool)
    ] = False
    seed: Annotated[int, Option("The seed of the simulation.", kind=int, least=0)] = 0
    markdown: Annotated[
        Path | None, Option("Write the table as a page, too.", kind=Path, metavar="FILE")
    ] = None
    jobs: Annotated[
        int, Option("Parallel processes; 0 for one on each core.", kind=int, least=0)
    ] = 0
    listed: Annotated[bool, Option("List the mechanisms, and stop.", kind=bool, names="--list")] = (
        False
    )
    tell: Progress = None


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """The mechanisms that were audited, or that can be, and a row for each that was."""

    names: "list[str]"
    rows: "list[Row]"

    @property
    def problems(self) -> list[str]:
        """Claims that do not stand, and planted bugs that were missed."""
        return [problem for row in self.rows for problem in row.problems]


def audit_command(
    cases: "Cases | None" = None, *, typed: str = "sfumato audit", explained: str = ""
) -> Command[AuditRequest, AuditResult]:
    """The command over a list of cases.

    Args:
        cases: What can be audited; by default what comes with the package.
        typed: How the command is called.
        explained: What the page says about the rows of these cases.
    """

    def run(request: AuditRequest) -> AuditResult:
        from sfumato import auditing
        from sfumato.auditing.cases import known
        from sfumato.commands.publication import silent

        audited = auditing.CASES if cases is None else cases
        if request.listed:
            return AuditResult(names=[*audited], rows=[])
        given = request.mechanisms or audited
        names = [*dict.fromkeys(known(name, audited) for name in given)]
        _check_page(request.markdown)
        rows = auditing.audit_cases(
            names,
            effort=auditing.QUICK if request.quick else auditing.FULL,
            runs=request.runs,
            seed=request.seed,
            processes=request.jobs or _cores(),
            cases=audited,
            tell=request.tell or silent,
        )
        if request.markdown is not None:
            again = " ".join([typed, *_words(request, names)])
            page = auditing.markdown(rows, command=again, explained=explained)
            request.markdown.write_text(page, encoding="utf-8")
        return AuditResult(names=names, rows=rows)

    return Command(
        words="audit",
        request=AuditRequest,
        run=run,
        show=show,
        json=_json,
        json_help="Print the rows, or the list, as JSON.",
        warnings=warnings,
        exit_code=lambda result: REFUTED if result.problems else 0,
    )


def show(request: AuditRequest, result: AuditResult) -> Iterator[str]:
    """The table, or the names of what can be audited."""
    from sfumato import auditing

    yield "\n".join(result.names) if request.listed else auditing.text(result.rows)


def warnings(request: AuditRequest, result: AuditResult) -> Iterator[str]:
    """What was not run and why, and one message if anything is not as it should be."""
    from sfumato.auditing.cases import NOT_RUN

    if not request.mechanisms and not request.listed:
        yield from (f"not run: {reason}" for reason in NOT_RUN.values())
    if result.problems:
        yield f"sfumato: the audit failed. {'; '.join(result.problems)}."


def _json(request: AuditRequest, result: AuditResult) -> list[Any]:
    return result.names if request.listed else [row.to_dict() for row in result.rows]


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _check_page(path: Path | None) -> None:
    """Refuses what can't be written before a minute is spent; replaces only what an audit wrote."""
    from sfumato.auditing.report import HEADING

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


def _words(request: AuditRequest, names: list[str]) -> list[str]:
    """What makes the same page, as it is typed after the name of the command."""
    words = names if request.mechanisms else []
    runs = [f"--runs {request.runs}"] * (request.runs is not None)
    seed = [f"--seed {request.seed}"] * (request.seed != 0)
    return [*words, *runs, *["--quick"] * request.quick, *seed]


COMMAND = audit_command()
