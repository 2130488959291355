"""The gate of a table of which nothing is declared: charge, look, add noise, store, return.

Its few verbs find out, privately, what a schema has to say: how many rows there are, which shapes
the values of each column have, which texts many rows share. Each is charged before it looks, once
for a data set, and what it showed is kept in the ledger: asked again, it costs and draws nothing.
"""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from sfumato.counting.table import TextCounts, TextTable
from sfumato.durable import SingleProcess
from sfumato.errors import InputError, TableError
from sfumato.gate.budget import Journal
from sfumato.gate.requests import noise_of, noisy, verb
from sfumato.ledger.ledger import Ledger, spending_boundary
from sfumato.noise import DiscreteLaplace
from sfumato.noise.thresholding import NOT_SHOWN, Thresholding
from sfumato.privacy import sensitivity
from sfumato.privacy.guarantees import ZCDP, ApproxDP, ApproxZCDP, Price, PureDP
from sfumato.privacy.sensitivity import OnePerson, Protection
from sfumato.randomness import Rng
from sfumato.schema.measurement import Measurement
from sfumato.schema.schema import Marginal

LABELS: Final[Mapping[str, str]] = {
    "rows": "infer a schema: number of rows",
    "kinds": "infer a schema: kinds of columns",
    "texts": "infer a schema: texts",
}
"""By what is asked, what the ledger says of the charge."""

T = TypeVar("T", bound=Price)


