"""The poisoning drill: declared surveys, honest ones and ones with 5% of fakes, and its marks.

The check was written in view of ``OTHERS``, which hold an earlier drill that it failed. ``DRILL``
shares no number of values, no epsilon and no number of people with them, was declared before it was
first run, and nothing was set in its view. Fakes leave a trace: they are crafted (Cao, Jia, Gong
2021), copied, all about one question, or come by one invitation.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

import sfumato as sf
from made import fakes
from sfumato.randomness import Rng, simulation_rng
from sfumato.server.surveys.poisoning import shared_traces
from sfumato.survey.dp2pub import two_round
from sfumato.survey.poisoning.check import PoisoningCheck, poisoning_check
from sfumato.survey.poisoning.traces import Trace, round_traces

FAKES = 0.05
FALSE_ALARMS, FOUND = 0.01, 0.95
"""At most so many honest runs may raise the alarm, and so many with fakes must."""
PROTOCOLS = ("oue", "sue", "olh", "subset", "fast-olh", "hadamard")
VARIANTS = ("single", "grouped", "faithful")

Detector = Callable[[PoisoningCheck], bool]


def sighted(check: PoisoningCheck) -> bool:
    """The one that is shipped."""
    return check.alarm


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question, asked by itself."""

    categories: int
    epsilon: Fraction
    people: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A survey of several columns."""

    sizes: tuple[int, ...]
    epsilon: Fraction
    people: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Shared:
    """Invitations that groups share; their sizes follow a gamma distribution of this shape."""

    number: int
    mean: int
    shape: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Surveys:
    """A declared set of surveys."""

    questions: tuple[Asked, ...]
    held: tuple[Held, ...]
    shared: tuple[Shared, ...]


OTHERS = Surveys(
    questions=(
        Asked(categories=128, epsilon=Fraction(1), people=20_000),
        Asked(categories=48, epsilon=Fraction(3, 4), people=15_000),
        Asked(categories=90, epsilon=Fraction(3, 2), people=30_000),
        Asked(categories=200, epsilon=Fraction(5, 2), people=12_000),
    ),
    held=(
        *(
            Held(sizes=(40, 2, 12, 100, 5, 30), epsilon=Fraction(epsilon), people=20_000)
            for epsilon in (1, 2, 3)
        ),
        Held(sizes=(7, 64, 3, 24), epsilon=Fraction(3, 2), people=15_000),
        Held(sizes=(16, 25, 9, 50, 4), epsilon=Fraction(5, 2), people=30_000),
        Held(sizes=(3, 3, 6, 18, 80, 11, 8), epsilon=Fraction(3, 4), people=25_000),
    ),
    shared=(
        Shared(number=100, mean=200, shape=16),
        Shared(number=110, mean=60, shape=14),
        Shared(number=160, mean=350, shape=12),
        Shared(number=200, mean=200, shape=9),
        Shared(number=280, mean=90, shape=7),
    ),
)
DRILL = Surveys(
    questions=(
        Asked(categories=40, epsilon=Fraction(5, 4), people=10_000),
        Asked(categories=75, epsilon=Fraction(2, 3), people=18_000),
        Asked(categories=180, epsilon=Fraction(7, 4), people=35_000),
    ),
    held=(
        Held(sizes=(20, 6, 45), epsilon=Fraction(5, 4), people=10_000),
        Held(sizes=(10, 13, 33, 14, 70), epsilon=Fraction(7, 4), people=18_000),
        Held(sizes=(15, 22, 6, 60, 10, 13), epsilon=Fraction(2, 3), people=35_000),
    ),
    shared=(
        Shared(number=120, mean=45, shape=13),
        Shared(number=180, mean=150, shape=10),
        Shared(number=250, mean=500, shape=8),
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Drill:
    """One kind of run: what it is of, whether there are fakes, and whether they were noticed."""

    name: str
    attacked: bool
    run: Callable[[Detector, Rng, int], bool]
    """With the number of the run, which chooses the survey in turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """How one drill went."""

    drill: Drill
    runs: int
    alarms: int

    @property
    def share(self) -> float:
        return self.alarms / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's, at 95%."""
        low = stats.beta.ppf(0.025, self.alarms, self.runs - self.alarms + 1)
        high = stats.beta.ppf(0.975, self.alarms + 1, self.runs - self.alarms)
        return float(np.nan_to_num(low, nan=0.0)), float(np.nan_to_num(high, nan=1.0))

    @property
    def passed(self) -> bool:
        """Whether the share is as promised."""
        return self.share >= FOUND if self.drill.attacked else self.share <= FALSE_ALARMS

    def refuted(self, level: float) -> bool:
        """Whether the promise is, but for a false alarm of this level: for few runs."""
        if self.drill.attacked:
            return bool(stats.binom.cdf(self.alarms, self.runs, FOUND) < level)
        return bool(stats.binom.sf(self.alarms - 1, self.runs, FALSE_ALARMS) < level)


def marked(drill: Drill, runs: int, *, seed: int, detector: Detector = sighted) -> Mark:
    """Run a drill so often, with the surveys of its set in turn."""
    alarms = sum(
        drill.run(detector, simulation_rng(1_000_000 * seed + run), run) for run in range(runs)
    )
    return Mark(drill=drill, runs=runs, alarms=alarms)


