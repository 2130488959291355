"""How a file writes its rows, where it differs from plain CSV: public like the schema itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sfumato.errors import SchemaError
from sfumato.schema.columns import Category, Column, repeated

_KEYS: Final = {"names", "trim", "encoding", "delimiter", "strict"}


@dataclass(frozen=True, kw_only=True)
class FileForm:
    """What a reader must know before it can read a file."""

    names: tuple[str, ...] = ()
    """All fields of a CSV file without a header, in order; empty where it has one."""
    trim: bool = False
    """Whether spaces around a text do not count; a field of spaces alone is then missing."""
    encoding: str = "utf-8"
    """Of a CSV file, where a command names no other."""
    delimiter: str | None = None
    """Of a CSV file, where a command names none; None takes it from the header."""
    strict: bool = False
    """Whether a value that its column has no code for is an error; else it counts as a public code
    (``BaseColumn.unfit_code``), so that no single row decides whether there is a release."""

    def __post_init__(self) -> None:
        names = self.names
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise SchemaError("names of a file must be a tuple (in JSON a list) of texts")
        if not all(name.strip() for name in names):
            raise SchemaError("names of a file must not be empty")
        if twice := repeated(names):
            raise SchemaError(f"these names stand twice in the form of the file: {twice}")
        if not isinstance(self.trim, bool):
            raise SchemaError(f"trim must be true or false, got {self.trim!r}")
        if not isinstance(self.strict, bool):
            raise SchemaError(f"strict must be true or false, got {self.strict!r}")
        if not _is_encoding(self.encoding):
            raise SchemaError(
                f"encoding must be one like utf-8 or latin-1, got {self.encoding!r:.60}"
            )
        if self.delimiter is not None and not (
            isinstance(self.delimiter, str) and len(self.delimiter) == 1
        ):
            raise SchemaError(f"delimiter must be one character, got {self.delimiter!r:.60}")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; what equals its default is left out."""
        names: dict[str, Any] = {"names": list(self.names)} if self.names else {}
        names |= {"trim": True} if self.trim else {}
        names |= {"encoding": self.encoding} if self.encoding != "utf-8" else {}
        names |= {"delimiter": self.delimiter} if self.delimiter is not None else {}
        return names | ({"strict": True} if self.strict else {})

    @staticmethod
    def from_dict(value: Any) -> "FileForm":
        """The form that its JSON form describes."""
        if not isinstance(value, Mapping) or set(value) - _KEYS:
            listed = ", ".join(f'"{key}"' for key in sorted(_KEYS))
            raise SchemaError(f"file is an object with some of {listed}")
        names = value.get("names", [])
        if not isinstance(names, list):
            raise SchemaError("names of a file must be a list of texts")
        return FileForm(
            names=tuple(names),
            trim=value.get("trim", False),
            strict=value.get("strict", False),
            encoding=value.get("encoding", "utf-8"),
            delimiter=value.get("delimiter"),
        )

    def check(self, columns: tuple[Column, ...]) -> None:
        """Refuse columns that no row of such a file could fill."""
        if self.names:
            for column in columns:
                if column.name not in self.names:
                    raise SchemaError(f"column {column.name!r} is none of the names of the file")
        if not self.trim:
            return
        for column in columns:
            texts = column.values if isinstance(column, Category) else ()
            if any(text != text.strip() for text in texts):
                raise SchemaError(
                    f"column {column.name!r} declares a text with spaces around it, but the file "
                    'is read without them ("trim": true). Remove the spaces from the text.'
                )


def _is_encoding(name: Any) -> bool:
    """Whether Python knows a text encoding of that name."""
    try:
        return isinstance(name, str) and "".encode(name) is not None
    except (LookupError, ValueError):
        return False


PLAIN = FileForm()
"""A header, and texts as they stand."""
