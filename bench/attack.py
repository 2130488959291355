"""Attacks on releases by one command: each on something broken, which it breaks, and on ours.

SFUMATO_DATA=FOLDER OPENBLAS_NUM_THREADS=1 python bench/attack.py [--only NAME ...] [--quick]
    [--json FILE]

Prints a line for each figure as it is found. The exit code is 1 if one is not as it should be: an
attack that does not break what is broken, or one that breaks ours.
"""

import argparse
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Final

from attacks.figures import CONFIDENCE, Figure
from recording import machine, versions

ATTACKS: Final = {
    "membership": "is this person in a published table?",
    "membership.of_models": "the same, of the methods that fit graphical models",
    "singling": "singling out, linking, inferring (Anonymeter)",
    "reconstruction": "secrets from many releases, until the ledger refuses",
    "averaging": "the same question again and again",
    "replay": "seeds known, guessed, states recovered",
    "floats": "low bits of noise, thresholds of responses",
    "timing": "CPU time against noise and values",
    "leaks_local": "published local methods beyond their claim",
    "leaks_central": "published central methods beyond their claim",
    "leaks_pncf": "PNCF, in small",
}


def main() -> int:
    asked = _options()
    unknown = sorted(set(asked.only or ()) - set(ATTACKS))
    if unknown:
        print(f"no attack {', '.join(unknown)}; there are {', '.join(ATTACKS)}", file=sys.stderr)
        return 2
    found: dict[str, list[Figure]] = {}
    for name in asked.only or ATTACKS:
        start = time.process_time()
        module, _, function = name.partition(".")
        attack = getattr(import_module(f"attacks.{module}"), function or "figures")
        part = attack(quick=asked.quick)
        print(f"== {name}: {ATTACKS[name]}  ({time.process_time() - start:.1f} CPU-s)", flush=True)
        print("\n".join(map(line, part)), flush=True)
        found[name] = part
        if asked.json:
            keep({name: part}, Path(asked.json), quick=asked.quick)
    figures = [figure for part in found.values() for figure in part]
    wrong = sum(not figure.as_meant for figure in figures)
    print(f"{len(figures)} figures, not as they should be: {wrong}")
    return 1 if wrong else 0


def line(figure: Figure) -> str:
    allowed = "no claim" if figure.allowed is None else f"allowed {figure.allowed:.3f}"
    whose = "ours  " if figure.ours else "broken"
    note = f"  ({figure.note})" if figure.note else ""
    return (
        f"{'  ' if figure.as_meant else '! '}{whose} {figure.attack}: {figure.target}: "
        f"{figure.measure} {figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}], {allowed}: "
        f"{figure.verdict}{note}"
    )


def keep(found: dict[str, list[Figure]], path: Path, *, quick: bool) -> None:
    """Write figures by attack; what the file has of other attacks at the same size stays."""
    stored = json.loads(path.read_text()) if path.exists() else {}
    parts = stored["attacks"] if stored.get("quick") == quick else {}
    parts |= {name: [figure.to_dict() for figure in part] for name, part in found.items()}
    about = {"quick": quick, "confidence": CONFIDENCE, "machine": machine(), "versions": versions()}
    rows = {name: parts[name] for name in ATTACKS if name in parts}
    path.write_text(json.dumps(about | {"attacks": rows}, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"of {', '.join(ATTACKS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, in about a minute")
    parser.add_argument("--json", metavar="FILE", help="kept there, by attack")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
