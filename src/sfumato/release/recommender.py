"""A recommender that may be published: raw ids in and out, for people who need not be in its data.

A person gives their own ratings with a request; they are stored nowhere. The answer depends on
them and on the release, which is private for everybody in the data: joint differential privacy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.items.recommenders import (
    KINDS,
    History,
    Recommender,
    similarities,
    top_items,
)
from sfumato.privacy import guarantees
from sfumato.privacy.guarantees import Guarantee
from sfumato.privacy.sensitivity import Protection, protection_from_json
from sfumato.release.description import (
    describe_guarantee,
    list_card,
    promise,
    promise_facts,
    versions,
)
from sfumato.release.folder import (
    as_copy,
    read_description,
    reading,
    save_release,
    write_description,
)
from sfumato.schema.ratings import Catalogue, ItemId, RatingScale, id_texts

FORMAT: Final = 1
"""Of ``release.json``: raised when an older version could not read a new file."""
_SHOWN: Final = 5  # items of the list in a notebook
Ratings = Mapping[Any, Any] | Iterable[tuple[Any, Any]]
"""One person's ratings: by item id, or as pairs of an item id and a rating."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recommended:
    """An item of a list."""

    item: ItemId
    title: str
    score: float
    """What the list is sorted by; comparable within one list only."""
    rank: int
    """From 1 on."""
    personal: bool
    """False if the history is empty: then everybody's list is the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Predicted:
    """The rating that a person is expected to give."""

    item: ItemId
    title: str
    rating: float
    personal: bool
    """False if the history is empty: then it is what people give to the item."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RecommenderRelease:
    """A published recommender and all that is needed to check what it promises."""

    dataset: str
    guarantee: Guarantee
    protect: Protection
    private: bool
    """False for what a seeded generator made: it protects nobody and may not be published."""
    method: Mapping[str, Any]
    catalogue: Catalogue
    scale: RatingScale
    model: Recommender
    measurements: tuple[Mapping[str, Any], ...]
    """What was measured and with how much noise, without the values."""
    ledger: Mapping[str, Any]
    """The head of the ledger and this run's entries."""
    command: Mapping[str, Any] = field(default_factory=dict)
    """The public options of the command that made it; empty where none did."""
    versions: Mapping[str, str] = field(default_factory=lambda: versions())
    _copy: Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if type(self.model) not in KINDS.values():
            raise InputError(f"a release can't save {self.model!r:.60}.")
        if self.model.items != len(self.catalogue):
            raise InputError(
                f"the recommender knows {self.model.items:,} items, the catalogue has "
                f"{len(self.catalogue):,}."
            )

    @property
    def kept(self) -> Path | None:
        """The copy beside the ledger; None if there is none, or when ``save`` has deleted it."""
        return self._copy if self._copy is not None and self._copy.exists() else None

    def recommend(
        self,
        history: Ratings,
        *,
        n: int = 10,
        candidates: Iterable[ItemId] | None = None,
        exclude_seen: bool = True,
    ) -> list[Recommended]:
        """The items that a person is most likely to want, best first; fewer if no more are left.

        Args:
            history: The person's own ratings; none at all is allowed.
            n: How many.
            candidates: Only these items; by default the whole catalogue.
            exclude_seen: Leave out what is in the history.
        """
        check.whole(at_least=1, n=n)
        known = self._history(history)
        scores = self.model.scores(known)
        if candidates is not None:
            codes = sorted(set(self._codes(candidates, "the candidates")))
            allowed = np.full(scores.size, -np.inf)
            allowed[codes] = scores[codes]
            scores = allowed
        without = known.items if exclude_seen else np.zeros(0, dtype=np.int64)
        best = top_items(scores, n, without=without)
        return self._listed(best, scores, personal=bool(known.items.size))

    def predict(self, history: Ratings, items: Iterable[ItemId]) -> list[Predicted]:
        """The rating that a person is expected to give to each of some items, in their order."""
        known = self._history(history)
        expected = self.model.predict(known)
        codes = self._codes(items, "the items")
        return [
            Predicted(
                item=self.catalogue.id(code),
                title=self.catalogue.title(code),
                rating=float(expected[code]),
                personal=bool(known.items.size),
            )
            for code in codes
        ]

    def similar(self, item: ItemId, *, n: int = 10) -> list[Recommended]:
        """The items most similar to one, best first; none for an item too rare to be known."""
        check.whole(at_least=1, n=n)
        scores = similarities(self.model, self.catalogue.code(item))
        best = top_items(scores, n, without=np.zeros(0, dtype=np.int64))
        return self._listed(best, scores, personal=False)

    def to_dict(self) -> dict[str, Any]:
        """The content of ``release.json``."""
        titles = self.catalogue.titles
        return {
            "sfumato": FORMAT,
            "kind": "recommender",
            "dataset": self.dataset,
            "private": self.private,
            "guarantee": describe_guarantee(self.guarantee, self.protect),
            "method": dict(self.method),
            "model": self.model.kind,
            "scale": self.scale.to_dict(),
            "measurements": [dict(entry) for entry in self.measurements],
            "ledger": dict(self.ledger),
            **({"command": dict(self.command)} if self.command else {}),
            "versions": dict(self.versions),
            "catalogue": {
                "numbered": self.catalogue.numbered,
                "items": list(self.catalogue.items),
                "titles": None if titles is None else list(titles),
            },
        }

    def __repr__(self) -> str:
        """One line."""
        stated = promise(self.guarantee, self.protect, private=self.private)
        items = f"{len(self.catalogue):,} items"
        return (
            f"<RecommenderRelease {self.dataset!r}: {items}; {self.method.get('name')}; {stated}>"
        )

    def _repr_html_(self) -> str:
        """For notebooks: the promise, and the list for a person without ratings."""
        facts = promise_facts(
            self.guarantee,
            self.protect,
            private=self.private,
            method=self.method,
            ledger=self.ledger,
        )
        best = self.recommend({}, n=_SHOWN)
        rows = [(str(each.rank), str(each.item), each.title) for each in best]
        title = f"{self.dataset}: {len(self.catalogue):,} items, ratings {self.scale}"
        return list_card(title, facts, ("rank", "item", "title"), rows)

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write ``release.json`` and the model into a new folder.

        The name of a folder for a simulation must end in ``-internal``; only its owner can read it.
        The copy beside the ledger is deleted then; if this fails, the error names it.

        Args:
            folder: Where to.
            force: Replace a release that is there.
        """
        save_release(self, Path(folder), force=force, write=self.write_into)

    def write_into(self, folder: Path) -> None:
        """Write the files into a folder that exists."""
        write_description(folder, self.to_dict(), self.model.arrays())

    @staticmethod
    def load(folder: str | Path) -> "RecommenderRelease":
        """Read what ``save`` wrote."""
        folder = Path(folder)
        with reading(folder, "release.json", "model.npz"):
            return replace(_from_parts(*read_description(folder)), _copy=as_copy(folder))

    def _history(self, given: Ratings) -> History:
        """Codes and numbers of a person's ratings; what is unknown or off the scale is refused.

        A message names positions, no item and no rating: it may be logged, and they are one's own.
        """
        pairs = list(given.items()) if isinstance(given, Mapping) else _pairs(given)
        id_texts([item for item, _ in pairs])  # refuses a mixture of numbers and text
        codes = self._codes((item for item, _ in pairs), "the history")
        ratings = [_number(rating, position) for position, (_, rating) in enumerate(pairs, start=1)]
        off = np.flatnonzero(self.scale.codes(np.array(ratings, dtype=np.float64)) < 0)
        if off.size:
            raise InputError(
                f"the history, number {int(off[0]) + 1}: this rating is not on the scale "
                f"{self.scale}."
            )
        return History(np.array(codes, dtype=np.int64), np.array(ratings, dtype=np.float64))

    def _codes(self, items: Iterable[Any], named: str) -> list[int]:
        """The code of each item; an error names the position of its item."""
        codes = []
        for position, item in enumerate(items, start=1):
            try:
                codes.append(self.catalogue.code(item))
            except InputError as error:
                raise InputError(f"{named}, number {position}: {error}") from None
        return codes

    def _listed(
        self, codes: NDArray[np.int64], scores: NDArray[np.float64], *, personal: bool
    ) -> list[Recommended]:
        return [
            Recommended(
                item=self.catalogue.id(code),
                title=self.catalogue.title(code),
                score=float(scores[code]),
                rank=rank,
                personal=personal,
            )
            for rank, code in enumerate(codes.tolist(), start=1)
        ]


def _pairs(given: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    try:
        return [(item, rating) for item, rating in given]
    except (TypeError, ValueError):
        raise InputError(
            "a history is a mapping from item to rating, or pairs of an item and a rating."
        ) from None


def _number(rating: Any, position: int) -> float:
    plain = float(rating) if isinstance(rating, np.floating) else rating
    try:
        return float(check.exact(rating=plain))
    except (InputError, OverflowError):
        raise InputError(f"the history, number {position}: this rating must be a number.") from None


def _from_parts(value: Any, arrays: Mapping[str, Any]) -> RecommenderRelease:
    if value["sfumato"] != FORMAT or value["kind"] != "recommender":
        raise InputError(f"no recommender release of format {FORMAT}")
    promise, listed = value["guarantee"], value["catalogue"]
    titles = listed["titles"]
    kind = value["model"]
    if kind not in KINDS:
        raise InputError(f"its model is of the kind {kind!r}, which this version does not know")
    return RecommenderRelease(
        dataset=value["dataset"],
        guarantee=guarantees.from_json(promise["exact"]),
        protect=protection_from_json(promise),
        private=value["private"],
        method=value["method"],
        catalogue=Catalogue(
            items=tuple(listed["items"]),
            numbered=listed["numbered"],
            titles=None if titles is None else tuple(titles),
        ),
        scale=RatingScale.from_dict(value["scale"]),
        model=KINDS[kind].from_arrays(arrays),
        measurements=tuple(value["measurements"]),
        ledger=value["ledger"],
        command=value.get("command", {}),
        versions=value["versions"],
    )
