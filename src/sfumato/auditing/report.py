"""The report of many audits: one row a mechanism, as text, JSON and Markdown."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from time import perf_counter
from typing import Any, Final
from zlib import crc32

from sfumato import check
from sfumato.auditing.audit import Finding, attacked, audit, checked, exceeds
from sfumato.auditing.case import PEOPLE, Accuracy, Case, Planted
from sfumato.auditing.cases import CASES, LARGER, Cases, case, known
from sfumato.auditing.checks import LEVEL
from sfumato.randomness import Rng, simulation_rng

CONFIDENCE: Final = 0.999
"""Of every lower bound in the table."""

HEADING: Final = "# Audits"
"""The first line of the page that ``markdown`` writes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """How much is drawn, and what may then be demanded."""

    part: Fraction = Fraction(1)
    """Of the samples that each case asks for."""
    larger: Fraction = LARGER
    """The multiple of epsilon that must be rejected."""
    collections: int = 10_000
    """Simulated to measure an error."""
    shown: float = 0.9
    """Of the exact loss, what the lower bound must show."""
    whole_part: Fraction = Fraction(1)
    """Of the runs that an audit of whole releases asks for."""
    whole_bugs: int | None = None
    """How many of their bugs are planted; all by default."""
    whole_bug_runs: int = 10_000
    """The most runs on each side against one of them, or a third of what it asks for."""


FULL: Final = Effort()
QUICK: Final = Effort(
    part=Fraction(1, 10),
    larger=Fraction(2),
    collections=1_000,
    shown=0.6,
    whole_part=Fraction(1, 25),
    whole_bugs=2,
    whole_bug_runs=70,
)
"""Seconds instead of minutes; it rejects twice the epsilon only."""

