"""Answer range queries about a private table with MWEM, and see what each step cost.

Run it anywhere: it makes its own data, keeps its ledger in the current folder, and prints the
published answers beside the noise of those that were measured.
"""

import pyarrow as pa

import sfumato as sf

AGES = [18 + (7 * person) % 60 for person in range(20_000)]
SCHEMA = sf.Schema(columns=(sf.Integer(name="age", low=18, high=77),), dataset="example")
QUERIES = sf.ranges(SCHEMA, [{"age": [low, low + 9]} for low in range(18, 69, 5)])


def main() -> None:
    """Publish, then ask the release: that costs nothing more."""
    ledger = sf.Ledger.open("example.ledger", dataset="example", cap=sf.PureDP(1))
    curator = sf.Curator(
        sf.open_table(pa.table({"age": AGES}), SCHEMA),
        protect=sf.OneRow(),
        budget=sf.PureDP("0.5"),
        ledger=ledger,
        rng=sf.secure_rng(),
    )
    release = sf.publish(sf.Mwem(workload=QUERIES, rounds=6), curator)
    ages = release.model.marginal(("age",))
    for box in QUERIES.ranges:
        ((_, low, high),) = box.bounds
        print(f"{18 + low}..{18 + high}: about {ages[low : high + 1].sum():,.0f} people")
    for entry in ledger.entries():
        print(entry.seq, entry.event, entry.label, entry.cost or "")
    print("spent", ledger.spent, "of", ledger.cap)


if __name__ == "__main__":
    main()
