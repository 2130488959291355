"""PostgreSQL tables on a real server: values, names, one snapshot, and errors in our own words."""

import gc
import sys
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from servers import PASSWORD, Database, Postgres
from sfumato.counting.exact_counts import count_marginals, rows
from sfumato.errors import InputError, StorageError, TableError
from sfumato.readers.open_table import open_table, source_of
from sfumato.readers.source import Source
from sfumato.schema import Schema
from sfumato.schema.files import FileForm

LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, 999999)
TYPES: dict[str, tuple[str, str, Any]] = {
    "smallint": ("smallint", "-7", -7),
    "bigint": ("bigint", "9223372036854775807", 2**63 - 1),
    "real": ("real", "0.5", 0.5),
    "double": ("double precision", "'infinity'", float("inf")),
    "numeric": ("numeric(6, 2)", "7", "7.00"),
    "long numeric": ("numeric", f"{10**30}.5", f"{10**30}.5"),
    "numeric NaN": ("numeric", "'NaN'", None),
    "numeric infinity": ("numeric", "'Infinity'", "Infinity"),
    "domain": ("price", "7", "7.00"),
    "empty text": ("text", "''", ""),
    "text": ("text", "E'a\\nb,\"c'", 'a\nb,"c'),
    "varchar": ("varchar(9)", "'007'", "007"),
    "padded": ("char(5)", "'ab'", "ab"),
    "one byte": ('"char"', "'z'", "z"),
    "uuid": ("uuid", f"'{'AB' * 16}'", "abababab-abab-abab-abab-abababababab"),
    "enum": ('"Mood"', "'très bien'", "très bien"),
    "boolean": ("boolean", "'yes'", True),
    "date": ("date", "'2024-02-29'", date(2024, 2, 29)),
    "endless date": ("date", "'infinity'", date(9999, 12, 31)),
    "old date": ("date", "'0044-03-15 BC'", date(1, 1, 1)),
    "time": ("time", "'10:00'", "10:00:00"),
    "timestamp": ("timestamp", "'2024-02-29 10:00:00.000001'", datetime(2024, 2, 29, 10, 0, 0, 1)),
    "endless timestamp": ("timestamp", "'infinity'", LAST_MOMENT),
    "far timestamp": ("timestamp", "'294276-12-31'", LAST_MOMENT),
    "instant": ("timestamptz", "'2024-01-01 10:00+03:30'", datetime(2024, 1, 1, 6, 30, tzinfo=UTC)),
    "no beginning": ("timestamptz", "'-infinity'", datetime(1, 1, 1, tzinfo=UTC)),
}  # fmt: skip
UNREADABLE = {"numbers": "integer[]", "doc": "jsonb", "bytes": "bytea", "length": "interval"}
AGE = Schema.from_dict(
    {"sfumato": 1, "columns": [{"name": "age", "kind": "integer", "low": 0, "high": 9}]}
)


def people(database: Database, n_rows: int = 10) -> str:
    database.run(f"CREATE TABLE people AS SELECT i % 10 AS age FROM generate_series(1, {n_rows}) i")
    return f"{database.address}::people"


def read(address: str) -> dict[str, list[Any]]:
    source = source_of(address, ())
    return pa.Table.from_batches(source.batches(source.names())).to_pydict()


def ages(source: Source) -> list[int]:
    return [age for batch in source.batches(("age",)) for age in batch.column(0).to_pylist()]


def test_every_type_is_read_as_other_readers_have_it(database: Database) -> None:
    names = ", ".join(f'"{name}" {kind}' for name, (kind, _, _) in TYPES.items())
    values = ", ".join(literal for _, literal, _ in TYPES.values())
    database.run("CREATE DOMAIN money_like AS numeric(6, 2); CREATE DOMAIN price AS money_like")
    database.run("CREATE TYPE \"Mood\" AS ENUM ('très bien')")
    database.run(f"CREATE TABLE t ({names}); INSERT INTO t VALUES ({values})")
    assert read(database.address) == {name: [value] for name, (_, _, value) in TYPES.items()}
    database.run("TRUNCATE t; INSERT INTO t DEFAULT VALUES")
    assert read(database.address) == {name: [None] for name in TYPES}


