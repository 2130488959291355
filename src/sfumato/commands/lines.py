"""What commands show: lines on standard output, and small files that the user named."""

import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.commands.request import TableRun
    from sfumato.ledger import Ledger
    from sfumato.release import TableRelease

FEW_ROWS: Final = 10
"""A published table of fewer rows is noise."""
SHOWN_DELTA: Final = Fraction(1, 10**9)
"""At which an epsilon is shown where no cap has a delta."""


class WarningLine(str):
    """A line for standard error: a warning beside what a command shows."""

    __slots__ = ()


def json_text(value: Any) -> str:
    """One JSON document."""
    return json.dumps(value, indent=1, ensure_ascii=False)


def release(made: "TableRelease", *, folder: str) -> Iterator[str]:
    """What was published and where."""
    if not made.private:
        yield "A simulation: seeded noise protects nobody. Nothing was charged."
    method = made.method["name"]
    reason = f" ({made.method['reason']})" if "reason" in made.method else ""
    variant = f", {made.method['variant']}" if "variant" in made.method else ""
    yield f"method      {method}{variant}{reason}"
    if trust := made.method.get("trust"):
        rehearsed = "" if trust == "server" else " (a rehearsal: this program held the table)"
        yield f"trust       {trust}{rehearsed}"
    promise = f"{made.guarantee}, {made.guarantee.kind}, for {made.protect}"
    yield f"guarantee   {promise if made.private else 'none'}"
    size = f"{counted(made.data.num_rows, 'row')}, {counted(made.data.num_columns, 'column')}"
    yield f"published   {size}: {folder}"
    if made.method.get("published") == "answers":
        yield "            randomized rows as they came: redrawing would make them worse"
    if inferred := made.method.get("inferred"):
        cost = f"rho={inferred['rho']:g}, delta={inferred['delta']:g}"
        yield f"schema      inferred for {cost}, which the guarantee includes: schema.json"
        for name, why in inferred["left_out"].items():
            yield f"            left out: {label(name, 40)} ({why})"
        for name, note in inferred["notes"].items():
            yield f"            {label(name, 40)}: {note}"
    if unseen := made.method.get("never_measured"):
        yield f"            never measured, spread evenly by assumption: {', '.join(unseen)}"
    if rules := made.method.get("rules"):
        yield f"rules       {counted(len(rules['kept']), 'rule')} kept in every row"
        yield f"            {rules['repaired_share']:.2%} of the rows broke one as drawn: repaired"
    if made.data.num_rows < FEW_ROWS:
        yield "            the noise is larger than this table"


def published(request: "TableRun", made: "TableRelease") -> Iterator[str]:
    """What was made, what the data set has cost so far, and where to look."""
    from sfumato.commands.internal_folder import internal_folder
    from sfumato.ledger import Ledger
    from sfumato.privacy import OneRow

    out = Path(request.out or ".")
    folder = out if made.private else internal_folder(out)
    total = running_total(
        Ledger.open(request.ledger, dataset=made.dataset), location=request.ledger
    )
    yield from release(made, folder=f"{folder}")
    if made.private and isinstance(made.protect, OneRow) and "trust" not in made.method:
        yield "note        one row = one person: if a person can have several rows, the"
        yield "            guarantee is for each row alone; give --person and --max-rows"
    yield total
    yield f"report      {folder / 'report.html'}"
    if request.evaluate:
        yield f"internal    {internal_folder(out) / 'internal.html'}  (do not publish)"


def running_total(ledger: "Ledger", *, location: str | Path | None = None) -> str:
    """What the data set has paid so far, in every run, in the units of its cap.

    Args:
        ledger: The one that was charged.
        location: Where it is, as the user named it.
    """
    cap = ledger.cap
    limit = f", of a cap of {cap}" if cap is not None else ", no cap is set"
    where = f" ({location})" if location is not None else ""
    return f"spent       {spent_text(ledger)} on {ledger.dataset!r} so far{limit}{where}"


def spent_text(ledger: "Ledger") -> str:
    """What was spent in the units of the cap; a rho also as the epsilon it comes to."""
    from sfumato.privacy import ZCDP
    from sfumato.privacy.composition import BEYOND, unstated

    spent = ledger.composed()
    if not isinstance(spent, ZCDP):
        return str(spent or unstated(ledger.spent))
    return f"{ledger.composed(SHOWN_DELTA) or BEYOND} ({spent})"


def check_chart(path: Path | None) -> None:
    """Refuse, before any work, a chart that can't be one or would replace something else."""
    if path is None:
        return
    if path.suffix != ".svg":
        raise InputError(f"a chart is an SVG file: its name ends in .svg, got {path.name!r}.")
    if path.exists() and (not path.is_file() or not path.read_bytes().startswith(b"<svg")):
        raise InputError(f"{path} exists and is no chart. Name another file.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"there is no folder {path.absolute().parent}.")


def write_text(path: Path, text: str) -> None:
    """A small file that the user asked for."""
    from sfumato import report

    report.write_text(text, path)


def row(name: str, figures: Iterable[str], *, widths: tuple[int, int], note: str = "") -> str:
    """A line of a table: a name, figures to the right of it, and perhaps a note.

    >>> row("rows", ["12", "3"], widths=(6, 4), note="few")
    'rows    12   3  few'
    """
    line = f"{name:{widths[0]}}" + "".join(f"{figure:>{widths[1]}}" for figure in figures)
    return f"{line}  {note}" if note else line


def label(text: str, width: int) -> str:
    """A label of a column in one line: nothing that moves the cursor, and cut visibly."""
    plain = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return plain if len(plain) <= width else plain[: width - 1] + "\N{HORIZONTAL ELLIPSIS}"


def counted(number: int, thing: str) -> str:
    """A number of things: ``1 row``, ``1,000 rows``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
