"""The poisoning drill: how often fakes are found, and how often honest answers raise the alarm.

``python bench/poisoning.py`` runs the check of ``sf.poisoning_check`` and of the service on surveys
that ``tests/made/poisoning_drill.py`` declares, honest ones and ones with 5% of fakes that leave a
trace, and prints how often it raised the alarm. All chances are proven bounds at a level of 1%; the
choices left (what to look at, how many invitations are tried) were made in view of ``--others``.
Then: what fakes gain who leave no trace, and invitations of groups beyond the drill.
"""

import argparse
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import sfumato as sf
from made import fakes
from made import poisoning_drill as drill
from sfumato.randomness import simulation_rng
from sfumato.server.surveys.poisoning import shared_traces
from sfumato.survey.poisoning.check import PoisoningCheck, answer_gain, poisoning_check

HONEST, ATTACKED = 500, 150
PEOPLE = 40_000
UNSEEN = (("grr", 4, "1"), ("grr", 16, "1"), ("grr", 4, "1/10"), ("grr", 16, "1/10"))
WEIGHTS = ("grr", "olh", "hadamard")
FEW = (2_000, 5_000, 10_000)


def table(surveys: drill.Surveys, *, scale: float, only: str) -> bool:
    """Print how each drill went; whether all went as promised."""
    passed = True
    for place, each in enumerate(drill.drills(surveys)):
        if only == "-" or only not in each.name:
            continue
        begun = time.process_time()
        runs = max(1, round(scale * (ATTACKED if each.attacked else HONEST)))
        mark = drill.marked(each, runs, seed=place + 1)
        low, high = mark.interval
        took = (time.process_time() - begun) / runs
        print(
            f"{each.name:36} {'found' if each.attacked else 'false alarms':13}"
            f"{mark.alarms:4} of {runs:4}  {mark.share:6.1%} ({low:.1%} to {high:.1%})"
            f"  {'' if mark.passed else 'NOT AS PROMISED'}  {took:.2f} CPU-s",
            flush=True,
        )
        passed = passed and mark.passed
    return passed


def unseen(runs: int) -> None:
    """Fakes who answer honestly for a value that is not theirs, or say it outright: 1% of all."""
    print(f"\nfakes without a trace, 1% of {PEOPLE:,}: points that one share gains, and alarms")
    for protocol, categories, epsilon in UNSEEN:
        column = sf.Integer(name="x", low=1, high=categories)
        question = sf.Question(column=column, epsilon=Fraction(epsilon), protocol=protocol)
        moved, alarms = [], 0
        for run in range(runs):
            rng = simulation_rng(77_000 + run)
            codes = fakes.skewed(categories, PEOPLE, rng=rng)
            honest = question.answer_many(codes, rng=rng)
            values = np.array(honest.values)
            values[: PEOPLE // 100] = 0
            told = sf.AnswerBatch(question=honest.question, values=values, simulated=True)
            before, after = (question.estimate(each).frequencies[0] for each in (honest, told))
            moved.append(100 * (after - 0.99 * before))
            alarms += poisoning_check(question, told).alarm
        error = np.std(moved) / np.sqrt(runs)
        print(
            f"{protocol} m={categories}, epsilon {epsilon}: by formula "
            f"{answer_gain(question.mechanism):6.1f}, measured {np.mean(moved):6.1f} +- "
            f"{error:.1f}, alarm in {alarms} of {runs}"
        )


def weights() -> None:
    for protocol in WEIGHTS:
        column = sf.Integer(name="x", low=1, high=128)
        mechanism = sf.Question(column=column, epsilon=1, protocol=protocol).mechanism
        print(f"one crafted answer of {protocol}, m=128: weighs {answer_gain(mechanism):.1f}")


def shapes(runs: int) -> None:
    """Beyond the drill: groups of other sizes, and tails heavier than the check assumes."""
    print(f"\ninvitations: found with 1 and 3 abused ones, and false alarms, in {runs} runs")
    for number in (60, 100, 200):
        for shape in (16, 9, 4, 1):
            groups = (drill.Shared(number=number, mean=100, shape=shape),)
            found = [
                drill.marked(drill.invitation_drill(groups, abused), runs, seed=91).share
                for abused in (1, 3, 0)
            ]
            print(
                f"{number:4} groups, sizes differ by {1 / np.sqrt(shape):.0%}: "
                + "  ".join(f"{share:5.0%}" for share in found)
            )


def heavy_tails(runs: int, number: int = 100) -> None:
    """Groups of lognormal sizes, which the check does not promise for: false alarms alone."""
    for spread in (0.25, 0.5, 1.0):
        alarms = 0
        for run in range(runs):
            rng = simulation_rng(93_000 + run)
            normal = np.sqrt(-2 * np.log1p(-rng.uniform(number))) * np.cos(
                2 * np.pi * rng.uniform(number)
            )
            sizes = np.maximum(1, np.round(100 * np.exp(spread * normal))).astype(int)
            alarms += PoisoningCheck(traces=tuple(shared_traces(1, {10_000: sizes.tolist()}))).alarm
        print(f"{number} groups of lognormal sizes, sigma {spread}: alarm in {alarms / runs:.1%}")


def fewer_people(runs: int) -> None:
    """Crafted answers among few: below which number they are missed."""
    print(f"\ncrafted answers found, 128 values, epsilon 1, {runs} runs")
    for protocol in drill.PROTOCOLS:
        shares = [
            drill.marked(
                drill.question_drill(
                    (drill.Asked(categories=128, epsilon=Fraction(1), people=people),),
                    protocol,
                    "crafted",
                ),
                runs,
                seed=95,
            ).share
            for people in FEW
        ]
        listed = "  ".join(f"{n:,}: {share:.0%}" for n, share in zip(FEW, shares, strict=True))
        print(f"{protocol:10} {listed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of 500 honest, 150 other runs")
    parser.add_argument("--others", action="store_true", help="the surveys that it was made with")
    parser.add_argument("--only", default="", help="drills with this in their name; - for none")
    asked = parser.parse_args()
    surveys = drill.OTHERS if asked.others else drill.DRILL
    print(f"{drill.FAKES:.0%} fakes; found must be {drill.FOUND:.0%}, false alarms at most 1%")
    passed = table(surveys, scale=asked.scale, only=asked.only)
    if asked.only in ("", "-"):
        unseen(20)
        weights()
        shapes(max(1, round(200 * asked.scale)))
        heavy_tails(max(1, round(500 * asked.scale)))
        fewer_people(max(1, round(40 * asked.scale)))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
