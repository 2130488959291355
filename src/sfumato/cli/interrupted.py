"""Ctrl-C: one message and one exit code, also while the commands are still being imported."""

import sys
from typing import NoReturn

EXIT_CODE = 130


def stop() -> NoReturn:
    """Say what an interruption leaves behind, and end."""
    sys.stderr.write(
        "sfumato: interrupted. If anything was charged, it stays in the ledger "
        "(`sfumato ledger show`), and no half release was left behind.\n"
    )
    sys.exit(EXIT_CODE)
