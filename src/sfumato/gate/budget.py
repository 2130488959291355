"""What a run may spend, what its steps paid, and their answers: stored before they are returned.

Costs are charged step by step, or reserved in one entry. A run that was stopped repeats its
questions and gets the same answers, unpaid and undrawn. Only a step that was paid and not answered
is drawn: nothing of it had left the process. Neither keys nor the state of a generator are stored,
so a run that goes on draws fresh noise.
"""

import hashlib
import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, InputError, InternalError
from sfumato.gate.requests import amount, noise_of, same_kind
from sfumato.gate.scores import Score, TargetList
from sfumato.ledger.ledger import Ledger
from sfumato.noise import Noise, noise_for
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ApproxDP, Cost, Price, zcdp_budget
from sfumato.privacy.sensitivity import Protection
from sfumato.randomness import Rng, secure_rng
from sfumato.schema.schema import Schema
from sfumato.schema.workload import Range, Target


class RunBudget:
    """The budget of one run, and what its steps took of it. Pays before anything is looked at."""

    def __init__(self, budget: Cap, protect: Protection, journal: "Journal") -> None:
        self._budget = budget
        self._protect = protect
        self._journal = journal
        self._working = zcdp_budget(budget) if isinstance(budget, ApproxDP) else budget
        self._paid = Fraction(0)  # what the ledger charged this run
        self._used = Fraction(0)  # what its steps took of that; the rest is reserved

    def precheck(self) -> None:
        """Raise, before a row is read, if the ledger would refuse what is still to be paid."""
        charges = [step.charge for step in self._journal.ahead]
        costs = [charge for charge in charges if isinstance(charge, type(self._working))]
        rest = amount(self._working) - sum((amount(cost) for cost in costs), Fraction(0))
        if rest > 0:
            cost = same_kind(self._working, rest)
            self._journal.ledger.precheck(cost, label="this run", protect=self._protect)

    @property
    def left(self) -> Cost:
        """What is left of the budget, in the kind that its steps are charged in."""
        rest = amount(self._working) - self._used
        if rest <= 0:
            raise BudgetError(f"the budget {self._budget} of this run is spent")
        return same_kind(self._working, rest)

    def noises(self, targets: Sequence[Target], costs: Sequence[Cost]) -> list[Noise]:
        """What is added to each count for its cost. A cost too small for any noise is refused."""
        paired = zip(targets, costs, strict=True)
        return [noise_of(cost, isinstance(t, Range), self._protect) for t, cost in paired]

    def score_noise(self, score: Score, targets: TargetList, cost: Cost) -> Noise:
        """What is added to each score of a vector."""
        self._amount(cost)
        moved, number = score.sensitivity(targets), len(targets.targets)
        return noise_for(cost, moved * number, moved**2 * number)

    def charge(self, *costs: Cost, label: str, reserve: bool = False) -> None:
        """Take costs off what is reserved or off the budget; a refusal raises before any look.

        With ``reserve`` they are paid, in one entry, and left for the steps that follow.
        """
        total = sum(map(self._amount, costs), Fraction(0))
        used = self._used + total
        if used > self._paid:
            cost, rest = same_kind(self._working, total), amount(self._working) - self._paid
            if total > rest:
                left = f"only {same_kind(self._working, rest)}" if rest > 0 else "nothing"
                raise BudgetError(
                    f"{label!r} asks for {cost} but {left} is left of this run's budget "
                    f"{self._budget}. Ask for less, or give a larger budget."
                )
            self._journal.spend(cost, label=label, protect=self._protect)
            self._paid += total
        if not reserve:
            self._used = used

    def _amount(self, cost: Cost) -> Fraction:
        """The amount of a cost of this run's kind; another kind is refused."""
        if type(cost) is not type(self._working):
            kind = type(self._working).__name__
            raise InputError(f"steps of this run cost {kind}, got {cost!r}.")
        return amount(cost)


def ledger_for(schema: Schema, ledger: Ledger | None, *, private: bool) -> Ledger:
    """The ledger that is given or the data set's own; in memory for a simulation."""
    if ledger is None and schema.dataset is None:
        raise InputError(
            "the budget belongs to a data set, and none is named. Put "
            '"dataset" into the schema or pass a ledger opened for one.'
        )
    if private:
        return ledger or Ledger.open(dataset=str(schema.dataset))
    if ledger is not None:
        ledger.simulation("simulation: seeded noise, protects nobody")
    dataset = ledger.dataset if ledger else str(schema.dataset)
    return Ledger.in_memory(dataset=dataset, simulated=True)


