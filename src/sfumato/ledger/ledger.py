"""The durable ledger: every cost is recorded before the data are looked at.

A ledger belongs to a declared dataset name; one file may hold many. It is append-only, linked by
hashes, exact, and gives no refunds. What counts is the order of entries, never the clock; an entry
has the day on which the ledger was opened, so nobody learns how long a look at the data took.
"""

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeVar

from sfumato.errors import InputError, SfumatoError
from sfumato.ledger import entries
from sfumato.ledger.entries import (
    FORMAT,
    Body,
    Entry,
    Head,
    Row,
    State,
    check_first_cap,
    corrupt,
    entry_of,
    genesis,
    how_to_cap,
    linked,
    replay,
    state_from_json,
    state_to_json,
)
from sfumato.ledger.hash_chain import (
    Verified,
    check_hash,
    check_outcome,
    check_outcomes,
    checked_links,
    genesis_id,
    rolled_back,
    same_request,
    verify_rows,
)
from sfumato.ledger.storage import anchors_directory, opened, read_anchor, write_anchor
from sfumato.ledger.stores import SqliteStore, Store, Transaction
from sfumato.privacy import composition
from sfumato.privacy.composition import Cap, Totals
from sfumato.privacy.guarantees import MAX_EPSILON, ZCDP, ApproxDP, Cost, Guarantee, Price, PureDP
from sfumato.privacy.sensitivity import Protection
from sfumato.randomness import secure_rng


