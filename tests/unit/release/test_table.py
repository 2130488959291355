"""Releases: what they save and load, where they may be written, what they promise in numbers."""

import json
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato.commands.publish import publish_table
from sfumato.errors import InputError, StorageError
from sfumato.models.answers.mixture import MixtureModel
from sfumato.models.answers.tree import fit_tree
from sfumato.models.dense.model import DenseModel
from sfumato.models.graphical.model import GraphicalModel
from sfumato.models.model import PublishedRows
from sfumato.privacy import ApproxDP, OnePerson, OneRow, PureDP
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import simulation_rng
from sfumato.release import (
    TableRelease,
    check_free,
    check_usable,
    describe_guarantee,
    draw_table,
    new_folder,
    noisy_marginals,
)
from sfumato.report.table_page import report_view
from sfumato.schema import (
    Boolean,
    Category,
    Coarse,
    Integer,
    Measurement,
    Number,
    Range,
    Schema,
    ranges,
)

SCHEMA = Schema(
    dataset="towns",
    columns=(Integer(name="age", low=0, high=2), Category(name="town", values=("A", "=B"))),
)
DENSE = DenseModel(schema=SCHEMA, counts=np.array([[4.0, 0.0], [1.0, 2.0], [0.0, 3.0]]))
INDEPENDENT = fit_tree(
    SCHEMA,
    total=10.0,
    shares={"age": np.array([0.5, 0.25, 0.25]), "town": np.array([0.5, 0.5])},
    pairs={},
)
TREE = GraphicalModel.of_tables(
    SCHEMA,
    total=10.0,
    tables={("town", "age"): np.array([[0.4, 0.1, 0.0], [0.0, 0.2, 0.3]])},
)
MIXTURE = MixtureModel(
    schema=SCHEMA,
    total=10.0,
    weights=np.array([0.25, 0.75]),
    shares={
        "age": np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]),
        "town": np.array([[0.5, 0.5], [0.25, 0.75]]),
    },
)
ROWS = PublishedRows(
    schema=SCHEMA, codes={"age": np.array([0, 2, 2, 1] * 3), "town": np.array([1, 0, 1, 1] * 3)}
)
MODELS = [
    ("dense", DENSE),
    ("graphical", INDEPENDENT),
    ("graphical", TREE),
    ("mixture", MIXTURE),
    ("none", ROWS),
]


def release(model: Any = DENSE, **changes: Any) -> TableRelease:
    parts: dict[str, Any] = {
        "dataset": "towns",
        "guarantee": PureDP("0.1"),
        "protect": OneRow(),
        "private": True,
        "method": {"name": "histogram"},
        "schema": SCHEMA,
        "model": model,
        "measurements": ({"target": ["age", "town"], "sigma_counts": 1.5},),
        "data": draw_table(model, n_rows=10, rng=simulation_rng(1)),
        "ledger": {"id": "x", "head": {"seq": 3, "hash": "ab"}, "entries": []},
    }
    return TableRelease(**{**parts, **changes})


def published(model: Any, **changes: Any) -> TableRelease:
    """All rows where the rows are all there is, as many as the model stands for otherwise."""
    data = draw_table(model, n_rows=round(model.total), rng=simulation_rng(1))
    return replace(release(), model=model, data=data, **changes)


@pytest.mark.parametrize(("kind", "model"), MODELS)
@pytest.mark.parametrize(
    "protect", [OneRow(neighbors="replace"), OnePerson(max_rows=3, neighbors="replace")]
)
@pytest.mark.parametrize(
    "guarantee", [PureDP(Fraction(1, 3)), ApproxDP(1, "1e-9"), LocalDP(Fraction(1, 3))]
)
def test_what_is_saved_is_loaded(
    kind: str, model: Any, protect: Any, guarantee: Any, tmp_path: Path
) -> None:
    made = published(model, protect=protect, guarantee=guarantee)
    made.save(tmp_path / "out", csv=True)
    found = TableRelease.load(tmp_path / "out")
    assert found.to_dict() == made.to_dict()
    assert found.to_dict()["model"] == kind
    assert (found.guarantee, found.protect) == (guarantee, protect)
    assert found.data.equals(made.data)
    assert type(found.model) is type(model)
    for marginal in (("age", "town"), ("town",), ("town", "age")):
        assert np.array_equal(found.model.marginal(marginal), model.marginal(marginal))


