"""What a run starts with: its ledger, and a table of which each protected unit has its share."""

import logging
from dataclasses import replace

from sfumato.counting.ratings import Ratings
from sfumato.counting.table import Table
from sfumato.errors import InputError
from sfumato.gate.journal import Journal
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.protection import OneRow, Protection
from sfumato.randomness import Rng
from sfumato.schema.schema import Schema

log = logging.getLogger(__name__)


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


def journal_for(ledger: Ledger, journal: Journal | None, *, rng: Rng) -> Journal:
    """The journal that is given, if it is of this ledger; else a run that can't be resumed."""
    if journal is None:
        return Journal.unkept(ledger, run=rng.token())
    if journal.ledger is not ledger:
        raise InputError(
            "the journal is of another ledger than the one that is charged: open both for one "
            "run. A simulation has none."
        )
    return journal


def named(protect: Protection, table: Table | Ratings) -> Protection:
    """The same protection with the person's column named, which ratings know."""
    if isinstance(protect, OneRow) or protect.column is not None:
        return protect
    if not isinstance(table, Ratings):
        raise InputError("protecting a person needs the column that names the person")
    return replace(protect, column=table.person)


def bounded(table: Table | Ratings, protect: Protection) -> Table | Ratings:
    """The table with at most as many rows of each person as are protected."""
    if isinstance(protect, OneRow) or protect.column is None:
        if table.max_rows is not None:
            raise InputError(
                "the rows were bounded by person already: one row more can push another one out, "
                "so a single row is not what changes. Protect one person, or open the table anew."
            )
        return table
    return table.bounded(protect.column, protect.max_rows)


def tell_misfits(table: Table | Ratings) -> None:
    """Say to whoever holds the table what did not fit, before anything is spent.

    In the log, which is theirs, and nowhere else: how many is exact, and never published.
    """
    for said in table.misfits():
        log.warning("Internal, not to be passed on: %s: %s", table.describe(), said)
