"""How good a recommender would be: split, fit, measure. Internal, and nothing is released.

The noise is that of a release, drawn from a seed: the figures are repeatable, nothing is charged
and nothing may be published. Each run and each look is noted in the ledger at cost 0.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from typing import Any, Final

from sfumato import check
from sfumato.commands.internal_folder import (
    check_internal,
    internal_folder,
    publishable,
    write_comparison,
)
from sfumato.commands.publication import Tell, silent
from sfumato.commands.recommend import RatingsAsked, Unit, asked_for, budget_of, protection_of
from sfumato.errors import InputError
from sfumato.evaluation.baselines import Baseline, run_baselines
from sfumato.evaluation.rating_splits import RatingFormat, Split, random_split
from sfumato.evaluation.recommender_errors import RecommenderErrors, compare_recommender
from sfumato.gate import Curator
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.guarantees import ApproxDP
from sfumato.privacy.protection import Neighbors
from sfumato.publishing.methods import recommender_named
from sfumato.randomness import simulation_rng
from sfumato.release import check_usable
from sfumato.report.accuracy import AccuracyRow, AccuracyView, render_accuracy
from sfumato.report.recommender_page import neighbor_words
from sfumato.schema.ratings import Catalogue, RatingScale

BESIDE: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "own mean": ("needs nobody else's ratings", ("mae", "rmse")),
    "popularity": ("exact counts, protects nobody", ("ndcg", "recall", "coverage")),
}
"""Baselines, what they are, and the figures that they speak about."""
RELEVANT: Final = 3 / 4
"""An item is relevant from this place on the scale on: 4 on a scale from 1 to 5."""
LIST_LENGTH: Final = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class AccuracyRun:
    """One simulated fit and how well it does."""

    budget: ApproxDP
    method: str
    errors: RecommenderErrors

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        epsilon = float(self.budget.epsilon)
        return {"epsilon": epsilon, "method": self.method, **_figures(self.errors)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Accuracy:
    """What an evaluation of a recommender found. Internal: it is not private."""

    dataset: str
    runs: tuple[AccuracyRun, ...]
    """In the order of the epsilons that were asked for."""
    baselines: Mapping[str, Baseline]
    facts: Mapping[str, str]
    internal: bool = True

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``; the first run's figures stand on top."""
        return {
            "internal": True,
            "private": False,
            "dataset": self.dataset,
            **self.runs[0].to_dict(),
            "facts": dict(self.facts),
            "runs": [run.to_dict() for run in self.runs],
            "baselines": {
                name: {"private": False, "note": BESIDE[name][0], **_told(name, found)}
                for name, found in self.baselines.items()
            },
        }

    def view(self) -> AccuracyView:
        """As a page shows it."""
        rows = [
            _row(f"{run.method}, epsilon {float(run.budget.epsilon):g}", run.errors, run.budget)
            for run in self.runs
        ]
        rows += [
            _row(name, found.errors, None, note=BESIDE[name][0], only=BESIDE[name][1])
            for name, found in self.baselines.items()
        ]
        return AccuracyView(
            dataset=self.dataset,
            made=datetime.now(UTC).strftime("%Y-%m-%d"),
            facts=tuple(self.facts.items()),
            rows=tuple(rows),
            k=self.runs[0].errors.k,
        )


def evaluate_recommender(
    ratings: Any,
    *,
    catalogue: Catalogue | Any,
    scale: RatingScale | str,
    epsilons: Sequence[check.Number],
    unit: Unit,
    delta: check.Number | None = None,
    max_rows: int | None = None,
    neighbors: Neighbors = "add-remove",
    method: str = "auto",
    options: Mapping[str, str] | None = None,
    person: str = "user",
    item: str = "item",
    rating: str = "rating",
    share: float = 0.2,
    out: str | Path | None = None,
    dataset: str | None = None,
    ledger: str | Path | None = None,
    encoding: str = "utf-8",
    seed: int = 0,
    tell: Tell | None = None,
) -> Accuracy:
    """Split, fit and measure: `sfumato recommend evaluate` in one call. Releases nothing.

    Args:
        ratings: As for ``fit_recommender``, and so are the arguments not named here.
        catalogue: The public items.
        scale: The public scale.
        epsilons: One run for each.
        unit: ``rating`` or ``person``.
        delta: By default 1e-9.
        max_rows: Ratings of one person that count.
        neighbors: ``add-remove`` or ``replace``.
        method: As for ``fit_recommender``.
        options: A method's own options as text.
        person: The column that names the person.
        item: The column of item ids.
        rating: The column of ratings.
        share: Of the ratings, so many are held back and asked for.
        out: Write ``internal.html``, with charts over epsilon, and ``internal.json`` into
            ``OUT-internal``.
        dataset: Whose ledger notes the look.
        ledger: The ledger file; by default the one of this user.
        encoding: Of CSV files.
        seed: Of the split and of the noise.
        tell: Called with the progress.
    """
    if not epsilons:
        raise InputError("an evaluation needs one epsilon at least.")
    budgets, say = [budget_of(epsilon, delta) for epsilon in epsilons], tell or silent
    _check_share(share)
    asked = asked_for(
        catalogue=catalogue,
        scale=scale,
        protect=protection_of(unit, max_rows, neighbors, person),
        algorithm=recommender_named(method, options=options or {}),
        dataset=dataset,
        columns=(person, item, rating),
        encoding=encoding,
    )
    folder = None if out is None else internal_folder(publishable(Path(out)))
    _check_folder(folder)
    say("checking the ratings", 0, 0)
    asked.open(ratings).validate()  # its messages count rows of the whole table, not of a part
    book = Ledger.open(ledger, dataset=asked.dataset)
    split = _split(asked, ratings, share=share, seed=seed)
    found = _measured(asked, split, budgets, book, seed=seed, tell=say)
    if folder is not None:
        _write(found, folder)
    return found


