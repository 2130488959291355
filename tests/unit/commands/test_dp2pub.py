"""DP2-Pub as one call: every kind of trust makes a release, pays once, and refuses in time."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.commands.dp2pub import dp2pub_table
from sfumato.commands.publish import publish_table
from sfumato.errors import BudgetError, InputError
from sfumato.ledger import Ledger
from sfumato.models.model import PublishedRows
from sfumato.privacy import OneRow, PureDP
from sfumato.randomness import simulation_rng
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease
from sfumato.schema import Boolean, Category, Integer, Schema

SCHEMA = Schema(
    dataset="three",
    columns=(
        Integer(name="age", low=0, high=4),
        Category(name="country", values=("here",)),
        Boolean(name="member"),
        Category(name="town", values=("A", "B", "C")),
    ),
)
KINDS = [
    ("server", "faithful"),
    ("semi-honest", "faithful"),
    ("nobody", "grouped"),
    ("nobody", "faithful"),
]


def rows(n: int) -> pa.Table:
    rng = simulation_rng(n)
    ages, members = rng.below(5, n), rng.below(2, n)
    towns = np.array(list("ABC"))[np.minimum(2, ages // 2)]
    return pa.table(
        {"age": ages, "country": ["here"] * n, "member": members.astype(bool), "town": towns}
    )


TABLE = rows(400)


def make(table: Any = TABLE, **options: Any) -> TableRelease:
    return dp2pub_table(table, **{"schema": SCHEMA, "epsilon": 4, "trust": "nobody", **options})


def spends() -> list[Any]:
    return [e for e in Ledger.open(dataset="three").entries() if e.cost is not None]


@pytest.mark.parametrize(("trust", "variant"), KINDS)
def test_every_kind_of_trust_makes_a_folder_that_loads_and_pays_epsilon_once(
    trust: str, variant: str, tmp_path: Path
) -> None:
    made = make(trust=trust, variant=variant, out=tmp_path / "out", csv=True)
    kept = TableRelease.load(tmp_path / "out")
    assert kept.to_dict() == made.to_dict()
    assert kept.private
    assert (kept.guarantee, kept.protect) == (PureDP(4), OneRow(neighbors="replace"))
    assert (kept.method["name"], kept.method["trust"], kept.method["variant"]) == (
        "dp2pub", trust, variant,
    )  # fmt: skip
    assert kept.data.num_rows == 400
    assert set(kept.data["country"].to_pylist()) == {"here"}
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"report.html", "data.csv"}
    assert sum((entry.cost.epsilon for entry in spends()), Fraction(0)) == 4
    paid = [Fraction(entry["cost"]["epsilon"]) for entry in kept.ledger["entries"]]
    assert sum(paid) == 4
    assert len(paid) == 1


@pytest.mark.parametrize(("trust", "variant"), KINDS[:3])
def test_the_default_variant_is_the_best_that_the_trust_has(trust: str, variant: str) -> None:
    assert make(trust=trust, seed=1).method["variant"] == variant


@pytest.mark.parametrize(("trust", "variant"), KINDS)
def test_with_much_epsilon_the_published_columns_are_the_real_ones(
    trust: str, variant: str
) -> None:
    """Epsilon 30 for three columns: hardly a row answers falsely, and drawing has an sd of .02."""
    made = make(trust=trust, variant=variant, epsilon=30, seed=3)
    real, published = (np.array(own["town"].to_pylist()) for own in (TABLE, made.data))
    assert np.mean(published == "C") == pytest.approx(np.mean(real == "C"), abs=0.1)


@pytest.mark.parametrize(("trust", "variant"), KINDS)
def test_a_simulation_goes_to_the_internal_folder_is_not_private_and_costs_nothing(
    trust: str, variant: str, tmp_path: Path
) -> None:
    made = make(trust=trust, variant=variant, seed=7, out=tmp_path / "out")
    assert not made.private
    assert {path.name for path in tmp_path.iterdir()} == {"out-internal"}
    assert not TableRelease.load(tmp_path / "out-internal").private
    assert make(trust=trust, variant=variant, seed=7).data.equals(made.data)
    assert spends() == []


def test_an_evaluation_lies_beside_and_knows_the_information_error(tmp_path: Path) -> None:
    make(out=tmp_path / "out", evaluate=True)
    assert '"information_error": 0.' in (tmp_path / "out-internal" / "internal.json").read_text()
    assert not (tmp_path / "out" / "internal.json").exists()


class Unreadable:
    """Stands for a table; whoever opens it before everything else is checked fails the test."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the table was asked for {name}")


