"""Tables of raw values for bench/values.py: generated ones, and the real files of SFUMATO_DATA.

A table is a pandas frame and its declared schema in the form that names public facts only: limits
that are generous and round, a resolution, lists of categories, and no bins. The generated tables
have 30,000 rows (one has 800) and 7,500 more that nobody publishes; each column says in a line how
it is made. Texts are texts, numbers are numbers and dates are ``datetime64``; a missing value is
NaN or None.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

ROWS: Final = 30_000
HELD_BACK: Final = 7_500
HELD_BACK_SHARE: Final = 0.2
"""Of a real file, for the release that models are trained on."""
TIMES: Final = ("date", "datetime")
NUMERIC: Final = ("integer", "number", *TIMES)
FEW_VALUES: Final = 24
"""A number with at most this many values needs no edges."""

Values = NDArray[Any]
Floats = NDArray[np.float64]
Declared = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ValueTable:
    """Raw rows, what is public about their columns, and which column models predict."""

    name: str
    frame: pd.DataFrame
    """The rows that are published."""
    held_back: pd.DataFrame | None
    """Rows that nobody publishes; None for a real file, which is split where it is needed."""
    schema: Declared
    label: str | None = None
    """A column of two values, or none."""
    file: Path | None = None
    """The real file as people have it, for `schema draft` and for a release without a schema."""
    made: Mapping[str, str] | None = None
    """How each column of a generated table is made."""

    @property
    def columns(self) -> dict[str, Declared]:
        return {column["name"]: column for column in self.schema["columns"]}

    @property
    def numbers(self) -> list[str]:
        return [name for name, column in self.columns.items() if column["kind"] in NUMERIC]

    @property
    def dates(self) -> list[str]:
        """Numbers without a zero of their own."""
        return [name for name in self.numbers if self.columns[name]["kind"] in TIMES]

    @property
    def categories(self) -> list[str]:
        return [name for name in self.columns if name not in self.numbers]

    def kept_rows(self, seed: int) -> NDArray[np.int64]:
        """Of a real file, the places of the rows that models may learn from, in order."""
        order = np.random.default_rng(seed).permutation(len(self.frame))
        return np.sort(order[round(HELD_BACK_SHARE * len(order)) :])

    def split(self, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows to publish for models, and real rows to test the models on."""
        if self.held_back is not None:
            return self.frame, self.held_back
        kept = self.kept_rows(seed)
        rest = np.setdiff1d(np.arange(len(self.frame)), kept)
        train, test = (self.frame.iloc[part].reset_index(drop=True) for part in (kept, rest))
        return train, test


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a generated table."""

    values: Values
    declared: Declared
    made: str


def integer(low: int, high: int, **more: Any) -> Declared:
    return {"kind": "integer", "low": low, "high": high, **more}


def number(low: float, high: float, resolution: float) -> Declared:
    return {"kind": "number", "low": low, "high": high, "resolution": resolution}


def day(low: str, high: str) -> Declared:
    return {"kind": "date", "low": low, "high": high}


def category(values: Sequence[str]) -> Declared:
    return {"kind": "category", "values": list(values)}


def with_edges(schema: Declared) -> Declared:
    """The same public limits with free 1-2-5 edges by hand, for methods that need bins."""
    return {**schema, "columns": [_with_edges(column) for column in schema["columns"]]}


def _with_edges(column: Declared) -> Declared:
    if column["kind"] in TIMES:
        return {"step": "month", **column}
    resolution = column.get("resolution", 1)
    if column["kind"] not in NUMERIC or cells(column) <= FEW_VALUES:
        return column
    kept = {key: column[key] for key in ("name", "missing", "missing_texts") if key in column}
    decimals = max(0, round(-np.log10(resolution)))
    edges = [int(edge) if edge == int(edge) else edge for edge in class_edges(column)]
    return {**kept, "kind": "number", "edges": edges, "decimals": decimals}


def cells(column: Declared) -> float:
    """How many values a number or a date may have by its declaration."""
    low, high = limits(column)
    return round((high - low) / column.get("resolution", 1)) + 1


def limits(column: Declared) -> tuple[float, float]:
    """The declared limits as numbers; of dates and times as days since 1970."""
    if column["kind"] not in TIMES:
        return float(column["low"]), float(column["high"])
    low, high = (date.fromisoformat(column[end]).toordinal() for end in ("low", "high"))
    epoch, last = date(1970, 1, 1).toordinal(), int(column["kind"] == "datetime")
    return float(low - epoch), float(high - epoch + last)


def class_edges(column: Declared) -> list[float]:
    """Public round classes: 1-2-5 steps away from zero, or at most 20 even round pieces.

    The first is for numbers with more than 200 values and zero inside. A class is [edge, next),
    the last one closed, and -1 alone is a class as 1 is.

    >>> class_edges(integer(-9, 1000))[:8], class_edges(integer(18, 60))[:4]
    ([-9.0, -4.0, -1.0, 0.0, 1.0, 2.0, 5.0, 10.0], [18.0, 20.0, 25.0, 30.0])
    """
    low, high = limits(column)
    resolution = float(column.get("resolution", 1))
    if low <= 0 <= high and cells(column) > 200:
        ladder = [resolution * step * 10**power for power in range(13) for step in (1, 2, 5)]
        edges = [0.0, *ladder, *(resolution - edge for edge in ladder[1:])]
    else:
        width = max(_round_up((high - low) / 20), resolution)
        edges = list(np.arange(np.floor(low / width) * width, high, width))
    inside = [float(edge) for edge in edges if low < edge < high]
    return [round(edge, 9) for edge in sorted({low, *inside, high})]


def _round_up(width: float) -> float:
    power = 10.0 ** np.floor(np.log10(width))
    return float(next(power * step for step in (1, 2, 5, 10) if power * step >= width * 0.999999))


# Generated tables


def made_table(name: str, *, seed: int = 0, rows: int | None = None) -> ValueTable:
    """A generated table: the same for the same seed."""
    rows = rows or ROWS_OF.get(name, ROWS)
    rng = np.random.default_rng([seed, *name.encode()])
    columns, label = MADE[name](rng, rows + HELD_BACK)
    frame = pd.DataFrame({title: column.values for title, column in columns.items()})
    declared = [{"name": title, **column.declared} for title, column in columns.items()]
    return ValueTable(
        name=name,
        frame=frame.iloc[:rows].reset_index(drop=True),
        held_back=frame.iloc[rows:].reset_index(drop=True),
        schema={"sfumato": 1, "dataset": f"values-{name}", "columns": declared},
        label=label,
        made={title: column.made for title, column in columns.items()},
    )


Rng = np.random.Generator
Made = tuple[dict[str, Column], str]


def _tied(rng: Rng, factor: Floats, correlation: float) -> Floats:
    """Normal scores with this correlation with a normal factor."""
    noise = rng.standard_normal(len(factor))
    return correlation * factor + np.sqrt(1 - correlation**2) * noise


def _uniform(scores: Floats) -> Floats:
    """Normal scores as shares: what quantile functions take."""
    return np.clip(norm.cdf(scores), 1e-9, 1 - 1e-9)


def _whole(values: Floats, low: float, high: float) -> NDArray[np.int64]:
    return np.clip(np.round(values), low, high).astype(np.int64)


def _cents(values: Floats, low: float, high: float, digits: int = 2) -> Floats:
    return np.round(np.clip(values, low, high), digits)


def _texts(rng: Rng, values: Sequence[str], weights: Sequence[float], scores: Floats) -> Values:
    """A category whose order follows the scores: groups then differ in what the scores move."""
    shares = np.cumsum(np.asarray(weights) / np.sum(weights))
    place = np.searchsorted(shares, _uniform(_tied(rng, scores, 0.6)))
    return np.array(values, dtype=object)[np.minimum(place, len(values) - 1)]


def _zipf(count: int, power: float = 1.0) -> list[float]:
    return [1 / (place + 1) ** power for place in range(count)]


def _names(stem: str, count: int) -> list[str]:
    return [f"{stem} {place + 1}" for place in range(count)]


def _label(rng: Rng, scores: Floats, share: float) -> Values:
    """Yes for this share, with a probability that is logistic in the scores."""
    steep = 2.0 * (scores - scores.mean()) / scores.std()
    level = brentq(lambda level: float(expit(steep + level).mean()) - share, -20, 20)
    yes = rng.random(len(scores)) < expit(steep + level)
    return np.where(yes, "yes", "no").astype(object)


def _skewed(rng: Rng, n: int) -> Made:
    """Money with 90% zeros and a top code, as in a census of incomes: 15 columns."""
    wealth, age_score = rng.standard_normal(n), rng.standard_normal(n)
    years = _whole(17 + 73 * rng.beta(1.6, 3.2, n) * _uniform(0.2 * age_score) ** 0.1, 17, 90)
    school = _whole(10 + 2.5 * _tied(rng, wealth, 0.5), 1, 16)
    hours = np.where(rng.random(n) < 0.47, 40, _whole(40 + 13 * _tied(rng, wealth, 0.2), 1, 99))
    has_gain = _tied(rng, wealth, 0.5) > norm.isf(0.1)
    gain = np.where(has_gain, np.exp(8.3 + 0.9 * _tied(rng, wealth, 0.4)), 0)
    gain = np.where(has_gain & (rng.random(n) < 0.05), 99_999, np.minimum(gain, 60_000))
    loss = np.where(rng.random(n) < 0.047, 1_870 + 380 * rng.standard_normal(n), 0)
    grant = np.where(rng.random(n) < 0.10, 500 * rng.geometric(0.2, n), 0)
    rent = np.where(rng.random(n) < 0.4, 0, np.exp(6.6 + 0.45 * _tied(rng, wealth, 0.6)))
    weight = np.exp(12.0 + 0.55 * rng.standard_normal(n))
    sector = _texts(rng, _names("sector", 8), [70, 8, 6, 4, 4, 3, 3, 2], wealth)
    job = _texts(rng, _names("job", 14), _zipf(14, 0.5), wealth)
    family = _texts(rng, _names("family", 6), [40, 25, 15, 10, 6, 4], years / 20 - 2)
    region = _texts(rng, _names("region", 20), _zipf(20), wealth)
    sex = _texts(rng, ["f", "m"], [1, 2], hours / 13 - 3)
    over = _label(rng, 0.9 * wealth + 0.02 * (years - 38) + 0.8 * (gain > 5_000), 0.24)
    return {
        "age": Column(values=years, declared=integer(0, 120), made="scaled beta, 17 to 90"),
        "sector": Column(
            values=sector,
            declared=category(_names("sector", 8)),
            made="8 sectors, one of 70%, by wealth",
        ),
        "weight": Column(
            values=_whole(weight, 10_000, 1_500_000),
            declared=integer(0, 2_000_000),
            made="whole lognormal, median 163,000",
        ),
        "school": Column(values=school, declared=integer(1, 16), made="16 values, by wealth"),
        "family": Column(
            values=family, declared=category(_names("family", 6)), made="6 values, by age"
        ),
        "job": Column(values=job, declared=category(_names("job", 14)), made="14 jobs, by wealth"),
        "sex": Column(values=sex, declared=category(["f", "m"]), made="1 to 2, by hours"),
        "gain": Column(
            values=_whole(gain, 0, 99_999),
            declared=integer(0, 100_000),
            made="90% zeros, else lognormal; 5% of the others are the top code 99,999",
        ),
        "loss": Column(
            values=_whole(loss, 0, 5_000),
            declared=integer(0, 10_000),
            made="95% zeros, else about 1,870 give or take 380",
        ),
        "grant": Column(
            values=_whole(grant, 0, 50_000),
            declared=integer(0, 100_000),
            made="90% zeros, else 500 times a geometric number",
        ),
        "rent": Column(
            values=_whole(rent, 0, 20_000),
            declared=integer(0, 50_000),
            made="40% zeros, else lognormal, by wealth",
        ),
        "hours": Column(values=hours, declared=integer(0, 168), made="47% are 40, else normal"),
        "region": Column(
            values=region, declared=category(_names("region", 20)), made="20 regions, Zipf"
        ),
        "children": Column(
            values=_whole(rng.poisson(0.8, n).astype(float), 0, 15),
            declared=integer(0, 20),
            made="Poisson of mean .8",
        ),
        "over": Column(
            values=over,
            declared=category(["no", "yes"]),
            made="24% yes: logistic in wealth, age and a large gain",
        ),
    }, "over"


def _tails(rng: Rng, n: int) -> Made:
    """Heavy tails with decimals, as of sales."""
    size = rng.standard_normal(n)
    price = np.exp(3.2 + 1.1 * _tied(rng, size, 0.8))
    claim = 20 * (1 - _uniform(_tied(rng, size, 0.6))) ** (-1 / 1.6)
    cost = np.exp(4.0 + 1.6 * rng.standard_normal(n))
    weight = np.exp(0.4 + 0.8 * _tied(rng, size, 0.7))
    rate = rng.beta(0.7, 6.0, n)
    product = _texts(rng, _names("product", 12), _zipf(12, 0.7), size)
    channel = _texts(rng, ["shop", "web", "phone", "partner"], [5, 4, 1, 1], size)
    lasted = rng.exponential(9.0, n) + 0.1
    back = _label(rng, 0.7 * size + 0.5 * (channel == "web") - 0.1 * lasted, 0.2)
    return {
        "product": Column(
            values=product, declared=category(_names("product", 12)), made="12, by size"
        ),
        "channel": Column(
            values=channel,
            declared=category(["shop", "web", "phone", "partner"]),
            made="4, by size",
        ),
        "price": Column(
            values=_cents(price, 0.01, 1e6),
            declared=number(0, 1e6, 0.01),
            made="lognormal of sigma 1.1, cents",
        ),
        "claim": Column(
            values=_cents(claim, 0, 1e6),
            declared=number(0, 1e6, 0.01),
            made="Pareto of shape 1.6 from 20 on, cents",
        ),
        "cost": Column(
            values=_cents(cost, 0, 1e6),
            declared=number(0, 1e6, 0.01),
            made="lognormal of sigma 1.6, cents, tied to nothing",
        ),
        "weight": Column(
            values=_cents(weight, 0.001, 1_000, 3),
            declared=number(0, 1_000, 0.001),
            made="lognormal, three decimals, by size",
        ),
        "rate": Column(
            values=_cents(rate, 0, 1, 3),
            declared=number(0, 1, 0.001),
            made="beta(.7, 6), three decimals",
        ),
        "lasted": Column(
            values=_cents(lasted, 0, 1_000, 1),
            declared=number(0, 1_000, 0.1),
            made="exponential of mean 9, one decimal",
        ),
        "returned": Column(
            values=back,
            declared=category(["no", "yes"]),
            made="20% yes: logistic in size, channel and how long it lasted",
        ),
    }, "returned"


def _balances(rng: Rng, n: int) -> Made:
    """Signed balances and durations, as of a bank's calls."""
    wealth, interest = rng.standard_normal(n), rng.standard_normal(n)
    balance = 900 * np.sinh(0.25 + 0.95 * wealth) + 200 * rng.standard_normal(n)
    balance = np.where(rng.random(n) < 0.08, 0, balance)
    change = 40 * np.sinh(1.2 * _tied(rng, wealth, 0.3))
    duration = np.exp(5.15 + 0.95 * _tied(rng, interest, 0.5))
    called_before = rng.random(n) < 0.18
    since = np.where(called_before, 30 + 300 * rng.beta(1.4, 1.8, n), -1)
    previous = np.where(called_before, rng.geometric(0.35, n), 0)
    job = _texts(rng, _names("job", 12), _zipf(12, 0.4), wealth)
    month = _texts(rng, _names("month", 12), _zipf(12, 0.5), interest)
    home = _texts(rng, ["owner", "tenant"], [55, 45], wealth)
    yes = _label(rng, 0.8 * interest + 0.2 * wealth + 0.6 * called_before, 0.12)
    return {
        "age": Column(
            values=_whole(41 + 11 * _tied(rng, wealth, 0.3), 18, 95),
            declared=integer(0, 120),
            made="normal about 41, by wealth",
        ),
        "job": Column(values=job, declared=category(_names("job", 12)), made="12, by wealth"),
        "home": Column(values=home, declared=category(["owner", "tenant"]), made="by wealth"),
        "balance": Column(
            values=_whole(balance, -50_000, 200_000),
            declared=integer(-100_000, 500_000),
            made="signed, tails as of a sinh, 8% zero",
        ),
        "change": Column(
            values=_cents(change, -100_000, 100_000),
            declared=number(-100_000, 100_000, 0.01),
            made="signed and symmetric, cents, weakly by wealth",
        ),
        "day": Column(values=rng.integers(1, 32, n), declared=integer(1, 31), made="1 to 31, even"),
        "month": Column(values=month, declared=category(_names("month", 12)), made="12"),
        "duration": Column(
            values=_whole(duration, 0, 5_000),
            declared=integer(0, 10_000),
            made="lognormal seconds, by interest",
        ),
        "calls": Column(
            values=_whole(rng.geometric(0.36, n).astype(float), 1, 60),
            declared=integer(0, 100),
            made="geometric from 1",
        ),
        "since": Column(
            values=_whole(since, -1, 900),
            declared=integer(-1, 1_000),
            made="82% are -1 (never), else days",
        ),
        "previous": Column(
            values=_whole(previous.astype(float), 0, 100),
            declared=integer(0, 500),
            made="82% zeros, else geometric",
        ),
        "agreed": Column(
            values=yes,
            declared=category(["no", "yes"]),
            made="12% yes: logistic in interest, wealth and earlier calls",
        ),
    }, "agreed"


