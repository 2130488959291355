"""A model of few bins of each number, and how rows lie inside them: for methods that hold no more.

Rows are drawn in bins by the method's model; inside a bin they follow the finer counts of the
column, independently of all others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.models.graphical.model import GraphicalModel, draw_within
from sfumato.models.model import Model, PublishedRows, Rows
from sfumato.randomness import Rng
from sfumato.schema.measurement import Coarse, Measurement
from sfumato.schema.schema import Marginal, Schema
from sfumato.schema.workload import Range

Floats = NDArray[np.float64]
Groups = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True, eq=False)
class DividedModel:
    """A model over groups of bins, and the share of each bin within its group."""

    coarse: Model
    view: Coarse
    """The bins, and which of them are a group of the coarse model."""
    within: Mapping[str, Floats]

    @staticmethod
    def of(
        coarse: Model, schema: Schema, *, groups: Groups, counts: Mapping[str, Floats]
    ) -> "DividedModel":
        """The model in which bins share their group by their counts, evenly where none is.

        Args:
            coarse: Over groups of bins.
            schema: With all bins.
            groups: For divided columns, the group of each bin; groups are intervals.
            counts: Of the bins of divided columns.
        """
        within = {}
        for name, own in groups.items():
            mass = np.maximum(counts[name], 0.0)
            sums, sizes = np.bincount(own, mass)[own], np.bincount(own)[own]
            within[name] = np.where(sums > 0, mass / np.maximum(sums, 1e-300), 1 / sizes)
        return DividedModel(coarse=coarse, view=Coarse(fine=schema, groups=groups), within=within)

    @property
    def schema(self) -> Schema:
        """The columns with all their bins."""
        return self.view.fine

    @property
    def total(self) -> float:
        """The number of rows it stands for."""
        return self.coarse.total

    def marginal(self, names: Marginal) -> Floats:
        """Counts of a marginal, in the order of the given names."""
        counts = np.asarray(self.coarse.marginal(names), dtype=np.float64)
        for axis, name in enumerate(names):
            if name in self.within:
                shape = [-1 if index == axis else 1 for index in range(len(names))]
                spread = counts.take(self.view.groups[name], axis=axis)
                counts = spread * self.within[name].reshape(shape)
        return counts

    def draw(self, n_rows: int, *, rng: Rng) -> Rows:
        """Rows of the coarse model, each with a bin of its group."""
        rows = dict(self.coarse.draw(n_rows, rng=rng))
        for name, shares in self.within.items():
            sizes = np.bincount(self.view.groups[name])
            codes = rows[name].astype(np.int64)
            inside = draw_within(shares, sizes, codes, rng=rng, rounded=True)
            rows[name] = (np.cumsum(sizes) - sizes)[codes] + inside
        return rows

    def arrays(self) -> dict[str, Floats]:
        """What the coarse model saves and its kind, with groups and shares."""
        saved = {f"coarse_{key}": value for key, value in self.coarse.arrays().items()}
        saved["kind"] = np.array(float(_COARSE.index(type(self.coarse).__name__) + 1))
        for name, groups in self.view.groups.items():
            index = self.schema.names.index(name)
            saved[f"groups_{index}"] = groups.astype(np.float64)
            saved[f"within_{index}"] = self.within[name]
        return saved

    @staticmethod
    def from_arrays(schema: Schema, arrays: Mapping[str, Floats]) -> "DividedModel":
        """The model that ``arrays`` saved."""
        divided = {n: i for i, n in enumerate(schema.names) if f"groups_{i}" in arrays}
        groups = {name: arrays[f"groups_{i}"].astype(np.int64) for name, i in divided.items()}
        own = {
            key.removeprefix("coarse_"): value
            for key, value in arrays.items()
            if key.startswith("coarse_")
        }
        few = schema.with_bins(bins_of_groups(schema, groups))
        return DividedModel(
            coarse=_coarse_model(_COARSE[int(arrays["kind"]) - 1]).from_arrays(few, own),
            view=Coarse(fine=schema, groups=groups),
            within={name: arrays[f"within_{i}"] for name, i in divided.items()},
        )


_COARSE: Final = ("DenseModel", "GraphicalModel", "BayesNet")
"""The models that can be divided: a release says which by its number, from 1."""


def _coarse_model(name: str) -> Any:
    """The class of a model, loaded where one is read."""
    if name == "DenseModel":
        from sfumato.models.dense.model import DenseModel

        return DenseModel
    if name == "BayesNet":
        from sfumato.models.bayes.model import BayesNet

        return BayesNet
    return GraphicalModel


def divided_model(
    coarse: Model, schema: Schema, *, groups: Groups, counts: Mapping[str, Floats], rng: Rng
) -> Model:
    """A model over groups of bins as one over the bins; of published rows, rows with their bins.

    Args:
        coarse: Over groups of bins.
        schema: With all bins.
        groups: For divided columns, the group of each bin; groups are intervals.
        counts: Of the bins of divided columns.
        rng: Of the bins of published rows.
    """
    if not groups and not isinstance(coarse, PublishedRows):
        return coarse
    model = DividedModel.of(coarse, schema, groups=groups, counts=counts)
    if not isinstance(coarse, PublishedRows):
        return model
    return PublishedRows(schema=schema, codes=model.draw(round(coarse.total), rng=rng))


def bins_of_groups(schema: Schema, groups: Groups) -> dict[str, tuple[int, ...]]:
    """The first cell of each group of bins, for groups that are intervals."""
    result: dict[str, tuple[int, ...]] = {}
    for name, own in groups.items():
        column: Any = schema[name]
        firsts = np.flatnonzero(np.diff(own, prepend=-1))
        result[name] = tuple(column.bins[i] for i in firsts if i < len(column.bins))
    return result


def regrouped(one: Measurement, schema: Schema, groups: Groups) -> Measurement:
    """A measurement of groups of bins as one of the schema with all bins."""
    if isinstance(one.target, Range):
        bounds = tuple(
            (name, *_bins_between(groups[name], low, high)) if name in groups else (name, low, high)
            for name, low, high in one.target.bounds
        )
        return replace(one, target=Range(bounds))
    own = {name: groups[name] for name in one.target if name in groups}
    if one.merged is not None:
        merged = dict(one.merged.groups)
        own |= {
            name: merged[name][groups[name]] if name in groups else merged[name] for name in merged
        }
    return replace(one, merged=Coarse(fine=schema, groups=own)) if own else one


def _bins_between(groups: NDArray[np.int64], low: int, high: int) -> tuple[int, int]:
    return int(np.flatnonzero(groups == low)[0]), int(np.flatnonzero(groups == high)[-1])
