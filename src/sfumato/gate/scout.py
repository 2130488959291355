"""The gate of a table of which nothing is declared: charge, look, add noise, return.

Its few verbs find out, privately, what a schema has to say: which shapes the values have, where
numbers and days lie, which texts many rows share. The whole cost is paid before the first look.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from sfumato.counting.exact_counts import count_marginals
from sfumato.counting.table import TextCounts, TextTable
from sfumato.durable import SingleProcess
from sfumato.errors import BudgetError, InputError, TableError
from sfumato.gate.budget import Journal
from sfumato.gate.requests import noise_of, noisy, verb
from sfumato.ledger.ledger import Ledger, spending_boundary
from sfumato.noise import Noise
from sfumato.noise.thresholding import NOT_SHOWN, Thresholding
from sfumato.privacy import sensitivity
from sfumato.privacy.guarantees import ZCDP, ApproxDP, zcdp_budget
from sfumato.privacy.sensitivity import OnePerson, Protection
from sfumato.randomness import Rng
from sfumato.schema.measurement import Measurement
from sfumato.schema.schema import Marginal, Schema

LABEL = "infer a schema"
"""What the ledger says of the charge."""


class Scout(SingleProcess):
    """Holds a table without a schema, and answers only through noise.

    Formal guarantees: all that the verbs return, together, is (epsilon, delta)-DP with the
    budget's parameters for the neighbors that ``protect`` names. The costs of the verbs are
    approximate and add up to at most the budget (Dwork, Roth 2014, theorem 3.16: each verb keeps
    its cost whatever the earlier ones returned, and the sum is fixed before the first look). Names
    of columns are taken as public. The guarantee needs ``rng`` to be secure.
    """

    __slots__ = (
        "__journal", "__ledger", "__request", "__rng", "__table", "__used",
        "budget", "names", "private", "protect",
    )  # fmt: skip

    @spending_boundary()
    def __init__(
        self,
        table: TextTable,
        *,
        protect: Protection,
        budget: ApproxDP,
        ledger: Ledger,
        rng: Rng,
        request: str | None = None,
    ) -> None:
        """Check everything that can be checked before a charge, the file's format included.

        Args:
            table: The rows, as texts.
            protect: Whom to protect.
            budget: What is paid, in one entry, before the first look.
            ledger: Who is charged; it must not have been charged for this data set before.
            rng: Where the noise comes from; with a simulation generator nothing is charged.
            request: The name under which it is charged, once.
        """
        super().__init__()
        self.protect = protect
        self.budget = budget
        self.private = rng.secure
        self.__rng = rng
        self.__request = request
        self.__ledger = (
            ledger if rng.secure else Ledger.in_memory(dataset=ledger.dataset, simulated=True)
        )
        self.__journal = Journal.unkept(self.__ledger, run=rng.token())
        self.__used: tuple[Fraction, Fraction] | None = None  # nothing was paid
        if not self._paid_before():
            self.__ledger.precheck(budget, label=LABEL, protect=protect)
        person = protect.column if isinstance(protect, OnePerson) else None
        if isinstance(protect, OnePerson):
            if person is None:
                raise InputError("protecting a person needs the column that names the person")
            table = table.bounded(person, protect.max_rows)
        self.__table = table
        self.names: Marginal = tuple(name for name in table.names if name != person)
        """The columns that can be asked about: not the one that names people."""
        if not self.names:
            raise TableError(
                f"{table.describe()}: there is no column to publish: none has a name, but for the "
                "one that names people."
            )
        table.validate()

    def sigma_of(self, cost: ApproxDP, *, tables: int) -> float:
        """The noise, in counts, of each of some tables of counts for ``cost``. No look."""
        return self._noise(cost, tables).sigma_counts

    @verb
    def shapes(self, *, cost: ApproxDP) -> dict[str, Measurement]:
        """For each column, about how many rows are of each shape (``schema.text_shapes``)."""
        noise = self._noise(cost, len(self.names))
        self._charge(cost)
        exact = self.__table.shapes(self.names)
        return {name: noisy((name,), exact[name], noise, self.__rng) for name in self.names}

    @verb
    def measure(self, schema: Schema, *, cost: ApproxDP) -> dict[str, Measurement]:
        """The counts of each column of a public schema, with noise."""
        if schema.file.strict:
            raise InputError(
                "here a schema must not be strict: else one row could stop a run that was paid."
            )
        marginals = [(name,) for name in self._check_names(schema.names)]
        noise = self._noise(cost, len(marginals))
        self._charge(cost)
        exact = count_marginals(self.__table.coded(schema), marginals)
        return {name: noisy((name,), exact[(name,)], noise, self.__rng) for name in schema.names}

    @verb
    def texts(self, names: Sequence[str], *, cost: ApproxDP) -> dict[str, Mapping[str, int]]:
        """For each column, texts that enough rows share, and about how many.

        In the order of the texts, which reveals nothing.
        """
        names = self._check_names(names)
        spec = thresholding_of(cost, self.protect, columns=len(names))
        self._charge(cost)
        exact = self.__table.texts(names)
        return {name: self._shown(exact[name], spec) for name in names}

    def _shown(self, exact: TextCounts, spec: Thresholding) -> Mapping[str, int]:
        texts = sorted(exact)
        counts = spec.show([exact[text] for text in texts], rng=self.__rng)
        return {text: int(n) for text, n in zip(texts, counts, strict=True) if n != NOT_SHOWN}

    def _check_names(self, names: Sequence[str]) -> Marginal:
        if not names or set(names) - set(self.names):
            raise InputError("one or more of the table's columns are needed")
        return tuple(names)

    def _noise(self, cost: ApproxDP, tables: int) -> Noise:
        return noise_of(ZCDP(zcdp_budget(cost).rho / tables), False, self.protect)

    def _paid_before(self) -> bool:
        """Whether this very request was paid by a run that was stopped."""
        if self.__request is None:
            return False
        return any(entry.request == self.__request for entry in self.__ledger.entries())

    def _charge(self, cost: ApproxDP) -> None:
        """Take a cost off the budget, all of which is paid now if it was not.

        Raises:
            BudgetError: Before any look.
        """
        epsilon, delta = self.__used or (Fraction(0), Fraction(0))
        used = epsilon + cost.epsilon, delta + cost.delta
        if used[0] > self.budget.epsilon or used[1] > self.budget.delta:
            raise BudgetError(f"this asks for {cost}, more than is left of {self.budget}.")
        if self.__used is None:
            self.__journal.spend(
                self.budget, label=LABEL, protect=self.protect, request=self.__request
            )
        self.__used = used


def thresholding_of(cost: ApproxDP, protect: Protection, *, columns: int) -> Thresholding:
    """The thresholds that a cost buys for the texts of some columns, in equal parts."""
    each = ApproxDP(cost.epsilon / columns, cost.delta / columns)
    return Thresholding.for_cost(each, sensitivity.histogram_l1(protect))
