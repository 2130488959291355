"""Commands on a table of a PostgreSQL server: paid for, one snapshot, and the password nowhere."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from servers import PASSWORD, Database

SPELLINGS = {PASSWORD.encode(), quote(PASSWORD, safe="").encode(), quote(PASSWORD).encode()}


@pytest.fixture
def address(database: Database) -> str:
    database.run("""
        CREATE TABLE people AS SELECT i AS who, i % 10 AS age,
          (ARRAY['A', 'B', 'C'])[1 + i % 3] AS town, '{}'::jsonb AS doc
        FROM generate_series(0, 239) i
    """)
    return f"{database.address}::people"


def assert_no_secret(*places: Path | str | bytes) -> None:
    for place in places:
        files = [f for f in place.rglob("*") if f.is_file()] if isinstance(place, Path) else [place]
        for file in files:
            content = file.read_bytes() if isinstance(file, Path) else file
            content = content.encode() if isinstance(content, str) else content
            assert not [secret for secret in SPELLINGS if secret in content], file


def test_a_table_is_published_and_compared_and_its_password_is_nowhere(
    address: str, world: Any, own_home: Path
) -> None:
    log = world.folder / "log.txt"
    more = ["--csv", "--evaluate", "--neighbors", "replace"]
    published = world.run("--log", log, *world.arguments(*more, table=address, epsilon="100"))
    assert published.code == 0, published.err
    assert pq.read_table(world.out / "data.parquet").num_rows == 240
    assert [entry.cost for entry in world.spends()]
    compared = world.run("evaluate", world.out, "--against", address, "--ledger", world.ledger)
    assert compared.code == 0, compared.err
    assert log.stat().st_size > 0
    said = (published.out, published.err, compared.out, compared.err)
    assert_no_secret(world.folder, own_home, *said)


def test_the_scan_would_find_a_password(tmp_path: Path) -> None:
    (tmp_path / "release.json").write_text(json.dumps({"table": f"postgresql://a:{PASSWORD}@h/d"}))
    with pytest.raises(AssertionError):
        assert_no_secret(tmp_path)


def test_a_wrong_password_is_one_message_and_costs_nothing(address: str, world: Any) -> None:
    wrong = address.replace("s3cret", "wr0ng")
    command = [sys.executable, "-m", "sfumato", *world.arguments(table=wrong)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 4
    assert "the user or the password is not right" in done.stderr
    assert "Traceback" not in done.stderr
    for part in ("wr0ng", quote(PASSWORD.removeprefix("s3cret"), safe="")):
        assert part not in done.stdout + done.stderr
    assert world.spends() == []
    assert not world.out.exists()


def test_people_are_bounded_by_a_column_of_the_server(address: str, world: Any) -> None:
    done = world.publish("--person", "who", "--max-rows", "1", table=address)
    assert done.code == 0, done.err
    assert_no_secret(world.folder, done.out, done.err)


def test_a_schema_is_drafted_and_types_that_can_not_be_read_are_left_out(
    address: str, world: Any
) -> None:
    draft = world.folder / "draft.json"
    done = world.run("schema", "draft", address, "-o", draft)
    assert done.code == 0, done.err
    content = json.loads(draft.read_text())
    assert {"age", "town"} <= {column["name"] for column in content["columns"]}
    assert "doc" in content["exclude"]
    assert "jsonb" in draft.read_text() + done.out + done.err
    assert_no_secret(world.folder, done.out, done.err)


def test_a_plan_may_look_at_a_public_table_of_a_server(address: str, world: Any) -> None:
    plan = ["plan", "--schema", world.schema, "--rows", "240", "--epsilon", "1", "--json"]
    done = world.run(*plan, "--like", address)
    assert done.code == 0, done.err
    assert_no_secret(world.folder, done.out, done.err)


def test_a_column_that_can_not_be_read_is_refused_before_anything_is_spent(
    address: str, world: Any
) -> None:
    schema = world.write_schema({"name": "doc", "kind": "category", "values": ["{}"]})
    done = world.publish(table=address, schema=schema)
    assert done.code == 2
    assert "'doc' (jsonb)" in done.err
    assert world.spends() == []