@pytest.mark.parametrize("kind", ["product", "tree"])
def test_a_model_of_an_earlier_version_is_refused_and_the_rows_are_named(
    kind: str, tmp_path: Path
) -> None:
    published(DENSE).save(tmp_path / "out")
    file = tmp_path / "out" / "release.json"
    file.write_text(file.read_text().replace('"model": "dense"', f'"model": "{kind}"'))
    says = f"kind '{kind}', which this version does not know. The rows are in data.parquet"
    with pytest.raises(InputError, match=says):
        TableRelease.load(tmp_path / "out")


def test_rows_without_a_model_are_taken_but_no_others_are_made(tmp_path: Path) -> None:
    published(ROWS).save(tmp_path / "out")
    found = TableRelease.load(tmp_path / "out")
    assert sorted(map(str, found.table(rng=simulation_rng(0)).to_pylist())) == sorted(
        map(str, found.data.to_pylist())
    )
    assert found.table(n_rows=5, rng=simulation_rng(0)).num_rows == 5
    with pytest.raises(InputError, match="n_rows is 13, but this release holds 12 rows and no mod"):
        found.table(n_rows=13, rng=simulation_rng(0))


def test_rows_without_a_model_keep_their_codes_through_bins_missing_and_other(
    tmp_path: Path,
) -> None:
    schema = Schema(
        dataset="bins",
        columns=(
            Number(name="income", edges=(0.0, 10.0, 50.0), missing=True),
            Category(name="town", values=("A", "B"), other=True, missing=True),
        ),
    )
    codes = {"income": np.array([0, 1, 2, 1]), "town": np.array([3, 2, 1, 0])}
    rows = PublishedRows(schema=schema, codes=codes)
    published(rows, schema=schema).save(tmp_path / "out")
    found = TableRelease.load(tmp_path / "out").model
    assert np.array_equal(found.marginal(schema.names), rows.marginal(schema.names))


def test_a_local_guarantee_says_so_and_protects_what_is_answered() -> None:
    told = release(guarantee=LocalDP("0.1"), protect=OneRow(neighbors="replace")).to_dict()
    assert told["guarantee"] == {
        "kind": "local", "delta": 0.0, "epsilon": 0.1, "unit": "row", "neighbors": "replace",
        "exact": {"kind": "local", "epsilon": "1/10"},
    }  # fmt: skip
    with pytest.raises(InputError, match="neighbors='replace', got one row added or removed"):
        release(guarantee=LocalDP("0.1"), protect=OneRow())


def test_a_model_that_could_not_be_loaded_again_is_refused_before_it_is_saved() -> None:
    made = release()
    with pytest.raises(InputError, match="a release can't save <object"):
        replace(made, model=object())


def test_new_rows_of_a_loaded_release_follow_its_model(tmp_path: Path) -> None:
    release().save(tmp_path / "out")
    found = TableRelease.load(tmp_path / "out")
    rows = found.table(n_rows=1000, rng=simulation_rng(2))
    assert rows.num_rows == 1000
    ages = dict(rows["age"].value_counts().to_pylist()[place].values() for place in range(3))
    assert ages == {0: 400, 1: 300, 2: 300}
    assert found.table(n_rows=1000, rng=simulation_rng(2)).equals(rows)
    assert found.table(n_rows=0, rng=simulation_rng(2)).num_rows == 0