def _counts(rng: Rng, n: int) -> Made:
    """Counts small and wide, and ratings, as of a hospital."""
    illness = rng.standard_normal(n)
    ward = _texts(rng, _names("ward", 10), _zipf(10, 0.6), illness)
    tests = rng.poisson(np.exp(3.6 + 0.35 * illness))
    steps = rng.poisson(np.exp(7.3 + 0.5 * rng.standard_normal(n) - 0.2 * illness))
    back = _label(rng, illness + 0.3 * (ward == "ward 2"), 0.3)
    marks = np.array([0.05, 0.15, 0.35, 0.75])
    return {
        "ward": Column(values=ward, declared=category(_names("ward", 10)), made="10, by illness"),
        "sex": Column(
            values=_texts(rng, ["f", "m"], [1, 1], np.zeros(n)),
            declared=category(["f", "m"]),
            made="even, tied to nothing",
        ),
        "days": Column(
            values=_whole(
                rng.geometric(1 / (1 + np.exp(1.1 + 0.4 * illness))).astype(float), 1, 90
            ),
            declared=integer(0, 365),
            made="geometric, by illness",
        ),
        "tests": Column(
            values=_whole(tests.astype(float), 0, 400),
            declared=integer(0, 1_000),
            made="Poisson of mean about 37, by illness",
        ),
        "drugs": Column(
            values=_whole(rng.poisson(np.exp(1.5 + 0.4 * illness)).astype(float), 0, 60),
            declared=integer(0, 100),
            made="Poisson of mean about 5, by illness",
        ),
        "emergencies": Column(
            values=_whole(rng.poisson(0.1 * np.exp(0.5 * illness)).astype(float), 0, 20),
            declared=integer(0, 20),
            made="Poisson of mean about .11",
        ),
        "steps": Column(
            values=_whole(steps.astype(float), 0, 50_000),
            declared=integer(0, 100_000),
            made="Poisson about a lognormal mean of 1,500",
        ),
        "visits": Column(
            values=_whole(rng.negative_binomial(0.3, 0.05, n).astype(float), 0, 300),
            declared=integer(0, 1_000),
            made="negative binomial, half zeros and a long tail",
        ),
        "rating": Column(
            values=1 + np.searchsorted(marks, _uniform(_tied(rng, -illness, 0.5))),
            declared=integer(1, 5),
            made="1 to 5, the better the healthier",
        ),
        "food": Column(
            values=1 + np.searchsorted(marks, rng.random(n)),
            declared=integer(1, 5),
            made="1 to 5, tied to nothing",
        ),
        "score": Column(
            values=_whole(60 + 12 * _tied(rng, -illness, 0.8), 0, 100),
            declared=integer(0, 100),
            made="normal about 60, 0 to 100",
        ),
        "again": Column(
            values=back, declared=category(["no", "yes"]), made="30% yes: logistic in illness"
        ),
    }, "again"