def test_a_table_has_the_codes_of_the_same_rows_in_parquet_and_csv(
    database: Database, tmp_path: Path
) -> None:
    database.run("""
        CREATE TYPE mood AS ENUM ('sad', 'ok');
        CREATE TABLE t AS SELECT (i % 40)::smallint AS age, (i * 1.25)::numeric(8, 2) AS weight,
          CASE WHEN i % 7 > 0 THEN i % 2 = 0 END AS member,
          (ARRAY['sad', 'ok'])[1 + i % 2]::mood AS mood, date '2024-01-01' + i AS visit,
          timestamp '2024-01-01' + i * interval '7 hours' AS arrival,
          timestamptz '2024-01-01 00:00Z' + i * interval '7 hours' AS sent, 'ü,"' || i % 3 AS town
        FROM generate_series(0, 299) i;
    """)
    csv = tmp_path / "t.csv"
    text = database.run("""
        SET datestyle = 'ISO'; SET timezone = 'UTC';
        COPY (SELECT age, weight, member, mood, visit, arrival, to_char(sent,
          'YYYY-MM-DD HH24:MI:SSOF:00') AS sent, town FROM t) TO STDOUT (FORMAT csv, HEADER)
    """)
    csv.write_text(text, "utf-8")
    source = source_of(database.address, ())
    parquet = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_batches(source.batches(source.names())), parquet)
    year = {"low": "2024-01-01", "high": "2024-12-31"}
    schema = Schema.from_dict({"sfumato": 1, "columns": [
        {"name": "age", "kind": "integer", "low": 0, "high": 39},
        {"name": "weight", "kind": "number", "edges": [0, 33.75, 100, 500]},
        {"name": "member", "kind": "boolean", "missing": True},
        {"name": "mood", "kind": "ordinal", "values": ["sad", "ok"]},
        {"name": "visit", "kind": "date", **year},
        {"name": "arrival", "kind": "datetime", "step": "hour", **year},
        {"name": "sent", "kind": "datetime", "step": "hour", "zone": "Asia/Tehran", **year},
        {"name": "town", "kind": "category", "values": ['ü,"0', 'ü,"1'], "other": True},
    ]})  # fmt: skip
    marginals = [(name,) for name in schema.names]
    ours, parquets, csvs = (
        count_marginals(open_table(place, schema), marginals)
        for place in (database.address, parquet, csv)
    )
    for marginal in marginals:
        np.testing.assert_array_equal(ours[marginal], parquets[marginal])
        np.testing.assert_array_equal(ours[marginal], csvs[marginal])


@pytest.mark.parametrize("value", ["Infinity", "12345678901234567890", "1.5"])
def test_a_decimal_that_is_no_whole_number_is_named_by_its_row_only(
    value: str, database: Database
) -> None:
    database.run(f"CREATE TABLE t (age numeric); INSERT INTO t VALUES (1), ('{value}')")
    with pytest.raises(TableError, match="'age', row 2: the value is not") as caught:
        open_table(database.address, replace(AGE, file=FileForm(strict=True))).validate()
    assert value not in str(caught.value).partition("/")[2].partition("::")[2]


def test_a_decimal_with_the_zeros_of_its_column_is_the_same_category_everywhere(
    database: Database, tmp_path: Path
) -> None:
    database.run("CREATE TABLE t (price numeric(6, 2)); INSERT INTO t VALUES (1.5), (2), (2.25)")
    values = [Decimal("1.50"), Decimal("2.00"), Decimal("2.25")]
    pq.write_table(pa.table({"price": pa.array(values, pa.decimal128(6, 2))}), tmp_path / "t.pq")
    (tmp_path / "t.csv").write_text("price\n1.50\n2.00\n2.25\n")
    listed = {"kind": "category", "values": ["2.00", "1.50"], "other": True}
    schema = Schema.from_dict({"sfumato": 1, "columns": [{"name": "price", **listed}]})
    for place in (database.address, tmp_path / "t.pq", tmp_path / "t.csv"):
        counts = count_marginals(open_table(place, schema), [("price",)])["price",]
        assert counts.tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", UNREADABLE.values())
def test_a_type_that_can_not_be_read_is_refused_by_name(kind: str, database: Database) -> None:
    database.run(f"CREATE TABLE t (age {kind}, other int)")
    with pytest.raises(TableError, match=r"can't be read: 'age' \(") as caught:
        open_table(database.address, AGE)
    assert kind in str(caught.value)


