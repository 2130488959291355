"""Damaged files, the same for the same seed: tables in every format, and files that describe them.

A mutant is a good file after some accidents, to its bytes (flips, cuts, stray signs, encodings)
or to what it says: odd values, names and types in a file that is otherwise well written. Texts
with ``SECRET`` stand in the rows only: a message that shows one has quoted a row.
"""

import gzip
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SECRET = "Zqx7w"
ROWS = 24

SCHEMA = {
    "sfumato": 1,
    "dataset": "mutants",
    "columns": [
        {"name": "town", "kind": "category", "values": ["A", "B"], "other": True, "missing": True},
        {"name": "level", "kind": "ordinal", "values": ["low", "mid", "high"]},
        {"name": "age", "kind": "integer", "low": 0, "high": 99, "step": 10, "missing": True},
        {"name": "pay", "kind": "number", "edges": [0, 10.5, 20, 100], "decimals": 2},
        {"name": "member", "kind": "boolean", "texts": ["no", "yes"], "missing": True},
        {"name": "day", "kind": "date", "low": "2020-01-01", "high": "2020-12-31", "step": "month"},
        {
            "name": "at", "kind": "datetime", "low": "2020-01-01", "high": "2020-12-31",
            "step": "day", "missing": True, "missing_texts": ["?"],
        },
    ],
    "exclude": ["name"],
    "impossible": [{"level": ["low"], "age": [90, 99]}],
}  # fmt: skip
WORKLOAD = {
    "marginals": [["town", "level"], ["age"]],
    "ranges": [{"age": [10, 39]}, {"pay": [0, 20], "level": ["low", "mid"]}],
    "weights": {"marginals": [2.5, 1], "ranges": [1, 1]},
}
TOTALS = {"totals": [{"columns": ["level"], "counts": [["low", 8], ["mid", 8], ["high", 8]]}]}


def _column(number: int) -> list[str | None]:
    """One row as text."""
    town = ("A", "B", f"{SECRET}town{number}", None)[number % 4]
    month = f"2020-{number % 12 + 1:02}"
    return [
        town,
        ("low", "mid", "high")[number % 3],
        str(3 * number % 89) if number % 7 else None,
        f"{number * 4.25:.2f}",
        ("no", "yes")[number % 2],
        f"{month}-{number + 1:02}",
        f"{month}-15T08:30:00" if number % 5 else "?",
        f'{SECRET}, "of" {number}',
    ]


Grid = list[list[str | None]]
NAMES: list[str | None] = [*(column["name"] for column in SCHEMA["columns"]), "name"]
TEXTS = [_column(number) for number in range(ROWS)]


def _csv(rows: Grid, *, delimiter: str = ",", end: str = "\n", quoted: bool = False) -> bytes:
    def field(text: str | None) -> str:
        text = text or ""
        risky = quoted or {'"', delimiter, "\n", "\r"} & {*text}
        return '"' + text.replace('"', '""') + '"' if risky else text

    return "".join(delimiter.join(map(field, row)) + end for row in rows).encode()


def _lines(rows: Grid) -> bytes:
    names, *rows = rows
    return "".join(json.dumps(dict(zip(names, row, strict=False))) + "\n" for row in rows).encode()


def _parquet(rows: Grid) -> bytes:
    names, *rows = rows
    columns = [_typed(list(column)) for column in zip(*rows, strict=False)]
    out = io.BytesIO()
    pq.write_table(pa.table(columns, names=[str(name) for name in names[: len(columns)]]), out)
    return out.getvalue()


def _typed(texts: list[str | None]) -> pa.Array:
    """A column as the first type that holds all its texts."""
    for kind in (pa.int64(), pa.float64(), pa.date32()):
        with suppress(pa.ArrowInvalid):
            return pa.array(texts, pa.string()).cast(kind)
    return pa.array(texts, pa.string())


def _sqlite(rows: Grid) -> bytes:
    names, *rows = rows
    wide = max((len(names), *map(len, rows)))
    filled = [(*row, *[None] * (wide - len(row))) for row in rows]
    listed = [f"{name or ''}"[:60].replace("\0", "") for name in names]
    unique = [
        f"{name}{place if name in listed[:place] else ''}" for place, name in enumerate(listed)
    ]
    unique += [f"more{place}" for place in range(len(names), wide)]
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in unique)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.db"
        with closing(sqlite3.connect(path)) as book:
            book.execute(f"CREATE TABLE people ({quoted})")
            book.executemany(f"INSERT INTO people VALUES ({', '.join('?' * wide)})", filled)
            book.commit()
        return path.read_bytes()


