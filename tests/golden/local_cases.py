"""Settings, columns, values, texts and changes that the vectors of local answers are made for."""

EPSILONS = (
    *("1/10000", "32", "1", "2", "1/2", "1/3", "2/3", "7/5", "31/7", "1/9999", "4", "5", "8"),
    *(
        "16",
        "319999/10000",
        "22/7",
        "355/113",
        "123456789/987654321",
        "5000001/5000000",
        "693/1000",
    ),
    *("1000000007/998244353", "99999999999999999999/31415926535897932384", "3/1048576000"),
    *(f"{n}/{1 + n * n % 97}" for n in range(1, 60)),
    *(f"{n}/10" for n in range(1, 41)),
)
SIZES = (2, 3, 4, 5, 7, 8, 10, 16, 17, 31, 64, 100, 255, 256, 1000, 4097, 65_536, 1_000_000)

COLUMNS = (
    {"name": "smoker", "kind": "boolean"},
    {"name": "member", "kind": "boolean", "texts": ["nein", "ja"], "missing": True},
    {
        "name": "plan-b",
        "kind": "category",
        "values": ["red", " blue ", "", "سبز", "綠🟢"],
        "other": True,
    },
    {
        "name": "health",
        "kind": "ordinal",
        "values": ["poor", "fair", "good"],
        "missing": True,
        "missing_texts": ["n/a", "-"],
    },
    {"name": "age", "kind": "integer", "low": 18, "high": 89, "step": 6},
    {"name": "debt", "kind": "integer", "low": -(2**61), "high": -(2**61) + 299},
    {
        "name": "income",
        "kind": "number",
        "missing": True,
        "edges": [-0.5, 0, 1e-05, 0.1, 10_000, 1e16, 1.5e300],
    },
    {"name": "born", "kind": "date", "low": "1899-12-31", "high": "2024-02-29", "step": "quarter"},
    {
        "name": "visit",
        "kind": "date",
        "low": "2023-12-28",
        "high": "2024-03-03",
        "step": "week",
        "format": "%d.%m.%Y",
    },
    {
        "name": "seen",
        "kind": "datetime",
        "step": "hour",
        "low": "2024-02-28T10:30:00",
        "high": "2024-03-01T09:00:00",
    },
    {
        "name": "call",
        "kind": "datetime",
        "step": "minute",
        "zone": "Europe/Rome",
        "low": "2024-03-30T23:00:00+00:00",
        "high": "2024-03-31T03:59:59.999999+00:00",
        "format": "%d/%m/%Y %H:%M %z",
    },
    {"name": "one", "kind": "category", "values": ["only"]},
)
WRITTEN = (
    {
        "name": "co",
        "kind": "number",
        "edges": [0, 2, 1234.5, 1e6],
        "decimal": ",",
        "thousands": ".",
    },
    {"name": "rows", "kind": "integer", "low": 0, "high": 99999, "thousands": " ", "missing": True},
    {"name": "pay", "kind": "number", "edges": [0, 2, 1234.5, 1e6], "thousands": "'"},
    {"name": "air", "kind": "integer", "low": -200, "high": 2000, "decimal": ","},
)
"""Columns of numbers as people write them."""
_NUMBERS = [
    *("2", "2,6", "2.6", " 1.234,5 ", "1234,5", "1.23", "0.234", "1.2345", "1..234", ",5", "1.234"),
    *("1 234", "1\u00a0234", "1\u202f234", "12 34", "1'234", "1\u2019234.5", "1,234.5", "-200,0"),
    *("1.234.567", "1,5e2", "+7", "-1.000", "1,", ",", "", "abc", "\u0661,5", "9" * 400, 2, None),
]
VALUES = {
    **{entry["name"]: _NUMBERS for entry in WRITTEN},
    "smoker": ["yes", " No ", "T", "1", "0", "", "maybe", True, False, None],
    "member": ["ja", " nein", "JA", "", None],
    "plan-b": ["red", " blue ", "blue", "", "سبز", "綠🟢", "Red", None],
    "health": ["good", "n/a", " - ", "great", "", None],
    "age": [
        *("18", "23", "24", "89", "90", "-7", " 30.00 ", "30.5", "3e1", "1_0", "+30", "5.", ".5"),
        *("", "9" * 30, "9" * 400, "nan", "inf", "--3", "0x10", None),
    ],
    "debt": ["-2305843009213693952", "-2305843009213693951", "-2305843009213692954", "0"],
    "income": [
        *(
            "-1",
            "-0.5",
            "-0.0",
            "0",
            "0.00001",
            "0.0000099999",
            "0.1",
            ".1",
            "1e4",
            "1E+4",
            "9999.99",
        ),
        *("+5", "1e16", "1.5e300", "1e308", "1e400", "nan", "-inf", "", "1,5", "5.", " 7 ", None),
    ],
    "born": [
        *("1899-12-31", "1899-01-01", "1900-02-29", "1900-01-01", "2000-02-29", "2024-02-30"),
        *(
            "2024-02-29",
            "2199-01-01",
            "2024-2-1",
            "20240201",
            "0001-01-01",
            "0000-01-01",
            "",
            "today",
        ),
        " 1999-06-30 ",
    ],
    "visit": [
        "28.12.2023",
        "1.1.2024",
        "31.12.2023",
        "2024-01-01",
        "3.3.2024",
        "30.2.2024",
        "1x1x2024",
    ],
    "seen": [
        *("2024-02-28T10:30", "2024-02-28T10:59:59.999999999", "2024-02-28 11:00:00", "2024-02-29"),
        *(
            "2024-02-29T24:00",
            "2024-02-29T23:60",
            "2024-03-01T08:59:59",
            "2030-01-01",
            "1999-01-01T00:00Z",
        ),
    ],
    "call": [
        *(
            "31/03/2024 00:00 +0000",
            "31/03/2024 01:59 +01:00",
            "31/3/2024 2:5 Z",
            "31/03/2024 02:05",
        ),
        *("30/03/2024 20:00 -0330", "01/04/2024 00:00 Z", "31/03/2024 00:00 +2400"),
    ],
    "one": ["only", "other"],
}
FLOATS = (
    0.0,
    -0.0,
    1.0,
    0.1,
    -2.5,
    1e15,
    1e16,
    123456789012345680.0,
    1e-4,
    1e-5,
    1.5e-7,
    1e22,
    5e-324,
)
TEXTS = (
    "",
    "plain",
    'quote " and \\',
    "\n\t\r\b\f\x00\x1f\x7f",
    "é",
    "سلام‌ها",
    "綠🟢",
    "\u2028",
    "\ud800",
)


