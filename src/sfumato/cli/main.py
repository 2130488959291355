"""The command ``sfumato``: its commands, its exit codes, and one clear message for every error.

What a command is called, takes and prints is made from its request: options, help, run file,
progress.
"""

import io
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import MISSING, replace
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand

from sfumato import _version
from sfumato.cli import (
    process,
    run_files,
    serve,
)
from sfumato.commands import lines
from sfumato.commands.registry import COMMANDS, GROUPS, commands_of
from sfumato.commands.request import Command, Option, boundary, default_of, options_of
from sfumato.errors import (
    InputError,
    InternalError,
    SfumatoError,
    StorageError,
    full_sentence,
    naming_options,
)

log = logging.getLogger(__name__)

_ONLY_SHOW: Final = ("ledger", "plan", "--help", "-h")
"""Commands that make and charge nothing: it is no loss if nobody reads them to the end."""


def program(words: Sequence[str] | None = None) -> typer.Typer:
    """The command line as typer knows it.

    Args:
        words: What was typed: commands of other groups are then left out, as nobody needs
            them. A run file may hold any command.
    """
    app = typer.Typer(
        name="sfumato",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_options)
    for command in COMMANDS:
        app.command(command.words, cls=StrictCommand)(callback(command))
    app.command("run", cls=StrictCommand)(run_files.run)
    for name, about in GROUPS.items():
        full = words is None or name in words or "run" in words
        app.add_typer(_group(name, about, full=full), name=name)
    return app


def _group(name: str, about: str, *, full: bool) -> typer.Typer:
    """Commands that share their first word, which alone prints their help."""
    group = typer.Typer()

    @group.callback(invoke_without_command=True, help=about)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    for command in commands_of(name) if full else ():
        word = command.words.removeprefix(f"{name} ")
        group.command(word, cls=StrictCommand)(callback(command))
    if full and name == "survey":
        group.command("serve", cls=StrictCommand)(callback(serve.COMMAND))
    return group


def main() -> NoReturn:
    """Run the command line; every way out has its exit code and, on errors, one message."""
    try:
        with naming_options():
            _main()
    finally:
        process.settle_streams()


def _main() -> NoReturn:
    try:
        process.open_closed_streams()
        _print_any_name()
        with process.termination_too():
            outcome = _outcome()
        if outcome == process.INTERRUPTED:  # typer caught the signal and printed nothing
            process.stop()
        sys.exit(outcome if isinstance(outcome, int) else 0)
    except SfumatoError as error:
        _fail(str(error), error.exit_code, error)
    except process.InterruptionError as stopped:
        process.stop(stopped)
    except (typer.Abort, KeyboardInterrupt):
        process.stop()
    except OSError as error:
        _fail_by(error)
    except MemoryError as error:
        problem = "there is not enough memory. Use fewer columns or bins, or a larger machine."
        _fail(problem, StorageError.exit_code, error)
    except Exception as error:
        if (refusal := _wrong_usage(error)) is not None:
            _fail(f"{full_sentence(refusal)} Nothing was done.", InputError.exit_code)
        if os.environ.get("SFUMATO_DEBUG"):
            raise
        kind = type(error).__name__
        _fail(
            f"an error of our own ({kind}). "
            "Set SFUMATO_DEBUG=1 to see where, and please report it.",
            InternalError.exit_code,
            error,
        )


def _outcome() -> Any:
    """What the command returned, or its exit code."""
    try:
        return program(sys.argv[1:])(standalone_mode=False)
    except SystemExit as ended:
        if isinstance(ended.__context__, OSError):  # typer ends with 1 where nobody reads
            raise ended.__context__ from None
        raise


def _fail_by(error: OSError) -> NoReturn:
    """The end by a file, or by a standard output that is full or that nobody reads.

    Where a reader had enough of what is only shown (``sfumato ledger show | head``) no message is
    printed, as usual.
    """
    why = error.strerror or error
    stream = None if error.filename else process.stream_of(error)
    only_shows = any(word in sys.argv[1:] for word in _ONLY_SHOW)
    if only_shows and stream == "standard output" and isinstance(error, BrokenPipeError):
        process.endings.info("nobody reads standard output any more")
        sys.exit(process.UNREAD)
    problem = f"{error.filename or 'a file'}: {why}"
    if stream is not None:
        problem = (
            f"{stream} can't be written: {why}. What was made and charged before that is saved."
        )
    _fail(problem, StorageError.exit_code, error)


def _print_any_name() -> None:
    """Let a file's name be printed that is not text, or not in the terminal's encoding."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _version_and_exit(requested: bool) -> None:
    if requested:
        typer.echo(f"sfumato {_version.__version__}")
        raise typer.Exit


def _options(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version_and_exit, is_eager=True, help="Print the version."
    ),
    log_file: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Append what is done, and when, to a file."),
    ] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Publish data about people without publishing the people."""
    process.begin_log(log_file, log_level)
    log.info("sfumato %s: %s", _version.__version__, context.invoked_subcommand)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _wrong_usage(error: Exception) -> str | None:
    """The message of a command line that can't be parsed; None for every other error.

    Recognized by its method: newer versions of typer raise a copy of click's errors of their own.
    """
    message = getattr(error, "format_message", None)
    return str(message()) if callable(message) else None