def test_a_type_that_can_not_be_read_disturbs_no_other_column(database: Database) -> None:
    names = ", ".join(f"{name} {kind}" for name, kind in UNREADABLE.items())
    database.run(f"CREATE TABLE t (age int, {names}); INSERT INTO t (age) VALUES (3)")
    assert rows(open_table(database.address, AGE)) == 1
    source = source_of(database.address, ())
    batch = next(source.batches(source.names()))
    assert str(batch.schema.field("doc").type) == "struct<jsonb: null>"


def test_a_type_of_the_same_name_in_another_schema_is_not_mistaken(database: Database) -> None:
    database.run('CREATE TYPE public."date" AS (x int); CREATE TABLE t (age public."date")')
    with pytest.raises(TableError, match=r"'age' \(public.date\)"):
        open_table(database.address, AGE)


@pytest.mark.parametrize(
    ("table", "given"),
    [
        ('public."Visits"', "Visits"),
        ('public."a""b"', 'public.a"b'),
        ('"Kli.nik"."جدول"', "Kli.nik.جدول"),
        ('s."a::b"', 's."a::b"'),
        ('s."x\'; DROP TABLE other; --"', "s.x'; DROP TABLE other; --"),
    ],
)
def test_any_name_can_be_read(table: str, given: str, database: Database) -> None:
    columns = ["نام", 'a"b', "select", "x'; DROP TABLE other; --", "%s $1", "A"]
    names = ", ".join('"' + name.replace('"', '""') + '" int DEFAULT 7' for name in columns)
    database.run('CREATE TABLE other (x int); CREATE SCHEMA s; CREATE SCHEMA "Kli.nik"')
    database.run(f"CREATE TABLE {table} ({names}); INSERT INTO {table} DEFAULT VALUES")
    assert read(f"{database.address}::{given}") == {name: [7] for name in columns}


def test_views_and_parts_of_tables_can_be_read(database: Database) -> None:
    database.run("""
        CREATE TABLE visits (age int) PARTITION BY LIST (age);
        CREATE TABLE young PARTITION OF visits FOR VALUES IN (1, 2);
        CREATE TABLE old PARTITION OF visits DEFAULT;
        INSERT INTO visits VALUES (1), (9);
    """)
    assert rows(open_table(database.address, AGE)) == 2  # the only table: its parts are not listed
    assert rows(open_table(f"{database.address}::young", AGE)) == 1
    database.run("CREATE VIEW tenfold AS SELECT age * 10 AS age FROM visits")
    database.run("CREATE MATERIALIZED VIEW kept AS SELECT * FROM visits")
    assert sorted(read(f"{database.address}::tenfold")["age"]) == [10, 90]
    assert sorted(read(f"{database.address}::kept")["age"]) == [1, 9]


def test_which_table_is_asked_where_there_are_several(database: Database) -> None:
    database.run('CREATE TABLE visits (x int); CREATE SCHEMA s; CREATE TABLE s."Ages" (x int)')
    with pytest.raises(TableError, match=r'which table to read.*: public.visits, s."Ages"\.'):
        source_of(database.address, ("age",))
    with pytest.raises(TableError, match=r'which table is \'ages\'\?.*Close to it are: s."Ages"\.'):
        source_of(f"{database.address}::ages", ("age",))


def test_a_name_that_fits_two_tables_is_refused(database: Database) -> None:
    database.run('CREATE SCHEMA "a.b"; CREATE TABLE "a.b".c (x int)')
    database.run('CREATE SCHEMA a; CREATE TABLE a."b.c" (x int)')
    with pytest.raises(TableError, match=r'a."b.c", "a.b".c'):
        source_of(f"{database.address}::a.b.c", ("age",))
    assert source_of(f'{database.address}::a."b.c"', ("x",)).names() == ("x",)


def test_a_table_without_rows_or_a_database_without_tables(database: Database) -> None:
    with pytest.raises(TableError, match="There are: none"):
        open_table(database.address, AGE)
    address = people(database, 0)
    with pytest.raises(TableError, match="nothing to publish"):
        open_table(address, AGE).validate()