def _bills(rng: Rng, n: int) -> Made:
    """Six bills that follow each other and six payments, as of credit cards: 17 columns."""
    wealth, use = rng.standard_normal(n), rng.standard_normal(n)
    limit = 10_000 * np.maximum(1, np.round(np.exp(2.4 + 0.8 * wealth)))
    idle = rng.random(n) < 0.08
    columns: dict[str, Column] = {
        "limit": Column(
            values=_whole(limit, 10_000, 1_000_000),
            declared=integer(0, 1_000_000),
            made="ten thousands, lognormal",
        ),
        "sex": Column(
            values=_texts(rng, ["f", "m"], [6, 4], wealth),
            declared=category(["f", "m"]),
            made="by wealth",
        ),
        "school": Column(
            values=_texts(rng, _names("school", 4), [35, 47, 16, 2], wealth),
            declared=category(_names("school", 4)),
            made="4, by wealth",
        ),
        "age": Column(
            values=_whole(21 + rng.gamma(2.2, 6.5, n), 21, 90),
            declared=integer(0, 120),
            made="gamma from 21",
        ),
    }
    score, late = _tied(rng, 0.7 * wealth + 0.7 * use, 0.95), rng.standard_normal(n)
    for month in range(1, 7):
        bill = 24_000 * np.sinh(0.35 + 1.05 * score)
        bill = np.where(idle | (rng.random(n) < 0.04), 0, bill)
        columns[f"bill_{month}"] = Column(
            values=_whole(bill, -200_000, 1_500_000),
            declared=integer(-500_000, 2_000_000),
            made="signed, sinh tail, 12% zero; rank correlation .90 with the month before",
        )
        paid = np.exp(7.6 + 1.2 * _tied(rng, score, 0.6))
        paid = np.where(idle | (rng.random(n) < 0.12), 0, paid)
        columns[f"paid_{month}"] = Column(
            values=_whole(paid, 0, 1_500_000),
            declared=integer(0, 2_000_000),
            made="20% zero, else lognormal, by the bill",
        )
        score = _tied(rng, score, 0.95)
    columns["fails"] = Column(
        values=_label(rng, late - 0.6 * wealth + 0.4 * use, 0.22),
        declared=category(["no", "yes"]),
        made="22% yes: logistic in wealth, use and what no column says",
    )
    return columns, "fails"