class Ledger:
    """The budget of one dataset. Make one with ``Ledger.open`` or ``Ledger.in_memory``.

    Safe to share between threads and processes, and across a fork.
    """

    def __init__(
        self,
        store: Store,
        *,
        dataset: str,
        anchors: Path | None,
        path: Path | str | None = None,
        simulated: bool = False,
    ) -> None:
        self._store = store
        self._simulated = simulated
        self._path = path
        self._dataset = entries.name(dataset=dataset)
        self._anchors = anchors
        self._day = entries.today()  # once, before any look: entries tell no duration
        with store.reading() as view:
            view.check_structure()
            rows = checked_links(view.rows())
            self._first = next(rows)
            self._id = genesis_id(self._first)
            for _ in rows:
                pass
        with self._reading():
            pass  # compares the anchor

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        dataset: str,
        create: bool = True,
        cap: Cap | None = None,
    ) -> "Ledger":
        """The ledger of a dataset in a file, by default the one at ``default_path()``.

        Args:
            path: The file; None for the default one, whose directory is made if missing; or
                postgresql://user@host/database, without a password (PGPASSWORD, ~/.pgpass).
            dataset: The declared name that the budget belongs to.
            create: Whether a missing one is made; an existing one is never replaced.
            cap: Sets the dataset's cap if it has none; a different one is refused here, because
                changing a cap is an act of its own (``set_cap``).

        Raises:
            BudgetError: If more than the first cap was already spent; then no cap was set.
            StorageError: If the file can't be used, or was lost: an anchor remembers it.
            LedgerCorruptError: If it can't be trusted; the message names the check.
        """
        entries.name(dataset=dataset)
        store, where = opened(path, create=create)
        ledger = cls(store, dataset=dataset, anchors=anchors_directory(), path=where)
        if cap is not None:
            ledger._set_first_cap(cap)
        return ledger

    @classmethod
    def in_memory(
        cls, *, dataset: str, cap: Cap | None = None, simulated: bool = False
    ) -> "Ledger":
        """A ledger that is gone with the process, for simulation and tests. Without anchor.

        Args:
            dataset: The declared name that the budget belongs to.
            cap: Sets the dataset's cap.
            simulated: Whether it belongs to a simulation, whose costs nobody pays.
        """
        store = SqliteStore.in_memory(genesis(secure_rng().token(), entries.today()))
        ledger = cls(store, dataset=dataset, anchors=None, simulated=simulated)
        if cap is not None:
            ledger._set_first_cap(cap)
        return ledger

    def spend(
        self, cost: Price, *, label: str, protect: Protection, request: str | None = None
    ) -> Entry:
        """Record a cost, durably, before this returns. Look at the data only afterwards.

        The first spend fixes whom the dataset protects. A request id that was paid before, with
        the same cost, label and protection, costs nothing again and gives the old entry.

        Raises:
            BudgetError: If the cost does not fit; then nothing was changed.
            InputError: If the request id was paid with something else.
        """
        request = None if request is None else entries.name(request=request)
        with self._writing() as view:
            if request is not None and (paid := view.with_request(self._dataset, request)):
                charge_begins()  # not now, but what follows uses what was paid
                return same_request(paid, cost, label, protect)
            state = self._state(view)
            for body in self._spend_bodies(state, cost, label, protect, request):
                row, state = self._next(view, state, body)
                if body["event"] == "spend" and not self._simulated:
                    charge_begins()
                view.append(row)
            return entry_of(row)

    def precheck(self, *costs: Price, label: str, protect: Protection) -> None:
        """Raise what ``spend`` would raise for these costs one after another; spend nothing."""
        with self._reading() as view:
            state = self._state(view)
        for cost in costs:
            for body in self._spend_bodies(state, cost, label, protect, None):
                state = replay(state, body)

    def set_cap(self, cap: Cap, *, label: str = "new cap") -> Entry:
        """Set, raise or lower the cap, as an entry that everyone can see.

        A cap below what is already spent is allowed: nothing can be unspent, so it refuses every
        further spend. A raised cap weakens the promise for all earlier releases of the dataset.
        """
        return self._note(entries.cap_body(self._dataset, cap, label))

    def look(self, label: str) -> Entry:
        """Note that somebody compared something with the true data, internally, at cost 0."""
        return self._note(entries.note("look", self._dataset, label))

    def simulation(self, label: str) -> Entry:
        """Note a run with seeded noise, which may not be published, at cost 0."""
        return self._note(entries.note("simulation", self._dataset, label))

    def journal(self, request: str, payload: bytes, *, step: int = 0) -> bytes:
        """Store the outcome of a paid request; returns the one that was stored first.

        A paid request without an outcome may be drawn again: nothing left the process. Release
        only what this returns. A request that paid for many steps has an outcome for each. Its
        hash is an entry of its own: the head moves, so a copy of the ledger from before is an
        older one, and can't draw a second time.
        """
        if not isinstance(payload, bytes):
            raise InputError(f"an outcome must be bytes, got {type(payload).__name__}")
        request, key = entries.name(request=request), entries.outcome_key(request, step)
        stored = self.outcome(request, step=step)
        if stored is not None:
            return stored
        with self._writing() as view:
            if view.with_request(self._dataset, request) is None:
                raise InputError(f"request {request!r} was never paid; spend comes first")
            stored = self._outcome(view, key)  # another process may have been faster
            if stored is None:
                view.keep_outcome(self._dataset, key, payload)
                body = entries.outcome_body(self._dataset, key, payload)
                self._append(view, self._state(view), body)
        return payload if stored is None else stored

    def outcome(self, request: str, *, step: int = 0) -> bytes | None:
        """What was stored for a request, or for one of its steps, or None."""
        with self._reading() as view:
            return self._outcome(view, entries.outcome_key(request, step))

    @property
    def dataset(self) -> str:
        """The name this budget belongs to."""
        return self._dataset

    @property
    def path(self) -> Path | str | None:
        """Where it is: a file, an address of a database without a password, or None: in memory."""
        return self._path

    @property
    def ledger_id(self) -> str:
        """The random name of the whole ledger, which anchors go by."""
        return self._id

    @property
    def day(self) -> str:
        """The day in UTC on which this ledger was opened: the time of every entry it writes."""
        return self._day

    @property
    def spent(self) -> Totals:
        """The exact sums of everything this dataset paid."""
        with self._reading() as view:
            return self._state(view).spent

    @property
    def cap(self) -> Cap | None:
        """The cap in force; without one nothing is refused."""
        with self._reading() as view:
            return self._state(view).cap

    @property
    def largest_cap(self) -> Cap | None:
        """The largest cap that was ever in force, in each of its numbers: what releases promise.

        Raising a cap, also in view of results, weakens the promise for all of them, and lowering
        it again does not mend it (``composition.within``).
        """
        caps = [entry.after.cap for entry in self.entries() if entry.after.cap is not None]
        return composition.joined(caps) if caps else None

    @property
    def protect(self) -> Protection | None:
        """Whom the dataset protects, from its first spend on."""
        with self._reading() as view:
            return self._state(view).protect

    @property
    def head(self) -> Head:
        """Position and hash of the last entry: to be printed in every release."""
        with self._reading() as view:
            return _last(view).head

    def composed(self, delta: Fraction | None = None) -> Guarantee | None:
        """What all spends promise together; at the cap's delta if none is given."""
        with self._reading() as view:
            state = self._state(view)
        if delta is None and isinstance(state.cap, ApproxDP):
            delta = state.cap.delta
        return composition.composed(state.spent, delta)

    def left(self, kind: type[PureDP] | type[ZCDP]) -> Cost | None:
        """The largest further cost of a kind; None if nothing is left."""
        with self._reading() as view:
            state = self._state(view)
        if state.cap is None:
            return kind(MAX_EPSILON)
        return composition.left(state.spent, state.cap, kind)

    def entries(self) -> tuple[Entry, ...]:
        """Everything that happened to this dataset, in order."""
        with self._reading() as view:
            rows = [row for row in checked_links(view.rows()) if row.seq]
        entries = (entry_of(row) for row in rows)
        return tuple(entry for entry in entries if entry.dataset == self._dataset)

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets in this ledger."""
        with self._reading() as view:
            bodies = [json.loads(row.body) for row in view.rows() if row.seq]
        return tuple(dict.fromkeys(body["dataset"] for body in bodies))

    def verify(self, anchors: Iterable[Head] = ()) -> Verified:
        """Recompute everything and compare with the stored anchor and the given heads.

        Args:
            anchors: Heads from elsewhere, for example of an earlier ``release.json``.

        Raises:
            LedgerCorruptError: Naming the first check that failed.
        """
        own = self._anchor()
        with self._store.reading() as view:
            view.check_structure()
            verified = verify_rows(view.rows(), [*anchors, *([own] if own else [])])
            check_outcomes(view.rows(), view.outcomes())
            return verified

    def export(self) -> dict[str, Any]:
        """All entries of all datasets with their hashes; ``verify_export`` checks it alone."""
        with self._reading() as view:
            rows = list(checked_links(view.rows()))
        entries = [
            {"seq": r.seq, "previous": r.previous, "hash": r.hash, "body": json.loads(r.body)}
            for r in rows
        ]
        return {"format": FORMAT, "ledger": self._id, "entries": entries}

    def close(self) -> None:
        """Release the file. Using the ledger again opens it again."""
        self._store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger(dataset={self._dataset!r}, spent: {self.spent}, cap: {self.cap})"

    # Transactions

    @contextmanager
    def _reading(self) -> Iterator[Transaction]:
        anchor = self._anchor()  # first: a later one may be newer than the view
        with self._store.reading() as view:
            self._check_identity(view, anchor)
            yield view

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        with self._store.writing() as view:
            anchor = self._anchor()
            self._check_identity(view, anchor)
            yield view
            moved = _last(view).head != anchor
        if self._anchors and moved:
            with self._store.writing() as view:  # the lock keeps anchors from overtaking
                write_anchor(self._anchors, self._id, _last(view).head, self._path)
                self._check_identity(view, self._anchor())  # a copy may have overtaken this one

    def _anchor(self) -> Head | None:
        return read_anchor(self._anchors, self._id) if self._anchors else None

    def _check_identity(self, view: Transaction, anchor: Head | None) -> None:
        if view.at(0) != self._first:
            raise corrupt("first entry", "another ledger took this one's place")
        last = _last(view)
        check_hash(last)
        if anchor is None:
            return
        anchored = view.at(anchor.seq)
        if anchored is None:
            raise rolled_back(anchor, last.head)
        if anchored.hash != anchor.hash:
            raise corrupt("anchor", f"entry {anchor.seq} has another hash than the anchor kept")

    def _state(self, view: Transaction) -> State:
        row = view.latest(self._dataset)
        if row is None:
            return State()
        check_hash(row)
        return state_from_json(json.loads(row.body)["after"])

    def _outcome(self, view: Transaction, key: str) -> bytes | None:
        payload, row = view.outcome(self._dataset, key), view.with_request(self._dataset, key)
        if payload is None and row is None:
            return None
        if row is not None:
            check_hash(row)
        check_outcome(key, payload, json.loads(row.body)["sha256"] if row else None)
        return payload

    def _spend_bodies(
        self, state: State, cost: Price, label: str, protect: Protection, request: str | None
    ) -> list[Body]:
        """The entries of a spend; the first spend opens the dataset."""
        name = self._dataset
        spend = entries.spend_body(state, name, cost, text=label, protect=protect, request=request)
        return [spend] if state.protect else [entries.open_body(name, protect), spend]

    def _next(self, view: Transaction, before: State, body: Body) -> tuple[Row, State]:
        """The row of an entry, admitted by the rules, and the state after it."""
        after = replay(before, body)
        whole = {**body, "time": self._day, "after": state_to_json(after)}
        return linked(whole, _last(view).head), after

    def _append(self, view: Transaction, before: State, body: Body) -> Entry:
        row, _ = self._next(view, before, body)
        view.append(row)
        return entry_of(row)

    def _note(self, body: Body) -> Entry:
        with self._writing() as view:
            return self._append(view, self._state(view), body)

    def _set_first_cap(self, cap: Cap) -> None:
        body = entries.cap_body(self._dataset, cap, "first cap")
        with self._writing() as view:
            state = self._state(view)
            if state.cap is not None and state.cap != cap:
                raise InputError(
                    f"dataset {self._dataset!r} has the cap {state.cap}, not {cap}. Leave the cap "
                    f"out, or change it: {how_to_cap(self._dataset)}. A plain number has delta "
                    "1e-6; a pure cap is EPSILON,0"
                )
            if state.cap is None:
                check_first_cap(state, cap, self._dataset)
                self._append(view, state, body)


def _last(view: Transaction) -> Row:
    row = view.head()
    if row is None:
        raise corrupt("first entry", "there is none")
    return row


NOTHING_SPENT: Final = "Nothing was spent."
NOTHING_MORE_SPENT: Final = "Nothing more was spent."
"""Where the message itself speaks of an earlier charge."""
E = TypeVar("E", bound=SfumatoError)


class _Charges:
    """The number of charges that this process has begun.

    A charge counts from just before its entry is written: an error in the middle of writing never
    says that nothing was spent. Using a request that was paid before counts as well. Charges are
    counted for the whole process, so one of another thread keeps the sentence away too; one of
    another process is not seen. A simulation's ledger charges nobody and is not counted.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begun = 0

    def begin(self) -> None:
        with self._lock:
            self.begun += 1


_charges = _Charges()


def charge_begins() -> None:
    """Count a charge that the rules admitted and that is written next."""
    _charges.begin()


def after_earlier_charge(error: E) -> E:
    """The error, of which a boundary says that nothing more was spent, if that is so."""
    error.outcome = NOTHING_MORE_SPENT
    return error


@contextmanager
def spending_boundary() -> Iterator[None]:
    """Let errors that leave the block say that nothing was spent, if no charge was begun in it.

    Boundaries may be nested: the outermost one decides. Where an error has notes, these say what
    was charged, also before a run was resumed.

    >>> from sfumato.errors import InputError
    >>> with spending_boundary():
    ...     raise InputError("rows must be > 0, got 0")
    Traceback (most recent call last):
    sfumato.errors.InputError: rows must be > 0, got 0. Nothing was spent.
    """
    before = _charges.begun
    try:
        yield
    except SfumatoError as error:
        if error.outcome in (None, NOTHING_SPENT, NOTHING_MORE_SPENT):
            notes = getattr(error, "__notes__", None)
            if notes or _charges.begun != before:
                error.outcome = None
            elif error.outcome is None:
                error.outcome = NOTHING_SPENT
        raise