def test_all_reads_of_a_table_see_one_snapshot(database: Database) -> None:
    address = people(database)
    source = source_of(address, ("age",))
    database.run("INSERT INTO people VALUES (1), (2); DELETE FROM people WHERE age = 3")
    database.run("CREATE TABLE another (x int); ALTER TABLE people ADD COLUMN more int")
    assert source.names() == ("age",)
    for _ in range(2):
        assert sorted(ages(source)) == list(range(10))
        database.run("UPDATE people SET age = 77 WHERE age = 7")
    assert sorted(ages(source_of(address, ("age",)))) == [0, 1, 1, 2, 2, 4, 5, 6, 8, 9, 77]


def test_reads_may_be_left_and_may_run_side_by_side(database: Database) -> None:
    source = source_of(people(database, 1_000_000), ("age",))
    left = source.batches(("age",))
    some = next(left).num_rows
    whole = [batch.num_rows for batch in source.batches(("age",))]
    assert sum(whole) == 1_000_000
    assert len(whole) > 1
    assert some + sum(batch.num_rows for batch in left) == 1_000_000


def test_rows_come_in_the_same_order_at_every_read(database: Database) -> None:
    database.run(
        "SET fsync = off"
        if False
        else "CREATE TABLE t AS SELECT i AS age FROM generate_series(1, 200000) i"
    )
    source = source_of(f"{database.address}::t", ("age",))
    first, second = (pa.Table.from_batches(source.batches(("age",))) for _ in range(2))
    assert first.equals(second)


def test_nothing_stays_connected_when_the_table_is_gone(database: Database) -> None:
    table = open_table(people(database), AGE)
    ask = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sfumato'"
    rows(table)
    assert database.run(ask) == "1\n"
    del table
    gc.collect()
    until = time.monotonic() + 20
    while database.run(ask) != "0\n":
        assert time.monotonic() < until


