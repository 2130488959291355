"""Anonymeter's three attacks on published rows: run in its own environment, prints JSON.

anonymeter_peer.py ORIGINAL.csv CONTROL.csv PUBLISHED.csv --attacks N --secret COLUMN

Giomi, Boenisch, Wehmeyer, Tasnadi 2023, "A unified framework for quantifying privacy risk in
synthetic data", arXiv 2211.10459. Each attack guesses about people in the original, and about a
control group that no release ever saw; what it has beyond the control is the risk.
"""

import argparse
import json
import warnings

import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

warnings.simplefilter("ignore")


def main() -> None:
    asked = _options()
    tables = [pd.read_csv(path) for path in (asked.original, asked.published, asked.control)]
    original, published, control = tables
    given = {"ori": original, "syn": published, "control": control, "n_attacks": asked.attacks}
    others = [name for name in original.columns if name != asked.secret]
    halves = others[: len(others) // 2], others[len(others) // 2 :]
    tried = {
        "singling out": (SinglingOutEvaluator(**given, n_cols=4), {"mode": "multivariate"}),
        "linkability": (LinkabilityEvaluator(**given, aux_cols=halves, n_neighbors=1), {}),
        "inference": (InferenceEvaluator(**given, aux_cols=others, secret=asked.secret), {}),
    }
    for name, (evaluator, how) in tried.items():
        evaluator.evaluate(**how)
        print(json.dumps({"attack": name} | _found(evaluator, asked.attacks)), flush=True)


def _found(evaluator, attacks: int) -> dict[str, float]:
    results = evaluator.results(confidence_level=0.999)
    risk = evaluator.risk(confidence_level=0.999)
    return {
        "risk": float(risk.value),
        "low": float(risk.ci[0]),
        "high": float(risk.ci[1]),
        "attack_rate": float(results.attack_rate.value),
        "control_rate": float(results.control_rate.value),
        "baseline_rate": float(results.baseline_rate.value),
        "attacks": attacks,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("original", "control", "published"):
        parser.add_argument(name)
    parser.add_argument("--attacks", type=int, default=500)
    parser.add_argument("--secret", required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