class Scout(SingleProcess):
    """Holds a table without a schema, and answers only through noise.

    Formal guarantees: each verb keeps its cost, whatever the earlier ones returned, for the
    neighbors that ``protect`` names; the ledger adds the costs up (``privacy.composition``). Names
    of columns are taken as public. The guarantee needs ``rng`` to be secure.
    """

    __slots__ = (
        "__journal", "__ledger", "__rng", "__run", "__table",
        "names", "private", "protect",
    )  # fmt: skip

    @spending_boundary()
    def __init__(
        self,
        table: TextTable,
        *,
        protect: Protection,
        costs: Sequence[Price],
        ledger: Ledger,
        rng: Rng,
        run: str | None = None,
    ) -> None:
        """Check everything that can be checked before a charge, the file's format included.

        Args:
            table: The rows, as texts.
            protect: Whom to protect.
            costs: What the verbs will cost at most: refused here, unread, if it does not fit.
            ledger: Who is charged.
            rng: Where the noise comes from; with a simulation generator nothing is charged.
            run: The name under which it is charged, and asked again for nothing.
        """
        super().__init__()
        self.protect = protect
        self.private = rng.secure
        self.__rng = rng
        self.__run = run or rng.token()
        self.__ledger = (
            ledger if rng.secure else Ledger.in_memory(dataset=ledger.dataset, simulated=True)
        )
        self.__journal = Journal.unkept(self.__ledger, run=self.__run)
        self.__ledger.precheck(*costs, label="infer a schema", protect=protect)
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

    @property
    def charged(self) -> tuple[Price, ...]:
        """What the verbs were charged, in this process or before."""
        own = (e for e in self.__ledger.entries() if (e.request or "").startswith(f"{self.__run}/"))
        return tuple(entry.cost for entry in own if entry.cost is not None)

    @verb
    def rows(self, *, cost: PureDP | ApproxDP) -> int:
        """About how many rows there are; exactly, and free, where that number is public.

        After a refusal more epsilon buys a count with less noise, at its whole price; the delta
        that comes with the first cost is not paid again.
        """
        moved = sensitivity.total(self.protect)
        if not moved:
            return self._count()
        step, cost = self._rows_in_force(cost)
        noise = DiscreteLaplace.for_cost(PureDP(cost.epsilon), moved)
        self._charge(step, cost, label=LABELS["rows"])
        return int(
            self._kept(step, lambda: self._count() + int(noise.sample(1, rng=self.__rng)[0]))
        )

    @verb
    def shapes(self, *, cost: ZCDP | ApproxZCDP) -> dict[str, Measurement]:
        """For each column, about how many rows are of each shape (``schema.text_shapes``)."""
        cost = self._in_force("kinds", cost)
        noise = noise_of(ZCDP(cost.rho / len(self.names)), False, self.protect)
        self._charge("kinds", cost)

        def draw() -> dict[str, list[int]]:
            exact = self.__table.shapes(self.names)
            drawn = {name: noisy((name,), exact[name], noise, self.__rng) for name in self.names}
            return {name: one.values.astype(int).tolist() for name, one in drawn.items()}

        counts = self._kept("kinds", draw)
        sigma = noise.sigma_counts
        return {
            name: Measurement(
                target=(name,), values=np.array(counts[name], float), sigma_counts=sigma
            )
            for name in self.names
        }

    @verb
    def texts(self, names: Sequence[str], *, cost: ApproxZCDP) -> dict[str, Mapping[str, int]]:
        """For each column, texts that enough rows share, and about how many.

        In the order of the texts, which reveals nothing.
        """
        if not names or set(names) - set(self.names):
            raise InputError("one or more of the table's columns are needed")
        cost = self._in_force("texts", cost)
        spec = Thresholding.for_cost(cost, self.protect, columns=len(names))
        self._charge("texts", cost)

        def draw() -> dict[str, Mapping[str, int]]:
            exact = self.__table.texts(tuple(names))
            return {name: self._shown(exact[name], spec) for name in names}

        shown = self._kept("texts", draw)
        if set(shown) != set(names):
            raise InputError("texts were shown of other columns before: ask for the same ones.")
        return {name: shown[name] for name in names}

    def _count(self) -> int:
        """The exact number of rows: each has one shape."""
        name = self.names[0]
        return int(self.__table.shapes((name,))[name].sum())

    def _shown(self, exact: TextCounts, spec: Thresholding) -> Mapping[str, int]:
        texts = sorted(exact)
        counts = spec.show([exact[text] for text in texts], rng=self.__rng)
        return {text: int(n) for text, n in zip(texts, counts, strict=True) if n != NOT_SHOWN}

    def _paid(self, step: str) -> Price | None:
        request = f"{self.__run}/{step}"
        paid = (entry.cost for entry in self.__ledger.entries() if entry.request == request)
        return next(paid, None)

    def _in_force(self, step: str, cost: T) -> T:
        """What a run that was stopped, or refused, has paid for this step; else the cost."""
        paid = self._paid(step)
        return paid if isinstance(paid, type(cost)) else cost

    def _rows_in_force(self, cost: PureDP | ApproxDP) -> tuple[str, PureDP | ApproxDP]:
        """The last count that was paid, or a new one where that had more noise than is asked for.

        By costs alone; once kinds are paid, the table was large enough.
        """
        step, number, last = "rows", 1, None
        while isinstance(paid := self._paid(step), PureDP | ApproxDP):
            last, number = (step, paid), number + 1
            step = f"rows {number}"
        if last is None:
            return step, cost
        enough = last[1].epsilon >= cost.epsilon or self._paid("kinds") is not None
        return last if enough else (step, PureDP(cost.epsilon))

    def _charge(self, step: str, cost: Price, *, label: str | None = None) -> None:
        self.__journal.spend(
            cost,
            label=label or LABELS[step],
            protect=self.protect,
            request=f"{self.__run}/{step}",
        )

    def _kept(self, step: str, draw: Callable[[], Any]) -> Any:
        """What was drawn and stored first for a step that was paid."""
        request = f"{self.__run}/{step}"
        stored = self.__ledger.outcome(request)
        if stored is None:
            mine = zlib.compress(json.dumps(draw()).encode(), level=6)
            stored = self.__ledger.journal(request, mine)
        return json.loads(zlib.decompress(stored))


def text_threshold(cost: ApproxZCDP, protect: Protection, *, columns: int) -> int:
    """The number of rows that a text must be shared by, with noise, to be shown. No look."""
    return Thresholding.for_cost(cost, protect, columns=columns).reach + 1
