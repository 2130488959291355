"""A schema: the public description of a table. Nothing in it may come from the data unpaid.

``possible`` and its sisters say which cells and rows the declared impossible combinations leave.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError, StorageError
from sfumato.schema import files, impossible, rules
from sfumato.schema.classes import first_classes
from sfumato.schema.columns import (
    Column,
    Date,
    DateTime,
    GridColumn,
    Integer,
    Number,
    is_text,
    repeated,
)
from sfumato.schema.files import PLAIN, FileForm
from sfumato.schema.impossible import Impossible
from sfumato.schema.rules import Rule

Marginal = tuple[str, ...]
"""A tuple of column names; the empty one is the total."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Columns in order, and the name of the data set that the budget belongs to."""

    columns: tuple[Column, ...]
    dataset: str | None = None
    impossible: tuple[Impossible, ...] = ()
    """Combinations of values that no row can have; ``excluding`` declares them by values."""
    rules: tuple[Rule, ...] = ()
    """Comparisons that every drawn row keeps; a text like ``"paid <= billed"`` is read as one."""
    file: FileForm = PLAIN
    """How the table's file writes its rows."""
    exclude: tuple[str, ...] = ()
    """Columns of the table that are deliberately not published: keys, names, free text."""

    def __post_init__(self) -> None:
        if not self.columns:
            raise SchemaError("a schema needs at least one column")
        if twice := repeated(column.name for column in self.columns):
            raise SchemaError(f"these columns stand twice in the schema: {twice}")
        self._check_exclude()
        self.file.check(self.columns)
        if self.impossible:
            self._check_possible()
        if self.rules != ():
            object.__setattr__(self, "rules", rules.parsed(self.rules))
        if self.rules:
            self._check_rules()

    def __getitem__(self, name: str) -> Column:
        """The column of that name; an unknown one is an error that suggests its neighbor."""
        if not isinstance(name, str) or name not in self._by_name:
            close = get_close_matches(str(name), self.names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            listed = ", ".join(self.names[:12]) + (", ..." if len(self.names) > 12 else "")
            raise SchemaError(f"no column {name!r} in the schema; it has {listed}.{hint}")
        return self._by_name[name]

    def grid(self, name: str) -> Integer | Number | Date | DateTime:
        """The column of that name, which must be one whose values lie on a grid."""
        column = self[name]
        if not isinstance(column, Integer | Number | Date | DateTime) or not column.on_grid:
            raise SchemaError(f"column {name!r} is not declared by limits and a resolution")
        return column

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    @cached_property
    def names(self) -> Marginal:
        """The column names in order: the marginal of the whole table."""
        return tuple(column.name for column in self.columns)

    def marginal(self, names: Iterable[str]) -> Marginal:
        """These columns in the schema's order; each must be known and stand once."""
        given = list(names)
        for name in given:
            self[name]
        if len(set(given)) < len(given):
            raise SchemaError(f"a marginal names each column once, got {given}")
        return tuple(sorted(given, key=self._indices.__getitem__))

    def shape(self, marginal: Marginal) -> tuple[int, ...]:
        """The number of codes of each column of a marginal."""
        return tuple(self[name].size for name in marginal)

    def cells(self, marginal: Marginal) -> int:
        """The number of cells of a marginal, as an exact integer (2^80 stays 2^80)."""
        return prod(self.shape(marginal))

    def pick(self, names: Iterable[str]) -> "Schema":
        """The schema of some of the columns."""
        chosen = self.marginal(names)
        return Schema(
            columns=tuple(self[name] for name in chosen),
            dataset=self.dataset,
            impossible=tuple(each for each in self.impossible if set(each.names) <= set(chosen)),
            rules=tuple(each for each in self.rules if set(each.names) <= set(chosen)),
            file=self.file,
            exclude=self.exclude,
        )

    def excluding(self, combinations: Iterable[Mapping[str, Sequence[Any]]]) -> "Schema":
        """The schema with more combinations declared impossible, each given by values.

        ``schema.excluding([{"age": [4, 5], "grade": ["high"]}])``: of numbers and days an
        interval, ends included, of other columns a list.
        """
        declared = list(self.impossible)
        for number, entry in enumerate(combinations, 1):
            try:
                declared.append(impossible.read(self.__getitem__, entry))
            except InputError as error:
                raise SchemaError(f"impossible combination {number}: {error}") from None
        return replace(self, impossible=tuple(declared))

    @property
    def public_bins(self) -> dict[str, tuple[int, ...]]:
        """Public classes for columns that declare no bins, cut where impossible intervals are."""
        return dict(self._public_bins)

    @cached_property
    def _public_bins(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        bins: list[tuple[str, tuple[int, ...]]] = []
        for column in self:
            if isinstance(column, GridColumn) and column.adaptive:
                named = (
                    own
                    for each in self.impossible
                    for name, own in each.parts
                    if name == column.name
                )
                cuts = {cut for codes in named for cut in (codes[0], codes[-1] + 1)}
                own = {*first_classes(column), *(cut for cut in cuts if cut < column.cells)}
                bins.append((column.name, tuple(sorted(own))))
        return tuple(bins)

    def with_bins(self, bins: Mapping[str, tuple[int, ...]]) -> "Schema":
        """The schema with some columns on a grid divided into bins.

        Args:
            bins: For each of these columns the first cell of each bin. Where a combination of
                impossible values names an interval, bins must begin and end with it.
        """
        divided: dict[str, Column] = {
            name: replace(self.grid(name), bins=own) for name, own in bins.items()
        }
        columns = tuple(divided.get(column.name, column) for column in self)
        combinations = tuple(impossible.divided(each, divided) for each in self.impossible)
        return replace(self, columns=columns, impossible=combinations)

    def without_bins(self) -> "Schema":
        """The schema as it was declared: without the bins that a release found.

        Bins that combinations of impossible values name stay.
        """
        fixed = {name for each in self.impossible for name in each.names}
        columns = tuple(
            replace(column, bins=None)
            if isinstance(column, GridColumn) and column.bins and column.name not in fixed
            else column
            for column in self
        )
        return self if columns == self.columns else replace(self, columns=columns)

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> "Schema":
        """A schema from the JSON form, or from a domain file's ``{"age": 85, ...}``."""
        parts = files.parts(value)
        plain = Schema(
            columns=parts.columns, dataset=parts.dataset, file=parts.file, exclude=parts.exclude
        ).excluding(parts.impossible)
        return replace(plain, rules=rules.parsed(parts.rules)) if parts.rules else plain

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; ``Schema.from_dict`` reads it back."""
        head: dict[str, Any] = {"sfumato": files.VERSION}
        head |= {"dataset": self.dataset} if self.dataset else {}
        head |= {"file": self.file.to_dict()} if self.file != PLAIN else {}
        excluded = [impossible.write(self.__getitem__, each) for each in self.impossible]
        head |= {"exclude": list(self.exclude)} if self.exclude else {}
        tail: dict[str, Any] = {"impossible": excluded} if excluded else {}
        tail |= {"rules": [str(rule) for rule in self.rules]} if self.rules else {}
        return {**head, "columns": [files.column_to_dict(column) for column in self], **tail}

    @staticmethod
    def load(path: str | Path) -> "Schema":
        """A schema from a JSON file, a private-pgm domain file or a ``.domain`` file."""
        path = Path(path)
        if path.suffix == ".domain":
            return Schema(columns=files.from_domain_lines(files.read_text(path), path))
        value = files.read(path)
        try:
            return Schema.from_dict(value)
        except InputError as error:
            raise SchemaError(f"{path}: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the JSON form."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False)
        try:
            Path(path).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise StorageError(f"can't write the schema {path}: {error.strerror}") from None

    def _check_exclude(self) -> None:
        """Refuse names that are none, and columns both published and excluded."""
        if not isinstance(self.exclude, tuple) or not all(is_text(name) for name in self.exclude):
            raise SchemaError("exclude must be a tuple (in JSON a list) of column names")
        if both := sorted({*self.exclude} & {*self.names}):
            raise SchemaError(f"these columns are both declared and excluded: {both}")

    def _check_possible(self) -> None:
        """Refuse combinations of other columns, and such that leave no row possible."""
        for each in self.impossible:
            impossible.check(self.__getitem__, each)
        sizes = {column.name: column.size for column in self}
        if impossible.witness(sizes, self.impossible) is None:
            named = sorted({name for each in self.impossible for name in each.names})
            raise SchemaError(
                f"the {len(self.impossible)} combinations declared impossible exclude every row: "
                f"no values of {', '.join(named)} are left. Take one of them back."
            )

    def _check_rules(self) -> None:
        """Refuse rules that can't be, and rules and combinations that leave no row together."""
        rules.check(self.__getitem__, self.rules)
        if (
            self.impossible
            and rules.possible_row(self._by_name, self.rules, self.impossible) is None
        ):
            raise SchemaError(
                f"the {len(self.rules)} rules and the {len(self.impossible)} combinations declared "
                "impossible exclude every row together. Take one of them back."
            )


def possible(schema: Schema, names: Marginal) -> NDArray[np.bool_]:
    """The cells of a marginal, in the order of the names, that no declared combination excludes.

    A combination counts only if all its columns are among the names: in a smaller marginal its
    cells hold other rows too.

    >>> schema = Schema.from_dict({"sex": 2, "pregnant": 2})
    >>> possible(schema.excluding([{"sex": [0, 0], "pregnant": [1, 1]}]), ("sex", "pregnant"))
    array([[ True, False],
           [ True,  True]])
    """
    cells = np.ones(schema.shape(names), dtype=np.bool_)
    for combination in schema.impossible:
        if set(combination.names) <= set(names):
            cells &= ~_holds(schema, combination, names)
    return cells


def possible_rows(schema: Schema, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """For each row whether no declared combination holds in it."""
    rows = np.ones(len(codes[schema.names[0]]), dtype=np.bool_)
    for combination in schema.impossible:
        holds = np.ones_like(rows)
        for name, own in combination.parts:
            holds &= _named(schema[name].size, own)[codes[name]]
        rows &= ~holds
    return rows


def possible_codes(schema: Schema) -> dict[str, int]:
    """A code for each column that a combination names, with which none of them holds."""
    sizes = {column.name: column.size for column in schema}
    row = impossible.witness(sizes, schema.impossible)
    return row if row is not None else {}  # a schema that excludes everything is never made


def _holds(schema: Schema, combination: Impossible, names: Marginal) -> NDArray[np.bool_]:
    """Where a combination holds, with axes of length 1 for columns that it does not name."""
    holds = np.ones([1] * len(names), dtype=np.bool_)
    for name, codes in combination.parts:
        shape = [-1 if name == other else 1 for other in names]
        holds = holds & _named(schema[name].size, codes).reshape(shape)
    return holds


def _named(size: int, codes: tuple[int, ...]) -> NDArray[np.bool_]:
    named = np.zeros(size, dtype=np.bool_)
    named[list(codes)] = True
    return named
