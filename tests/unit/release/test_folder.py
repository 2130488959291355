"""What was paid for is on disk as soon as it is made, until it is saved where it was wanted."""

import errno
import json
from pathlib import Path
from typing import Any, NoReturn

import pytest

import sfumato as sf
from sfumato.release import formats
from sfumato.release.table import TableRelease

SCHEMA = sf.Schema(
    columns=(sf.Integer(name="age", low=0, high=9), sf.Boolean(name="smoker")), dataset="people"
)
PROTECT = sf.OneRow()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = "".join(f"{row % 10},{'yes' if row % 3 else 'no'}\n" for row in range(300))
    (tmp_path / "people.csv").write_text("age,smoker\n" + rows)
    return tmp_path / "people.csv"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "budget.ledger"


def copies(book: Path) -> list[Path]:
    folder = book.with_name("budget.ledger.releases")
    return sorted(folder.iterdir()) if folder.exists() else []


def curator(table: Path, book: Path | None, **more: Any) -> sf.Curator:
    place = sf.Ledger.open(book, dataset="people") if book else None
    ledger = place or sf.Ledger.in_memory(dataset="people")
    return sf.Curator(
        sf.open_table(table, SCHEMA),
        **{"protect": PROTECT, "budget": sf.PureDP(1), "rng": sf.secure_rng(), "ledger": ledger}
        | more,
    )


def method() -> sf.Mwem:
    return sf.Mwem(workload=sf.all_marginals(SCHEMA, degree=2))


def by_publish(table: Path, book: Path) -> Any:
    return sf.publish(method(), curator(table, book))


def by_job(table: Path, book: Path) -> Any:
    return sf.publish_table(table, schema=SCHEMA, epsilon=1, ledger=book)


def by_inference(table: Path, book: Path) -> Any:
    return sf.publish_table(table, epsilon=8, ledger=book, dataset="people")


def by_dp2pub(table: Path, book: Path) -> Any:
    return sf.dp2pub_table(table, schema=SCHEMA, epsilon=4, trust="nobody", ledger=book)


def by_recommender(table: Path, book: Path) -> Any:
    return sf.fit_recommender(**ratings(table), ledger=book)


def ratings(table: Path) -> dict[str, Any]:
    rows = [{"user": f"p{n}", "item": n % 3, "rating": 1 + n % 5} for n in range(200)]
    (table.parent / "ratings.json").write_text(json.dumps(rows))
    return {
        "ratings": table.parent / "ratings.json", "catalogue": [0, 1, 2], "scale": "1..5",
        "epsilon": 1, "unit": "rating", "dataset": "films",
    }  # fmt: skip


@pytest.mark.parametrize("make", [by_publish, by_job, by_inference, by_dp2pub, by_recommender])
def test_a_release_that_nobody_saved_is_beside_the_ledger_until_it_is(
    make: Any, table: Path, book: Path
) -> None:
    release = make(table, book)
    (copy,) = copies(book)
    assert release.kept == copy
    again = sf.load_release(copy)
    assert again.to_dict() == release.to_dict()
    again.save(table.parent / "wanted")
    assert copies(book) == []
    assert not book.with_name("budget.ledger.releases").exists()
    assert sf.load_release(table.parent / "wanted").to_dict() == release.to_dict()


def test_the_copy_of_an_inferred_release_promises_schema_and_release_together(
    table: Path, book: Path
) -> None:
    by_inference(table, book)
    assert float(sf.load_release(copies(book)[0]).guarantee.epsilon) == 8


def test_a_simulation_and_a_ledger_in_memory_leave_no_copy(table: Path, book: Path) -> None:
    assert sf.publish(method(), curator(table, None)).kept is None
    seeded = sf.publish(method(), curator(table, book, rng=sf.simulation_rng(1)))
    assert (seeded.kept, seeded.private, copies(book)) == (None, False, [])


def test_a_folder_that_was_named_leaves_no_copy(table: Path, book: Path) -> None:
    sf.publish_table(table, schema=SCHEMA, epsilon=1, ledger=book, out=table.parent / "out")
    sf.fit_recommender(**ratings(table), ledger=book, out=table.parent / "films")
    assert copies(book) == []


