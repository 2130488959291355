"""``--ledger`` takes a file or the address of a database, and says it as it was given."""

import json
import tomllib
from typing import Any

import pytest

from servers import PASSWORD, Database
from sfumato.cli import run_files


@pytest.fixture
def address(database: Database, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return database.server.address(database.name, password=None)


def test_every_command_tells_the_address_as_it_was_given(address: str, world: Any) -> None:
    made = world.publish("-q", ledger=address)
    assert made.code == 0, made.err
    assert f"({address})" in made.out
    told = world.run("ledger", "show", "--ledger", address)
    assert told.out.startswith(f"ledger {address}\n")
    assert world.run("ledger", "cap", "towns", "5,0", "--ledger", address).out.startswith(
        f"ledger {address}\n"
    )
    unknown = world.run("ledger", "show", "--ledger", address, "--dataset", "town")
    assert f"in {address}. It has 'towns'" in unknown.err
    verified = world.run("ledger", "verify", "--ledger", address, "--release", world.out)
    assert verified.code == 0, verified.err
    exported = world.run("ledger", "export", "--ledger", address)
    assert json.loads(exported.out)["entries"]
    compared = world.run("evaluate", world.out, "--against", world.table, "--ledger", address)
    assert compared.code == 0, compared.err
    assert not list(world.folder.glob("postgresql:*"))


def test_a_run_file_keeps_an_address_and_moves_a_file(tmp_path: Any) -> None:
    (tmp_path / "runs").mkdir()
    for place, kept in (
        ("postgresql://ada@db.example/budgets", "postgresql://ada@db.example/budgets"),
        ("study.ledger", None),
    ):
        file = tmp_path / "runs" / "run.toml"
        run_files.save(file, "publish", {"table": "t.csv", "ledger": place}, force=True)
        found = tomllib.loads(file.read_text())["ledger"]
        assert found == kept if kept else found.endswith("/study.ledger")


def test_a_run_file_does_not_keep_a_password_of_a_ledger(world: Any) -> None:
    secret = f"postgresql://ada:{PASSWORD}@127.0.0.1:9/budgets"
    refused = world.publish("--save-run", str(world.folder / "run.toml"), "-q", ledger=secret)
    assert refused.code == 2
    assert "ledger holds a password" in refused.err
    assert PASSWORD not in refused.err
    assert not (world.folder / "run.toml").exists()
