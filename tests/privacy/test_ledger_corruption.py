"""A ledger that was changed behind its back is refused, and the message names the check."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import LedgerCorruptError
from sfumato.ledger import Head, Ledger, entries, verify_export
from sfumato.ledger.hash_chain import verify_rows
from sfumato.privacy import OneRow, PureDP


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SFUMATO_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger with a cap, three spends and an outcome: entries 0 to 6."""
    path = tmp_path / "ledger"
    with Ledger.open(path, dataset="adult", cap=PureDP(1)) as ledger:
        for n in range(3):
            ledger.spend(PureDP("0.1"), label=f"step {n}", protect=OneRow(), request=f"r{n}")
        ledger.journal("r0", b"outcome")
    return path


def reopened(path: Path) -> Ledger:
    return Ledger.open(path, dataset="adult")


def sql(path: Path, *statements: str) -> None:
    """Change the file past its triggers."""
    with sqlite3.connect(path) as connection:
        for trigger in ("entries_stay", "entries_last", "outcomes_stay", "outcomes_last"):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for statement in statements:
            connection.execute(statement)
    connection.close()


def rewrite(path: Path, change: Callable[[int, dict[str, object]], None]) -> None:
    """Change bodies and recompute all hashes, as somebody who knows the format would."""
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT body FROM entries ORDER BY seq").fetchall()
    connection.close()
    head, updates = None, []
    for seq, (text,) in enumerate(found):
        body = json.loads(text)
        change(seq, body)
        row = entries.linked(body, head)
        head = row.head
        body_text = row.body.replace("'", "''")
        updates.append(
            f"UPDATE entries SET body = '{body_text}', previous = '{row.previous}', "
            f"hash = '{row.hash}' WHERE seq = {seq}"
        )
    sql(path, *updates)


def forget_anchor(home: Path) -> None:
    shutil.rmtree(home / "anchors")


def test_an_untouched_ledger_opens_and_verifies(path: Path) -> None:
    assert "the head is anchored" in str(reopened(path).verify())


def test_an_edited_row_is_refused(path: Path) -> None:
    sql(path, "UPDATE entries SET body = replace(body, 'step 1', 'step 9') WHERE seq = 4")
    with pytest.raises(LedgerCorruptError, match=r"check of its hashes failed.*entry 4"):
        reopened(path)


def test_an_edited_row_is_noticed_by_a_ledger_already_open(path: Path) -> None:
    ledger = reopened(path)
    sql(path, "UPDATE entries SET body = replace(body, '3/10', '1/10') WHERE seq = 6")
    with pytest.raises(LedgerCorruptError, match="hashes"):
        ledger.spend(PureDP("0.1"), label="more", protect=OneRow())


def test_a_deleted_row_is_refused(path: Path) -> None:
    sql(path, "DELETE FROM entries WHERE seq = 3")
    with pytest.raises(LedgerCorruptError, match=r"check of its sequence.*after entry 2"):
        reopened(path)


def test_a_deleted_tail_is_refused(path: Path) -> None:
    sql(path, "DELETE FROM entries WHERE seq > 3")
    with pytest.raises(LedgerCorruptError, match=r"check of its anchor.*ends at entry 3"):
        reopened(path)


def test_a_deleted_tail_under_an_open_ledger_is_refused(path: Path) -> None:
    ledger = reopened(path)
    sql(path, "DELETE FROM entries WHERE seq > 3")
    with pytest.raises(LedgerCorruptError, match="truncated"):
        ledger.spend(PureDP("0.1"), label="more", protect=OneRow())


def test_swapped_rows_are_refused(path: Path) -> None:
    sql(
        path,
        "UPDATE entries SET seq = 99 WHERE seq = 3",
        "UPDATE entries SET seq = 3 WHERE seq = 4",
        "UPDATE entries SET seq = 4 WHERE seq = 99",
    )
    with pytest.raises(LedgerCorruptError, match="check of its chain"):
        reopened(path)


def test_an_emptied_table_is_refused(path: Path) -> None:
    sql(path, "DELETE FROM entries")
    with pytest.raises(LedgerCorruptError, match="check of its first entry"):
        reopened(path)


