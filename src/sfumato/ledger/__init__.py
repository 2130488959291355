"""The durable ledger: what was paid for each data set, charged before the data are looked at.

Reading order: ledger (the record and its verbs, and what an error says of a charge), entries (what
is written and what is admitted), hash_chain (how it is checked), storage (where it is, and the
anchors that remember a lost file), stores (SQLite and PostgreSQL).
"""

from sfumato.ledger.entries import Entry, Head
from sfumato.ledger.hash_chain import Verified, verify_export
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.storage import default_path

__all__ = ["Entry", "Head", "Ledger", "Verified", "default_path", "verify_export"]