def test_rows_default_to_what_the_model_stands_for_and_never_to_the_secret_number() -> None:
    model = DenseModel(schema=SCHEMA, counts=np.full((3, 2), 7.4))
    assert release(model).table(rng=simulation_rng(0)).num_rows == 44


def test_a_negative_number_of_rows_is_refused() -> None:
    with pytest.raises(InputError, match="n_rows must be a whole number >= 0, got -1"):
        release().table(n_rows=-1, rng=simulation_rng(0))


def test_numbers_of_a_guarantee_are_rounded_up_and_exact_ones_stand_beside() -> None:
    third = describe_guarantee(PureDP(Fraction(1, 3)), OneRow())
    assert Fraction(third["epsilon"]) > Fraction(1, 3)
    assert third["epsilon"] == pytest.approx(1 / 3, rel=1e-15)
    assert third["exact"] == {"kind": "pure", "epsilon": "1/3"}
    assert third["delta"] == 0.0
    both = describe_guarantee(ApproxDP("0.1", "1e-9"), OnePerson(max_rows=2, column="secret"))
    assert (both["unit"], both["max_rows"]) == ("person", 2)
    assert Fraction(both["delta"]) >= Fraction(1, 10**9)
    assert "secret" not in json.dumps(both)


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def fail() -> None:
        with new_folder(tmp_path / "out", force=False) as inside:
            (inside / "data.parquet").write_bytes(b"half")
            assert not (tmp_path / "out").exists()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_what_fails_while_replacing_leaves_the_older_release(tmp_path: Path) -> None:
    release().save(tmp_path / "out")
    before = (tmp_path / "out" / "data.parquet").read_bytes()

    def fail() -> None:
        with new_folder(tmp_path / "out", force=True) as inside:
            (inside / "release.json").write_text("{}")
            raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="No space left on device"):
        fail()
    assert (tmp_path / "out" / "data.parquet").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_appears_meanwhile_is_kept_and_so_is_the_release(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "out-2").mkdir()

    def race() -> None:
        with new_folder(out, force=False) as inside:
            (inside / "release.json").write_text("mine")
            out.mkdir()
            (out / "release.json").write_text("another run's")

    with pytest.raises(StorageError, match=r"out was taken meanwhile; the release is in .*out-3"):
        race()
    assert (out / "release.json").read_text() == "another run's"
    assert (tmp_path / "out-3" / "release.json").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-2", "out-3"]