def test_a_dropped_table_is_refused(path: Path) -> None:
    sql(path, "DROP TABLE entries")
    with pytest.raises(LedgerCorruptError, match="check of its database structure"):
        reopened(path)


@pytest.mark.parametrize("text", [b"step 0", b"1/10", b"r2", b"SQLite", b"add-remove"])
def test_a_flipped_bit_is_refused(path: Path, text: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[content.rindex(text)] ^= 4
    path.write_bytes(content)
    with pytest.raises(LedgerCorruptError, match="the check of its"):
        reopened(path).verify()


@pytest.mark.parametrize("text", [b"json_extract", b"UNIQUE", b"entries ("])
def test_a_structure_that_is_no_text_any_more_is_refused(path: Path, text: bytes) -> None:
    """SQLite quotes what it can't read, and that is no UTF-8 either."""
    content = bytearray(path.read_bytes())
    for place in range(len(text)):
        changed = content.copy()
        changed[content.index(text) + place] ^= 128
        path.write_bytes(changed)
        with pytest.raises(LedgerCorruptError, match="check of its database structure"):
            reopened(path).verify()


def test_a_flipped_bit_in_an_outcome_is_refused(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.rindex(b"outcome")] ^= 4
    path.write_bytes(content)
    with pytest.raises(LedgerCorruptError, match="check of its outcomes"):
        reopened(path).outcome("r0")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("DELETE FROM outcomes", "is gone"),
        ("UPDATE outcomes SET payload = x'00'", "was changed"),
        ("UPDATE outcomes SET payload = 'outcome'", "of another type"),
        ("DELETE FROM entries WHERE seq = 6", "was changed"),
    ],
)
def test_an_outcome_is_the_one_that_an_entry_fixed(
    path: Path, home: Path, change: str, what: str
) -> None:
    """Else it could be drawn again for nothing, or exchanged."""
    forget_anchor(home)
    sql(path, change)
    with pytest.raises(LedgerCorruptError, match=f"check of its outcomes.*{what}"):
        reopened(path).verify()
    with pytest.raises(LedgerCorruptError, match=f"check of its outcomes.*{what}"):
        reopened(path).outcome("r0")
    with pytest.raises(LedgerCorruptError, match=f"check of its outcomes.*{what}"):
        reopened(path).journal("r0", b"another draw")


def test_an_outcome_that_no_request_paid_for_is_refused(path: Path, home: Path) -> None:
    forget_anchor(home)
    rewrite(path, lambda seq, body: body.update(request="r9\n0") if seq == 6 else None)
    with pytest.raises(LedgerCorruptError, match=r"request ids.*nobody paid for"):
        reopened(path).verify()


@pytest.mark.parametrize("column", ["body", "previous", "hash"])
def test_a_text_that_became_bytes_is_refused(path: Path, column: str) -> None:
    """One bit of a row says which of the two it is."""
    sql(path, f"UPDATE entries SET {column} = CAST({column} AS BLOB) WHERE seq = 4")
    with pytest.raises(LedgerCorruptError, match="check of its database structure"):
        reopened(path).verify()