def _days(rng: Rng, n: int) -> Made:
    """Dates, days since, and amounts, as of subscriptions."""
    loyal = rng.standard_normal(n)
    low, span = np.datetime64("2012-03-01"), 4_300
    joined = np.minimum(span - 1, np.floor(span * _uniform(_tied(rng, -loyal, 0.5)) ** 0.7))
    rest = span - joined
    last = joined + np.floor(rest * rng.beta(4 * np.exp(0.4 * loyal), 0.8))
    born = np.datetime64("1978-06-15") + np.round(5_200 * rng.standard_normal(n)).astype(int)
    plan = _texts(rng, ["basic", "plus", "family", "firm"], [50, 30, 15, 5], loyal)
    region = _texts(rng, _names("region", 10), _zipf(10, 0.5), loyal)
    paid = np.round(np.exp(2.3 + 0.5 * _tied(rng, loyal, 0.5)) * 4) / 4
    paid = np.where(rng.random(n) < 0.15, 0, paid)
    tickets = np.where(rng.random(n) < 0.7, 0, rng.geometric(0.4, n))
    called = last + (1 + 3 * rng.standard_normal(n) + 12 + 6 * (rng.random(n) < 0.3)) / 24
    called = np.floor(np.clip(called, 0, span - 1) * 1_440).astype(int)
    left = _label(rng, -loyal + 0.4 * (plan == "basic") + 0.2 * tickets, 0.25)
    empty = rng.random(n) < 0.12
    renewed = (low + last.astype(int)).astype("datetime64[ns]")
    return {
        "born": Column(
            values=np.clip(born, np.datetime64("1930-01-01"), np.datetime64("2009-12-31")).astype(
                "datetime64[ns]"
            ),
            declared=day("1900-01-01", "2029-12-31"),
            made="normal about June 1978",
        ),
        "joined": Column(
            values=(low + joined.astype(int)).astype("datetime64[ns]"),
            declared=day("2010-01-01", "2024-12-31"),
            made="March 2012 to December 2023, more of them late, by loyalty",
        ),
        "renewed": Column(
            values=np.where(empty, np.datetime64("NaT"), renewed),
            declared={**day("2010-01-01", "2024-12-31"), "missing": True},
            made="after joining, mostly near the end; 12% missing",
        ),
        "called": Column(
            values=low.astype("datetime64[ns]") + called * np.timedelta64(60_000_000_000, "ns"),
            declared={
                "kind": "datetime",
                "low": "2010-01-01",
                "high": "2024-12-31",
                "precision": "minute",
            },
            made="on the day of the last renewal, about 13:00 or 19:00, minutes",
        ),
        "since": Column(
            values=_whole(span - last, 0, 5_000),
            declared=integer(0, 10_000),
            made="days since the last renewal, most few",
        ),
        "plan": Column(
            values=plan, declared=category(["basic", "plus", "family", "firm"]), made="by loyalty"
        ),
        "region": Column(
            values=region, declared=category(_names("region", 10)), made="10, by loyalty"
        ),
        "paid": Column(
            values=_cents(paid, 0, 500),
            declared=number(0, 1_000, 0.01),
            made="15% zero, else lognormal in quarters, by loyalty",
        ),
        "tickets": Column(
            values=_whole(tickets.astype(float), 0, 40),
            declared=integer(0, 100),
            made="70% zeros, else geometric",
        ),
        "left": Column(
            values=left,
            declared=category(["no", "yes"]),
            made="25% yes: logistic in loyalty, plan and tickets",
        ),
    }, "left"