_LEAST: Final = 1_000  # draws on each side, however small the part
_LEAST_WHOLE: Final = 40  # the same, of whole releases


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """The results of one mechanism."""

    finding: Finding
    caught: tuple[tuple[str, bool], ...]
    """Each planted bug and whether it was refuted."""
    accuracy: Accuracy | None
    note: str
    effort: Effort
    seconds: float

    @property
    def planted_bugs_caught(self) -> str:
        """How many of how many: ``2/2``."""
        return f"{sum(caught for _, caught in self.caught)}/{len(self.caught)}"

    @property
    def checks_passed(self) -> str:
        """How many of how many, nothing where there are none."""
        checks = self.finding.checks
        return f"{sum(each.passed for each in checks)}/{len(checks)}" if checks else ""

    @property
    def shown(self) -> float | None:
        """The lower bound as a part of the exact loss."""
        exact = self.finding.exact
        return None if exact is None else self.finding.lower_bound / exact

    @property
    def of_claim(self) -> float:
        """The lower bound as a part of the claim."""
        return self.finding.lower_bound / float(self.finding.claimed)

    @property
    def _demanded(self) -> float:
        """Of the exact loss, what samples must show; whole releases are too few to show much."""
        return 0.0 if self.finding.end_to_end else self.effort.shown

    @property
    def problems(self) -> list[str]:
        """Whatever is not as it should be; none if the claim stands."""
        problems = []
        if self.finding.refuted:
            problems.append("its claim is refuted")
        problems += [
            f"a check failed: {each.name}" for each in self.finding.checks if not each.passed
        ]
        if not self.finding.conclusive and not self.finding.end_to_end:
            problems.append(
                "the audit is inconclusive: no exact loss, and a bound below half the claim"
            )
        if self.shown is not None and self.shown < self._demanded:
            problems.append(f"the audit is too weak: it shows {self.shown:.2f} of the exact loss")
        problems += [
            f"a planted bug was missed: {bug}" for bug, caught in self.caught if not caught
        ]
        if self.accuracy is not None and not self.accuracy.inside:
            problems.append("the measured error does not fit its formula")
        return [f"{self.finding.mechanism}: {problem}" for problem in problems]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as ``--json`` prints them."""
        measured = self.accuracy
        return {
            **self.finding.to_dict(),
            "ratio": self.shown,
            "ratio_to_claim": self.of_claim,
            "planted_bugs_caught": self.planted_bugs_caught,
            "planted_bugs": dict(self.caught),
            "n_mse": None if measured is None else measured.measured,
            "n_mse_formula": None if measured is None else measured.formula,
            "n_mse_band": None if measured is None else list(measured.band),
            "n_mse_inside": None if measured is None else measured.inside,
            "note": self.note,
            "seconds": self.seconds,
            "problems": self.problems,
        }


def audit_case(
    name: str,
    *,
    effort: Effort = FULL,
    runs: int | None = None,
    seed: int = 0,
    cases: Cases = CASES,
) -> Row:
    """Audit one mechanism of the list, its planted bugs and its error.

    The draws depend on the seed and the name, not on what else is audited; those for the error
    not on the audit either.

    Args:
        name: One of ``cases``.
        effort: How much is drawn.
        runs: Fresh draws on each side, instead of what the case asks for.
        seed: Of the simulation.
        cases: The list.
    """
    start = perf_counter()
    honest = case(name, larger=effort.larger, cases=cases)
    rng, apart = (_rng(seed, known(name, cases) + part) for part in ("", " error"))
    draws = _draws(honest, effort) if runs is None else runs
    finding = audit(honest, runs=draws, rng=rng, confidence=CONFIDENCE)
    planted = honest.planted[: effort.whole_bugs if honest.end_to_end else None]
    caught = tuple((bug.bug, _is_caught(bug, draws, effort, rng)) for bug in planted)
    return Row(
        finding=finding,
        caught=caught,
        accuracy=_measured(honest, effort, apart),
        note=honest.note,
        effort=effort,
        seconds=perf_counter() - start,
    )


def _rng(seed: int, what: str) -> Rng:
    return simulation_rng((seed << 32) + crc32(what.encode()))


def _draws(honest: Case, effort: Effort) -> int:
    """Fresh draws on each side."""
    if honest.end_to_end:
        return max(_LEAST_WHOLE, int(honest.runs * effort.whole_part))
    return max(_LEAST, int(honest.runs * effort.part))


def _is_caught(bug: Planted, runs: int, effort: Effort, rng: Rng) -> bool:
    """Whether the planted case is refuted by what must refute it."""
    if bug.case.end_to_end:
        runs = min(bug.case.runs, max(effort.whole_bug_runs, bug.case.runs // 3))
    if bug.by == "sample":
        _, bound = attacked(bug.case, runs=runs, rng=rng, confidence=CONFIDENCE)
        return bound > bug.case.claimed
    if bug.by == "check":
        return not all(each.passed for each in checked(bug.case, runs=runs, rng=rng))
    ratio = bug.case.ratio()
    return ratio is not None and exceeds(ratio, bug.case.claimed)


def _measured(honest: Case, effort: Effort, rng: Rng) -> Accuracy | None:
    return None if honest.accuracy is None else honest.accuracy(effort.collections, rng)


Column = tuple[str, Callable[[Row], str]]

SECONDS: Final = "seconds"

COLUMNS: Final[tuple[Column, ...]] = (
    ("mechanism", lambda row: row.finding.mechanism),
    ("claimed", lambda row: f"{row.finding.unit} {float(row.finding.claimed):.4g}"),
    ("exact", lambda row: _number(row.finding.exact)),
    ("bound", lambda row: _number(row.finding.lower_bound)),
    ("bound/exact", lambda row: "" if row.shown is None else f"{row.shown:.2f}"),
    ("bound/claimed", lambda row: f"{row.of_claim:.2f}"),
    ("samples", lambda row: f"{row.finding.samples:,}"),
    ("checks", lambda row: row.checks_passed),
    ("bugs", lambda row: row.planted_bugs_caught),
    ("n*MSE", lambda row: "" if row.accuracy is None else f"{row.accuracy.formula:.3f}"),
    ("measured", lambda row: "" if row.accuracy is None else f"{row.accuracy.measured:.3f}"),
    ("band", lambda row: "" if row.accuracy is None else _band(row.accuracy)),
    ("verdict", lambda row: row.finding.verdict),
    (SECONDS, lambda row: f"{row.seconds:.1f}"),
    ("size", lambda row: row.note),
)
"""All but ``SECONDS`` come out the same for the same seed."""


def text(rows: Sequence[Row]) -> str:
    """Aligned columns for a terminal."""
    lines = _cells(rows, COLUMNS)
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    pairs = ([*zip(line, widths, strict=True)] for line in lines)
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in line).rstrip() for line in pairs
    )


def markdown(rows: Sequence[Row], *, command: str, explained: str = "") -> str:
    """A page with the table, what its columns mean, and every planted bug.

    Args:
        rows: Of the table.
        command: What makes the same page.
        explained: More about the rows, as points of a list.
    """
    head, *body = (f"| {' | '.join(cells)} |" for cells in _cells(rows, COLUMNS))
    rule = "|" + "---|" * len(COLUMNS)
    bugs = [
        f"- {row.finding.mechanism}: {bug}, {'refuted' if caught else 'MISSED'}"
        for row in rows
        for bug, caught in row.caught
    ]
    columns = EXPLAINED.format(
        command=command,
        confidence=rows[0].finding.confidence,
        collections=rows[0].effort.collections,
        people=PEOPLE,
        alarms=1 / LEVEL,
        seconds=sum(row.seconds for row in rows),
    )
    prose = columns + explained + CAN_NOT
    return "\n".join([HEADING, "", prose, head, rule, *body, "", BUGS, "", *bugs, ""])


EXPLAINED: Final = """Made by `{command}`; seeded, so that anyone gets the same numbers, but for
the **seconds**: {seconds:,.0f} in all, in processes side by side.