def test_what_may_not_be_published_keeps_its_mark_under_another_name(tmp_path: Path) -> None:
    out = tmp_path / "rc-internal"

    def race() -> None:
        with new_folder(out, force=False):
            out.mkdir()

    with pytest.raises(StorageError, match=r"the release is in .*rc-2-internal") as told:
        race()
    assert "paid for" not in str(told.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rc-2-internal", "rc-internal"]
    assert (tmp_path / "rc-2-internal").stat().st_mode & 0o777 == 0o700


def test_a_simulation_is_saved_only_under_a_name_that_says_so(tmp_path: Path) -> None:
    made = release(private=False)
    with pytest.raises(InputError, match=r"a name that ends in -internal.*Use out-internal"):
        made.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    made.save(tmp_path / "out-internal")
    assert (tmp_path / "out-internal").stat().st_mode & 0o777 == 0o700
    release().save(tmp_path / "public")
    with pytest.raises(InputError, match="may be published: made-internal does not belong there"):
        made.save(tmp_path / "public" / "made-internal")


def test_force_keeps_what_is_not_ours_even_if_it_comes_late(tmp_path: Path) -> None:
    release().save(tmp_path / "out")

    def race() -> None:
        with new_folder(tmp_path / "out", force=True) as inside:
            (inside / "release.json").write_text("new")
            (tmp_path / "out" / "thesis.txt").write_text("precious")

    with pytest.raises(StorageError, match="was paid for") as told:
        race()
    assert "Nothing was spent" not in str(told.value)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "precious"
    assert (tmp_path / "out-2" / "release.json").read_text() == "new"


@pytest.mark.parametrize("error", [OSError(39, "Directory not empty"), KeyboardInterrupt()])
@pytest.mark.parametrize("failing", [1, 2])
def test_a_rename_that_fails_loses_neither_the_old_release_nor_the_new(
    error: BaseException, failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "release.json").write_text("old")
    rename, calls = Path.rename, iter(range(1, 100))

    def flaky(self: Path, target: Path) -> Path:
        if next(calls) == failing:
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", flaky)

    def replace() -> None:
        with new_folder(out, force=True) as inside:
            (inside / "release.json").write_text("new")

    with pytest.raises((StorageError, KeyboardInterrupt)):
        replace()
    assert (out / "release.json").read_text() == "old"
    assert (tmp_path / "out-2" / "release.json").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-2"]


def test_a_release_that_can_be_renamed_nowhere_stays_where_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(self: Path, target: Path) -> Path:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", never)
    with pytest.raises(StorageError, match=r"can't be made \(Permission denied\)") as told:
        release().save(tmp_path / "out")
    (kept,) = tmp_path.iterdir()
    assert str(kept) in str(told.value)
    assert (kept / "release.json").exists()


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o755), (0o077, 0o700), (0o002, 0o775)])
def test_a_release_is_as_open_as_the_user_makes_new_folders(
    umask: int, mode: int, tmp_path: Path
) -> None:
    before = os.umask(umask)
    try:
        release().save(tmp_path / "out")
        with new_folder(tmp_path / "inside", force=False, internal=True):
            pass
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == mode
    assert (tmp_path / "inside").stat().st_mode & 0o777 == 0o700


def test_a_second_save_needs_another_folder(tmp_path: Path) -> None:
    release().save(tmp_path / "out")
    with pytest.raises(InputError, match="exists"):
        release().save(tmp_path / "out")


def test_a_folder_below_folders_that_are_not_there_is_made(tmp_path: Path) -> None:
    release().save(tmp_path / "a" / "b" / "out")
    assert TableRelease.load(tmp_path / "a" / "b" / "out").dataset == "towns"


def test_a_name_of_the_greatest_length_is_written_and_a_longer_one_refused_at_once(
    tmp_path: Path,
) -> None:
    release().save(tmp_path / ("y" * 255))
    assert TableRelease.load(tmp_path / ("y" * 255)).dataset == "towns"
    for wrong in (tmp_path / ("y" * 256), tmp_path / ("y" * 256) / "out"):
        with pytest.raises(StorageError, match="File name too long"):
            check_free(wrong, force=False)
    assert [path.name for path in tmp_path.iterdir()] == ["y" * 255]


def test_a_path_with_no_room_for_the_files_of_a_release_is_refused_at_once(tmp_path: Path) -> None:
    deep = tmp_path
    while len(str(deep)) < 3800:
        deep /= "d" * 200
    room = 4095 - len(str(deep)) - 20
    with pytest.raises(StorageError, match="File name too long"):
        check_free(deep / ("d" * (room - 201)) / ("o" * 200), force=False)
    assert list(tmp_path.iterdir()) == []


def test_the_names_of_files_are_tried_with_their_temporary_ones(tmp_path: Path) -> None:
    check_usable(tmp_path, "x" * 230)
    with pytest.raises(StorageError, match="File name too long"):
        check_usable(tmp_path, "x" * 250)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["notes.txt", "study.ledger", ".hidden", "sub"])
def test_force_never_removes_what_is_not_ours(name: str, tmp_path: Path) -> None:
    release().save(tmp_path / "out")
    check_free(tmp_path / "out", force=True)
    (tmp_path / "out" / name).mkdir()
    with pytest.raises(InputError, match=f"like {name}: force=True replaces releases only"):
        check_free(tmp_path / "out", force=True)