def test_a_missing_package_is_an_input_error_that_names_the_copy(
    table: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> NoReturn:
        raise ModuleNotFoundError(f"No module named {name!r}")

    release = by_publish(table, book)
    monkeypatch.setattr(formats, "import_module", absent)
    for convert, package in ((release.to_pandas, "pandas"), (release.to_polars, "polars")):
        with pytest.raises(sf.InputError, match=f"pip install {package}") as refused:
            convert()
        assert f"sf.load_release({str(release.kept)!r})" in "".join(refused.value.__notes__)


def test_a_save_that_fails_names_the_copy_and_keeps_it(
    table: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = by_publish(table, book)
    (table.parent / "taken").mkdir()
    (table.parent / "file").touch()
    for place, reason in (("taken", "exists"), ("file/x", "can't write"), ("taken/x", "No space")):
        if reason == "No space":
            monkeypatch.setattr(TableRelease, "write_into", full_disk)
        with pytest.raises(sf.SfumatoError, match=reason) as failed:
            release.save(table.parent / place)
        said = str(failed.value)
        assert "Nothing was spent" not in said
        assert "The release is not lost: it is still in memory" in said
        assert f"a copy is kept in {copies(book)[0]}" in said
        assert f"sf.load_release({str(release.kept)!r})" in said
    monkeypatch.undo()
    assert sf.load_release(copies(book)[0]).to_dict() == release.to_dict()


@pytest.mark.parametrize("make", [by_publish, by_recommender])
def test_the_advice_of_a_save_that_fails_can_be_followed(
    make: Any, table: Path, book: Path
) -> None:
    first, second = make(table, book), make(table, book)
    first.save(table.parent / "out")
    with pytest.raises(sf.InputError, match=r"exists\. Choose another folder, or force=True"):
        second.save(table.parent / "out")
    second.save(table.parent / "out", force=True)
    assert sf.load_release(table.parent / "out").to_dict() == second.to_dict()
    (table.parent / "mine").mkdir()
    with pytest.raises(sf.InputError, match="holds no release: force=True replaces releases only"):
        second.save(table.parent / "mine", force=True)


def test_a_save_that_fails_without_a_copy_says_that_the_release_is_in_memory(table: Path) -> None:
    release = sf.publish(method(), curator(table, None))
    with pytest.raises(sf.InputError) as refused:
        release.save(table.parent)
    assert str(refused.value) == (
        f"{table.parent} exists. Choose another folder, or force=True. The release is not lost: it "
        "is still in memory. Call save again with another folder before this program ends."
    )


def test_a_save_that_is_interrupted_names_the_copy(
    table: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Any, folder: Path, *, csv: bool = False) -> None:
        raise KeyboardInterrupt

    release = by_publish(table, book)
    monkeypatch.setattr(TableRelease, "write_into", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        release.save(table.parent / "out")
    assert str(release.kept) in "".join(stopped.value.__notes__)


@pytest.mark.parametrize("make", [by_publish, by_recommender])
def test_a_release_names_a_copy_only_while_there_is_one(make: Any, table: Path, book: Path) -> None:
    release = make(table, book)
    again = sf.load_release(release.kept)
    assert again.kept == release.kept == copies(book)[0]
    release.save(table.parent / "out")
    assert (release.kept, again.kept) == (None, None)


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_release_that_is_saved_into_its_copy_is_not_deleted(
    inside: str, table: Path, book: Path
) -> None:
    release = by_publish(table, book)
    place = copies(book)[0] / inside
    release.save(place, force=True)
    assert sf.load_release(place).to_dict() == release.to_dict()


@pytest.mark.parametrize("make", [by_publish, by_recommender])
def test_a_folder_that_is_no_release_is_refused_with_the_file_that_it_lacks(
    make: Any, table: Path, book: Path
) -> None:
    out = table.parent / "out"
    make(table, book).save(out)
    for name in ("model.npz", "data.parquet", "release.json"):
        if (out / name).exists():
            (out / name).unlink()
            with pytest.raises(sf.StorageError, match=f"there is no {name} in this folder"):
                sf.load_release(out)
    with pytest.raises(sf.StorageError, match="there is no such folder"):
        sf.load_release(out / "none")
    (table.parent / "tried-internal").mkdir()
    with pytest.raises(sf.StorageError, match=r"A simulation lies in .*tried-internal"):
        sf.load_release(table.parent / "tried")
    with pytest.raises(sf.StorageError, match="this is not a folder"):
        sf.load_release(table)


def full_disk(self: Any, folder: Path, *, csv: bool = False) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_run_that_can_not_be_resumed_and_not_be_written_is_kept(
    table: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, out = TableRelease.write_into, table.parent / "out"

    def full_out(self: Any, folder: Path, *, csv: bool = False) -> None:
        if ".out." in folder.name:
            full_disk(self, folder)
        real(self, folder, csv=csv)

    monkeypatch.setattr(TableRelease, "write_into", full_out)
    with pytest.raises(sf.StorageError) as failed:
        sf.dp2pub_table(table, schema=SCHEMA, epsilon=4, trust="nobody", ledger=book, out=out)
    (copy,) = copies(book)
    assert str(copy) in "".join(failed.value.__notes__)
    assert sf.load_release(copy).dataset == "people"
    with pytest.raises(sf.StorageError) as stopped:
        sf.publish_table(table, schema=SCHEMA, epsilon=1, ledger=book, out=out)
    assert copies(book) == [copy]
    assert "resume=True" in "".join(stopped.value.__notes__)


def test_a_copy_that_can_not_be_written_does_not_lose_the_release(
    table: Path, book: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(TableRelease, "write_into", full_disk)
    release = by_publish(table, book)
    assert release.kept is None
    assert release.data.num_rows
    assert "save it now" in caplog.text


def test_an_error_in_the_middle_of_a_run_says_whether_it_can_go_on(table: Path, book: Path) -> None:
    class Stops(sf.Independent):
        def run(self, curator: Any) -> NoReturn:
            curator.measure([("age",)], costs=[sf.PureDP("0.5")])
            raise MemoryError

    ledger = sf.Ledger.open(book, dataset="people")
    with pytest.raises(MemoryError) as lost:
        sf.publish(Stops(), curator(table, book, ledger=ledger))
    assert "can't be resumed" in "".join(lost.value.__notes__)
    journal = sf.Journal.begin(ledger, command="independent, 1")
    with pytest.raises(MemoryError) as stopped:
        sf.publish(Stops(), curator(table, book, ledger=ledger, journal=journal))
    assert "sf.Journal.resume" in "".join(stopped.value.__notes__)


def test_copies_are_for_their_owner_only(table: Path, book: Path) -> None:
    by_publish(table, book)
    assert copies(book)[0].parent.stat().st_mode & 0o077 == 0


def test_a_folder_of_the_user_that_is_named_alike_is_never_deleted(
    table: Path, book: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "my.releases" / "2026"
    mine.parent.mkdir()
    sf.publish_table(table, schema=SCHEMA, epsilon=1, ledger=book, out=mine)
    sf.load_release(mine).save(tmp_path / "other")
    assert (mine / "release.json").exists()
