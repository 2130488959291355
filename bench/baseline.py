"""What must not change when only the structure of the code does: figures by seed, and speeds.

SFUMATO_DATA=... python bench/baseline.py [--write | --compare] [--only figures|speeds]
    [--seeds 20] [--table adult]

Figures are errors of seeded runs: synthesis of Adult and NLTCS (mean total variation of all pairs
and of 64 triples), DP2-Pub, local protocols and the recommender, 20 seeds each, kept seed by seed.
Speeds are CPU-seconds, the best and the median of several runs, everything compiled before. Only
the public names of ``sfumato`` and its commands are used, so that this runs on any structure.

--write keeps both in bench/results/baseline.json. --compare measures again and prints each beside
what was kept; the exit code is 1 if a figure is worse by more than two standard errors of the
paired difference, if a speed is more than 25% slower (twice: what looks slower is measured
again), or if something can't be measured any more. Code that draws the same noise gives the very
same figures: "identical". Where the noise is another, one of 40 is worse than that by chance.
"""

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import inf, prod, sqrt
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from recording import machine, versions

HERE: Final = Path(__file__).resolve().parent
KEPT: Final = HERE / "results" / "baseline.json"
PARTS: Final = ("figures", "speeds")
TABLES: Final = ("adult", "nltcs")
METHODS: Final = ("auto", "mst", "independent", "aim", "mwem", "privbayes")
REPLACE_ONLY: Final = ("privbayes",)
EPSILONS: Final = (0.1, 1.0, 10.0)
DELTA: Final = "1e-9"
SEEDS: Final = 20
TRIPLES: Final = 64
DP2PUB: Final = (("server", "faithful"), ("nobody", "grouped"))
LOCAL: Final = {"grr": sf.Grr, "oue": sf.Oue, "olh": sf.Olh}
RATINGS: Final[Mapping[str, Any]] = {"unit": "person", "delta": "1e-5", "max_rows": 1_000}
"""As docs/recommender.md has them."""
ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
WORSE_BY: Final = 2.0
"""Standard errors of the difference."""
SLOWER_BY: Final = 1.25
ROUNDING: Final = 1e-9
"""Relative differences up to this are another order of additions, not another result."""
MORE_IS_BETTER: Final = ("NDCG@10",)
TOLD_ONLY: Final = "(told only)"
"""In the name of a speed that depends on the machine or its disk alone."""

Row = dict[str, Any]


def main() -> int:
    """Measure, then keep, compare or only print."""
    given = _options()
    if given.one:
        asked = json.loads(given.one)
        print(json.dumps(CHILDREN[asked.pop("kind")](**asked)))
        return 0
    start, failed = time.monotonic(), 0
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if given.compare and not kept:
        sys.exit(f"nothing to compare with: {KEPT} is missing. Write it with --write.")
    print(f"sfumato {sf.__version__} of {Path(sf.__file__).parent}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(ONE_THREAD | {"SFUMATO_HOME": f"{folder}/home"})
        for part in [given.only] if given.only else PARTS:
            before = time.monotonic()
            earlier = {row["case"]: row for row in kept[part]["rows"]} if given.compare else {}
            look = figures if part == "figures" else speeds
            rows, lost = look(given, Path(folder), earlier)
            failed += lost
            kept[part] = about() | {"seconds": round(time.monotonic() - before), "rows": rows}
    if given.write:
        KEPT.write_text(as_text(kept), encoding="utf-8")
    ending = f", {failed} worse than the baseline" if given.compare else ""
    print(f"{time.monotonic() - start:.0f} s{ending}")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"keep the result in {KEPT.name}")
    parser.add_argument("--compare", action="store_true", help="exit code 1 if anything is worse")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="the first so many, at least 2")
    parser.add_argument("--table", choices=TABLES, action="append", help="figures of it alone")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write and (given.compare or given.table or given.seeds < SEEDS):
        parser.error("a baseline is written whole, and not while comparing with it")
    if not 2 <= given.seeds <= SEEDS:
        parser.error(f"--seeds is from 2 to {SEEDS}")
    if "SFUMATO_DATA" not in os.environ and not given.one:
        parser.error("SFUMATO_DATA must name the folder of the real tables")
    return given