def journal_for(ledger: Ledger, journal: "Journal | None", *, rng: Rng) -> "Journal":
    """The journal that is given, if it is of this ledger; else a run that can't be resumed."""
    if journal is None:
        return Journal.unkept(ledger, run=rng.token())
    if journal.ledger is not ledger:
        raise InputError(
            "the journal is of another ledger than the one that is charged: open both for one "
            "run. A simulation has none."
        )
    return journal


log = logging.getLogger(__name__)

FINISHED: Final = "finished"
BY_ROW: Final = "it asked every row"
"""Why a run is closed: answers of all rows are too many to store, and not to be drawn twice."""

_DIGEST_BYTES: Final = 32
"""Of SHA-256."""
_TYPES: Final = {b"b": np.int8, b"h": np.int16, b"i": np.int32, b"q": np.int64, b"d": np.float64}

Answer = NDArray[np.float64]
"""The answer of a step, whatever it is, as one flat vector."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PaidStep:
    """One entry of the ledger that a run paid."""

    seq: int
    time: str
    """UTC, for people only."""
    label: str
    charge: Price

    def __str__(self) -> str:
        return f"entry {self.seq}, {self.label!r} for {self.charge}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PaidRun:
    """A run of a command as the ledger remembers it."""

    name: str
    steps: tuple[PaidStep, ...]
    closed: str | None
    """Why it can't go on (``FINISHED``, ``BY_ROW``); None while it can."""


class Journal:
    """The requests of one run, numbered, and the outcome of each of its steps.

    Make one with ``begin`` or ``resume``. Several gates may share it, one after the other.
    """

    __slots__ = ("__charged", "__keeps", "__ledger", "__paid", "__run", "__steps")

    def __init__(
        self, ledger: Ledger, *, run: str, paid: tuple[PaidStep, ...] = (), keeps: bool = True
    ) -> None:
        self.__ledger = ledger
        self.__run = run
        self.__charged: list[PaidStep] = []
        self.__paid = paid
        self.__keeps = keeps
        self.__steps = 0

    @property
    def ledger(self) -> Ledger:
        """Where it pays."""
        return self.__ledger

    @property
    def run(self) -> str:
        """The name under which the ledger keeps the charges."""
        return self.__run

    @property
    def charged(self) -> tuple[PaidStep, ...]:
        """What this run paid so far, in this process or before."""
        return tuple(self.__charged)

    @staticmethod
    def begin(ledger: Ledger, *, command: str) -> "Journal":
        """A new run, with a name that no other has.

        Args:
            ledger: Where it pays.
            command: All that is public about what is asked for, as text; ``resume`` goes by it.
        """
        return Journal(ledger, run=f"{_fingerprint(command)}-{secure_rng().token()}")

    @staticmethod
    def resume(ledger: Ledger, *, command: str) -> "Journal":
        """The last run of a command that was paid for and can go on.

        Raises:
            InputError: If there is none.
        """
        open_runs = [run for run in runs_of(ledger, command=command) if run.closed is None]
        if not open_runs:
            raise InputError(
                f"no stopped run of this very command is in the ledger of {ledger.dataset!r}: "
                "nothing to resume. Leave --resume out, or give all other options as they were."
            )
        last = open_runs[-1]
        return Journal(ledger, run=last.name, paid=last.steps)

    @staticmethod
    def unkept(ledger: Ledger, *, run: str) -> "Journal":
        """A run that can't be resumed: its charges are named, its outcomes are not stored."""
        return Journal(ledger, run=run, keeps=False)

    @property
    def resumable(self) -> bool:
        """Whether something was paid that a later process can go on with."""
        return self.__keeps and bool(self.__charged)

    @property
    def ahead(self) -> tuple[PaidStep, ...]:
        """What an earlier process paid and this one has not come to yet."""
        return self.__paid[len(self.__charged) :]

    def spend(
        self, charge: Price, *, label: str, protect: Protection, request: str | None = None
    ) -> None:
        """Charge the ledger for the next request; what was paid for it before stays paid.

        The one place where the ledger is charged.
        """
        if self.ahead and (self.ahead[0].charge, self.ahead[0].label) != (charge, label):
            raise self._differs(f"it paid {self.ahead[0]}, and now asks for {label!r}")
        request = request or self._request(len(self.__charged) + 1)
        entry = self.ledger.spend(charge, label=label, protect=protect, request=request)
        paid = PaidStep(seq=entry.seq, time=entry.time, label=label, charge=charge)
        self.__charged.append(paid)
        note = "" if self.ledger.path is not None else " in a ledger that is gone with the process"
        log.info("charged %s for %r%s", charge, label, note)

    def outcome(self, question: str, draw: Callable[[], Answer]) -> Answer:
        """The answer to a question: the stored one, or one drawn and stored before it is returned.

        Args:
            question: Everything public that says how to read the answer.
            draw: Looks and adds noise; not called where an answer is stored.
        """
        self.__steps += 1
        if not self.__keeps or not self.__charged:
            return draw()
        request = self._request(len(self.__charged))
        stored = self.ledger.outcome(request, step=self.__steps) if self.__paid else None
        if stored is None:
            mine = _packed(question, draw())
            stored = self.ledger.journal(request, mine, step=self.__steps)
        if stored[:_DIGEST_BYTES] != _digest(question):
            raise self._differs(f"step {self.__steps} was another one, and now is {question:.80}")
        return _unpacked(stored)

    def close(self, why: str) -> None:
        """Let nobody resume this run: it is finished, or answers that are not stored leave it.

        Raises:
            BudgetError: If another process closed it first and answers that are not stored would
                be drawn a second time for one charge.
        """
        if self.__keeps and self.__charged:
            mine = f"{why}\n{secure_rng().token()}".encode()
            first = self.ledger.journal(self._request(1), mine)
            if why == BY_ROW and first != mine:
                raise BudgetError(
                    "another process goes on with this run and asked every row: asking them again "
                    "would be a second draw for one charge. Wait for it, or start anew with "
                    "--no-resume, which is charged again."
                )
        self.__keeps = False

    def _request(self, number: int) -> str:
        return f"{self.run}/{number}"

    def _differs(self, how: str) -> InputError:
        return InputError(
            f"this run can't be resumed: its steps differ from those it was stopped in ({how}). "
            "What was charged stays in the ledger. Use the same version of sfumato, or start anew "
            "with --no-resume, which is charged again."
        )


