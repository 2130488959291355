"""Run as a process: take units of a ledger until none is left, and say which.

``taking.py ADDRESS GO`` begins when the file GO is there.
"""

import json
import sys
import time
from pathlib import Path

from sfumato.errors import BudgetError
from sfumato.privacy import Ledger, OneRow, PureDP

UNITS = 1_000
UNIT, CAP = PureDP("0.01"), PureDP(10)


def take(address: str, go: str) -> None:
    print("ready", flush=True)
    while not Path(go).exists():
        time.sleep(0.001)
    taken: list[int] = []
    with Ledger.open(address, dataset="race", cap=CAP) as ledger:
        try:
            while True:
                taken.append(ledger.spend(UNIT, label="unit", protect=OneRow()).seq)
        except BudgetError:
            print(json.dumps(taken))


if __name__ == "__main__":
    take(*sys.argv[1:])