@pytest.mark.parametrize(
    "content",
    [
        b'{"seq": 1e400, "hash": "a"}',
        b'{"seq": 99999999999999999999999, "hash": "a"}',
        b'{"seq": -1, "hash": "a"}',
        b'{"seq": 3, "hash": "\xff"',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_an_anchor_that_can_not_be_read_is_refused(path: Path, home: Path, content: bytes) -> None:
    (anchor,) = (home / "anchors").glob("*.json")
    anchor.write_bytes(content)
    with pytest.raises(LedgerCorruptError, match="check of its anchor"):
        reopened(path)


@pytest.mark.parametrize("content", [b"", b"epsilon,delta\n1,0\n", b"\0" * 4096])
def test_an_empty_or_foreign_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(LedgerCorruptError, match="check of its file format"):
        reopened(path)
    assert path.read_bytes() == content


def test_a_truncated_file_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(LedgerCorruptError, match="the check of its"):
        reopened(path)


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    sql(tmp_path / "foreign", "CREATE TABLE entries (seq, body, previous, hash)")
    with pytest.raises(LedgerCorruptError, match=r"file format.*another program"):
        reopened(tmp_path / "foreign")


def test_another_format_version_is_refused(path: Path, home: Path) -> None:
    forget_anchor(home)
    rewrite(path, lambda seq, body: body.update(format=2) if seq == 0 else None)
    with pytest.raises(LedgerCorruptError, match="format version failed: it is 2"):
        reopened(path)
    sql(path, "PRAGMA user_version = 7")
    with pytest.raises(LedgerCorruptError, match="format version failed: it is 7"):
        reopened(path)


def test_an_older_backup_is_refused(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "backup")
    with reopened(path) as ledger:
        ledger.spend(PureDP("0.7"), label="last", protect=OneRow())
    shutil.copy(tmp_path / "backup", path)
    with pytest.raises(LedgerCorruptError, match=r"anchor.*older backup"):
        reopened(path)


def test_an_older_backup_is_refused_by_a_ledger_already_open(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "backup")
    with reopened(path) as ledger:
        ledger.spend(PureDP("0.7"), label="last", protect=OneRow())
        (tmp_path / "backup").replace(path)
        with pytest.raises(LedgerCorruptError, match="another one took its name"):
            ledger.spend(PureDP("0.7"), label="again", protect=OneRow())


def test_two_copies_of_a_ledger_do_not_double_the_budget(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "copy")
    with reopened(path) as ledger:
        ledger.spend(PureDP("0.7"), label="here", protect=OneRow())
    with pytest.raises(LedgerCorruptError, match="anchor"):
        reopened(tmp_path / "copy")


def test_a_backup_from_before_an_outcome_can_not_draw_it_again(path: Path, tmp_path: Path) -> None:
    """Charge, copy, draw, put the copy back: a second draw for one charge."""
    shutil.copy(path, tmp_path / "backup")
    with reopened(path) as ledger:
        ledger.journal("r1", b"first draw")
    shutil.copy(tmp_path / "backup", path)
    with pytest.raises(LedgerCorruptError, match=r"anchor.*older backup"):
        reopened(path)


def test_of_two_copies_one_keeps_an_outcome(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "copy")
    with reopened(path) as one, reopened(tmp_path / "copy") as other:
        one.journal("r1", b"first draw")
        with pytest.raises(LedgerCorruptError, match="anchor"):
            other.journal("r1", b"second draw")


def test_a_copy_that_is_overtaken_while_it_writes_tells_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both had looked at the anchor before either moved it."""
    shutil.copy(path, tmp_path / "copy")
    with reopened(path) as one, reopened(tmp_path / "copy") as other:
        before = [other.head] * 2  # when an outcome is looked for, and when one is written
        one.journal("r1", b"first draw")
        real = other._anchor
        monkeypatch.setattr(other, "_anchor", lambda: before.pop() if before else real())
        with pytest.raises(LedgerCorruptError, match="anchor"):
            other.journal("r1", b"second draw")
    assert before == []


def test_another_ledger_in_the_same_place_is_refused(path: Path, tmp_path: Path) -> None:
    ledger = reopened(path)
    ledger.close()  # it would open itself again
    Ledger.open(tmp_path / "fresh", dataset="adult").close()
    (tmp_path / "fresh").replace(path)
    with pytest.raises(LedgerCorruptError, match="another ledger took this one's place"):
        ledger.spend(PureDP("0.1"), label="more", protect=OneRow())


def test_without_an_anchor_a_rollback_can_not_be_excluded(path: Path, home: Path) -> None:
    head = reopened(path).head
    sql(path, "DELETE FROM entries WHERE seq > 3", "DELETE FROM outcomes")
    forget_anchor(home)
    ledger = reopened(path)
    assert "a rollback can't be excluded" in str(ledger.verify())
    with pytest.raises(LedgerCorruptError, match="older backup"):
        ledger.verify(anchors=[head])  # the head printed in a release


def test_an_old_release_anchors_only_what_came_before_it(path: Path, home: Path) -> None:
    ledger = reopened(path)
    old = Head(3, ledger.entries()[2].hash)
    forget_anchor(home)
    verified = ledger.verify(anchors=[old])
    assert not verified.rollback_excluded
    assert "anchored up to entry 3" in str(verified)


def test_a_rewritten_history_does_not_fit_its_anchor(path: Path) -> None:
    rewrite(path, lambda seq, body: body.update(label="nicer") if seq == 4 else None)
    with pytest.raises(LedgerCorruptError, match=r"anchor.*another hash"):
        reopened(path)


def forged_sum(seq: int, body: dict[str, object]) -> None:
    if seq == 5:
        body["after"]["spent"]["pure_epsilon"] = "1/10"  # type: ignore[index]


def forged_cost(seq: int, body: dict[str, object]) -> None:
    if seq == 5:
        body["cost"] = {"kind": "pure", "epsilon": "1/1000"}


def forged_cap(seq: int, body: dict[str, object]) -> None:
    if seq == 1:
        body["cap"] = {"kind": "pure", "epsilon": "1/5"}
    if seq:
        body["after"]["cap"] = {"kind": "pure", "epsilon": "1/5"}  # type: ignore[index]


def forged_event(seq: int, body: dict[str, object]) -> None:
    if seq == 4:
        body["event"] = "refund"


@pytest.mark.parametrize(
    ("forgery", "check"),
    [(forged_sum, "sums"), (forged_cost, "rules"), (forged_cap, "rules"), (forged_event, "rules")],
)
def test_forged_contents_with_fresh_hashes_do_not_verify(
    path: Path, home: Path, forgery: Callable[[int, dict[str, object]], None], check: str
) -> None:
    rewrite(path, forgery)
    forget_anchor(home)
    with pytest.raises(LedgerCorruptError, match=f"check of its {check}"):
        reopened(path).verify()


def test_an_export_that_was_changed_does_not_verify(path: Path) -> None:
    export = reopened(path).export()
    export["entries"][4]["body"]["label"] = "nicer"
    with pytest.raises(LedgerCorruptError, match="hashes"):
        verify_export(export)
    with pytest.raises(LedgerCorruptError, match="structure"):
        verify_export({"entries": [{}]})


def test_a_shortened_export_does_not_fit_a_release(path: Path) -> None:
    ledger = reopened(path)
    export = ledger.export()
    export["entries"].pop()
    assert not verify_export(export).rollback_excluded
    with pytest.raises(LedgerCorruptError, match="anchor"):
        verify_export(export, anchors=[ledger.head])


def test_an_anchor_lost_in_a_power_cut_is_written_again(path: Path, home: Path) -> None:
    (anchor,) = (home / "anchors").glob("*.json")
    anchor.write_bytes(b"")
    with reopened(path) as ledger:
        assert ledger.verify().anchor is None
        ledger.look("afterwards")
        assert ledger.verify().rollback_excluded


def test_a_garbled_anchor_is_refused(path: Path, home: Path) -> None:
    (anchor,) = (home / "anchors").glob("*.json")
    anchor.write_text("{")
    with pytest.raises(LedgerCorruptError, match="check of its anchor"):
        reopened(path)


def test_an_anchor_only_moves_forward(path: Path, home: Path) -> None:
    from sfumato.ledger import storage

    ledger = reopened(path)
    storage.write_anchor(home / "anchors", ledger.ledger_id, Head(2, "0" * 64))
    assert ledger.verify().rollback_excluded


def forged(*bodies: dict[str, object]) -> list[entries.Row]:
    """Rows with fresh hashes."""
    rows: list[entries.Row] = []
    for body in bodies:
        rows.append(entries.linked(body, rows[-1].head if rows else None))
    return rows


GENESIS = {"event": "genesis", "format": 1, "ledger": "0" * 32, "time": "now"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"event": "spend"}, "does not open a ledger"),
        ({"format": 2}, "format version"),
        ({"ledger": "0" * 31}, "32 hexadecimal digits"),
        ({"ledger": "g" * 32}, "32 hexadecimal digits"),
    ],
)
def test_a_first_entry_that_opens_no_ledger_is_refused(
    change: dict[str, object], says: str
) -> None:
    assert verify_rows(forged(GENESIS)).ledger_id == "0" * 32
    with pytest.raises(LedgerCorruptError, match=says):
        verify_rows(forged({**GENESIS, **change}))


def test_a_request_that_stands_twice_is_refused(path: Path) -> None:
    export = reopened(path).export()
    bodies = [entry["body"] for entry in export["entries"]]
    spend = next(body for body in bodies if body["event"] == "spend")
    note = {**spend, "event": "look", "after": bodies[-1]["after"]}
    with pytest.raises(LedgerCorruptError, match=r"request ids.*repeats one"):
        verify_rows(forged(*bodies, note))


def test_a_body_that_is_spelled_another_way_is_refused(path: Path) -> None:
    (first,) = forged(GENESIS)
    spelled = json.dumps(json.loads(first.body), sort_keys=True)
    hashed = entries.digest(first.previous, spelled)
    with pytest.raises(LedgerCorruptError, match="canonical"):
        verify_rows([entries.Row(0, spelled, first.previous, hashed)])


def test_a_body_has_one_spelling_and_no_number_that_is_none() -> None:
    assert entries.canonical({"b": 1, "a": [2]}) == '{"a":[2],"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        entries.canonical({"a": float("nan")})


def test_a_head_from_elsewhere_with_another_hash_is_refused(path: Path) -> None:
    ledger = reopened(path)
    known = ledger.entries()[2]
    ledger.verify([Head(known.seq, known.hash)])
    with pytest.raises(LedgerCorruptError, match=f"entry {known.seq} has another hash"):
        ledger.verify([Head(known.seq, "0" * 64)])
    with pytest.raises(LedgerCorruptError, match="truncated"):
        ledger.verify([Head(99, known.hash)])


def opened_with_another_data_set_last(path: Path) -> Ledger:
    """The last entry is of another data set, so that the last one of ours is an older one."""
    with Ledger.open(path, dataset="other") as other:
        other.spend(PureDP("0.1"), label="other", protect=OneRow())
    return reopened(path)


@pytest.mark.parametrize(
    ("seq", "use"),
    [
        (8, lambda ledger: ledger.head),  # the last entry of all
        (6, lambda ledger: ledger.spent),  # the last one of this data set
        (6, lambda ledger: ledger.outcome("r0")),  # the one that fixed the outcome
        (3, lambda ledger: pay_again(ledger)),  # the one that paid for a request
    ],
)
def test_an_entry_that_is_edited_under_an_open_ledger_is_not_believed(path, seq, use) -> None:
    ledger = opened_with_another_data_set_last(path)
    use(ledger)
    sql(
        path,
        f"UPDATE entries SET body = replace(body, 'time\":\"2', 'time\":\"1') WHERE seq = {seq}",
    )
    with pytest.raises(LedgerCorruptError, match="hashes"):
        use(ledger)


def pay_again(ledger: Ledger) -> None:
    ledger.spend(PureDP("0.1"), label="step 0", protect=OneRow(), request="r0")


def test_a_spend_is_refused_when_an_anchor_of_another_copy_is_ahead(path: Path, home: Path) -> None:
    with reopened(path) as ledger:
        before = ledger.head
        (file,) = (home / "anchors").iterdir()
        kept = file.read_text()
        file.write_text(json.dumps({**json.loads(kept), "seq": before.seq + 5}))
        with pytest.raises(LedgerCorruptError, match="anchored"):
            ledger.spend(PureDP("0.1"), label="more", protect=OneRow())
        file.write_text(kept)
        assert ledger.head == before  # nothing was written


def test_pages_and_indexes_are_checked_when_a_ledger_is_opened_and_when_it_is_verified(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(self: object) -> None:
        raise entries.corrupt("database structure", "a page is damaged")

    ledger = reopened(path)
    monkeypatch.setattr("sfumato.ledger.stores.SqliteTransaction.check_structure", damaged)
    with pytest.raises(LedgerCorruptError, match="a page is damaged"):
        ledger.verify()
    with pytest.raises(LedgerCorruptError, match="a page is damaged"):
        reopened(path)
