"""One declaration of a command: a frozen request, whose fields say all there is about a parameter.

The command line with its help, the Python function with its docstring, the run file and
``release.json``'s ``command`` are made from it. Modules that declare requests import nothing heavy,
so that ``--help`` answers at once; the work is imported when a command runs.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, Field, dataclass, fields
from inspect import Parameter, Signature, cleandoc
from numbers import Integral
from pathlib import Path
from textwrap import fill
from typing import Any, Final, ForwardRef, Generic, ParamSpec, TypeVar, get_args

from sfumato.errors import in_python

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
    """It has a place in the command line instead of a name."""
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
    """It is told in ``release.json``: as it is, or what this makes of it."""
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

    First what has a place, then what the command's own module declares, then what is shared.
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
    """What a release tells of how it was asked for: public options by key, and no path.

    Values are those of JSON, and the same whether they were typed or given in Python.
    """
    told: dict[str, Any] = {"command": words}
    for name, option in options_of(type(request)).items():
        if not option.public:
            continue
        value = getattr(request, name)
        plain = _plain(option.public(value) if callable(option.public) else value, option.kind)
        if plain is not None and plain is not False and plain != {}:
            told[option.key(name)] = plain
    return told


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
    from sfumato.ledger.charges import spending_boundary

    return spending_boundary()


def _option(field: Field[Any]) -> Option:
    for part in get_args(field.type)[1:]:
        if isinstance(part, Option):
            return part
    raise TypeError(f"{field.name} says nothing of itself: Annotated[..., Option(...)]")


def _parameter(field: Field[Any]) -> Parameter:
    kind = Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD
    default = Parameter.empty if field.default is MISSING else field.default
    said = get_args(field.type)[0]
    annotation = said.__forward_arg__ if isinstance(said, ForwardRef) else said
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