MADE: Final[dict[str, Callable[[Rng, int], Made]]] = {
    "skewed": _skewed,
    "tails": _tails,
    "balances": _balances,
    "counts": _counts,
    "bills": _bills,
    "days": _days,
    "small": _counts,
}
"""Generated tables by name."""
ROWS_OF: Final = {"small": 800}
LARGE: Final = tuple(name for name in MADE if name not in ROWS_OF)
"""The generated tables that have bars."""


# Real files, found through SFUMATO_DATA


def _real_schema(name: str, columns: Mapping[str, Declared]) -> Declared:
    listed = [{"name": title, **column} for title, column in columns.items()]
    return {"sfumato": 1, "dataset": f"values-{name}", "columns": listed}


def _bank(folder: Path) -> ValueTable:
    """28,961 calls of a bank: limits as somebody would write who has not seen the file."""
    file = folder / "raw" / "bank.csv"
    limits_of = {
        "age": integer(0, 120),
        "balance": integer(-20_000, 200_000),
        "day": integer(1, 31),
        "duration": integer(0, 10_000),
        "campaign": integer(0, 100),
        "pdays": integer(-1, 1_000),
        "previous": integer(0, 500),
    }
    frame = pd.read_csv(file, sep=";")
    return _real("bank", frame, limits_of, label="y", file=file)


