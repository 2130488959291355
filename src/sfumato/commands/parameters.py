"""Parameters that several commands have, declared once; and how what was typed becomes a value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from sfumato import check
from sfumato.commands.request import Option
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.privacy.composition import Cap as CapValue
    from sfumato.privacy.protection import Neighbors as NeighborsWord
    from sfumato.schema import Schema, Workload

Tell = Callable[[str, int, int], None]
"""Progress: what is being done, how much of it is, how much there is; 0 of 0 begins a phase."""

CAP_DELTA: Final = "1e-6"
"""Of a cap that is one number. With it a cap admits Gaussian noise too, which ``auto`` may take."""
WORKLOADS: Final = {"1-way": 1, "2-way": 2, "3-way": 3}
"""Workloads by name: all marginals of so many columns."""


def cap(text: str, *, name: str = "--cap") -> "CapValue":
    """``3`` is epsilon 3 with delta 1e-6, ``3,1e-9`` has its own delta, ``3,0`` is a pure cap.

    Args:
        text: As it was typed.
        name: What messages call it.
    """
    from sfumato.privacy import ApproxDP, PureDP

    epsilon, comma, given = text.partition(",")
    delta = given if comma else CAP_DELTA
    try:
        return ApproxDP(epsilon, delta) if check.exact(delta=delta) else PureDP(epsilon)
    except InputError as error:
        raise InputError(f"{name} is EPSILON or EPSILON,DELTA: {error}") from None


def asked_cap(given: "CapValue | check.Number | None") -> "CapValue | None":
    """A cap as it is given: a guarantee, or what would be typed; None if there is none."""
    return cap(str(given), name="cap") if isinstance(given, int | float | str | Fraction) else given


def settings(given: list[str]) -> dict[str, str]:
    """Options of a method, given as name=value."""
    pairs = [entry.partition("=") for entry in given]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise InputError(f"--set takes name=value, for example rounds=30; got {name!r}")
    names = [name for name, _, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"--set names {', '.join(twice)} twice")
    return {name: value for name, _, value in pairs}


def one_table(given: list[str]) -> str:
    """The one table of a command; several are refused with what to do instead."""
    check_one_table(given if len(given) > 1 else given[0])
    return given[0]


def check_one_table(table: Any) -> None:
    """Refuse several tables at once: a promise is about one, and the reader must know which."""
    many = isinstance(table, list | tuple | Mapping)
    folder = isinstance(table, str | Path) and Path(table).is_dir()
    if many or folder:
        given = f"the folder {table}" if folder else f"{len(table)} of them"
        raise InputError(
            f"one table is published at a time, got {given}. If the tables are "
            "about the same people, join them so that one row is one person, or so that a column "
            "names the person (--person COLUMN --max-rows K), and publish that. If they are not, "
            "or each shall stand alone, publish them one by one under the SAME --dataset with one "
            "--cap, so that what they cost together is counted."
        )


def delimiter(given: str) -> str:
    """A delimiter as it is typed."""
    return "\t" if given in ("tab", "\\t") else given


def workload_name(given: object) -> str | None:
    """The name of a workload that has one; a file is a path, and not told."""
    return given if isinstance(given, str) and given in WORKLOADS else None


_TABLE: Final = (
    "csv, parquet, json (also gz, zst), sqlite (file.db::table) or "
    "postgresql://user@host/database::table, or spark::TABLE (or a path) to let Spark read it."
)
Table = Annotated[
    Any,
    Option(_TABLE, python="Or a data frame.", argument=True, many=True, read=one_table),
]
OneTable = Annotated[Any, Option(_TABLE, python="Or a data frame.", argument=True)]
SchemaGiven = Annotated[
    "Schema | Mapping[str, Any] | str | Path",
    Option(
        "The public description of the columns.",
        python="As a schema, as the content of its file, or as the file.",
        kind=Path,
    ),
]
Epsilon = Annotated[check.Number, Option("The budget of this release, for example 1.", public=True)]
WorkloadGiven = Annotated[
    "Workload | str | Path | None",
    Option(
        "1-way, 2-way, 3-way or a file. [default: 2-way]",
        python="Or a ``Workload``.",
        public=workload_name,
    ),
]
Neighbors = Annotated[
    "NeighborsWord",
    Option("add-remove, or replace: then the number of rows is public.", public=True),
]
LedgerPlace = Annotated[
    "str | Path | None",
    Option("The ledger: a file, or postgresql://user@host/database.", metavar="PLACE"),
]
Dataset = Annotated[
    str | None, Option("The name the budget belongs to. [default: the schema's]", public=True)
]
Cap = Annotated[
    "CapValue | check.Number | None",
    Option(
        "The most all releases may cost together, kept from the first run that gives it. "
        "Without DELTA it is 1e-6; 3,0 is a pure cap.",
        python='``3`` and ``"3,0"`` are taken, and guarantees such as ``ApproxDP(3, 1e-6)``.',
        metavar="EPSILON[,DELTA]",
        read=cap,
    ),
]
Encoding = Annotated[str, Option("Of a CSV file.")]
Delimiter = Annotated[
    str | None,
    Option("Of a CSV file, one character or tab. [default: taken from the header]", read=delimiter),
]
Strict = Annotated[
    bool,
    Option(
        "Refuse a table with a value that does not fit. By default it counts as other, "
        "missing or the first value, so that no single row decides whether there is a release.",
        kind=bool,
        public=True,
    ),
]
Seed = Annotated[
    int | None, Option("Make a simulation that protects nobody, into OUT-internal.", kind=int)
]
Out = Annotated[
    "str | Path | None",
    Option("The folder to write; it may be published whole.", kind=Path, required=True),
]
Force = Annotated[bool, Option("Replace an older release.", kind=bool)]
Settings = Annotated[
    "Mapping[str, str] | None",
    Option(
        "A method's option, like rounds=30.",
        python='As a mapping, like ``{"rounds": 30}``.',
        names="--set",
        many=True,
        read=settings,
        public=True,
    ),
]
Progress = Annotated[Tell | None, Option("Called with the progress.", typed=False)]


@dataclass(frozen=True, kw_only=True, eq=False)
class TableRun:
    """What every publication of a table can be told, whatever the method."""

    out: Out = None
    ledger: LedgerPlace = None
    dataset: Dataset = None
    cap: Cap = None
    evaluate: Annotated[
        bool, Option("Compare with the real table, into OUT-internal.", kind=bool)
    ] = False
    csv: Annotated[bool, Option("Write data.csv too.", kind=bool)] = False
    force: Force = False
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = None
    strict: Strict = False
    seed: Seed = None
    resume: Annotated[
        bool | None,
        Option(
            "Go on with a run of this very command that was stopped, without a new charge; or "
            "leave it, and pay again. [default: refuse if there is one]",
            kind=bool,
            names="--resume/--no-resume",
        ),
    ] = None
    tell: Progress = None
