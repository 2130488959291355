"""``python -m audits``: as ``sfumato audit``, with whole runs besides."""

import sys

import typer

from audits.registry import EVERY_CASE, EXPLAINED
from sfumato.cli import process
from sfumato.cli.main import callback
from sfumato.commands.audit import audit_command
from sfumato.errors import SfumatoError

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(callback(audit_command(EVERY_CASE, typed="python -m audits", explained=EXPLAINED)))


def main() -> None:
    """Run the audits; an error is one message and its exit code."""
    try:
        app()
    except SfumatoError as error:
        process.complain(f"audits: {error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