def test_a_link_is_never_replaced(tmp_path: Path) -> None:
    release().save(tmp_path / "real")
    (tmp_path / "out").symlink_to(tmp_path / "real")
    with pytest.raises(InputError, match="is not a folder"):
        check_free(tmp_path / "out", force=True)


DAMAGE = {
    "no folder": (lambda folder: folder.rename(folder.with_name("away")), "no such folder"),
    "no data": (lambda folder: (folder / "data.parquet").unlink(), "no data.parquet"),
    "bad data": (lambda folder: (folder / "data.parquet").write_bytes(b"x"), "not a complete"),
    "bad model": (lambda folder: (folder / "model.npz").write_bytes(b"PK\3\4"), "not a complete"),
    "bad JSON": (lambda folder: (folder / "release.json").write_bytes(b"{"), "not a complete"),
    "no text": (lambda folder: (folder / "release.json").write_bytes(b"\xff"), "not a complete"),
    "a part": (lambda folder: _drop(folder, "guarantee"), "not a complete"),
}
OTHERS = {
    "another format": ("sfumato", 2),
    "another kind": ("kind", "recommender"),
}


def test_a_model_of_another_version_is_refused(tmp_path: Path) -> None:
    release().save(tmp_path / "out")
    path = tmp_path / "out" / "release.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model": "oracle"}))
    with pytest.raises(InputError, match="its model is of the kind 'oracle'"):
        TableRelease.load(tmp_path / "out")


def _drop(folder: Path, entry: str) -> None:
    value = json.loads((folder / "release.json").read_text())
    del value[entry]
    (folder / "release.json").write_text(json.dumps(value))


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_release_is_refused(name: str, tmp_path: Path) -> None:
    damage, says = DAMAGE[name]
    release().save(tmp_path / "out")
    damage(tmp_path / "out")
    with pytest.raises(StorageError, match=f"can't read the release .*{says}"):
        TableRelease.load(tmp_path / "out")


@pytest.mark.parametrize("name", OTHERS)
def test_what_another_version_wrote_is_refused(name: str, tmp_path: Path) -> None:
    entry, value = OTHERS[name]
    release().save(tmp_path / "out")
    path = tmp_path / "out" / "release.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), entry: value}))
    with pytest.raises(InputError, match="no table release of format 1"):
        TableRelease.load(tmp_path / "out")


def test_release_json_says_who_is_protected_but_not_which_column_names_them() -> None:
    text = json.dumps(release(protect=OnePerson(max_rows=2, column="passport")).to_dict())
    assert "passport" not in text


def test_drawn_rows_have_the_types_of_their_schema() -> None:
    rows = draw_table(DENSE, n_rows=10, rng=simulation_rng(0))
    assert rows.schema == pa.schema([("age", pa.int64()), ("town", pa.string())])
    assert sorted(zip(rows["age"].to_pylist(), rows["town"].to_pylist(), strict=True)) == [
        *[(0, "A")] * 4, (1, "=B"), (1, "=B"), (1, "A"), *[(2, "=B")] * 3,
    ]  # fmt: skip


def test_published_rows_are_not_in_the_order_of_the_people():
    codes = {"age": np.arange(1_000) % 5}
    schema = Schema(dataset="d", columns=(Integer(name="age", low=0, high=4),))
    rows = PublishedRows(schema=schema, codes=codes)
    drawn = rows.draw(1_000, rng=simulation_rng(1))["age"]
    assert np.bincount(drawn).tolist() == [200] * 5
    assert (drawn == codes["age"]).mean() < 0.5


def test_rows_drawn_in_blocks_keep_every_share(monkeypatch):
    monkeypatch.setattr("sfumato.release.table.BLOCK_ROWS", 100)
    drawn = draw_table(DENSE, n_rows=1_050, rng=simulation_rng(3))
    assert drawn.num_rows == 1_050
    assert drawn["age"].num_chunks == 11
    ages = np.bincount(drawn["age"].to_numpy(), minlength=3)
    towns = (np.array(drawn["town"].to_pylist()) == "=B").sum()
    assert abs(ages - np.array([420, 315, 315])).max() <= 22  # a block is off by two at most
    assert abs(towns - 525) <= 22


