"""One declaration of a command: a frozen request, whose fields say all there is about a parameter.

The command line with its help, the Python function with its docstring, the run file and
``release.json``'s ``command`` are made from it. Modules that declare requests import nothing heavy,
so that ``--help`` answers at once; the work is imported when a command runs.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, Field, dataclass, fields
from fractions import Fraction
from inspect import Parameter, Signature, cleandoc
from numbers import Integral
from pathlib import Path
from textwrap import fill
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    ForwardRef,
    Generic,
    ParamSpec,
    TypeVar,
    get_args,
)

from sfumato import check
from sfumato.errors import InputError, in_python

if TYPE_CHECKING:
    from sfumato.privacy.composition import Cap as CapValue
    from sfumato.privacy.sensitivity import Neighbors as NeighborsWord
    from sfumato.schema import Schema, Workload

P = ParamSpec("P")
Q = TypeVar("Q")
R = TypeVar("R")

_known_options: dict[type, Mapping[str, "Option"]] = {}
_DOC_WIDTH: Final = 96
"""Of a line of a docstring; what is shown of it is indented by four."""


@dataclass(frozen=True, slots=True)
class Option:
    """What a parameter means, and how it is typed; ``Annotated`` puts it beside the type."""

    help: str
    """For people: in ``--help``, and in the docstring of the function."""
    python: str = ""
    """What the docstring says beside that: forms that only Python can give."""
    kind: type = str
    """What the command line takes: str, int, float, bool or Path."""
    names: str = ""
    """``--set``, ``--quiet/-q`` or ``--resume/--no-resume``; by default made from the field."""
    many: bool = False
    """It may be given several times."""
    argument: bool = False
    """It is given by its position in the command line, without a name."""
    metavar: str | None = None
    read: Callable[[Any], Any] | None = None
    """Makes the value of what was typed."""
    required: bool = False
    """On the command line, although the function has a default."""
    typed: bool = True
    """It can be given on the command line; what only Python can give is not."""
    shell_only: bool = False
    """The Python function does not have it: say, the file for what the function returns."""
    public: bool | Callable[[Any], Any] = False
    """It is written into ``release.json``: as it is, or what this makes of it."""
    least: int | None = None
    """The least whole number."""

    def key(self, field: str) -> str:
        """The name on the command line, in a run file and in ``release.json``."""
        return self.names.split("/")[0].lstrip("-") if self.names else field.replace("_", "-")


@dataclass(frozen=True, kw_only=True, slots=True)
class Command(Generic[Q, R]):
    """A command: the words that call it, its request, what runs and what is shown."""

    words: str
    """``publish``, or ``recommend fit``."""
    request: type[Q]
    run: Callable[[Q], R]
    show: Callable[[Q, R], Iterator[str]]
    """The lines on standard output. They are printed one by one, so this may wait in between."""
    json: Callable[[Q, R], Any] | None = None
    """What ``--json`` prints; without it there is no such option."""
    json_help: str = "Print the result as JSON."
    saved: bool = False
    """``--save-run`` writes it as a run file."""
    spends: bool = False
    """It may charge a ledger: then an error says whether it did."""
    warnings: Callable[[Q, R], Iterator[str]] | None = None
    """Lines on standard error, after what is shown; also after JSON."""
    exit_code: Callable[[R], int] | None = None
    """By default 0."""
    endless: bool = False
    """It may show until somebody interrupts it, which is then no error."""


def options_of(request: type) -> Mapping[str, Option]:
    """The options of a request by field, in the order of the help.

    First positional arguments, then what the command's own module declares, then what is shared.
    """
    if request in _known_options:
        return _known_options[request]
    home = request.__module__
    classes = [each for each in request.__mro__ if each.__module__ == home]
    own = {name for each in classes for name in each.__annotations__}
    declared = sorted(fields(request), key=lambda each: (each.kw_only, each.name not in own))
    _known_options[request] = {field.name: _option(field) for field in declared}
    return _known_options[request]


def default_of(request: type, name: str) -> Any:
    """The default of a field, or ``MISSING``."""
    (field,) = (each for each in fields(request) if each.name == name)
    return field.default


def public_options(words: str, request: Any) -> dict[str, Any]:
    """The command of a release, for its ``release.json``: public options by key, and no path.

    Values are those of JSON, and the same whether they were typed or given in Python.
    """
    public: dict[str, Any] = {"command": words}
    for name, option in options_of(type(request)).items():
        if not option.public:
            continue
        value = getattr(request, name)
        plain = _plain(option.public(value) if callable(option.public) else value, option.kind)
        if plain is not None and plain is not False and plain != {}:
            public[option.key(name)] = plain
    return public


def function(
    request: Callable[P, Q],
    run: Callable[[Q], R],
    *,
    name: str,
    spends: bool = False,
    summary: str = "",
) -> Callable[P, R]:
    """The Python function of a command: its parameters are the fields of the request.

    Args:
        request: The class of the request.
        run: What the function does with one.
        name: Of the function.
        spends: It may charge a ledger: then an error says whether it did.
        summary: What it does, where that is not all that the command does.
    """
    assert isinstance(request, type)
    by_name = {each.name: each for each in fields(request)}
    options = options_of(request)
    shown = [by_name[key] for key in options if not options[key].shell_only]
    returns = run.__annotations__.get("return", Parameter.empty)
    parameters = sorted(map(_parameter, shown), key=lambda each: each.kind)
    signature = Signature(parameters, return_annotation=returns)

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if unknown := [key for key in kwargs if key not in signature.parameters]:
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown[0]!r}")
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() is {error}") from None
        with boundary(spends=spends):
            return run(request(*args, **kwargs))

    call.__name__ = call.__qualname__ = name
    call.__module__ = request.__module__
    call.__doc__ = _docstring(request, summary)
    object.__setattr__(call, "__signature__", signature)
    call.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": returns}
    return call


def boundary(*, spends: bool) -> AbstractContextManager[None]:
    """Where errors of a command that may spend say that nothing was spent, if that is so."""
    if not spends:
        return nullcontext()
    from sfumato.ledger.ledger import spending_boundary

    return spending_boundary()


def _option(field: Field[Any]) -> Option:
    for part in get_args(field.type)[1:]:
        if isinstance(part, Option):
            return part
    raise TypeError(f"{field.name} is not documented: Annotated[..., Option(...)]")


def _parameter(field: Field[Any]) -> Parameter:
    kind = Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD
    default = Parameter.empty if field.default is MISSING else field.default
    given = get_args(field.type)[0]
    annotation = given.__forward_arg__ if isinstance(given, ForwardRef) else given
    return Parameter(field.name, kind, default=default, annotation=annotation)


def _docstring(request: type, summary: str) -> str:
    """What a request is, and its parameters, as Google-style docstrings have them."""
    lines = [summary or cleandoc(request.__doc__ or ""), "", "Args:"]
    for name, option in options_of(request).items():
        if option.shell_only:
            continue
        text = in_python(f"{name}: {option.help} {option.python}".rstrip())
        lines.append(fill(text, _DOC_WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8))
    return "\n".join(lines)


def _plain(value: object, kind: type) -> object:
    """A value as JSON has it; what a mapping holds becomes texts, as it is typed."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {str(name): _text(each) for name, each in value.items()}
    if kind is bool:
        return bool(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return str(value)


def _text(value: object) -> str:
    text = str(value)
    return text.lower() if text in ("True", "False") else text


def as_path(value: "str | Path | None") -> Path | None:
    """A path as people give it."""
    return None if value is None else Path(value)


ProgressCall = Callable[[str, int, int], None]
"""Progress: what is being done, how much of it is, how much there is; 0 of 0 begins a phase."""

CAP_DELTA: Final = "1e-6"
"""Of a cap that is one number. With it a cap admits Gaussian noise too, which ``auto`` may take."""
WORKLOADS: Final = {"1-way": 1, "2-way": 2, "3-way": 3}
"""Workloads by name: all marginals of 1, 2 or 3 columns."""


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


def cap_of(given: "CapValue | check.Number | None") -> "CapValue | None":
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
    """The name of a workload that has one; a file is a path, which is not published."""
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
LedgerGiven = Annotated[
    "str | Path | None",
    Option("The ledger: a file, or postgresql://user@host/database.", metavar="PLACE"),
]
Dataset = Annotated[
    str | None,
    Option("The name of the data set, which has one budget. [default: the schema's]", public=True),
]
Cap = Annotated[
    "CapValue | check.Number | None",
    Option(
        "The largest total cost of all releases of the data set, stored in the ledger by the first "
        "run that gives it. Without DELTA it is 1e-6; 3,0 is a pure cap.",
        python='``3`` and ``"3,0"`` are accepted, and guarantees such as ``ApproxDP(3, 1e-6)``.',
        metavar="EPSILON[,DELTA]",
        read=cap,
    ),
]
Encoding = Annotated[str, Option("The encoding of a CSV file.")]
Delimiter = Annotated[
    str | None,
    Option(
        "The separator of a CSV file: one character, or tab. [default: found in the header]",
        read=delimiter,
    ),
]
Strict = Annotated[
    bool,
    Option(
        "Refuse a table with a value that does not fit the schema. By default it counts as "
        "other, missing or the first value, so that no single row can prevent a release.",
        kind=bool,
        public=True,
    ),
]
Seed = Annotated[
    int | None,
    Option(
        "Use seeded noise: a simulation that protects nobody, written to OUT-internal.", kind=int
    ),
]
Out = Annotated[
    "str | Path | None",
    Option("The folder to write; everything in it may be published.", kind=Path, required=True),
]
Force = Annotated[bool, Option("Replace an existing release.", kind=bool)]
Settings = Annotated[
    "Mapping[str, str] | None",
    Option(
        "An option of the method, like rounds=30; may be repeated.",
        python='As a mapping, like ``{"rounds": 30}``.',
        names="--set",
        many=True,
        read=settings,
        public=True,
    ),
]
Progress = Annotated[
    ProgressCall | None, Option("A function that is called with the progress.", typed=False)
]


@dataclass(frozen=True, kw_only=True, eq=False)
class TableRun:
    """The options of every publication of a table, whatever the method."""

    out: Out = None
    ledger: LedgerGiven = None
    dataset: Dataset = None
    cap: Cap = None
    evaluate: Annotated[
        bool, Option("Compare with the real table; the result goes to OUT-internal.", kind=bool)
    ] = False
    csv: Annotated[bool, Option("Also write data.csv.", kind=bool)] = False
    force: Force = False
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = None
    strict: Strict = False
    seed: Seed = None
    resume: Annotated[
        bool | None,
        Option(
            "Continue a stopped run of exactly this command without a new charge; or start "
            "anew, and pay again. [default: refuse if there is such a run]",
            kind=bool,
            names="--resume/--no-resume",
        ),
    ] = None
    tell: Progress = None
