"""``sfumato dp2pub`` as people type it: what it prints, writes, charges and refuses."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.release import TableRelease

KINDS = [("server",), ("semi-honest",), ("nobody",), ("nobody", "--variant", "faithful")]


def dp2pub(world: Any, *more: str, **options: Any) -> Any:
    arguments = world.arguments(*more, **{"trust": "nobody", **options})
    return world.run("dp2pub", *arguments[1:])


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_every_kind_prints_what_was_done_and_writes_a_folder(
    kind: tuple[str, ...], world: Any
) -> None:
    outcome = dp2pub(world, *kind[1:], trust=kind[0])
    assert outcome.code == 0
    assert f"trust       {kind[0]}" in outcome.out
    assert ("a rehearsal: this program held the table" in outcome.out) is (kind[0] != "server")
    assert "guarantee   epsilon=1, pure, for one row replaced" in outcome.out
    assert "published   240 rows, 2 columns" in outcome.out
    assert "spent       epsilon=1 on 'towns' so far" in outcome.out
    assert TableRelease.load(world.out).private
    assert (world.out / "report.html").exists()
    assert sum(entry.cost.epsilon for entry in world.spends()) == 1


def test_json_prints_the_content_of_release_json_and_nothing_else(world: Any) -> None:
    outcome = dp2pub(world, "--json")
    assert outcome.err == ""
    assert outcome.json == json.loads((world.out / "release.json").read_text())
    assert outcome.json["method"]["trust"] == "nobody"
    assert outcome.json["guarantee"]["neighbors"] == "replace"


def test_a_simulation_says_so_and_stays_internal(world: Any) -> None:
    outcome = dp2pub(world, seed="3")
    assert "protects nobody" in outcome.out
    assert not world.out.exists()
    assert world.internal.exists()
    assert world.spends() == []


def test_an_evaluation_is_written_beside(world: Any) -> None:
    outcome = dp2pub(world, "--evaluate", trust="semi-honest")
    assert "do not publish" in outcome.out
    found = json.loads((world.internal / "internal.json").read_text())
    assert found.keys() >= {"tv", "queries", "information_error", "misclassification"}


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        ({"trust": "everybody"}, 2, "got 'everybody'"),
        ({"trust": "server", "variant": "grouped"}, 2, "a trusted server asks nobody"),
        ({"neighbors": "add-remove"}, 2, "publish how many there are"),
        ({"epsilon": "40"}, 2, "between 0.0001 and 32"),
        ({"trust": "semi-honest", "rows": "241"}, 2, "the table has 240"),
        ({"degree": "2"}, 2, "--degree can't be set"),
        ({"cap": "0.5"}, 3, "cap"),
        ({"table": "nothing.csv"}, 4, "nothing.csv"),
    ],
    ids=str,
)
def test_a_refusal_has_one_message_its_code_and_no_trace(
    options: Any, code: int, reason: str, world: Any
) -> None:
    before = world.files()
    outcome = dp2pub(world, **options)
    last = outcome.err.strip().splitlines()[-1]
    assert (outcome.code, outcome.out) == (code, "")
    assert last.startswith("sfumato: ")
    assert reason in last
    assert world.spends() == []
    assert world.files() == before


def test_an_existing_folder_is_kept_unless_forced(world: Any) -> None:
    assert dp2pub(world).code == 0
    again = dp2pub(world)
    assert (again.code, "exists" in again.err) == (2, True)
    assert len(world.spends()) == 1
    assert dp2pub(world, "--force").code == 0


def test_a_table_that_does_not_fit_is_refused_before_the_charge(world: Any) -> None:
    table = world.write("bad.csv", "age,town\n3,A\n77,B\n")
    outcome = dp2pub(world, table=table)
    assert outcome.code == 2
    assert world.spends() == []


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\nfrom sfumato.cli import main\nsys.argv = ['sfumato', 'dp2pub', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'numba', 'duckdb', 'pyarrow', 'numpy', 'sklearn'} & set(sys.modules)\n"
        "sys.exit(bool(heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0
    assert b"--trust" in done.stdout


def test_evaluate_names_the_label_and_both_classifiers(world: Any) -> None:
    pytest.importorskip("sklearn")
    dp2pub(world)
    outcome = evaluated(world, "--label", "town")
    assert outcome.code == 0
    assert "mutual information" in outcome.out
    assert "learned from published rows" in outcome.out
    shares = evaluated(world, "--label", "town", "--json").json["misclassification"]["town"]
    assert set(shares) == {"published", "real"}
    assert all(0 <= share <= 1 for share in shares.values())


def test_evaluate_without_scikit_learn_says_how_to_get_it_and_looks_at_nothing(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    dp2pub(world)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    outcome = evaluated(world, "--label", "town")
    assert (outcome.code, "pip install 'sfumato[evaluate]'" in outcome.err) == (2, True)
    assert not world.internal.exists()


def test_evaluate_refuses_an_unknown_label(world: Any) -> None:
    dp2pub(world)
    outcome = evaluated(world, "--label", "height")
    assert (outcome.code, "label must be one of age, town" in outcome.err) == (2, True)
    assert not Path(world.internal).exists()


def evaluated(world: Any, *more: str) -> Any:
    return world.run(
        "evaluate", world.out, "--against", world.table, "--ledger", world.ledger, *more
    )