TERMINATE = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name = 'sfumato' AND state = '{state}' AND datname = current_database()"""


def test_a_connection_lost_while_reading_is_one_plain_error(database: Database) -> None:
    database.run("CREATE TABLE t AS SELECT repeat('x', 900) AS age FROM generate_series(1, 60000)")
    batches = source_of(f"{database.address}::t", ("age",)).batches(("age",))
    next(batches)
    assert database.run(TERMINATE.format(state="active")) == "1\n"
    with pytest.raises(StorageError, match="connection was lost") as one:
        list(batches)
    assert one.value.__cause__ is None
    assert "terminat" not in str(one.value)


def test_a_lost_snapshot_is_never_replaced_by_a_newer_one(database: Database) -> None:
    source = source_of(people(database), ("age",))
    assert len(ages(source)) == 10
    assert database.run(TERMINATE.format(state="idle in transaction")) == "1\n"
    database.run("INSERT INTO people VALUES (1)")
    with pytest.raises(StorageError, match="same rows can't be seen again"):
        ages(source)


def test_a_view_that_writes_is_refused(database: Database) -> None:
    database.run("""
        CREATE TABLE seen (at timestamptz);
        CREATE FUNCTION note() RETURNS int VOLATILE LANGUAGE sql AS
          'INSERT INTO seen VALUES (now()); SELECT 1';
        CREATE VIEW spying AS SELECT note() AS age;
    """)
    with pytest.raises(TableError, match="a view that fails or writes"):
        open_table(f"{database.address}::spying", AGE).validate()
    assert database.run("SELECT count(*) FROM seen") == "0\n"


@pytest.mark.parametrize(
    "failing", ["text 'SECRET' :: int", "('SECRET' || i) :: int", "1 / (i - 5)"]
)
def test_a_view_that_fails_says_so_without_its_values(failing: str, database: Database) -> None:
    database.run(f"CREATE VIEW v AS SELECT {failing} AS age FROM generate_series(1, 9) i")
    with pytest.raises(TableError, match=r"can't read all of it\. Ask it for all rows") as caught:
        open_table(database.address, AGE).validate()
    assert "SECRET" not in str(caught.value)


def test_a_user_without_the_right_to_read_is_told_so(database: Database) -> None:
    people(database)
    database.run("CREATE USER reader PASSWORD 'r'; REVOKE ALL ON people FROM PUBLIC")
    address = database.server.address(database.name, user="reader", password="r")
    try:
        with pytest.raises(TableError, match="may not read it"):
            open_table(f"{address}::people", AGE).validate()
        database.run("GRANT SELECT ON people TO reader")
        assert rows(open_table(f"{address}::people", AGE)) == 10
    finally:
        database.run("DROP OWNED BY reader; DROP USER reader")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("postgresql://ada:geheim@127.0.0.1:1/x", "no server listens there"),
        ("postgresql://ada:geheim@nowhere.invalid/x", "there is no such host"),
        ("postgresql:///x?host=/nowhere", "no server listens there"),
        ("postgresql://?service=unknown", "there is no such service"),
        ("postgresql://ada:ge%zzheim@h/x", "check host, port"),
    ],
)
def test_a_server_that_can_not_be_reached_is_named(address: str, why: str) -> None:
    with pytest.raises(StorageError, match=why) as caught:
        open_table(address, AGE)
    for secret in ("ada", "geheim", "zzheim"):
        assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("user", "password", "database", "why"),
    [
        ("sfumato", "wr0ng", "postgres", "the user or the password is not right"),
        ("nobody", "wr0ng", "postgres", "the user or the password is not right"),
        ("sfumato", None, "postgres", "a password is needed: set PGPASSWORD"),
        ("sfumato", PASSWORD, "nowhere", "there is no such database"),
    ],
)
def test_a_refused_connection_says_why_and_tells_no_secret(
    user: str, password: str | None, database: str, why: str, postgres: Postgres
) -> None:
    address = postgres.address(database, user=user, password=password)
    with pytest.raises(StorageError, match=why) as caught:
        open_table(address, AGE)
    assert f"127.0.0.1:{postgres.port}/{database}" in str(caught.value)
    assert PASSWORD not in str(caught.value)
    assert "wr0ng" not in str(caught.value)


def test_passwords_may_come_from_the_environment_a_file_or_a_service(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(database)
    plain = database.server.address(database.name, password=None)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert rows(open_table(plain, AGE)) == 10
    monkeypatch.delenv("PGPASSWORD")

    passes = tmp_path / "pgpass"
    passes.write_text("*:*:*:sfumato:" + PASSWORD.replace(":", r"\:"))
    passes.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passes))
    assert rows(open_table(plain, AGE)) == 10
    monkeypatch.delenv("PGPASSFILE")

    services = tmp_path / "services"
    port = database.server.port
    services.write_text(
        f"[clinic]\nhost=127.0.0.1\nport={port}\nuser=sfumato\npassword={PASSWORD}\n"
        f"dbname={database.name}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    table = open_table("postgresql://?service=clinic::people", AGE)
    assert rows(table) == 10
    assert table.describe() == "postgresql:///?service=clinic::public.people"


def test_the_socket_of_a_server_is_an_address_too(database: Database) -> None:
    people(database)
    folder, port = database.server.folder, database.server.port
    where = database.address.replace(f"127.0.0.1:{port}", "")
    table = open_table(f"{where}?host={folder}&port={port}::people", AGE)
    assert rows(table) == 10
    assert table.describe().endswith(f"?host={folder}&port={port}::public.people")
    assert PASSWORD not in table.describe()


def test_text_of_another_encoding_is_converted_and_bytes_without_one_are_refused(
    postgres: Postgres,
) -> None:
    with postgres.fresh("ENCODING 'LATIN1' TEMPLATE template0") as latin:
        latin.run("CREATE TABLE t AS SELECT text 'München' AS town")
        assert read(latin.address) == {"town": ["München"]}
    with postgres.fresh("ENCODING 'SQL_ASCII' TEMPLATE template0") as bare:
        bare.run("CREATE TABLE t AS SELECT text 'München' AS town")
        assert read(bare.address) == {"town": ["München"]}
        bare.run("SET client_encoding = 'SQL_ASCII'; INSERT INTO t VALUES (E'M\\xFCnchen')")
        with pytest.raises(TableError, match="text that is not UTF-8"):
            read(bare.address)


def test_options_of_csv_files_are_refused(database: Database) -> None:
    with pytest.raises(InputError, match="for CSV files"):
        open_table(database.address, AGE, encoding="latin-1")


def test_without_the_driver_the_message_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(InputError, match=r"pip install 'sfumato\[postgres\]'"):
        open_table("postgresql://h/db::t", AGE)