def _adult(folder: Path) -> ValueTable:
    """48,842 persons; the numbers are codes of even bins, all of them declared."""
    file = folder / "adult" / "adult.csv"
    limits_of = {
        "age": integer(0, 84),
        "fnlwgt": integer(0, 99),
        "education-num": integer(0, 15),
        "capital-gain": integer(0, 99),
        "capital-loss": integer(0, 99),
        "hours-per-week": integer(0, 98),
    }
    return _real("adult", pd.read_csv(file), limits_of, label="income>50K", file=file)


def _student(folder: Path) -> ValueTable:
    """395 pupils: too few for anything but coarse counts."""
    file = folder / "raw" / "student.csv"
    limits_of = {
        "age": integer(10, 25),
        "Medu": integer(0, 4),
        "Fedu": integer(0, 4),
        "traveltime": integer(1, 4),
        "studytime": integer(1, 4),
        "failures": integer(0, 4),
        **{title: integer(1, 5) for title in ("famrel", "freetime", "goout", "Dalc", "Walc")},
        "health": integer(1, 5),
        "absences": integer(0, 200),
        **{title: integer(0, 20) for title in ("G1", "G2", "G3")},
    }
    return _real("student", pd.read_csv(file), limits_of, label="higher", file=file)


def _airquality(folder: Path) -> ValueTable:
    """9,357 hours of sensors, decimal commas, -200 for what is missing; no category."""
    file = folder / "raw" / "airquality.csv"
    frame = pd.read_csv(file, sep=";", decimal=",", usecols=range(15))
    frame = frame[frame["Date"].notna()].reset_index(drop=True)
    frame["Date"] = pd.to_datetime(frame["Date"], format="%d/%m/%Y")
    limits_of: dict[str, Declared] = {
        "Date": {**day("2000-01-01", "2009-12-31"), "format": "%d/%m/%Y"}
    }
    tenths = {"CO(GT)", "C6H6(GT)", "T", "RH"}
    for title in frame.columns[2:]:
        if title in tenths:
            limits_of[title] = number(-200, 200, 0.1)
        elif title == "AH":
            limits_of[title] = number(-200, 10, 0.0001)
        else:
            limits_of[title] = integer(-200, 5_000)
    return _real("airquality", frame, limits_of, label=None, file=file)