WIDE = Schema(dataset="three", columns=tuple(Integer(name=n, low=1, high=4096) for n in "ab"))
MANY = Schema(dataset="three", columns=tuple(Boolean(name=f"c{place}") for place in range(300)))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"trust": "everybody"}, "'server', 'semi-honest', 'nobody', got 'everybody'"),
        ({"variant": "best"}, "'grouped', 'faithful', got 'best'"),
        ({"trust": "server", "variant": "grouped"}, "a trusted server asks nobody"),
        ({"trust": "semi-honest", "variant": "grouped"}, "one report a person"),
        ({"neighbors": "add-remove"}, "publish how many there are"),
        ({"neighbors": "both"}, "neighbors must be one of"),
        ({"degree": 2}, "degree can't be set with trust 'nobody'"),
        ({"degree": 2, "max_cluster": 2, "variant": "faithful"}, "degree and max_cluster"),
        ({"trust": "semi-honest", "degree": 0}, "degree must be a whole number >= 1"),
        ({"trust": "semi-honest", "max_cluster": 0}, "max_cluster must be"),
        ({"trust": "server", "max_cluster": 0}, "max_cluster must be"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": 33}, "epsilon must be between 0.0001 and 32"),
        ({"epsilon": 65, "variant": "faithful"}, "epsilon must be between 0.0006 and 64"),
        ({"epsilon": "0.0002", "trust": "semi-honest"}, "epsilon must be between 0.0003 and 96"),
        ({"epsilon": 97, "trust": "semi-honest"}, "got 97. Nothing was spent."),
        ({"epsilon": "0.0002", "trust": "server"}, "Nothing was spent"),
        ({"rows": 0}, "rows must be a whole number >= 1"),
        ({"schema": SCHEMA.pick(["country"])}, "one value only"),
        ({"schema": SCHEMA.pick(["country"]), "trust": "semi-honest"}, "one value only"),
        ({"schema": SCHEMA.pick(["country"]), "trust": "server"}, "more than one value"),
        ({"schema": WIDE, "trust": "semi-honest"}, "16,777,216 cells"),
        ({"schema": WIDE, "variant": "faithful"}, "16,777,216 cells"),
        ({"schema": MANY, "trust": "semi-honest", "degree": 4}, "Lower degree"),
        ({"evaluate": True}, "give out"),
        ({"out": "x-internal"}, "ends in -internal"),
        ({"schema": Schema(columns=SCHEMA.columns)}, "dataset=NAME"),
    ],
    ids=str,
)
def test_what_can_be_refused_without_the_table_is_refused_before_it_is_opened(
    wrong: Any, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        make(Unreadable(), **wrong)
    assert spends() == []


def test_a_cap_is_checked_before_the_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_table(TABLE, SCHEMA)

    def fail() -> None:
        raise AssertionError("the rows were read")

    monkeypatch.setattr(opened, "validate", fail)
    monkeypatch.setattr(
        "sfumato.commands.publication.open_table", lambda *arguments, **options: opened
    )
    with pytest.raises(BudgetError):
        make("table.csv", cap=PureDP(1))
    assert spends() == []


@pytest.mark.parametrize("trust", ["server", "semi-honest"])
def test_rows_randomized_one_by_one_are_not_multiplied_and_refusing_costs_nothing(
    trust: str,
) -> None:
    with pytest.raises(InputError, match="401 rows are to be published, but the table has 400"):
        make(trust=trust, rows=401)
    assert spends() == []
    fewer = make(trust=trust, rows=50)
    assert fewer.data.num_rows == 50
    assert isinstance(fewer.model, PublishedRows)
    assert fewer.model.total == 50


@pytest.mark.parametrize("variant", ["grouped", "faithful"])
def test_a_model_gives_as_many_rows_as_are_asked_for(variant: str) -> None:
    assert make(variant=variant, rows=1_000).data.num_rows == 1_000


def test_too_few_rows_for_two_groups_are_refused_before_they_are_paid_for() -> None:
    with pytest.raises(InputError, match=r"need at least 32 rows, and the table has 31"):
        make(rows(31))
    assert spends() == []
    assert make(rows(32)).data.num_rows == 32


@pytest.mark.parametrize(("trust", "variant"), [kind for kind in KINDS if kind[1] == "faithful"])
def test_one_row_can_be_published(trust: str, variant: str) -> None:
    assert make(rows(1), trust=trust, variant=variant).data.num_rows == 1


def test_progress_tells_the_rounds() -> None:
    told: list[str] = []
    make(seed=1, tell=lambda what, done, of: told.append(what))
    assert list(dict.fromkeys(told)) == [
        "checking the table", "randomizing rows", "asking round 1", "asking round 2",
        "fitting and drawing",
    ]  # fmt: skip


def test_publish_by_dp2pub_under_add_remove_is_refused_before_the_table_is_opened() -> None:
    with pytest.raises(InputError, match="neighbors replace"):
        publish_table(Unreadable(), schema=SCHEMA, epsilon=1, method="dp2pub")
    assert spends() == []
    made = publish_table(TABLE, schema=SCHEMA, epsilon=1, method="dp2pub", neighbors="replace")
    assert made.method["trust"] == "server"
    assert sum(entry.cost.epsilon for entry in spends()) == 1
