"""docs/scale.md: a billion people on paper, from the costs that ``bench/growth.py`` measured.

Nothing of this was run at that size. A cost is what one more row took between the smallest and the
largest point of a curve, times a billion; the words say from which size.
"""

from dataclasses import dataclass
from typing import Any, Final

from growth_curves import CURVES, DONE, Point, size_text

PEOPLE: Final = 10**9
CORES: Final = 32
SERVICE_ANSWER_BYTES: Final = 28
SERVICE_NAME_BYTES: Final = 16
SERVICE_SINGLE: Final = 2_600
SERVICE_BATCHED: Final = 117_000
"""Answers for each CPU-second of the service: docs/deploy.md, bench/survey_load.py."""
SPARK_CPU_S: Final = 2.16
SPARK_ROWS: Final = 10**7
"""All 105 pairs of 15 columns in local mode: docs/spark.md, bench/spark.py."""
AXIS: Final = {curve.name: curve.axis for curve in CURVES}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one more row took in a job."""

    cpu_s: float
    memory_bytes: float
    input_bytes: float
    output_bytes: float
    most_mb: float
    """Of the largest point."""
    upto: str
    """The largest size that was run."""

    @property
    def cpu(self) -> str:
        """Of a billion."""
        return span(self.cpu_s * PEOPLE)

    @property
    def shared(self) -> str:
        """The same over many cores, if nothing else is in the way."""
        return span(self.cpu_s * PEOPLE / CORES)

    @property
    def memory(self) -> str:
        """Of a billion, where it grows with the rows."""
        return size(self.memory_bytes * PEOPLE)


def cost(name: str, points: list[Point]) -> Cost | None:
    """Of one curve; None where fewer than two points were done."""
    mine = [p for p in points if p["curve"] == name and p["outcome"] == DONE]
    if len(mine) < 2:
        return None
    first, last = (pick(mine, key=lambda p: p["size"]) for pick in (min, max))
    rows = last["size"] - first["size"]
    grown = max(0.0, last["memory_mb"] - first["memory_mb"]) * 2**20
    return Cost(
        cpu_s=(last["cpu_s"] - first["cpu_s"]) / rows,
        memory_bytes=grown / rows,
        input_bytes=last["input_bytes"] / last["size"],
        output_bytes=last["output_bytes"] / last["size"],
        most_mb=last["memory_mb"],
        upto=size_text(AXIS[name], last["size"]),
    )


def span(seconds: float) -> str:
    """Seconds as people say them.

    >>> span(90), span(7200), span(40), span(400000)
    ('1.5 min', '2 h', '40 s', '4.6 days')
    """
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 1.5 * length:
            return (
                f"{seconds / length:.2g} {unit}"
                if seconds < 100 * length
                else (f"{seconds / length:,.0f} {unit}")
            )
    return f"{seconds:.2g} s"


def size(amount: float) -> str:
    """Bytes as people say them.

    >>> size(28e9), size(3.2e6)
    ('28 GB', '3.2 MB')
    """
    unit, length = ("GB", 1e9) if amount >= 1e9 else ("MB", 1e6)
    return (
        f"{amount / length:,.0f} {unit}"
        if amount >= 10 * length
        else (f"{amount / length:.2g} {unit}")
    )


HEAD: Final = """# A billion people, on paper

Written by `python docs/make_growth.py` from [measured costs](growth.md); do not edit. **Nothing
on this page was run at a billion.** A figure is what one more row took up to the size named
beside it, times 10^9: the exponents there are about 1, so this is what to plan with, not a
promise. 20 columns of 2 to 20 values. CPU is of one core; "over 32 cores" divides it by 32, which
only Spark or several processes on parts of the table do: the embedded engine counts with two
threads.