def changed_plans(plan: dict, variant: str):
    """A plan, and the same with something changed that a device should notice."""
    yield plan
    yield plan | {"survey": "0" * 32}
    yield plan | {"sfumato": 2}
    yield plan | {"sfumato": True}
    yield plan | {"extra": 1}
    yield plan | {"kind": "other"}
    for number in (0, 3, True, "1", 1.0, None):
        yield plan | {"round": number}
    yield {name: value for name, value in plan.items() if name != "round"}
    yield from _changed_budgets(plan) if variant == "faithful" else _changed_parts(plan)


def _changed_budgets(plan: dict):
    budgets = plan["budgets"]
    first, *others = budgets
    for text in ("1/2", "1/9", "2/18", "-1/4", "0", "0.25", "33", 1, None, "1" * 31):
        yield plan | {"budgets": budgets | {first: text}}
    yield plan | {"budgets": {name: budgets[name] for name in others}}
    yield plan | {"budgets": budgets | {"one": "1/4"}}
    yield plan | {"budgets": []}


def _changed_parts(plan: dict):
    for text in ("3", "21/10", "1", "2/1", "4/2", "2.0", 2, None):
        yield plan | {"epsilon": text}
    parts = plan["parts"]
    yield plan | {"parts": []}
    yield plan | {"parts": [*parts, parts[0]]}
    for change in (
        *({"weight": weight} for weight in (0, -1, 2**62, 2**62 + 1, 1.0, "1", True)),
        *({"columns": names} for names in ([], ["nobody"], ["one"], "age", [1], ["age", "smoker"])),
        *({"protocol": name} for name in ("oue", "", None, 1, "toString")),
        *({"bins": bins} for bins in ([], [None, None], [99], [-1], [True], 0)),
        {"extra": 1},
    ):
        yield plan | {"parts": [parts[0] | change, *parts[1:]]}
    for bins in ([], [[0, 1]], [*plan["bins"], [0, 1]], [[0.0]], "x", [[0, 2, 1]], [[0, 0, 2]]):
        yield plan | {"bins": bins}


def changed_columns(columns: list[dict]):
    """Lists of columns that are none, or that say the same in other words."""
    yield []
    yield [columns[-1]]
    yield [*columns, columns[0]]
    for change in (
        *({"kind": kind} for kind in ("text", None, "toString", "number")),
        *({"missing": given} for given in (False, 1, None)),
        *({"name": given} for given in ("", " ", 1)),
        {"texts": None},
        {"texts": ["a", "a"]},
        {"texts": ["a", " b"]},
        {"low": 1},
    ):
        yield [{**columns[0], **change}, *columns[1:]]
    whole = next(entry for entry in columns if entry["kind"] == "integer")
    for change in (
        *({"decimal": given} for given in (",", ".", ";", "", None, 1)),
        *({"thousands": given} for given in (",", "", "\u00a0", "_", None, [","])),
        {"decimal": ",", "thousands": ","},
        {"thousands": "."},
    ):
        yield [{**entry, **change} if entry is whole else entry for entry in columns]
