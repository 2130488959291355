"""What is written tells nothing of the batches and parts that the private table came in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.counting import shuffle
from sfumato.gate import row_answers

ROWS = 1_000
SCHEMA = sf.Schema.from_dict(
    {
        "sfumato": 1,
        "dataset": "written",
        "columns": [
            {"name": "age", "kind": "integer", "low": 0, "high": 9},
            {"name": "sex", "kind": "category", "values": ["f", "m"]},
        ],
    }
)


def chunked(*sizes: int, first: int = 0) -> pa.Table:
    """The same rows in batches of some sizes; the neighbor differs in the first row."""
    ages, sexes = [first, *(n % 10 for n in range(1, ROWS))], ["f", "m"] * (ROWS // 2)
    whole = pa.table({"age": ages, "sex": sexes})
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    return pa.concat_tables(whole.slice(at, size) for at, size in zip(starts, sizes, strict=True))


TABLES: dict[str, Callable[[], pa.Table]] = {
    "whole": lambda: chunked(ROWS),
    "halves": lambda: chunked(500, 500),
    "one row alone": lambda: chunked(1, 998, 1),
    "tens": lambda: chunked(*[10] * 100),
    "neighbor": lambda: chunked(3, ROWS - 3, first=9),
}


def groups(path: Path) -> list[int]:
    footer = pq.ParquetFile(path).metadata
    return [footer.row_group(place).num_rows for place in range(footer.num_row_groups)]


def answered(table: pa.Table, folder: Path, ledger: Path) -> list[Path]:
    sf.simulate_answers(
        table, schema=SCHEMA, column="age", epsilon=1, out=folder / "a.parquet", ledger=ledger
    )
    return [folder / "a.parquet"]


def published(table: pa.Table, folder: Path, ledger: Path) -> list[Path]:
    sf.publish_table(
        table, schema=SCHEMA, epsilon=1, neighbors="replace", out=folder / "r", ledger=ledger
    )
    return sorted((folder / "r").glob("*.parquet"))


def randomized(table: pa.Table, folder: Path, ledger: Path) -> list[Path]:
    sf.dp2pub_table(
        table, schema=SCHEMA, epsilon=1, trust="nobody", out=folder / "r", ledger=ledger
    )
    return sorted((folder / "r").glob("*.parquet"))


@pytest.mark.parametrize("write", [answered, published, randomized])
def test_the_structure_of_what_is_written_is_that_of_the_public_facts(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_answers, "BATCH_ROWS", 150)
    monkeypatch.setattr(shuffle, "MEMORY_ROWS", 400)  # so that rows pass through files
    monkeypatch.setattr(shuffle, "PILES", 3)
    found = {}
    for name, make in TABLES.items():
        folder = tmp_path / name
        folder.mkdir()
        paths = write(make(), folder, tmp_path / f"{name}-ledger")
        found[name] = {path.name: groups(path) for path in paths}
    assert all(each == found["whole"] for each in found.values())
    if write is answered:
        assert found["whole"] == {"a.parquet": [150] * 6 + [100]}
    else:
        assert found["whole"]["data.parquet"] == [ROWS]
