"""A ledger against a model of it: never more spent than the cap, nothing forgotten."""

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sfumato.errors import BudgetError, InputError
from sfumato.ledger import Ledger
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    ApproxZCDP,
    Cap,
    OneRow,
    Price,
    PureDP,
    Totals,
    epsilon_from_zcdp,
    scaled,
)

amounts = st.sampled_from([Fraction(n, 100) for n in (1, 3, 10, 25, 60)])
costs = st.one_of(
    amounts.map(PureDP),
    amounts.map(lambda amount: ZCDP(amount / 10)),
    amounts.map(lambda amount: ApproxDP(amount, amount / 10**6)),
    amounts.map(lambda amount: ApproxZCDP(amount / 20, amount / 10**6)),
)
caps: st.SearchStrategy[Cap] = st.one_of(
    st.sampled_from([PureDP("0.5"), PureDP(2), ZCDP("0.05"), ApproxDP(1, "1e-6")]),
    st.just(ApproxDP("0.6", "6e-7")),
)
relations = st.sampled_from([OneRow(), OneRow(neighbors="replace")])


def fits(totals: Totals, cap: Cap | None) -> bool:
    """The cap in plain words, apart from the source."""
    match cap:
        case None:
            return True
        case PureDP():
            return not totals.delta and not totals.has_zcdp and totals.pure_epsilon <= cap.epsilon
        case ZCDP():
            return not totals.delta and totals.rho <= cap.rho
        case ApproxDP():
            aside = max(totals.first_delta, cap.delta / 2) if totals.first_delta else Fraction(0)
            if aside > cap.delta or totals.delta > aside:
                return False
            if not totals.has_zcdp and totals.pure_epsilon <= cap.epsilon:
                return True
            rest = cap.delta - aside
            return rest > 0 and epsilon_from_zcdp(totals.rho, rest) <= cap.epsilon


def doubled(cost: Price) -> Price:
    match cost:
        case PureDP():
            return PureDP(cost.epsilon * 2)
        case ZCDP():
            return ZCDP(cost.rho * 4)
        case _:
            return scaled(cost, 2)


class LedgerMachine(RuleBasedStateMachine):
    steps = 0
    """Of all machines of a kind together."""

    def opened(self, cap: Cap | None) -> Ledger:
        """A ledger without a spend; another kind of machine has another place for it."""
        self.folder = TemporaryDirectory()
        return Ledger.open(Path(self.folder.name) / "file", dataset="adult", cap=cap)

    def forget(self) -> None:
        self.folder.cleanup()

    @initialize(cap=st.one_of(st.none(), caps))
    def begin(self, cap: Cap | None) -> None:
        self.ledger = self.opened(cap)
        self.cap = cap
        self.totals = Totals()
        self.relation: OneRow | None = None
        self.paid: dict[str, tuple[Price, OneRow]] = {}
        self.kept: dict[str, bytes] = {}

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
            self.forget()

    @rule(cost=costs, protect=relations, request=st.one_of(st.none(), st.sampled_from("abcdef")))
    def spend(self, cost: Price, protect: OneRow, request: str | None) -> None:
        try:
            self.ledger.spend(cost, label="x", protect=protect, request=request)
            admitted = True
        except BudgetError:
            admitted = False
        except InputError:
            assert request in self.paid
            assert self.paid[request] != (cost, protect)
            return
        if request in self.paid:
            assert self.paid[request] == (cost, protect)
            return
        kept = self.relation or protect
        count = 2 if (protect.neighbors, kept.neighbors) == ("add-remove", "replace") else 1
        if (protect.neighbors, kept.neighbors) == ("replace", "add-remove"):
            assert not admitted
            return
        if count == 2 and isinstance(cost, ApproxZCDP):
            assert not admitted  # nothing is known of two rows at once
            return
        after = self.totals.plus(doubled(cost) if count == 2 else cost)
        assert admitted == fits(after, self.cap)
        if admitted:
            self.totals, self.relation = after, kept
            if request is not None:
                self.paid[request] = (cost, protect)

    @rule(request=st.sampled_from("abcdef"), payload=st.binary(max_size=3))
    def journal(self, request: str, payload: bytes) -> None:
        try:
            answer = self.ledger.journal(request, payload)
        except InputError:
            assert request not in self.paid
            return
        assert answer == self.kept.setdefault(request, payload)

    @rule(cap=caps)
    def change_cap(self, cap: Cap) -> None:
        self.ledger.set_cap(cap)
        self.cap = cap

    @rule()
    def look(self) -> None:
        self.ledger.look("x")

    @rule()
    def verify(self) -> None:
        assert self.ledger.verify().head == self.ledger.head

    @invariant()
    def the_ledger_knows_what_was_spent(self) -> None:
        type(self).steps += 1
        if hasattr(self, "ledger"):
            assert (self.ledger.spent, self.ledger.cap) == (self.totals, self.cap)


TestLedgerAgainstModel = LedgerMachine.TestCase
TestLedgerAgainstModel.settings = settings(
    derandomize=True,
    deadline=None,
    max_examples=20,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow],
)
