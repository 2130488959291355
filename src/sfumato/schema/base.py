"""What all columns share: a name, missing values, and codes that begin at 0."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from sfumato.errors import InputError, SchemaError

MAX_SIZE = 1_000_000
"""More codes than this in one column can't be counted usefully: bin, group or leave it out."""

OTHER = "(other)"
MISSING = "(missing)"


@dataclass(frozen=True, kw_only=True)
class BaseColumn(ABC):
    """What all columns share: a name, and whether a value may be missing."""

    name: str
    missing: bool = False
    missing_texts: tuple[str, ...] = ()
    """Texts that stand for a missing value beside the empty one; CSV files get the first."""

    kind: ClassVar[str]
    ordered: ClassVar[bool]

    def __post_init__(self) -> None:
        if not is_text(self.name) or not self.name.strip():
            raise SchemaError(f"a column needs a name that is text, got {self.name!r}")
        try:
            true_or_false(missing=self.missing)
            self._check()
            self._check_missing_texts()
        except InputError as error:
            raise SchemaError(f"column {self.name!r}: {error}") from None
        if self.size > MAX_SIZE:
            raise SchemaError(
                f"column {self.name!r} has {self.size:,} values; at most {MAX_SIZE:,} can be "
                "counted. Use wider bins, group the values, or leave the column out."
            )

    def _check_missing_texts(self) -> None:
        """Refuse texts for missing values that could also be a value, or are of no use."""
        texts = self.missing_texts
        if not isinstance(texts, tuple) or not all(is_text(text) for text in texts):
            raise SchemaError("missing_texts must be a tuple (in JSON a list) of texts")
        if texts and not self.missing:
            raise SchemaError('missing_texts need "missing": true')
        if any(not text or text != text.strip() for text in texts) or repeated(texts):
            raise SchemaError("missing_texts must differ, and have no spaces around them")
        if both := sorted({*texts} & {value.strip() for value in self._declared_texts()}):
            raise SchemaError(f"these texts are declared as values and as missing: {both}")

    def _declared_texts(self) -> tuple[str, ...]:
        """The texts that are values of this column, where it declares texts."""
        return ()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One text for each code, in the order of the codes."""
        return (*self._regular_labels(), *((MISSING,) if self.missing else ()))

    @property
    def size(self) -> int:
        """The number of codes, missing included."""
        return self._regular_size() + self.missing

    @property
    def missing_code(self) -> int | None:
        """The code of a missing value, always the last one."""
        return self.size - 1 if self.missing else None

    @property
    def other_code(self) -> int | None:
        """The code of every value that is not declared; only a category may have one."""
        return None

    @property
    def unfit_code(self) -> int:
        """What a value counts as that the column has no code for: other, missing or the first."""
        codes = (self.other_code, self.missing_code)
        return next((code for code in codes if code is not None), 0)

    @property
    def absent_code(self) -> int:
        """What a value counts as that is not there: missing, other or the first."""
        codes = (self.missing_code, self.other_code)
        return next((code for code in codes if code is not None), 0)

    @abstractmethod
    def _check(self) -> None:
        """Raise an InputError where the declaration makes no sense; the caller names the column."""

    @abstractmethod
    def _regular_size(self) -> int:
        """The number of labels before missing, without making them."""

    @abstractmethod
    def _regular_labels(self) -> tuple[str, ...]:
        """The labels before missing."""


def repeated(texts: Iterable[str]) -> list[str]:
    """The texts that stand more than once, sorted."""
    return sorted(text for text, times in Counter(texts).items() if times > 1)


def true_or_false(**named: Any) -> None:
    """Raise unless the one keyword is a truth value."""
    ((name, value),) = named.items()
    if not isinstance(value, bool):
        raise SchemaError(f"{name} must be true or false, got {value!r}")


def is_text(value: Any) -> bool:
    """Whether a value is text that a file can hold: half a surrogate pair is not."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