def about() -> Row:
    """What was run, when, on which code and machine."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(HERE), *words], capture_output=True, text=True)
        return done.stdout.strip()

    return {
        "command": shlex.join(["python", "bench/baseline.py", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": git("rev-parse", "HEAD"),
        "changed_since": bool(git("status", "--porcelain", "--", "../src")),
        "load": list(os.getloadavg()[:2]),
        "machine": machine(),
        "versions": versions(),
    }


def as_text(kept: Mapping[str, Row]) -> str:
    """JSON with a line a row."""
    parts = []
    for part in PARTS:
        if part in kept:
            head = {key: value for key, value in kept[part].items() if key != "rows"}
            lines = [f'    "{key}": {json.dumps(value)},' for key, value in head.items()]
            rows = ",\n".join(f"      {json.dumps(row)}" for row in kept[part]["rows"])
            parts.append(
                "\n".join([f'  "{part}": {{', *lines, f'    "rows": [\n{rows}\n    ]\n  }}'])
            )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def child(kind: str, **asked: Any) -> Any:
    """The answer of a fresh process; None, with its last words, if it failed."""
    command = [sys.executable, __file__, "--one", json.dumps({"kind": kind, **asked})]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{kind} {asked} FAILED: {done.stderr.strip()[-600:]}", flush=True)
        return None
    return json.loads(done.stdout)


# Figures


def figures(
    given: argparse.Namespace, folder: Path, earlier: Mapping[str, Row]
) -> tuple[list[Row], int]:
    """All of them, each group in a process of its own, and how many are worse than before."""
    rows, failed = [], 0
    for asked in figure_groups(given.table):
        own = folder / f"ledger-{len(rows)}.sqlite"
        found = child(**asked, seeds=given.seeds, ledger=str(own))
        failed += found is None
        for case, values in (found or {}).items():
            rows.append(figure_row(case, values))
            text, worse = compared_figure(rows[-1], earlier.get(case)) if earlier else ("", False)
            failed += worse
            told = f"{rows[-1]['mean']:.5f} (se {rows[-1]['se']:.5f})"
            print(f"{case:<54}{told}  {text}", flush=True)
    if earlier and not given.table:
        failed += tell_missing(earlier, rows)
    return rows, failed


def figure_groups(tables: Sequence[str] | None) -> Iterator[Row]:
    """What a process each is asked."""
    for table in tables or TABLES:
        for method in METHODS:
            yield {"kind": "synthesis", "table": table, "method": method}
    if "nltcs" in (tables or TABLES):
        for trust, variant in DP2PUB:
            yield {"kind": "dp2pub", "trust": trust, "variant": variant}
    if not tables:
        yield {"kind": "local"}
        yield {"kind": "recommender"}


def figure_row(case: str, values: Sequence[float]) -> Row:
    """With the mean and its standard error over the seeds."""
    error = stdev(values) / sqrt(len(values))
    seeds = list(range(len(values)))
    return {"case": case, "mean": mean(values), "se": error, "seeds": seeds, "values": values}


def compared_figure(now: Row, before: Row | None) -> tuple[str, bool]:
    """The baseline, the difference in its standard errors over the same seeds, and if it is worse.

    >>> old = figure_row("pairs", [0.1, 0.2, 0.3])
    >>> compared_figure(old, old)[0]
    'baseline 0.20000  identical'
    >>> compared_figure(figure_row("pairs", [0.11, 0.22, 0.31]), old)
    ('baseline 0.20000  difference +0.01333, +4.0 standard errors WORSE', True)
    """
    if before is None:
        return "not in the baseline", False
    pairs = list(zip(now["values"], before["values"], strict=False))
    base = mean(old for _, old in pairs)
    gaps = [new - old for new, old in pairs]
    told = f"baseline {base:.5f} "
    if not any(gaps):
        return f"{told} identical", False
    if all(abs(gap) <= ROUNDING * abs(old) for gap, (_, old) in zip(gaps, pairs, strict=True)):
        return f"{told} identical but for rounding", False
    gap, error = mean(gaps), stdev(gaps) / sqrt(len(gaps))
    errors = gap / error if error else inf if gap > 0 else -inf
    sign = -1 if now["case"].endswith(MORE_IS_BETTER) else 1
    worse = sign * errors > WORSE_BY
    mark = " WORSE" if worse else ""
    return f"{told} difference {gap:+.5f}, {errors:+.1f} standard errors{mark}", worse


def tell_missing(earlier: Mapping[str, Row], rows: Sequence[Row]) -> int:
    """How many of the baseline were not measured now."""
    missing = sorted(earlier.keys() - {row["case"] for row in rows})
    for case in missing:
        print(f"{case:<54}MISSING: the baseline has it")
    return len(missing)


@dataclass(frozen=True, kw_only=True)
class RealTable:
    """A table of codes, and the shares of all its pairs and of 64 triples."""

    name: str
    schema: sf.Schema
    frame: pa.Table
    sizes: tuple[int, ...]

    @cached_property
    def own(self) -> list[dict[tuple[int, ...], np.ndarray]]:
        """Shares by places of columns: of pairs, and of the triples of ``synthesis_metric``."""
        columns = range(len(self.sizes))
        every = list(combinations(columns, 3))
        order = np.random.RandomState(0).permutation(len(every))
        triples = [every[place] for place in sorted(order[:TRIPLES])]
        return [self.shares(self.frame, ms) for ms in (combinations(columns, 2), triples)]

    def shares(
        self, frame: pa.Table, marginals: Iterable[tuple[int, ...]]
    ) -> dict[tuple[int, ...], np.ndarray]:
        """Of the cells of each marginal."""
        codes = [frame[name].cast("int64").to_numpy() for name in self.frame.column_names]
        found = {}
        for marginal in marginals:
            shape = tuple(self.sizes[place] for place in marginal)
            cells = np.ravel_multi_index(tuple(codes[place] for place in marginal), shape)
            found[marginal] = np.bincount(cells, minlength=prod(shape)) / len(frame)
        return found

    def errors(self, frame: pa.Table) -> list[float]:
        """Mean total variation of pairs, and of triples."""
        return [
            mean(float(abs(new - own[m]).sum() / 2) for m, new in self.shares(frame, own).items())
            for own in self.own
        ]


def real_table(name: str) -> RealTable:
    """From SFUMATO_DATA; its domain file has a size by column, bare or under "domain"."""
    folder = Path(os.environ["SFUMATO_DATA"]) / name
    domain = json.loads((folder / f"{name}-domain.json").read_text())
    sizes = {key: one["domain"] if isinstance(one, dict) else one for key, one in domain.items()}
    codes = np.loadtxt(folder / f"{name}.csv", dtype=np.int64, delimiter=",", skiprows=1)
    return RealTable(
        name=name,
        schema=sf.Schema.from_dict(sizes),
        frame=pa.table(dict(zip(sizes, codes.T, strict=True))),
        sizes=tuple(sizes.values()),
    )


def published(
    real: RealTable, method: str, epsilon: float, seed: int, ledger: str
) -> sf.TableRelease:
    """A seeded release of a table, as the command publishes it."""
    return sf.publish_table(
        real.frame,
        schema=real.schema,
        epsilon=str(epsilon),
        delta=DELTA,
        method=method,
        neighbors="replace" if method in REPLACE_ONLY else "add-remove",
        dataset=real.name,
        ledger=ledger,
        seed=seed,
    )


def synthesis(table: str, method: str, seeds: int, ledger: str) -> dict[str, list[float]]:
    """Errors of as many drawn rows as the table has."""
    real, found = real_table(table), {}
    for epsilon in EPSILONS:
        errors = []
        for seed in range(seeds):
            release = published(real, method, epsilon, seed, ledger)
            rng = sf.simulation_rng(1_000 + seed)
            errors.append(real.errors(release.table(n_rows=len(real.frame), rng=rng)))
        for what, values in zip(("pairs", "triples"), zip(*errors, strict=True), strict=True):
            found[f"{table}, {method}, epsilon {epsilon:g}: {what}"] = list(values)
    return found


def dp2pub(trust: str, variant: str, seeds: int, ledger: str) -> dict[str, list[float]]:
    """Errors of what is published of NLTCS."""
    real, errors = real_table("nltcs"), []
    for seed in range(seeds):
        asked = {"trust": trust, "variant": variant, "seed": seed, "ledger": ledger}
        release = sf.dp2pub_table(
            real.frame, schema=real.schema, epsilon=1, dataset="nltcs", **asked
        )
        errors.append(real.errors(release.data)[0])
    return {f"nltcs, DP2-Pub, {trust}, {variant}, epsilon 1: pairs": errors}


def local(seeds: int, ledger: str) -> dict[str, list[float]]:
    """Root mean squared errors of the frequencies of 32 categories, 100,000 people, epsilon 1."""
    truth = np.random.RandomState(0).zipf(1.5, 100_000) % 32
    shares = np.bincount(truth, minlength=32) / truth.size
    column = sf.Category(name="answer", values=tuple(str(place) for place in range(32)))
    found = {}
    for protocol in LOCAL:
        question = sf.Question(column=column, epsilon=1, protocol=protocol)
        errors = []
        for seed in range(seeds):
            answers = question.answer_many(truth, rng=sf.simulation_rng(seed))
            gaps = np.asarray(question.estimate(answers).frequencies) - shares
            errors.append(float(np.sqrt((gaps**2).mean())))
        found[f"local, {protocol}, epsilon 1: rms error"] = errors
    return found


def recommender(seeds: int, ledger: str) -> dict[str, list[float]]:
    """NDCG@10 on MovieLens 100K; a seed is also that of the split."""
    ratings, catalogue = movielens()
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        told = sf.evaluate_recommender(
            ratings,
            catalogue=catalogue,
            scale="1..5",
            epsilons=(1, 5),
            dataset="movielens",
            ledger=ledger,
            seed=seed,
            **RATINGS,
        )
        for run in told.to_dict()["runs"]:
            case = f"MovieLens 100K, auto, epsilon {run['epsilon']:g}: NDCG@10"
            found.setdefault(case, []).append(run["ndcg@10"])
    return found


def movielens() -> tuple[pa.Table, list[int]]:
    """The ratings, and the films that can be rated."""
    folder = Path(os.environ["SFUMATO_DATA"]) / "movielens"
    columns = np.loadtxt(folder / "u.data", dtype=np.int64).T
    lines = (folder / "u.item").read_text(encoding="latin-1").splitlines()
    ratings = pa.table(dict(zip(("user", "item", "rating"), columns[:3], strict=True)))
    return ratings, [int(line.partition("|")[0]) for line in lines]


# Speeds


def speeds(
    given: argparse.Namespace, folder: Path, earlier: Mapping[str, Row]
) -> tuple[list[Row], int]:
    """All of them, and how many are slower than before; what looks slower is measured again."""
    tasks: list[Callable[[], Mapping[str, Row] | None]] = [
        lambda: child("fixed_work"),
        starting,
        lambda: publish_commands(folder),
        lambda: child("publishing", ledger=str(folder / "speeds.sqlite")),
        lambda: child("noise"),
        lambda: child("answering"),
        lambda: child("fitting"),
        lambda: child("spending", folder=str(folder)),
    ]
    rows: list[Row] = []
    failed = 0
    for task in tasks:
        found = speed_rows(task() or {})
        failed += not found
        if any(slower(row, earlier.get(row["case"])) for row in found):
            again = {row["case"]: row for row in speed_rows(task() or {})}
            found = [min(row, again.get(row["case"], row), key=_best) for row in found]
        for row in found:
            text = compared_speed(row, earlier.get(row["case"])) if earlier else ""
            failed += slower(row, earlier.get(row["case"]))
            rate = f"{row['work'] / row['best']:,.4g} {row['of']}/s" if row["of"] else ""
            told = f"{row['best']:.4f} s, median {row['median']:.4f}"
            print(f"{row['case']:<54}{told} {rate:<24}{text}", flush=True)
        rows += found
    return rows, failed + (tell_missing(earlier, rows) if earlier else 0)


def _best(row: Row) -> float:
    return float(row["best"])


def speed_rows(found: Mapping[str, Row]) -> list[Row]:
    """With the best and the median of the runs."""
    return [
        {"case": case, "best": min(one["runs"]), "median": median(one["runs"]), **one}
        for case, one in found.items()
    ]


def slower(now: Row, before: Row | None) -> bool:
    """Whether the best run takes more than a quarter longer than the best of the baseline."""
    if before is None or TOLD_ONLY in now["case"]:
        return False
    return bool(now["best"] > SLOWER_BY * before["best"])


def compared_speed(now: Row, before: Row | None) -> str:
    """The ratio to the baseline: above 1 is slower."""
    if before is None:
        return "not in the baseline"
    best, middle = (now[key] / before[key] for key in ("best", "median"))
    mark = " SLOWER" if slower(now, before) else ""
    return f"baseline {before['best']:.4f}, {best:.2f} of it (medians {middle:.2f}){mark}"


def timed(call: Callable[[], object], *, work: int = 1, of: str = "", times: int = 5) -> Row:
    """CPU-seconds of several calls, after one that compiles."""
    call()
    runs = []
    for _ in range(times):
        start = time.process_time()
        call()
        runs.append(time.process_time() - start)
    return {"runs": runs, "unit": "CPU-s", "work": work, "of": of}


def command(*words: str, times: int = 5) -> tuple[Row, Row]:
    """CPU-seconds and seconds by the clock of whole processes, after one that compiles."""
    runs: list[tuple[float, float]] = []
    for _ in range(times + 1):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        runs.append((cpu, clock))
    cpus, clocks = zip(*runs[1:], strict=True)
    row = {"work": 1, "of": ""}
    return {"runs": cpus, "unit": "CPU-s", **row}, {"runs": clocks, "unit": "s", **row}


def starting() -> dict[str, Row]:
    """What a person waits for before anything is done."""
    helping = command("-m", "sfumato", "--help", times=10)
    importing = command("-c", "import sfumato", times=10)
    return {
        "sfumato --help": helping[0],
        "sfumato --help, by the clock": helping[1],
        "import sfumato": importing[0],
        "import sfumato, by the clock": importing[1],
    }


def publish_commands(folder: Path) -> dict[str, Row]:
    """Whole commands: Adult as people publish it, and a million made-up rows from Parquet."""
    real = real_table("adult")
    schema, ledger = folder / "adult.json", ["--ledger", str(folder / "commands.sqlite")]
    real.schema.save(schema)
    table = Path(os.environ["SFUMATO_DATA"]) / "adult" / "adult.csv"
    publish = ["-m", "sfumato", "publish", "--epsilon", "1", "--delta", DELTA, "--force", *ledger]
    adult = [*publish, str(table), "--schema", str(schema), "--dataset", "adult"]
    many, many_schema = made_parquet(folder)
    wide = [*publish, str(many), "--schema", str(many_schema), "--dataset", "wide"]
    wide += ["--method", "mst", "--seed", "0", "--out", str(folder / "wide")]
    seeded = [*adult, "--seed", "0", "--out", str(folder / "seeded")]
    return {
        "publish Adult, auto": command(*adult, "--out", str(folder / "adult"))[0],
        "publish Adult, auto, seeded": command(*seeded)[0],
        "publish 10^6 x 15 from Parquet, mst, seeded": command(*wide)[0],
    }


def made_parquet(folder: Path) -> tuple[Path, Path]:
    """Uniform codes of 2 to 30 values, as 64-bit integers, and their schema."""
    sizes, rng = {f"c{place}": 2 * place + 2 for place in range(15)}, np.random.RandomState(0)
    codes = {name: rng.randint(0, size, 1_000_000) for name, size in sizes.items()}
    table, schema = folder / "wide.parquet", folder / "wide.json"
    pq.write_table(pa.table(codes), table)
    sf.Schema.from_dict(sizes).save(schema)
    return table, schema


def fixed_work() -> dict[str, Row]:
    """The same work in every version: what differs here is the machine."""
    values = np.random.RandomState(0).normal(size=1_000_000)

    def work() -> object:
        return np.sort(values), sum(place * place for place in range(1_000_000))

    return {f"fixed work without sfumato {TOLD_ONLY}": timed(work)}


def publishing(ledger: str) -> dict[str, Row]:
    """Seeded releases in one process, compiled before."""
    found = {}
    for table in TABLES:
        real = real_table(table)
        for method in METHODS:
            run = timed(lambda r=real, m=method: published(r, m, 1.0, 0, ledger))
            found[f"{table}, {method}, epsilon 1, in process"] = run
    for trust, variant in DP2PUB:
        asked = {"trust": trust, "variant": variant, "seed": 0, "ledger": ledger}
        asked |= {"schema": real.schema, "epsilon": 1, "dataset": "nltcs"}
        run = timed(lambda a=asked, r=real: sf.dp2pub_table(r.frame, **a))
        found[f"nltcs, DP2-Pub, {trust}, {variant}, in process"] = run
    return found


def noise() -> dict[str, Row]:
    """Ten million draws of discrete noise from the secure source."""
    rng, draws = sf.secure_rng(), 10_000_000
    kinds = {
        "discrete Gaussian, sigma 10": sf.DiscreteGaussian.for_sigma(10),
        "discrete Laplace, scale 10": sf.DiscreteLaplace(scale=Fraction(10)),
    }
    return {
        name: timed(lambda k=kind: k.sample(draws, rng=rng), work=draws, of="draws")
        for name, kind in kinds.items()
    }


def answering() -> dict[str, Row]:
    """Local answers about 128 categories, and counting them, by batches of 2^18 people."""
    rng, batch, found = sf.secure_rng(), 2**18, {}
    codes = (np.random.RandomState(0).zipf(1.5, batch) % 128).astype(np.uint8)
    for name, kind in LOCAL.items():
        mechanism, times = kind(categories=128, epsilon=1), 256 if name == "grr" else 32
        answers = mechanism.answer_many(codes, rng=rng)
        counts = np.zeros(mechanism.cells, dtype=np.int64)

        def answer(m: Any = mechanism, n: int = times) -> None:
            for _ in range(n):  # none is kept: fresh memory would take longer than the answers
                m.answer_many(codes, rng=rng)

        def count(m: Any = mechanism, n: int = times, a: Any = answers, c: Any = counts) -> None:
            for _ in range(n):
                m.add(a, c)

        work = {"work": times * batch, "of": "people"}
        found[f"{name}, 128 categories: answers"] = timed(answer, **work)
        found[f"{name}, 128 categories: counting"] = timed(count, **work)
    return found


def fitting() -> dict[str, Row]:
    """The private fit of a recommender, from an Arrow table of ratings on."""
    lens, films = movielens()
    made = sf.made_ratings(6_040, items=3_706, ratings=1_000_000, rng=sf.simulation_rng(0))
    cases = {
        "recommender, MovieLens 100K": (lens, films),
        "recommender, 10^6 made-up ratings": (pa.table(made.columns()), range(3_706)),
    }

    def fit(ratings: pa.Table, catalogue: Sequence[int]) -> object:
        curator = sf.Curator(
            sf.open_ratings(ratings, catalogue=catalogue, scale=sf.RatingScale(1, 5), dataset="x"),
            protect=sf.OnePerson(max_rows=RATINGS["max_rows"]),
            budget=sf.ApproxDP(5, RATINGS["delta"]),
            rng=sf.simulation_rng(0),
            ledger=sf.Ledger.in_memory(dataset="x"),
        )
        return sf.publish(sf.AutoRecommender(), curator)

    return {name: timed(lambda c=case: fit(*c)) for name, case in cases.items()}


def spending(folder: str) -> dict[str, Row]:
    """200 spends, each durable before the next, in a new ledger."""
    spends, clocks = 200, []

    def spend() -> None:
        start = time.perf_counter()
        with sf.Ledger.open(f"{folder}/spends-{len(clocks)}.sqlite", dataset="x") as ledger:
            for place in range(spends):
                ledger.spend(sf.PureDP("0.001"), label=f"spend {place}", protect=sf.OneRow())
        clocks.append(time.perf_counter() - start)

    row = timed(spend, work=spends, of="spends")
    by_clock = {**row, "runs": clocks[1:], "unit": "s"}
    return {"200 spends": row, f"200 spends, by the clock {TOLD_ONLY}": by_clock}


CHILDREN: Final[Mapping[str, Callable[..., Any]]] = {
    "synthesis": synthesis,
    "dp2pub": dp2pub,
    "local": local,
    "recommender": recommender,
    "fixed_work": fixed_work,
    "publishing": publishing,
    "noise": noise,
    "answering": answering,
    "fitting": fitting,
    "spending": spending,
}


if __name__ == "__main__":
    sys.exit(main())
