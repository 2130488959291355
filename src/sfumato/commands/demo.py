"""``sfumato demo``: the whole main job on a survey that the package makes itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sfumato import check
from sfumato.commands import lines
from sfumato.commands.request import Command, Option, Progress

if TYPE_CHECKING:
    from sfumato.release import TableRelease


@dataclass(frozen=True, kw_only=True, eq=False)
class DemoRequest:
    """Make a survey, publish it privately, and compare the two."""

    out: Annotated[Path, Option("The folder to write.", kind=Path)] = Path("demo")
    epsilon: Annotated[check.Number, Option("The budget of the release.")] = "1"
    force: Annotated[bool, Option("Replace an older demo.", kind=bool)] = False
    tell: Progress = None


def run(request: DemoRequest) -> "TableRelease":
    """Check, make the survey, publish it and compare, in that order."""
    from sfumato.commands.internal_folder import check_internal, internal_folder, publishable
    from sfumato.commands.publish import publish_table
    from sfumato.lab import made_up_survey
    from sfumato.privacy import PureDP
    from sfumato.release import check_free

    PureDP(request.epsilon)  # refuses before anything is made
    check_free(publishable(request.out), force=request.force)
    internal = internal_folder(request.out)
    made_up_survey.check_free(internal, force=request.force)
    check_internal(internal)
    internal.parent.mkdir(parents=True, exist_ok=True)
    internal.mkdir(mode=0o700, exist_ok=True)
    table, schema = made_up_survey.make(internal)
    return publish_table(
        table,
        schema=schema,
        epsilon=request.epsilon,
        out=request.out,
        ledger=_ledger_file(internal),
        evaluate=True,
        force=request.force,
        csv=True,
        resume=False,
        tell=request.tell,
    )


def show(request: DemoRequest, release: "TableRelease") -> Iterator[str]:
    """What was made and published, what it cost, and where to look."""
    from sfumato.commands.internal_folder import internal_folder
    from sfumato.lab import made_up_survey
    from sfumato.ledger import Ledger

    internal = internal_folder(request.out)
    table, _ = made_up_survey.paths(internal)
    yield f"a survey of {made_up_survey.PEOPLE:,} people who do not exist: {table}"
    yield from lines.release(release, folder=str(request.out))
    path = _ledger_file(internal)
    yield lines.running_total(Ledger.open(path, dataset=release.dataset), location=path)
    yield f"report      {request.out / 'report.html'}  (may be published)"
    yield f"internal    {internal / 'internal.html'}  (real against published: keep it)"


def _ledger_file(folder: Path) -> Path:
    """The demo's ledger, or a new name: one that was deleted is not replaced under its name."""
    from sfumato.randomness import secure_rng

    existing = sorted(folder.glob("demo-*.ledger"))
    return existing[0] if existing else folder / f"demo-{secure_rng().token()[:8]}.ledger"


COMMAND = Command(
    words="demo",
    request=DemoRequest,
    run=run,
    show=show,
    json=lambda _, release: release.to_dict(),
    json_help="Print release.json and nothing else.",
    spends=True,
)
