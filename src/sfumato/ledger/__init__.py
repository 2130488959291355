"""The durable ledger: what was paid for each data set, charged before the data are looked at.

Reading order: ledger (the record and its verbs), rules (what is admitted), entries and bodies (what
is written), hash_chain (how it is checked), anchors (what remembers a lost file), the stores.
"""

from sfumato.ledger.anchors import default_path
from sfumato.ledger.entries import Entry, Head
from sfumato.ledger.hash_chain import Verified, verify_export
from sfumato.ledger.ledger import Ledger

__all__ = ["Entry", "Head", "Ledger", "Verified", "default_path", "verify_export"]
