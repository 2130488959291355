"""The command line, made from what ``commands`` declare: it parses, runs a command and prints.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from sfumato.cli import process

try:
    from sfumato.cli.main import main
except KeyboardInterrupt:
    process.stop()

__all__ = ["main"]
