"""What the owner is told of a plan: who is asked about what, and why, in words and numbers."""

from collections.abc import Mapping
from math import sqrt
from typing import Any, Final

from sfumato.server.surveys.rounds import Plan
from sfumato.survey.protocol.record_rounds import RecordPlan
from sfumato.survey.protocol.rounds import Agreement, RoundPlan

MOST_PARTS: Final = 60
"""Parts that are listed: those asked most often."""


def explained(agreed: Agreement, plan: Plan, why: Mapping[str, Any]) -> dict[str, Any]:
    """A plan as the owner reads it.

    Args:
        agreed: The survey.
        plan: Of one round.
        why: What was kept of how it was chosen; empty for a first round.
    """
    made = _record(plan, why) if isinstance(plan, RecordPlan) else _parts(agreed, plan, why)
    return {"round": plan.round, "plan": plan.to_dict(), "why": dict(why), **made}


def _record(plan: RecordPlan, why: Mapping[str, Any]) -> dict[str, Any]:
    budgets = {name: float(epsilon) for name, epsilon in plan.budgets.items()}
    least, most = min(budgets, key=budgets.__getitem__), max(budgets, key=budgets.__getitem__)
    words = [f"Everybody answers about all {len(budgets)} questions, randomized one by one."]
    if budgets[least] == budgets[most]:
        words.append(f"Each answer has epsilon {budgets[most]:.3g}.")
    else:
        words.append(
            f"Epsilon is divided by what the first round showed: {most} has {budgets[most]:.3g}, "
            f"{least} has {budgets[least]:.3g}."
        )
    if clusters := why.get("clusters"):
        tied = [" and ".join(cluster) for cluster in clusters if len(cluster) > 1]
        said = "; ".join(tied) if tied else "none"
        words.append(f"Columns that belong together, by the first round: {said}.")
    return {"words": words, "budgets": budgets, "parts": []}


def _parts(agreed: Agreement, plan: RoundPlan, why: Mapping[str, Any]) -> dict[str, Any]:
    total = sum(plan.weights)
    parts: list[dict[str, Any]] = [
        {
            "columns": list(part.columns),
            "share": weight / total,
            "protocol": part.protocol,
            "cells": list(part.shape(agreed.schema)),
        }
        for part, weight in zip(plan.parts, plan.weights, strict=True)
    ]
    parts.sort(key=lambda part: -part["share"])
    pairs = [part for part in parts if len(part["columns"]) == 2]
    share = sum(part["share"] for part in pairs)
    words = [
        f"Each person answers one question, drawn by chance, with all of epsilon "
        f"{float(plan.epsilon):.3g}."
    ]
    if pairs:
        words.append(
            f"{share:.0%} are asked about a pair of columns ({len(pairs):,} "
            f"{'pair' if len(pairs) == 1 else 'pairs'}), {1 - share:.0%} about one column."
        )
    elif agreed.rounds == 2:
        words.append("Nobody is asked about a pair of columns.")
    words += _reasons(agreed, why, pairs=bool(pairs))
    return {"words": words, "parts": parts[:MOST_PARTS], "budgets": {}}


def _reasons(agreed: Agreement, why: Mapping[str, Any], *, pairs: bool) -> list[str]:
    """What the first round said, and what is expected of the second."""
    words = []
    if seen := why.get("dependence"):
        squared, error = seen
        if squared > 2 * error:
            words.append(
                f"The first round shows that columns depend on each other: they are "
                f"{sqrt(squared):.1%} away from independence, on average."
            )
        else:
            words.append("The first round does not show that columns depend on each other.")
    if "predicted" in why:
        words.append(
            f"Tables of two columns are expected to be {why['predicted']:.1%} off, on average "
            "(total variation)."
        )
    bins = why.get("bins", {}).items() if pairs else ()
    if binned := {name: count for name, count in bins if count < agreed.schema[name].size}:
        words.append(
            "In pairs, values are taken together: "
            + ", ".join(f"{name} in {count}" for name, count in binned.items())
            + "."
        )
    return words
