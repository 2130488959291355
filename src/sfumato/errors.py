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

A message says what was given, what is allowed and what to do. It never carries a value from the
data. What was not done is an outcome, which a boundary adds (``spending_boundary``).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_speaks_of_options: ContextVar[bool] = ContextVar("_speaks_of_options", default=False)
_NUMBER: Final = r"\d+(?:[./]\d+)?(?:e-?\d+)?"
_OPTION: Final = re.compile(
    rf"(?<![\w-])--([a-z][a-z-]*[a-z])(?: ((?:[A-Z]+|{_NUMBER}|[a-z]+-\d+)\b))?"
)
"""An option, and its value if that is a word in capitals, a number or a text like latin-1."""
_FLAGS: Final = {
    "resume": "resume=True",
    "no-resume": "resume=False",
    "force": "force=True",
    "header": "header=True",
    "no-header": "header=False",
    "include-seen": "include_seen=True",
    "strict": "strict=True",
    "set": "options",
}
"""Options whose argument in Python is not their name."""


class SfumatoError(Exception):
    """Root of all errors that sfumato raises on purpose.

    Messages are written with the options of the command line; in Python they name arguments.
    """

    exit_code = 1
    """Of the command line, as in the tree above; 70 is EX_SOFTWARE of sysexits.h."""
    outcome: str | None = None
    """What did not happen, as a sentence that follows the message wherever the error is shown.

    It is set by the boundary that knows it, never by who raises the error.
    """

    def __str__(self) -> str:
        message = self.message
        return message if self.outcome is None else f"{full_sentence(message)} {self.outcome}"

    @property
    def message(self) -> str:
        """The message without the outcome."""
        message = super().__str__()
        return message if _speaks_of_options.get() else in_python(message)


class InputError(SfumatoError, ValueError):
    """An argument, option or file content that can't be used as it is."""

    exit_code = 2
    """Of a command, for a shell: as command lines use it for wrong options."""


class SchemaError(InputError):
    """The schema is not valid or does not say enough."""


class TableError(InputError):
    """The table does not fit its schema or its file format."""


class BudgetError(SfumatoError):
    """The ledger or the budget refuses a spend."""

    exit_code = 3
    """Of a command: the budget does not allow it."""


class StorageError(SfumatoError):
    """A file can't be read, written or trusted."""

    exit_code = 4
    """Of a command: a file or database failed."""


class LedgerCorruptError(StorageError):
    """A ledger whose hash chain, totals or anchor do not hold."""


class BusyError(StorageError):
    """The collection service has more to do than it can keep; come again."""


class InternalError(SfumatoError):
    """A check of our own failed; please report it."""

    exit_code = 70
    """Of a command: EX_SOFTWARE of BSD's sysexits.h."""


@contextmanager
def naming_options() -> Iterator[None]:
    """Let messages name options, as the command line does, instead of arguments."""
    before = _speaks_of_options.set(True)
    try:
        yield
    finally:
        _speaks_of_options.reset(before)


def in_python(message: str) -> str:
    """A message with arguments in the place of options; commands in backticks stay as they are.

    >>> in_python("Give --dataset NAME, or --max-rows; see `sfumato plan --help`.")
    'Give dataset=NAME, or max_rows; see `sfumato plan --help`.'
    >>> in_python("Try --encoding latin-1 or --delta 1e-6.")
    'Try encoding="latin-1" or delta=1e-6.'
    """

    def argument(option: re.Match[str]) -> str:
        name, value = option[1], option[2]
        plain = _FLAGS.get(name, name.replace("-", "_"))
        if value is None:
            return plain
        return f'{plain}="{value}"' if value[0].islower() else f"{plain}={value}"

    parts = message.split("`")
    parts[::2] = [_OPTION.sub(argument, part) for part in parts[::2]]
    return "`".join(parts)


def sentence(error: Exception) -> str:
    """What an error says, without its outcome, with one full stop at its end."""
    return full_sentence(error.message if isinstance(error, SfumatoError) else str(error))


def full_sentence(text: str) -> str:
    """A text with one full stop at its end, or the mark that it has."""
    return text if text.endswith(("?", "!")) else text.rstrip(".") + "."