def test_published_rows_are_drawn_at_once_so_that_none_comes_twice(monkeypatch):
    monkeypatch.setattr("sfumato.release.table.BLOCK_ROWS", 2)
    codes = {"age": np.array([0, 0, 1, 1, 2]), "town": np.array([0, 1, 0, 1, 0])}
    rows = PublishedRows(schema=SCHEMA, codes=codes)
    drawn = draw_table(rows, n_rows=5, rng=simulation_rng(4))
    found = sorted(zip(*(drawn[name].to_pylist() for name in SCHEMA.names), strict=True))
    assert found == [(0, "=B"), (0, "A"), (1, "=B"), (1, "A"), (2, "A")]


def test_no_rows_are_a_table_of_no_rows():
    assert draw_table(DENSE, n_rows=0, rng=simulation_rng(5)).num_rows == 0


def test_rows_that_are_not_held_lie_in_a_file_that_is_gone_and_are_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sfumato.release.table.BLOCK_ROWS", 100)
    held = draw_table(DENSE, n_rows=1_050, rng=simulation_rng(3))
    monkeypatch.setattr("sfumato.release.table.MEMORY_BYTES", 300)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mapped = draw_table(DENSE, n_rows=1_050, rng=simulation_rng(3))
    assert mapped.equals(held)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    with pytest.raises(StorageError, match="TMPDIR names the folder"):
        draw_table(DENSE, n_rows=1_050, rng=simulation_rng(3))


MEASURED = Schema(
    dataset="towns",
    columns=(
        Integer(name="age", low=0, high=29, step=10),
        Category(name="town", values=("A", "=B"), missing=True),
        Boolean(name="marginal"),
    ),
)
MEASURED_ROWS = pa.table(
    {
        "age": [n % 30 for n in range(300)],
        "town": [("A", "=B", None)[n % 3] for n in range(300)],
        "marginal": [n % 2 == 0 for n in range(300)],
    }
)


def made(method: str, **options: Any) -> TableRelease:
    return publish_table(
        MEASURED_ROWS, schema=MEASURED, method=method, **{"epsilon": 1, "seed": 1, **options}
    )


def told(*measurements: Measurement) -> list[dict[str, Any]]:
    table = noisy_marginals(MEASURED, measurements)
    assert table is not None
    return table.to_pylist()


def test_a_row_for_each_cell_with_the_labels_of_its_values() -> None:
    values = np.arange(6.0).reshape(3, 2)
    rows = told(Measurement(target=("age", "marginal"), values=values, sigma_counts=1.5))
    assert len(rows) == 6
    assert rows[3] == {
        "marginal": "age × marginal", "age": "10..19", "marginal (column)": "true",
        "noisy_count": 3.0, "standard_error": 1.5,
    }  # fmt: skip


def test_measurements_stand_below_each_other_with_gaps_for_other_columns() -> None:
    rows = told(
        Measurement(target=("town",), values=np.array([1.0, -2.0, 3.0]), sigma_counts=2.0),
        Measurement(target=("age",), values=np.array([4.0, 5.0, 6.0]), sigma_counts=0.0),
        Measurement(target=(), values=np.array(300.0), sigma_counts=7.0),
    )
    assert [row["marginal"] for row in rows] == ["town"] * 3 + ["age"] * 3 + ["(all rows)"]
    assert [row["town"] for row in rows] == ["A", "=B", "(missing)", None, None, None, None]
    assert [row["age"] for row in rows[3:]] == ["0..9", "10..19", "20..29", None]
    assert [row["noisy_count"] for row in rows] == [1, -2, 3, 4, 5, 6, 300]
    assert [row["standard_error"] for row in rows] == [2, 2, 2, 0, 0, 0, 7]