def runs_of(ledger: Ledger, *, command: str) -> list[PaidRun]:
    """Every run of this very command that paid anything, in the order of its first entry."""
    steps: dict[str, list[PaidStep]] = {}
    for entry in ledger.entries():
        name, _, number = (entry.request or "").rpartition("/")
        if entry.cost is None or not name.startswith(_fingerprint(command) + "-"):
            continue
        paid = PaidStep(seq=entry.seq, time=entry.time, label=entry.label, charge=entry.cost)
        if int(number) != len(steps.setdefault(name, [])) + 1:
            raise InternalError(f"request {number} of run {name} came out of turn")
        steps[name].append(paid)
    return [
        PaidRun(name=name, steps=tuple(paid), closed=_closed(ledger, name))
        for name, paid in steps.items()
    ]


def _closed(ledger: Ledger, run: str) -> str | None:
    reason = ledger.outcome(f"{run}/1")
    return None if reason is None else reason.decode().partition("\n")[0]


def _fingerprint(command: str) -> str:
    return hashlib.sha256(command.encode()).hexdigest()[:32]


def _packed(question: str, answer: Answer) -> bytes:
    """A digest of the question, then the answer in the smallest type that represents it."""
    with np.errstate(invalid="ignore"):  # numbers that a type does not have
        exact = (pair for pair in _TYPES.items() if np.array_equal(answer.astype(pair[1]), answer))
        code, kind = next(exact, (b"d", np.float64))
    return _digest(question) + code + zlib.compress(answer.astype(kind).tobytes(), level=6)


def _unpacked(stored: bytes) -> Answer:
    """The answer of ``_packed``."""
    code, body = stored[_DIGEST_BYTES : _DIGEST_BYTES + 1], stored[_DIGEST_BYTES + 1 :]
    return np.frombuffer(zlib.decompress(body), dtype=_TYPES[code]).astype(np.float64)


def _digest(question: str) -> bytes:
    return hashlib.sha256(question.encode()).digest()