def drills(surveys: Surveys) -> Iterator[Drill]:
    """All kinds of runs."""
    for protocol in PROTOCOLS:
        for attack in ("honest", "crafted", "copies"):
            yield question_drill(surveys.questions, protocol, attack)
    yield question_drill(surveys.questions, "grr", "honest")
    for variant in VARIANTS:
        yield survey_drill(surveys.held, variant, None)
    yield second_round_drill(surveys.held, "grouped")
    yield second_round_drill(surveys.held, "faithful")
    yield invitation_drill(surveys.shared, 0)
    for variant in ("single", "grouped"):
        for attack in (fakes.crafted_parts, fakes.copied_parts, fakes.one_part):
            yield survey_drill(surveys.held, variant, attack)
    yield survey_drill(surveys.held, "faithful", fakes.copied_records)
    yield invitation_drill(surveys.shared, 1)


def question_drill(questions: Sequence[Asked], protocol: str, attack: str) -> Drill:
    """Answers to one question, of which fakes crafted or copied some."""

    def run(detector: Detector, rng: Rng, number: int) -> bool:
        asked = questions[number % len(questions)]
        column = sf.Integer(name="x", low=1, high=asked.categories)
        question = sf.Question(column=column, epsilon=asked.epsilon, protocol=protocol)
        codes = fakes.skewed(asked.categories, asked.people, rng=rng)
        batch = question.answer_many(codes, rng=rng)
        values, many = np.array(batch.values), round(FAKES * asked.people)
        targets = fakes.targets_of(asked.categories, rng=rng)
        if attack == "crafted":
            values[:many] = fakes.crafted(question.mechanism, targets, many, rng=rng)
        elif attack == "copies":
            values[:many] = fakes.crafted(question.mechanism, targets, 1, rng=rng)[0]
        changed = sf.AnswerBatch(question=batch.question, values=values, simulated=True)
        return detector(poisoning_check(question, changed))

    return Drill(name=f"question {protocol}, {attack}", attacked=attack != "honest", run=run)


def survey_drill(held: Sequence[Held], variant: str, attack: Callable[..., Any] | None) -> Drill:
    """The first round of a survey."""

    def run(detector: Detector, rng: Rng, number: int) -> bool:
        asked = held[number % len(held)]
        survey = _drawn(asked, variant, rng)
        rows = survey.honest(rng=rng)
        if attack is not None:
            rows = fakes.replaced(rows, attack(survey, round(FAKES * asked.people), rng=rng))
        return detector(_looked(survey, survey.tally(rows)))

    kind = attack.__name__ if attack is not None else "honest"
    return Drill(name=f"survey {variant}, {kind}", attacked=attack is not None, run=run)


def second_round_drill(held: Sequence[Held], variant: str) -> Drill:
    """The second round of a survey, planned from the first: honest."""

    def run(detector: Detector, rng: Rng, number: int) -> bool:
        survey = _drawn(held[number % len(held)], variant, rng)
        first = survey.tally(survey.honest(rng=rng))
        plan = two_round.second_round(survey.agreed, first).question
        later = fakes.MadeSurvey(survey.agreed, survey.codes, plan)
        return detector(_looked(later, later.tally(later.honest(rng=rng))))

    return Drill(name=f"second round {variant}, honest", attacked=False, run=run)


def invitation_drill(shared: Sequence[Shared], abused: int) -> Drill:
    """Invitations of groups, of which some brought all the fakes; ten other checks beside."""
    others = (Trace(kind="other", about=(), chance=1.0, words="nothing"),) * 10

    def run(detector: Detector, rng: Rng, number: int) -> bool:
        groups = shared[number % len(shared)]
        used = group_sizes(groups, rng=rng)
        if abused:
            used[:abused] += round(FAKES / (1 - FAKES) * used.sum() / abused)
        traces = shared_traces(1, {10_000: used.tolist()})
        return detector(PoisoningCheck(traces=(*others, *traces)))

    name = f"invitations, {abused} abused" if abused else "invitations, honest"
    return Drill(name=name, attacked=bool(abused), run=run)


def group_sizes(groups: Shared, *, rng: Rng) -> np.ndarray:
    """How often each invitation was used: Poisson counts around the sizes of their groups."""
    stages = -np.log1p(-rng.uniform(groups.number * groups.shape))
    means = groups.mean * stages.reshape(groups.number, -1).mean(axis=1)
    most = int(2 * means.max() + 50)
    ticks = -np.log1p(-rng.uniform(groups.number * most))
    arrived = ticks.reshape(groups.number, most).cumsum(axis=1)
    return np.maximum(1, (arrived < means[:, None]).sum(axis=1))


def _drawn(asked: Held, variant: str, rng: Rng) -> fakes.MadeSurvey:
    return fakes.MadeSurvey.draw(
        asked.sizes, asked.people, epsilon=asked.epsilon, variant=variant, rng=rng
    )


def _looked(survey: fakes.MadeSurvey, tally: Any) -> PoisoningCheck:
    return PoisoningCheck(traces=tuple(round_traces(survey.agreed, tally)))
