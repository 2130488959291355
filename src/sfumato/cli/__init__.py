"""The command line: one file a command, each of which parses, calls a job and prints.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from sfumato.cli import interrupts

try:
    from sfumato.cli.main import main
except KeyboardInterrupt:
    interrupts.stop()

__all__ = ["main"]
