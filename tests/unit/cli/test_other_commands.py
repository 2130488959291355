"""``demo``, ``evaluate`` and ``ledger``: what they print, write, and refuse."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from sfumato.privacy import Ledger
from sfumato.privacy.ledger_export import verify_export
