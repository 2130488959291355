"""How a file writes its rows, where it differs from plain CSV: public like the schema itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import SchemaError
from sfumato.schema.columns import Category, Column, repeated


@dataclass(frozen=True, kw_only=True)
class FileForm:
    """What a reader must know before it can read a file."""

    names: tuple[str, ...] = ()
    """All fields of a CSV file without a header, in order; empty where it has one."""
    trim: bool = False
    """Whether spaces around a text do not count; a field of spaces alone is then missing."""
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

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; what equals its default is left out."""
        names: dict[str, Any] = {"names": list(self.names)} if self.names else {}
        names |= {"trim": True} if self.trim else {}
        return names | ({"strict": True} if self.strict else {})

    @staticmethod
    def from_dict(value: Any) -> "FileForm":
        """The form that its JSON form describes."""
        if not isinstance(value, Mapping) or set(value) - {"names", "trim", "strict"}:
            raise SchemaError('file is an object with "names", "trim" and "strict", or some')
        names = value.get("names", [])
        if not isinstance(names, list):
            raise SchemaError("names of a file must be a list of texts")
        return FileForm(
            names=tuple(names),
            trim=value.get("trim", False),
            strict=value.get("strict", False),
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


PLAIN = FileForm()
"""A header, and texts as they stand."""