def _fail(message: str, code: int, error: BaseException | None = None) -> NoReturn:
    """One message; after a charge also what was charged, and how to go on."""
    message = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in message)
    process.endings.error("%s", message)
    after = [] if error is None else process.lines_after(error)
    process.complain("\n".join([f"sfumato: {message}", *after]) + "\n")
    sys.exit(code)


QUIET: Final = "quiet"
JSON: Final = "json"
SAVE_RUN: Final = "save_run"
"""Options of the command line itself: how a command shows and keeps what it does."""


class StrictCommand(TyperCommand):
    """A command that refuses an option with a value that is given twice: which one is meant?"""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what was typed, after a look at how often each option stands there."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        for one in order:
            if _has_one_value(one) and order.count(one) > 1:
                ctx.fail(f"{one.opts[0]} is given {order.count(one)} times, but has one value.")
        return super().parse_args(ctx, args)


def _has_one_value(parameter: Any) -> bool:
    """Whether it is an option, not a mere flag, that can be given once."""
    if parameter.param_type_name != "option" or parameter.multiple:
        return False
    return not parameter.is_flag or bool(parameter.secondary_opts)


def callback(command: Command[Any, Any]) -> Callable[..., None]:
    """The function that typer makes a command of."""
    declared = typed_options(command)

    def call(context: typer.Context, **given: Any) -> None:
        with boundary(spends=command.spends):
            work(context, **given)

    def work(context: typer.Context, **given: Any) -> None:
        as_json = given.pop(JSON, False)
        quiet = given.pop(QUIET, False) or as_json
        path = given.pop(SAVE_RUN, None)
        values = {name: _value(declared[name], value) for name, value in given.items()}
        known = {name: value for name, value in values.items() if value is not None}
        request = command.request(**known)
        if path is not None:
            run_files.keep(context, path, command, force=bool(values.get("force")))
        with process.shown_progress(quiet=quiet or not _has_progress(command)) as tell:
            if _has_progress(command):
                request = replace(request, tell=tell)
            result = command.run(request)
        _print(command, request, result, as_json=as_json)
        if command.warnings is not None:
            for line in command.warnings(request, result):
                process.complain(f"{line}\n")
        if command.exit_code is not None and (code := command.exit_code(result)):
            raise typer.Exit(code)

    call.__doc__ = command.request.__doc__
    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [_parameter(command, name, option) for name, option in declared.items()]
    own = [_own_parameter(name, option) for name, option in own_options(command).items()]
    object.__setattr__(call, "__signature__", Signature([context, *parameters, *own]))
    return call


def typed_options(command: Command[Any, Any]) -> dict[str, Option]:
    """The options that can be typed: arguments first, then what is required, then the others."""
    typed = {n: option for n, option in options_of(command.request).items() if option.typed}
    order = sorted(typed, key=lambda n: (not typed[n].argument, not _required(command, n)))
    return {name: typed[name] for name in order}


def own_options(command: Command[Any, Any]) -> dict[str, Option]:
    """What the command line adds to a request."""
    own = {}
    if command.saved:
        text = "Write this command to a TOML file, for `sfumato run FILE`."
        own[SAVE_RUN] = Option(text, kind=Path, metavar="FILE")
    if _has_progress(command):
        own[QUIET] = Option("Show no progress.", kind=bool, names="--quiet/-q")
    if command.json is not None:
        own[JSON] = Option(command.json_help, kind=bool, names="--json")
    return own


def _has_progress(command: Command[Any, Any]) -> bool:
    return "tell" in options_of(command.request)


def _required(command: Command[Any, Any], name: str) -> bool:
    option = options_of(command.request)[name]
    return option.required or default_of(command.request, name) is MISSING


def _parameter(command: Command[Any, Any], name: str, option: Option) -> Parameter:
    default = default_of(command.request, name)
    if _required(command, name):
        default = Parameter.empty
    elif default == ():
        default = None
    return _typer_parameter(name, option, default)


def _own_parameter(name: str, option: Option) -> Parameter:
    return _typer_parameter(name, option, False if option.kind is bool else None)


def _typer_parameter(name: str, option: Option, default: Any) -> Parameter:
    kind: Any = list[option.kind] if option.many else option.kind  # type: ignore[name-defined]
    if default is None:
        kind = kind | None
    keywords: dict[str, Any] = {"help": option.help}
    if option.metavar is not None:
        keywords["metavar"] = option.metavar
    if option.least is not None:
        keywords["min"] = option.least
    if option.argument:
        keywords.setdefault("metavar", name.upper())
        info = typer.Argument(**keywords)
    else:
        info = typer.Option(*_spelled(name, option), **keywords)
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


def _spelled(name: str, option: Option) -> list[str]:
    """The names of an option; flags have no second name that says no, unless it is declared."""
    if "/--" in option.names:
        return [option.names]
    if option.names:
        return option.names.split("/")
    return [f"--{option.key(name)}"]


def _value(option: Option, given: Any) -> Any:
    """What was typed as a value; None where nothing was, or an empty list."""
    if given is None or (option.many and not given):
        return None
    return given if option.read is None else option.read(given)


def _print(command: Command[Any, Any], request: Any, result: Any, *, as_json: bool) -> None:
    if as_json and command.json is not None:
        typer.echo(lines.json_text(command.json(request, result)))
        return
    with suppress(KeyboardInterrupt) if command.endless else nullcontext():
        for line in command.show(request, result):
            typer.echo(line, err=isinstance(line, lines.WarningLine))
