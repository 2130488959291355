"""Every exception sfumato raises on purpose, as one tree.

::

    SfumatoError                  exit code 1 (never raised itself)
    ├── InputError                2: a value, option, schema or table that can't be used
    │   ├── SchemaError           2: the schema itself
    │   └── TableError            2: the table does not fit the schema or its format
    ├── BudgetError               3: a spend that the ledger or the budget refuses
    ├── StorageError              4: a file that can't be read, written or trusted
    │   ├── LedgerCorruptError    4: a ledger whose chain or anchor does not hold
    │   └── BusyError             4: the collection service has too much to do; come again
    └── InternalError             70: a check of our own failed; a bug

A message says what was given, what is allowed, what was not done and what to do. It never
carries a value from the data.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class SfumatoError(Exception):
    """Root of all errors that sfumato raises on purpose."""

    exit_code = 1


class InputError(SfumatoError, ValueError):
    """An argument, option or file content that can't be used as it is."""

    exit_code = 2


class SchemaError(InputError):
    """The schema is not valid or does not say enough."""


class TableError(InputError):
    """The table does not fit its schema or its file format."""


class BudgetError(SfumatoError):
    """The ledger or the budget refuses a spend. Nothing was looked at."""

    exit_code = 3


class StorageError(SfumatoError):
    """A file can't be read, written or trusted."""

    exit_code = 4


class LedgerCorruptError(StorageError):
    """A ledger whose hash chain, totals or anchor do not hold."""


class BusyError(StorageError):
    """The collection service has more to do than it can keep. Nothing was stored; come again."""


class InternalError(SfumatoError):
    """A check of our own failed. Nothing was released; please report it."""

    exit_code = 70


@contextmanager
def nothing_spent() -> Iterator[None]:
    """Let every refusal that leaves the block, which spends nothing, end with saying so.

    >>> with nothing_spent():
    ...     raise InputError("rows must be > 0, got 0")
    Traceback (most recent call last):
    sfumato.errors.InputError: rows must be > 0, got 0. Nothing was spent.
    """
    try:
        yield
    except SfumatoError as error:
        if "nothing was" not in str(error).lower():
            error.args = (f"{sentence(error)} Nothing was spent.",)
        raise


def sentence(error: Exception) -> str:
    """What an error says, with one full stop at its end."""
    said = str(error)
    return said if said.endswith(("?", "!")) else said.rstrip(".") + "."
