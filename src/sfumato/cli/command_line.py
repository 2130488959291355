"""The command line of a command, made from its request: options, help, run file, progress."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import MISSING, replace
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from sfumato.cli import process, progress, run_files
from sfumato.commands import lines
from sfumato.commands.request import Command, Option, boundary, default_of, options_of

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
        with progress.shown(quiet=quiet or not _has_progress(command)) as tell:
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