def test_a_range_is_one_row_in_the_words_of_its_ends() -> None:
    box = Range((("age", 0, 1), ("town", 2, 2)))
    (row,) = told(Measurement(target=box, values=np.array(12.0), sigma_counts=3.0))
    assert (row["marginal"], row["age"], row["town"]) == (
        "age × town",
        "0..9 to 10..19",
        "(missing)",
    )


def test_nothing_measured_is_nothing_to_tell() -> None:
    assert noisy_marginals(MEASURED, ()) is None


@pytest.mark.parametrize("method", ["histogram", "independent", "mwem", "dp2pub"])
def test_every_method_keeps_what_it_measured(method: str) -> None:
    release = made(method, neighbors="replace")
    table = release.marginals()
    names = [" × ".join(entry["target"]) for entry in release.measurements]
    assert table["marginal"].unique().to_pylist() == names
    errors = {entry["sigma_counts"] for entry in release.measurements}
    assert set(table["standard_error"].to_pylist()) == errors


def test_the_noise_has_the_stated_standard_error() -> None:
    """5,000 empty cells: the spread is known to 1.6%, so 10% is six sigma, and 30% is seen."""
    wide = Schema(dataset="wide", columns=(Integer(name="code", low=0, high=4_999, step=1),))
    release = publish_table(
        pa.table({"code": [0]}), schema=wide, method="histogram", epsilon=1, seed=1
    )
    table = release.marginals()
    spread = float(np.std(table["noisy_count"].to_numpy()[1:]))
    stated = table["standard_error"][0].as_py()
    assert spread == pytest.approx(stated, rel=0.1)
    assert spread != pytest.approx(stated * 1.3, rel=0.1)


def test_codes_that_were_counted_together_are_named_together() -> None:
    groups = {"age": np.array([0, 1, 1]), "town": np.array([1, 0, 1])}
    merged = Coarse(fine=MEASURED, groups=groups)
    values = np.arange(4.0).reshape(2, 2)
    rows = told(Measurement(target=("age", "town"), values=values, sigma_counts=1.0, merged=merged))
    assert [row["age"] for row in rows] == ["0..9", "0..9", "10..19 to 20..29", "10..19 to 20..29"]
    assert [row["town"] for row in rows] == ["=B", "A | (missing)", "=B", "A | (missing)"]


def test_they_are_saved_and_loaded_with_the_release(tmp_path: Path) -> None:
    release = made("mwem", out=tmp_path / "out", workload=ranges(MEASURED, [{"age": [0, 19]}]))
    release.save(tmp_path / "made-internal", csv=True)
    found = TableRelease.load(tmp_path / "made-internal")
    assert found.marginals().equals(release.marginals())
    text = pyarrow.csv.read_csv(tmp_path / "made-internal" / "marginals.csv")
    assert text["noisy_count"].to_pylist() == release.marginals()["noisy_count"].to_pylist()
    check_free(tmp_path / "made-internal", force=True)  # our own files are no reason to refuse


def test_a_spreadsheet_can_not_be_made_to_run_a_label(tmp_path: Path) -> None:
    made("independent").save(tmp_path / "made-internal", csv=True)
    assert "'=B" in (tmp_path / "made-internal" / "marginals.csv").read_text()


def test_a_release_of_an_older_version_loads_and_says_what_it_lacks(tmp_path: Path) -> None:
    made("histogram").save(tmp_path / "made-internal")
    (tmp_path / "made-internal" / "marginals.parquet").unlink()
    found = TableRelease.load(tmp_path / "made-internal")
    with pytest.raises(InputError, match="holds no noisy counts"):
        found.marginals()
    assert not any("marginals.parquet" in note for note in report_view(found).notes)


def test_the_report_says_that_the_file_is_there_and_how_to_read_it() -> None:
    (note,) = [n for n in report_view(made("histogram")).notes if "marginals.parquet" in n]
    assert "18 counts" in note
    assert "standard error" in note