def _gz(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _zst(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


WRITERS: dict[str, Callable[[Grid], bytes]] = {
    ".csv": _csv,
    ".csv.gz": lambda rows: _gz(_csv(rows)),
    ".csv.zst": lambda rows: _zst(_csv(rows)),
    ".parquet": _parquet,
    ".db": _sqlite,
    ".jsonl": _lines,
    ".json": lambda rows: b"[" + _lines(rows).replace(b"\n", b",")[:-1] + b"]",
}
DOCUMENTS = {"schema": SCHEMA, "workload": WORKLOAD, "totals": TOTALS}
GOOD: dict[str, bytes] = {
    **{kind: write([NAMES, *TEXTS]) for kind, write in WRITERS.items()},
    **{kind: json.dumps(value).encode() for kind, value in DOCUMENTS.items()},
}
STRAY = [
    *(b'"', b'""', b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xff\xfe"),
    *(
        b"=cmd()",
        b"\x1b[2J",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x92\xa9",
        "１２".encode(),
        b"1e400",
        b"NaN",
    ),
    *(b"-0", b"1e-400", b"1,5", b"9" * 400, b"0x1F", b"-inf", b"null", b"true", b"{", b"}", b"["),
    *(
        b"]",
        b":",
        b"[[[[[[[[",
        b'{"a":',
        b"\\ud800",
        b"\\u0000",
        b"2020-02-30",
        b"  ",
        b"--",
        b"%n",
    ),
]
ODD = [
    *(
        "",
        " ",
        "NA",
        "-0",
        "1e400",
        "1e-400",
        "NaN",
        "inf",
        "１２",
        "1,5",
        "٣",
        "0x1F",
        "1_000",
        "+5",
    ),
    *("5.", "  7 ", "9" * 400, "=1+1", "2020-02-30", "2020-13-01", "0000-00-00", "9999-12-31", "½"),
    *("10000-01-01", "2020-01-01T25:00", "2020-01-01T00:00:00+99:99", "true", "\x1b[2J", "\u202e"),
    *("a\nb", '"', "1e5", "1.0000000", "-1", "9" * 20, "2020-1-1", "12/31/2020", "1/2", "∞", "Ⅷ"),
    *(
        "null",
        "(other)",
        "(missing)",
        "\N{PILE OF POO}",
        "%s",
        "../../x",
        "<script>",
        "a" * 5_000,
        None,
    ),
]
ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e308, 2**53 + 1, 10**30, -(10**30), 10**5_000 % 10**400),
    *(float("nan"), float("inf"), "", " ", "x" * 5_000, "\ud800", "\0", "\x1b[2J", "A", "1", "%Y"),
    *(
        [],
        [[]],
        {},
        {"a": 1},
        [None],
        [1, 2, 3],
        ["A", "A"],
        [True, "x"],
        [3, 1],
        [0.1, 0.2],
        [1e308],
    ),
    *(
        "town",
        "age",
        "level",
        "2020-02-30",
        "2020-06-01",
        "9999-12-31",
        "Mars/Phobos",
        "UTC",
        "month",
    ),
    *("category", "integer", "number", "date", "datetime", "boolean", "(other)", "(missing)", [""]),
]
Below = Callable[[int], int]


def mutant(kind: str, seed_words: list[int]) -> bytes:
    """A file of that kind after an accident or some, chosen by the words."""
    words = iter(seed_words)

    def below(bound: int) -> int:
        return next(words) % max(1, bound)

    if kind in DOCUMENTS and below(4):
        return _odd_document(DOCUMENTS[kind], below)
    if kind not in DOCUMENTS and below(5) < 2:
        return _odd_table(kind, below)
    content = GOOD[kind]
    for _ in range(1 + below(2) * below(4)):
        content = _ACCIDENTS[below(len(_ACCIDENTS))](content, below)
    return content


def _odd_table(kind: str, below: Below) -> bytes:
    """A well written table with some odd fields, names or rows."""
    rows = [list(row) for row in [NAMES, *TEXTS]]
    for _ in range(1 + below(3)):
        row = rows[below(len(rows)) if below(8) else 0]
        what = below(12)
        if what == 0:
            rows.append([*row, "more"])
        elif what == 1:
            del rows[1 + below(len(rows) - 1) :]
            rows.append(list(TEXTS[0]))
        elif row:
            row[below(len(row))] = ODD[below(len(ODD))]
    if kind == ".csv":
        forms = {"delimiter": ",;\t|"[below(4)], "end": ("\n", "\r\n", "\r")[below(3)]}
        return _csv(rows, quoted=below(2) == 0, **forms)
    return WRITERS[kind](rows)


def _odd_document(value: Any, below: Below) -> bytes:
    """Well written JSON with one or two odd values in it, at any depth."""
    value = json.loads(json.dumps(value))
    for _ in range(1 + below(2)):
        _put_odd(value, below)
    return json.dumps(value).encode()


def _put_odd(value: Any, below: Below) -> None:
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = keys[below(len(keys))]
    if isinstance(value[key], dict | list) and below(6):
        _put_odd(value[key], below)
    elif below(8) == 0:
        del value[key]
    elif below(8) == 0 and isinstance(value, dict):
        value[str(ODD_VALUES[below(len(ODD_VALUES))])[:40]] = value[key]
    else:
        value[key] = ODD_VALUES[below(len(ODD_VALUES))]


def _flip(content: bytes, below: Below) -> bytes:
    place = below(len(content))
    return content[:place] + bytes([below(256)]) + content[place + 1 :]


def _cut(content: bytes, below: Below) -> bytes:
    return content[: below(len(content))]


def _drop(content: bytes, below: Below) -> bytes:
    place = below(len(content))
    return content[:place] + content[place + 1 + below(40) :]


def _insert(content: bytes, below: Below) -> bytes:
    place = below(len(content))
    return content[:place] + STRAY[below(len(STRAY))] + content[place:]


def _swap_in(content: bytes, below: Below) -> bytes:
    place = below(len(content))
    stray = STRAY[below(len(STRAY))]
    return content[:place] + stray + content[place + len(stray) :]


def _splice(content: bytes, below: Below) -> bytes:
    """A piece of the file, or of another one, somewhere else in it."""
    other = GOOD[sorted(GOOD)[below(len(GOOD))]] if below(4) == 0 else content
    start, place = below(len(other)), below(len(content))
    return content[:place] + other[start : start + 1 + below(200)] + content[place:]


def _repeat(content: bytes, below: Below) -> bytes:
    start = below(len(content))
    piece = content[start : start + 1 + below(60)]
    return content[:start] + piece * (1 + below(20)) + content[start:]


def _replace(content: bytes, below: Below) -> bytes:
    """One sign for another, everywhere: another delimiter, another line end, no quotes."""
    pairs = [
        (b",", b";"),
        (b"\n", b"\r\n"),
        (b"\n", b"\r"),
        (b'"', b"'"),
        (b",", b"\t"),
        (b" ", b""),
    ]
    old, new = pairs[below(len(pairs))]
    return content.replace(old, new)


def _encode(content: bytes, below: Below) -> bytes:
    """The same text in another encoding."""
    to = ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp1252", "utf-7")[below(6)]
    return content.decode("latin-1").encode(to, "replace")


def _put_value(content: bytes, below: Below) -> bytes:
    """A value between two commas or colons becomes another: of another type, or none."""
    marks = [place for place, sign in enumerate(content) if sign in b",:[" and place]
    if not marks:
        return content
    start = marks[below(len(marks))] + 1
    ends = [end for end in (content.find(s, start) for s in (b",", b"\n", b"]", b"}")) if end >= 0]
    return content[:start] + STRAY[below(len(STRAY))] + content[min(ends, default=start) :]


_ACCIDENTS: list[Callable[[bytes, Below], bytes]] = [
    *[_put_value] * 8, *[_flip] * 3, *[_insert] * 2, _swap_in, _replace, _replace, _drop, _splice,
    _repeat, _cut, _encode,
]  # fmt: skip