- **claimed** is what the mechanism promises, **exact** what its declared integers lose at the size
  given: the largest ratio of probabilities of one whole answer under two inputs. Exact above
  claimed would be a broken promise; below it, the promise has slack. It is computed from what the
  mechanism declares; that the code draws so is what samples and checks test.
- **bound** is a lower bound of the loss at {confidence:.1%} confidence (Clopper-Pearson) from
  answers alone. The pair of inputs and the set of whole answers that distinguishes them best are
  searched on pilot draws; **samples** fresh draws on each side then give the bound. It must stay
  below the claim and show most of the exact loss.
- **checks** are of the code that runs, each with about one false alarm in {alarms:,.0f} or fewer:
  frequencies of EVERY input fit the declared ones, in bulk and one by one as on a device; a smaller
  attack on single answers stays below the claim; the seed of a hash is uniform whatever the code
  and the response; people who answer in one call share no randomness, and nobody's answer depends
  on another's code, at any distance between them.
- **bugs** counts the planted bugs that were refuted, listed below.
- **n\\*MSE** is the squared error of an estimate times the number of people, by its formula (for a
  category, key or bit that nobody has; for means at the worst value), **measured** the same over
  {collections:,} simulated collections of {people:,} people; a right formula leaves the **band**
  once in 1,000.
- **verdict** is `inconclusive` where little could have been detected: no exact loss, and a bound
  below half the claim. Of single mechanisms that is a failure of the audit; of whole releases it is
  what to expect, and reported.
- Gaussian noise is audited in the rho of zCDP, by the Kullback-Leibler divergence that rho bounds;
  so is a selection that is paid for in rho.
- **Gate** rows are what central synthesis sees of a table: noisy errors of pairs, selections,
  measurements for different costs, levels of a number's bins, persons with several rows, rows that
  Spark counts (not run, and reported so, where pyspark or java is missing), and a table without a
  schema. Neighboring tables go through the code that real ones go through, many experiments in a
  call, each with noise of its own.
"""

CAN_NOT: Final = """
An audit can refute, not prove. A leak that needs three answers at once, a combination of seed bits
that no single byte shows, or one wrong input among more than can be written out, would pass here.
"""

BUGS: Final = """## Planted bugs

`epsilon x` plants a mechanism that spends this multiple of what the honest one loses."""


def _cells(rows: Sequence[Row], columns: Sequence[Column]) -> list[list[str]]:
    return [[name for name, _ in columns], *([show(row) for _, show in columns] for row in rows)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _band(accuracy: Accuracy) -> str:
    low, high = accuracy.band
    inside = "" if accuracy.inside else " outside"
    return f"{low:.3f}..{high:.3f}{inside}"


Tell = Callable[[str, int, int], None]
"""Progress: what is being done, how much of it is, how much there is."""


def audit_cases(
    names: Sequence[str],
    *,
    effort: Effort = FULL,
    runs: int | None = None,
    seed: int = 0,
    processes: int = 1,
    cases: Cases = CASES,
    tell: Tell,
) -> list[Row]:
    """Audit several cases; the rows come in the order of the names, whoever made them.

    Args:
        names: Of ``cases``.
        effort: How much is drawn.
        runs: Fresh draws on each side, instead of what the cases ask for.
        seed: Of the simulation.
        processes: At once; a new interpreter each, as a fork would share locks and threads.
        cases: The list; its builders must be pickled where there are several processes.
        tell: Called with the progress.
    """
    check.whole(at_least=1, processes=processes)
    one = partial(audit_case, effort=effort, runs=runs, seed=seed, cases=cases)
    if min(processes, len(names)) == 1:
        rows = []
        for number, name in enumerate(names, start=1):
            tell(f"{number} of {len(names)}: {name}", 0, 0)
            rows.append(one(name))
        return rows
    longest = sorted(names, key=_begins_late)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(names)), mp_context=context) as pool:
        waiting = {pool.submit(one, name): name for name in longest}
        rows_of = {}
        for number, done in enumerate(as_completed(waiting), start=1):
            rows_of[waiting[done]] = done.result()
            tell(f"{number} of {len(names)} done: {waiting[done]}", 0, 0)
    return [rows_of[name] for name in names]


def _begins_late(name: str) -> tuple[bool, bool]:
    """What takes longest begins first, so that no process is left alone with it."""
    return name in CASES, not name.startswith("Gate")
