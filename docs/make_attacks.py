"""Writes docs/attacks.md from bench/results/attacks.json: a table for each attack.

A test runs this and fails when the page on disk is not what it writes.
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "attacks.md"
STORED = ROOT / "bench" / "results" / "attacks.json"
HEAD = """# Attacks on releases

Written by `python docs/make_attacks.py` from what this command found; do not edit.

```text
SFUMATO_DATA=... OPENBLAS_NUM_THREADS=1 python bench/attack.py --json bench/results/attacks.json
```

Every attack is run on something broken, which it must break, and on ours, which must stand. Broken
is what papers and reports published, written again as they describe it, or a mistake that was
planted. A claim is broken only where the lower limit of the figure is above what the claim allows;
the limits are Clopper-Pearson's, wrong once in 1,000, unless said otherwise. An attack that fails
proves nothing about a better one: the bound of the guarantee does, and the [audits](audit.md) try
to refute that. Where ours comes near to what is allowed, the attack is nearly as good as any can
be.

Ours is what `publish`, a device or the curator's gate gives, everything that is published with it
included. Where nothing is said about its generator, it is seeded, so that a figure can be had
again.

"""
WORDS = {
    "membership": (
        "Is this person in?",
        "The attacker knows everybody else and what the person's row would be, a row whose values "
        "nobody else has. Releases of both tables teach the best rule; fresh ones are judged by "
        "it. The advantage is the rate of true less that of false alarms, at most (e^epsilon - 1 "
        "+ 2 delta) / (e^epsilon + 1) for any attack. Noisy counts, the number of rows and the row "
        "at the person's place count as published. For neighbors by replacement a usual row "
        "stands in the place of the unusual one.",
    ),
    "membership.of_models": (
        "Is this person in? Graphical models",
        "The same attack on the methods that fit a graphical model, with fewer releases. They "
        "measure whole marginals with a budget that is split, so that this attack sees less of one "
        "row; the limits are wide.",
    ),
    "singling": (
        "Singling out, linking, inferring",
        "By Anonymeter 1.1 (Giomi and others 2023): guesses about 3,000 people of Adult, nine "
        "columns, and about 3,000 others who were not published. Its risk is what is right beyond "
        "the control; its limits are Wilson's, wrong once in 1,000. Allowed is what a rate on the "
        "control allows inside at epsilon 1; for singling out, which looks at all rows together, "
        "that is a yardstick and no theorem. Rows with one value in ten changed claim nothing: "
        "their risks are far from none, though no larger, for certain, than epsilon 1 might "
        "allow; that is no promise that a cleverer attack would find no more.",
    ),
    "reconstruction": (
        "Secrets from many releases",
        "64 people, each with a secret bit. The mean of many histograms, or least squares on many "
        "counts of ranges, tells almost all of them (Dinur, Nissim 2003). With a cap of 1 in a "
        "ledger file the third release of epsilon 1/2 is refused before anything is read: what two "
        "releases tell is all there is. Any attack on a total of epsilon 1 is right about at most "
        "0.731 of fair bits. Without a cap nothing is refused ([limits](limits.md)).",
    ),
    "averaging": (
        "The same question again",
        "The most frequent of 30 answers, four categories, epsilon 1. A memo and a client give the "
        "first answer again; a client refuses another question and a larger epsilon.",
    ),
    "replay": (
        "Noise that can be drawn again",
        "The published DP2-Pub sets seed 0 before its second round: whoever draws the same coins "
        "knows which answers are true, and with two categories all values. A histogram with "
        "numpy's noise falls to a search of seeds; and where the system chose the seed, to 640 "
        "cells that are known to be empty: their noise gives the bits of the Mersenne twister "
        "back, a linear system its state, and all other noise is known (in about a second). Ours "
        "draws with AES keyed by the system. With `--seed` it can be replayed as well: such a "
        'release says `"private": false` and is kept apart. "Counts exact" of noise that is not '
        "undone are those where the noise happened to be below one half, or zero.",
    ),
    "floats": (
        "Low bits and thresholds",
        "A published sum that one count can't have given proves the other count (Mironov 2012). "
        "Rounding hides more of it the larger the count. The thresholds are computed with exact "
        "fractions: a response that compares a float with a float p is above e^epsilon nearly "
        "always, by less than a sample would ever show.",
    ),
    "timing": (
        "Time",
        "No guarantee speaks of time, so nothing is allowed or broken here. AUC is how often the "
        "longer of two calls is the guessed one: 0.5 is chance. Noise is large or small by its "
        "median. CPU time of the thread; limits are 3.3 standard deviations. These attacks found "
        "that the answers of `FastOlh` (0.97) and of `Question` (0.74) took longer for later "
        "categories; both now take as many steps for every value. An attacker who times a device "
        "or the curator's machine is still outside of the guarantee ([limits](limits.md)).",
    ),
    "leaks_local": (
        "What published local methods give away",
        "The epsilon that an event shows, searched on pilot draws and counted on fresh ones. Unary "
        "encoding that takes a probability where e^epsilon belongs; a number and its square; every "
        "key instead of a sampled one; two rounds, each with all of epsilon.",
    ),
    "leaks_central": (
        "What published central methods give away",
        "The MWEM of a course report takes ages and the number of rows from the data, counts 288 "
        "copies of a person as 288 people, and in two dimensions draws half the noise (its score "
        "is divided by 100,000, so its selection costs nothing; here that is repaired, and the "
        "claim of 2 becomes 3). It also prints the true histogram. DP2-Pub's paper sets its noise "
        "by exact entropies, which nobody paid for: the shares tell two tables apart with "
        "certainty. Ours has no such step; its whole release is in the first table.",
    ),
    "leaks_pncf": (
        "PNCF",
        "An attacker who knows everybody else's ratings sees one item's noisy similarities, on "
        "made-up ratings; the limits are order statistics of the people. MovieLens, and all else "
        "that is wrong with it: [PNCF](pncf.md).",
    ),
}


def main() -> None:
    """Write the page."""
    OUT.write_text(page(json.loads(STORED.read_text())))


def page(stored: dict[str, Any]) -> str:
    """The whole page as text."""
    python, own = stored["machine"]["python"], stored["versions"]["sfumato"]
    parts = [section(name, rows) for name, rows in stored["attacks"].items()]
    return HEAD + "".join(parts) + f"Python {python}, sfumato {own}.\n"


def section(name: str, rows: list[dict[str, Any]]) -> str:
    """A heading, what it is about, and its figures."""
    title, words = WORDS[name]
    head = (
        "| on what | measure | found | limits | allowed | runs | |\n|---|---|---|---|---|---|---|\n"
    )
    return f"## {title}\n\n{words}\n\n{head}{''.join(map(line, rows))}\n"


def line(row: dict[str, Any]) -> str:
    """One figure."""
    allowed = "" if row["allowed"] is None else f"{row['allowed']:.3f}"
    verdict = f"**{row['verdict']}**" if row["verdict"] == "breaks" else row["verdict"]
    target = f"{row['attack']}: {row['target']}" + (f" ({row['note']})" if row["note"] else "")
    cells = (
        target,
        row["measure"],
        f"{row['value']:.3f}",
        f"{row['low']:.3f} to {row['high']:.3f}",
        allowed,
        f"{row['runs']:,}",
        verdict,
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    main()
