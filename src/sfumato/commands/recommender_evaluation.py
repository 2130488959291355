"""How good a recommender would be: the work of ``sfumato recommend evaluate``.

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
from sfumato.commands.publication import silent
from sfumato.commands.recommend import RecommenderEvaluationRequest
from sfumato.commands.recommender_publication import (
    PublicParameters,
    budget_of,
    public_parameters,
)
from sfumato.commands.request import ProgressCall
from sfumato.errors import InputError
from sfumato.evaluation.rating_splits import RatingFormat, Split, random_split
from sfumato.evaluation.recommenders import (
    Baseline,
    RecommenderErrors,
    compare_recommender,
    run_baselines,
)
from sfumato.gate import Curator
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.guarantees import ApproxDP
from sfumato.randomness import simulation_rng
from sfumato.release import check_usable
from sfumato.report.recommender_page import (
    AccuracyRow,
    AccuracyView,
    neighbor_words,
    render_accuracy,
)

BESIDE: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "own mean": ("needs nobody else's ratings", ("mae", "rmse")),
    "popularity": ("exact counts, protects nobody", ("ndcg", "recall", "coverage")),
}
"""Baselines, what they are, and the figures that they speak about."""
RELEVANT: Final = 3 / 4
"""An item is relevant from this share of the scale on: 4 on a scale from 1 to 5."""
LIST_LENGTH: Final = 10
"""Items of a list, over which its figures are taken."""


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
    """The result of an evaluation of a recommender. Internal: it is not private."""

    dataset: str
    runs: tuple[AccuracyRun, ...]
    """In the order of the requested epsilons."""
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
                name: {"private": False, "note": BESIDE[name][0], **_figures_of(name, baseline)}
                for name, baseline in self.baselines.items()
            },
        }

    def view(self) -> AccuracyView:
        """As a page shows it."""
        rows = [
            _row(f"{run.method}, epsilon {float(run.budget.epsilon):g}", run.errors, run.budget)
            for run in self.runs
        ]
        rows += [
            _row(name, baseline.errors, None, note=BESIDE[name][0], only=BESIDE[name][1])
            for name, baseline in self.baselines.items()
        ]
        return AccuracyView(
            dataset=self.dataset,
            made=datetime.now(UTC).strftime("%Y-%m-%d"),
            facts=tuple(self.facts.items()),
            rows=tuple(rows),
            k=self.runs[0].errors.k,
        )


def compare(request: RecommenderEvaluationRequest) -> Accuracy:
    """Split, fit and compare; the ledger notes the runs and looks, at cost 0."""
    budgets = [budget_of(epsilon, request.delta) for epsilon in _epsilons(request)]
    check.positive(share=request.share)
    if not request.share < 1:
        raise InputError(f"share must be below 1, got {request.share!r}.")
    public = public_parameters(request)
    folder = None
    if request.out is not None:
        folder = internal_folder(publishable(Path(request.out)))
        check_internal(folder)
        check_usable(folder)
    tell = request.tell or silent
    tell("checking the ratings", 0, 0)
    public.open_ratings().validate()  # its messages count rows of the whole table, not of a part
    ledger = Ledger.open(request.ledger, dataset=public.dataset)
    split = _split(public, request)
    accuracy = _measured(public, split, budgets, ledger, seed=request.seed, tell=tell)
    if folder is not None:
        _write(accuracy, folder)
    return accuracy


def _epsilons(request: RecommenderEvaluationRequest) -> list[check.Number]:
    """The single one first, then the others."""
    first = [] if request.epsilon is None else [request.epsilon]
    others = [each for each in request.epsilons or () if each != request.epsilon]
    if not first and not others:
        raise InputError(
            "an evaluation needs one epsilon at least: give --epsilon E, or several with "
            "--epsilons."
        )
    return [*first, *others]


def _split(public: PublicParameters, request: RecommenderEvaluationRequest) -> Split:
    form = RatingFormat(
        catalogue=public.catalogue,
        scale=public.scale,
        person=request.person,
        item=request.item,
        rating=request.rating,
        dataset=public.dataset,
        encoding=request.encoding,
    )
    rng = simulation_rng(request.seed)
    split = random_split(request.ratings, form=form, rng=rng, share=request.share)
    if not split.train.items.size or not split.test.items.size:
        raise InputError("there are too few ratings to hold a part back and learn from the rest.")
    return split


def _measured(
    public: PublicParameters,
    split: Split,
    budgets: Sequence[ApproxDP],
    ledger: Ledger,
    *,
    seed: int,
    tell: ProgressCall,
) -> Accuracy:
    values = public.scale.values
    relevant = values[0] + RELEVANT * (values[-1] - values[0])
    runs = []
    for index, budget in enumerate(budgets):
        tell("fitting and comparing", index, len(budgets))
        curator = Curator(
            split.ratings,
            protect=public.protect,
            budget=budget,
            ledger=ledger,
            rng=simulation_rng(seed),
        )
        fit = public.algorithm.run(curator)
        errors = compare_recommender(
            fit.model, split, ledger=ledger, k=LIST_LENGTH, relevant=relevant
        )
        method = str(fit.facts.get("chosen", public.algorithm.name))
        runs.append(AccuracyRun(budget=budget, method=method, errors=errors))
    tell("comparing what protects nobody", 0, 0)
    baselines = run_baselines(
        split, ledger=ledger, names=tuple(BESIDE), k=LIST_LENGTH, relevant=relevant
    )
    return Accuracy(
        dataset=public.dataset,
        runs=tuple(runs),
        baselines=baselines,
        facts=_facts(public, split, budgets, relevant),
    )


def _facts(
    public: PublicParameters, split: Split, budgets: Sequence[ApproxDP], relevant: float
) -> dict[str, str]:
    return {
        "Simulated for": neighbor_words(public.protect),
        "Delta": f"{float(budgets[0].delta):g}",
        "Ratings to learn from": f"{split.train.items.size:,}",
        "Ratings held back": f"{split.test.items.size:,}",
        "People": f"{split.train.people:,}",
        "Items in the catalogue": f"{len(public.catalogue):,}",
        "Well rated": f"{relevant:g} or more",
    }


def _figures(errors: RecommenderErrors) -> dict[str, float | None]:
    """By the names that programs read; None where a figure is not defined."""
    figures = {
        "mae": errors.mae,
        "rmse": errors.rmse,
        f"ndcg@{errors.k}": errors.ndcg,
        f"recall@{errors.k}": errors.recall,
        "coverage": errors.coverage,
    }
    return {name: None if value != value else value for name, value in figures.items()}


def _figures_of(name: str, baseline: Baseline) -> dict[str, float | None]:
    every = _figures(baseline.errors)
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


def _write(accuracy: Accuracy, folder: Path) -> None:
    """The comparison as a page and as JSON, for its owner only."""
    text = json.dumps(accuracy.to_dict(), indent=1, ensure_ascii=False)
    write_comparison(folder, text, render_accuracy(accuracy.view()))