def _check_share(share: float) -> None:
    check.positive(share=share)
    if not share < 1:
        raise InputError(f"share must be below 1, got {share!r}.")


def _check_folder(folder: Path | None) -> None:
    if folder is not None:
        check_internal(folder)
        check_usable(folder)


def _split(asked: RatingsAsked, source: Any, *, share: float, seed: int) -> Split:
    person, item, rating = asked.columns
    form = RatingFormat(
        catalogue=asked.catalogue,
        scale=asked.scale,
        person=person,
        item=item,
        rating=rating,
        dataset=asked.dataset,
        encoding=asked.encoding,
    )
    split = random_split(source, form=form, rng=simulation_rng(seed), share=share)
    if not split.train.items.size or not split.test.items.size:
        raise InputError("there are too few ratings to hold a part back and learn from the rest.")
    return split


def _measured(
    asked: RatingsAsked,
    split: Split,
    budgets: Sequence[ApproxDP],
    book: Ledger,
    *,
    seed: int,
    tell: Tell,
) -> Accuracy:
    values = asked.scale.values
    relevant = values[0] + RELEVANT * (values[-1] - values[0])
    runs = []
    for place, budget in enumerate(budgets):
        tell("fitting and comparing", place, len(budgets))
        curator = Curator(
            split.ratings,
            protect=asked.protect,
            budget=budget,
            ledger=book,
            rng=simulation_rng(seed),
        )
        fit = asked.algorithm.run(curator)
        errors = compare_recommender(
            fit.model, split, ledger=book, k=LIST_LENGTH, relevant=relevant
        )
        method = str(fit.found.get("chosen", asked.algorithm.name))
        runs.append(AccuracyRun(budget=budget, method=method, errors=errors))
    tell("comparing what protects nobody", 0, 0)
    beside = run_baselines(
        split, ledger=book, names=tuple(BESIDE), k=LIST_LENGTH, relevant=relevant
    )
    return Accuracy(
        dataset=asked.dataset,
        runs=tuple(runs),
        baselines=beside,
        facts=_facts(asked, split, budgets, relevant),
    )


def _facts(
    asked: RatingsAsked, split: Split, budgets: Sequence[ApproxDP], relevant: float
) -> dict[str, str]:
    return {
        "Simulated for": neighbor_words(asked.protect),
        "Delta": f"{float(budgets[0].delta):g}",
        "Ratings to learn from": f"{split.train.items.size:,}",
        "Ratings held back": f"{split.test.items.size:,}",
        "People": f"{split.train.people:,}",
        "Items in the catalogue": f"{len(asked.catalogue):,}",
        "Well rated": f"{relevant:g} or more",
    }


def _figures(errors: RecommenderErrors) -> dict[str, float | None]:
    """By the names that programs read; None where nothing could be told."""
    told = {
        "mae": errors.mae,
        "rmse": errors.rmse,
        f"ndcg@{errors.k}": errors.ndcg,
        f"recall@{errors.k}": errors.recall,
        "coverage": errors.coverage,
    }
    return {name: None if value != value else value for name, value in told.items()}


def _told(name: str, found: Baseline) -> dict[str, float | None]:
    every = _figures(found.errors)
    return {figure: every[figure] for figure in every if figure.split("@")[0] in BESIDE[name][1]}


def _row(
    label: str,
    errors: RecommenderErrors,
    budget: ApproxDP | None,
    *,
    note: str = "",
    only: Sequence[str] = ("mae", "rmse", "ndcg", "recall", "coverage"),
) -> AccuracyRow:
    return AccuracyRow(
        label=label,
        mae=errors.mae if "mae" in only else nan,
        rmse=errors.rmse if "rmse" in only else nan,
        ndcg=errors.ndcg if "ndcg" in only else nan,
        recall=errors.recall if "recall" in only else nan,
        coverage=errors.coverage if "coverage" in only else nan,
        epsilon=None if budget is None else float(budget.epsilon),
        note=note,
    )


def _write(found: Accuracy, folder: Path) -> None:
    """The comparison as a page and as JSON, for its owner only."""
    text = json.dumps(found.to_dict(), indent=1, ensure_ascii=False)
    write_comparison(folder, text, render_accuracy(found.view()))
