"""``sfumato run FILE``: the command of a run file again."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from sfumato.cli import dp2pub, evaluate, options, publish, recommend, run_files
from sfumato.errors import InputError

COMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    "publish": publish.publish,
    "dp2pub": dp2pub.dp2pub,
    "evaluate": evaluate.evaluate,
    "recommend fit": recommend.fit,
}


def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="What --save-run wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="Another folder to write. [default: the file's]")
    ] = None,
    force: options.Force = False,
    resume: options.Resume = None,
    quiet: options.Quiet = False,
    json: options.ReleaseJson = False,
) -> None:
    """Give the command of a run file again: a new run, and a new charge, unless --resume."""
    command, given = run_files.load(file)
    if command not in COMMANDS:
        listed = ", ".join(COMMANDS)
        raise InputError(f"{file}: command must be one of {listed}.")
    known = run_files.declared(COMMANDS[command])
    flags = {"force": force, "resume": bool(resume), "quiet": quiet, "json": json}
    asked = [flag for flag, wanted in flags.items() if wanted]
    asked += ["no-resume"] * (resume is False)
    wanted = [*(flag.removeprefix("no-") for flag in asked), *(["out"] if out else [])]
    if unknown := [flag for flag in wanted if flag not in known]:
        raise InputError(f"{command} has no --{unknown[0]}. Leave it out.")
    words = run_files.arguments(file, {**given, **_elsewhere(out)}, known)
    begun = [*command.split(), *(f"--{flag}" for flag in asked)]
    ended = context.find_root().command.main([*begun, *words], "sfumato", standalone_mode=False)
    if isinstance(ended, int):  # also 130: typer makes a code of a signal
        raise typer.Exit(ended)


def _elsewhere(out: Path | None) -> dict[str, str]:
    """Another folder, whatever the file's own place is."""
    return {} if out is None else {"out": str(out.absolute())}