| job | run up to | CPU | over 32 cores | memory | disk |
|---|---|---|---|---|---|
"""


def scale_page(found: dict[str, Any]) -> str:
    """The whole page as text."""
    points = found["points"]
    rows = [
        _row("count all 190 pairs, Parquet", cost("count-parquet", points), reads=True),
        _row("the same from CSV", cost("count-csv", points), reads=True),
        _row("local answers, drawn", cost("answers-simulate", points), writes=True),
        _row("local answers, estimated", cost("answers-estimate", points), reads=True),
        _row("`publish`, mst", cost("rows-mst", points), reads=True, writes=True),
        _row("`publish`, independent", cost("rows-independent", points), reads=True, writes=True),
        _row("`dp2pub --trust semi-honest`", cost("dp2pub", points), grows=True, writes=True),
        _row("a survey in two rounds, rehearsed", cost("survey", points), grows=True, writes=True),
        _row("`recommend fit`, 10^9 ratings", cost("ratings-ridge", points), grows=True),
        _service_row("collection service, single posts", SERVICE_SINGLE),
        _service_row("collection service, batches of 100", SERVICE_BATCHED),
        _spark_row(),
    ]
    return HEAD + "".join(rows) + _words(points)


def _row(
    title: str,
    known: Cost | None,
    *,
    reads: bool = False,
    writes: bool = False,
    grows: bool = False,
) -> str:
    if known is None:
        return f"| {title} | not run yet | | | | |\n"
    disk = [f"{size(known.input_bytes * PEOPLE)} read"] if reads else []
    disk += [f"{size(known.output_bytes * PEOPLE)} written"] if writes else []
    memory = known.memory if grows else f"{known.most_mb:,.0f} MB at any size"
    return (
        f"| {title} | {known.upto} | {known.cpu} | {known.shared} | {memory} | "
        f"{', '.join(disk) or '-'} |\n"
    )


def _service_row(title: str, rate: float) -> str:
    seconds = PEOPLE / rate
    stored = size(SERVICE_ANSWER_BYTES * PEOPLE)
    return (
        f"| {title} | {rate:,} a CPU-second ([load test](deploy.md#how-much-it-takes)) | "
        f"{span(seconds)} | {span(seconds / CORES)} | {size(SERVICE_NAME_BYTES * PEOPLE)} in each "
        f"worker | {stored}, twice that until blocks are merged |\n"
    )


def _spark_row() -> str:
    seconds = SPARK_CPU_S * PEOPLE / SPARK_ROWS
    return (
        f"| Spark: all 105 pairs of 15 columns | 10^7 rows ([Spark](spark.md#what-it-costs)) | "
        f"{span(seconds)} | {span(seconds / CORES)} | one batch and the counters in a task | - |\n"
    )


def _words(points: list[Point]) -> str:
    ratings = cost("ratings-ridge", points)
    held = size(8 * 20 * PEOPLE)
    rated = ratings.memory if ratings else "more than one machine has"
    names = size(SERVICE_NAME_BYTES * PEOPLE)
    per_day = PEOPLE / 86_400
    cores = per_day / SERVICE_SINGLE
    return f"""
## What breaks first, and what to do then

1. **The disk for published rows.** `publish` makes as many rows as the model stands for. They are
   drawn in blocks, and above half a gigabyte lie in a temporary file ({held} for a billion rows of
   20 numbers; `TMPDIR` says where) until they are written as Parquet, a fraction of that. Memory
   stays bounded; `--csv` does not: it makes its texts at once. Draw fewer rows
   (`release.table(n_rows=...)` costs no budget): a billion made-up rows say no more than the model.
2. **Rows that answer one by one** (`dp2pub`, a rehearsed survey) hold the codes of all rows, and
   so does the driver with `--trust nobody` on Spark. Real surveys do not: the service counts
   answers in blocks, and the devices draw.
3. **The service's list of names.** Each worker holds {SERVICE_NAME_BYTES} bytes an answer of an
   open round: {names} in each for a billion in one round. Divide people into several surveys of
   10^8. Single posts of a billion people in one day are {per_day:,.0f} a second, {cores:.0f}
   cores for the service alone and one database that commits them all: let people answer over
   weeks, or let an app's own server send batches.
4. **Ratings on one machine**: {rated} for a billion. Give `recommend fit` a Spark table; what
   then grows is the Gram matrix, 8 bytes for each pair of items in each task, with the catalogue
   and not with people.
5. **Reading**. One machine counts a billion rows from Parquet with two threads; CSV takes several
   times as long: write Parquet once. On many machines the same kernels run in Spark, at about one
   and a half times the CPU where tasks read the files themselves, and nine times where Java has to
   turn rows into Arrow.

What does not grow with rows: the noise, the report and the ledger; the fit until its model is as
large as it may be. A release writes the same few entries whether a thousand or a billion rows
stand behind it; the ledger grows with releases. With a billion rows the noise of a count is the
same number of people as with a thousand, so take less epsilon instead.

What grows with columns, not rows: pairs. 200 columns have 19,900 of them, and the wide tables of
[growth](growth.md#columns) are where minutes go.
"""
