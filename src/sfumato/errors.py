"""Every exception sfumato raises on purpose, as one tree.

::

    SfumatoError                  exit code 1 (never raised itself)
    ├── InputError                2: a value, option, schema or table that can't be used
    │   ├── SchemaError           2: the schema itself
    │   └── TableError            2: the table does not fit the schema or its format
    ├── BudgetError               3: a spend that the ledger or the budget refuses
    ├── StorageError              4: a file that can't be read, written or trusted
    │   └── LedgerCorruptError    4: a ledger whose chain or anchor does not hold
    └── InternalError             70: a check of our own failed; a bug

A message says what was given, what is allowed, what was not done and what to do. It never
carries a value from the data.
"""


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


class InternalError(SfumatoError):
    """A check of our own failed. Nothing was released; please report it."""

    exit_code = 70
