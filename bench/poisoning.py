"""The poisoning drill: how often fakes are found, and how often honest answers raise the alarm.

``python bench/poisoning.py`` draws surveys and questions from seeded randomness, honest ones and
ones with 5% of fakes that leave a trace, and prints how often the check of ``sf.poisoning_check``
and of the collection service says so. Chances are proven bounds and the level is 1%, so nothing was
set on these surveys but the spread of shared invitations, which was chosen in view of both its
drill and other surveys (``--others``). ``--runs`` of each, ``--people`` answers.
"""

import argparse
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import sfumato as sf
from made import fakes
from sfumato.collection.poisoning import PoisoningCheck, answer_gain, poisoning_check
from sfumato.collection.traces import Trace, round_traces
from sfumato.randomness import Rng, simulation_rng
from sfumato.service.poisoning import shared_traces

PEOPLE, FAKES = 20_000, 0.05
SIZES = (40, 2, 12, 100, 5, 30)
QUESTIONS = ("oue", "sue", "olh", "subset", "fast-olh", "hadamard")


def question_run(protocol: str, attack: str, people: int, rng: Rng) -> bool:
    """Whether answers to one question raise the alarm."""
    column = sf.Integer(name="x", low=1, high=128)
    question = sf.Question(column=column, epsilon=1, protocol=protocol)
    batch = question.answer_many(fakes.skewed(128, people, rng=rng), rng=rng)
    values, number = np.array(batch.values), round(FAKES * people)
    targets = fakes.targets_of(128, rng=rng)
    if attack == "crafted":
        values[:number] = fakes.crafted(question.mechanism, targets, number, rng=rng)
    elif attack == "copies":
        values[:number] = fakes.crafted(question.mechanism, targets, 1, rng=rng)[0]
    changed = sf.AnswerBatch(question=batch.question, values=values, simulated=True)
    return poisoning_check(question, changed).alarm


def survey_run(variant: str, attack: Callable[..., Any] | None, people: int, rng: Rng) -> bool:
    """Whether one round of a survey raises the alarm."""
    epsilon = Fraction(int(rng.below(3, 1)[0]) + 1)
    survey = fakes.MadeSurvey.draw(SIZES, people, epsilon=epsilon, variant=variant, rng=rng)
    rows = survey.honest(rng=rng)
    if attack is not None:
        rows = fakes.replaced(rows, attack(survey, round(FAKES * people), rng=rng))
    traces = round_traces(survey.agreed, survey.tally(rows))
    return PoisoningCheck(traces=tuple(traces)).alarm


def invitations_run(burst: bool, rng: Rng) -> bool:
    """Whether shared invitations, of which one was abused, raise the alarm.

    Their use differs as groups of unequal size do: by a gamma distribution, for the drill with a
    spread of a quarter. 5% of all answers come by one. Ten other checks share the level.
    """
    number = 100 + int(rng.below(100, 1)[0])
    shape = 16 if burst else 1 + int(rng.below(20, 1)[0])
    used = _gamma_counts(number, shape, 200, rng)
    if burst:
        used[0] += round(FAKES / (1 - FAKES) * used.sum())
    others = [Trace(kind="other", about=(), chance=1.0, words="nothing")] * 10
    return PoisoningCheck(traces=(*others, *shared_traces(1, {500: used.tolist()}))).alarm


def _gamma_counts(number: int, shape: int, mean: int, rng: Rng) -> np.ndarray:
    sums = -np.log1p(-rng.uniform(number * shape)).reshape(number, shape).sum(axis=1)
    rates = mean * sums / shape
    ticks = -np.log1p(-rng.uniform(number * 8 * mean)).reshape(number, -1).cumsum(axis=1)
    return (ticks < rates[:, None]).sum(axis=1)


def share(run: Callable[[Rng], bool], runs: int, seed: int) -> tuple[int, float]:
    begun = time.perf_counter()
    hits = sum(run(simulation_rng(1_000 * seed + number)) for number in range(runs))
    return hits, (time.perf_counter() - begun) / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--others", action="store_true", help="the invitations of other surveys")
    asked = parser.parse_args()
    people = asked.people
    drills: list[tuple[str, Callable[[Rng], bool], bool]] = []
    if asked.others:
        drills = [("other invitations, honest", lambda rng: invitations_run(False, rng), False)]
    for protocol in () if asked.others else QUESTIONS:
        for attack in ("honest", "crafted", "copies"):
            drills.append(
                (
                    f"question {protocol}, {attack}",
                    lambda rng, p=protocol, a=attack: question_run(p, a, people, rng),
                    attack != "honest",
                )
            )
    attacks = {
        "grouped": (None, fakes.crafted_parts, fakes.copied_parts, fakes.one_part),
        "single": (None, fakes.crafted_parts, fakes.copied_parts, fakes.one_part),
        "faithful": (None, fakes.copied_records),
    }
    for variant, listed in {} if asked.others else attacks.items():
        for made in listed:
            drills.append(
                (
                    f"survey {variant}, {made.__name__ if made else 'honest'}",
                    lambda rng, v=variant, m=made: survey_run(v, m, people, rng),
                    made is not None,
                )
            )
    for burst in () if asked.others else (False, True):
        name = f"invitations, {'burst' if burst else 'honest'}"
        drills.append((name, lambda rng, b=burst: invitations_run(b, rng), burst))
    print(f"{asked.runs} runs each, {people:,} answers, {FAKES:.0%} fakes; level 1%")
    for place, (name, run, attacked) in enumerate(drills):
        hits, seconds = share(run, asked.runs, 17 * place + (5 if asked.others else 1))
        word = "found" if attacked else "false alarms"
        print(f"{name:42} {word:13} {hits / asked.runs:6.1%}   {seconds:.2f} s", flush=True)
    for protocol in ("grr", "olh", "hadamard"):
        mechanism = sf.Question(
            column=sf.Integer(name="x", low=1, high=128), epsilon=1, protocol=protocol
        ).mechanism
        print(f"one crafted answer of {protocol}, m=128: weighs {answer_gain(mechanism):.1f}")


if __name__ == "__main__":
    main()
