"""MovieLens 100K from a folder of one's own: its licence lets nobody pass it on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import csv

from sfumato import check
from sfumato.errors import StorageError
from sfumato.evaluation.rating_splits import RatingFormat
from sfumato.schema.ratings import Catalogue, RatingScale

_COLUMNS: Final = ("user", "item", "rating", "time")


@dataclass(frozen=True, kw_only=True, eq=False)
class MovieLens:
    """Ratings from 1 to 5, the films that can be rated, and where the folds are."""

    folder: Path
    ratings: pa.Table
    form: RatingFormat

    def fold(self, number: int) -> pa.Table:
        """The ratings to predict of one of the five official folds."""
        check.whole(at_least=1, at_most=5, number=number)
        return _read(self.folder / f"u{number}.test")


def read_movielens(folder: Path | str) -> MovieLens:
    """The ratings and titles of a folder's u.data and u.item."""
    path = Path(folder)
    ids, titles = [], []
    try:
        lines = (path / "u.item").read_text(encoding="latin-1").splitlines()
    except OSError as error:
        raise StorageError(f"can't read {path / 'u.item'}: {error.strerror}") from None
    for line in lines:
        number, title, *_ = line.split("|")
        ids.append(int(number))
        titles.append(title)
    form = RatingFormat(catalogue=Catalogue.of(ids, titles=titles), scale=RatingScale(1, 5))
    return MovieLens(folder=path, ratings=_read(path / "u.data"), form=form)


def _read(path: Path) -> pa.Table:
    try:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=_COLUMNS),
            parse_options=csv.ParseOptions(delimiter="\t"),
        )
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror or 'not found'}") from None
    return table.select(_COLUMNS[:3])
