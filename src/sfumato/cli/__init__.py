"""The command line: one file a command, each of which parses, calls a job and prints.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from sfumato.cli.main import main

__all__ = ["main"]