def _real(
    name: str,
    frame: pd.DataFrame,
    limits_of: Mapping[str, Declared],
    *,
    label: str | None,
    file: Path,
) -> ValueTable:
    """Limits are declared; the lists of categories are taken from the file, as if public."""
    frame = frame.copy()
    columns = {}
    for title in frame.columns:
        if title in limits_of:
            columns[title] = limits_of[title]
        else:
            frame[title] = frame[title].astype(str).astype(object)
            columns[title] = category(sorted(frame[title].unique()))
    schema = _real_schema(name, columns)
    return ValueTable(name=name, frame=frame, held_back=None, schema=schema, label=label, file=file)


REAL: Final[dict[str, Callable[[Path], ValueTable]]] = {
    "bank": _bank,
    "adult": _adult,
    "student": _student,
    "airquality": _airquality,
}
"""Real files by name; they are never copied into the project."""
TABLES: Final = (*MADE, *REAL)


def table_named(name: str, *, seed: int = 0) -> ValueTable:
    """A generated table, or a real one where SFUMATO_DATA says where it is."""
    if name in MADE:
        return made_table(name, seed=seed)
    if "SFUMATO_DATA" not in os.environ:
        raise SystemExit(f"SFUMATO_DATA must name the folder of the real tables for {name}")
    return REAL[name](Path(os.environ["SFUMATO_DATA"]))
