"""An archive that a server sends is a stranger's: whatever is no signed release is refused."""

import hashlib
import io
import json
import zipfile

import pytest

from bench.survey_simulator import Simulation, drive
from sfumato.commands import survey_release
from sfumato.commands.survey_release import unpack, verify
from sfumato.errors import InputError, SfumatoError, StorageError
from sfumato.server.http.app import page_digest
from sfumato.survey.protocol.announcements import SurveyLink
from sfumato.survey.protocol.envelopes import Signer

COLUMNS = [{"name": "smoker", "kind": "boolean"}]


@pytest.fixture
def released(service):
    """The files of a release, its survey and its key."""
    made = service.create(COLUMNS, invited=False, rehearsal=True)
    made.act("open")
    drive(SurveyLink.read(made.link()), Simulation(people=50))
    made.act("close")
    made.act("release")
    with zipfile.ZipFile(io.BytesIO(made.look("release.zip"))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return files, made


def packed(files, *more):
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, content in [*files.items(), *more]:
            archive.writestr(name, content)
    return body.getvalue()


def test_a_release_is_unpacked_as_it_is(released, tmp_path):
    files, made = released
    folder = unpack(packed(files), task=made.task, key=made.key, out=tmp_path / "out")
    assert folder == tmp_path / "out-internal"  # its answers were simulated
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == files


def without(files, name):
    return {each: content for each, content in files.items() if each != name}


def changed(files, name, **change):
    return {**files, name: json.dumps({**json.loads(files[name]), **change}).encode()}


HOSTILE = {
    "a way out of the folder": lambda files: packed(files, ("../evil", b"x")),
    "an absolute name": lambda files: packed(files, ("/tmp/evil", b"x")),
    "a folder inside": lambda files: packed(files, ("a/data.csv", b"x")),
    "another file": lambda files: packed(files, ("evil.exe", b"x")),
    "no data": lambda files: packed(without(files, "data.parquet")),
    "half of it": lambda files: packed(files)[:-100],
    "no zip": lambda files: b"<html>",
    "no survey": lambda files: packed({**files, "survey.json": b"[]"}),
    "another announcement": lambda files: packed(changed(files, "release.json", method={})),
    "damaged data": lambda files: packed({**files, "data.parquet": b"PAR1"}),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_what_is_no_release_leaves_nothing_behind(attack, released, tmp_path):
    files, made = released
    archive = HOSTILE[attack](files)
    with pytest.raises(SfumatoError):
        unpack(archive, task=made.task, key=made.key, out=tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir() if "out" in each.name] == []


def test_two_files_of_one_name_are_refused(released, tmp_path):
    files, made = released
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive = packed(files, ("data.csv", b"=cmd()"))
    with pytest.raises(SfumatoError, match="other files"):
        unpack(archive, task=made.task, key=made.key, out=tmp_path / "out")


def test_a_release_that_another_key_signed_is_refused(released, tmp_path):
    files, made = released
    with pytest.raises(InputError, match="signature"):
        unpack(packed(files), task=made.task, key=Signer(bytes(32)).key, out=tmp_path / "out")


def test_a_release_of_another_survey_is_refused(released, tmp_path):
    files, made = released
    with pytest.raises(SfumatoError, match="another survey"):
        unpack(packed(files), task="0" * 32, key=made.key, out=tmp_path / "out")


def test_a_bomb_is_refused_before_it_is_unpacked(released, tmp_path, monkeypatch):
    files, made = released
    monkeypatch.setattr(survey_release, "LARGEST", 1_000)
    with pytest.raises(SfumatoError, match="larger than"):
        unpack(packed(files), task=made.task, key=made.key, out=tmp_path / "out")


FILES = ("data.csv", "data.parquet", "model.npz", "release.json", "report.html")


def written(files, folder):
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_seal_names_every_file_the_page_and_the_key(released, tmp_path):
    files, made = released
    sealed = verify(written(files, tmp_path / "out"), key=made.key)
    assert sealed.files == {
        name: hashlib.sha256(content).hexdigest()
        for name, content in files.items()
        if name != "survey.json"
    }
    assert set(FILES) == set(sealed.files)
    assert sealed.announcement.page == page_digest("answer.html")
    assert sealed.key == json.loads(files["survey.json"])["key"] == made.key
    assert b"sfumato survey verify FOLDER" in files["report.html"]


def test_a_release_can_be_checked_as_it_was_packed_and_by_its_own_key(released, tmp_path):
    files, made = released
    (tmp_path / "release.zip").write_bytes(packed(files))
    assert verify(tmp_path / "release.zip").key == made.key


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_changed_by_one_bit_is_told(name, released, tmp_path):
    files, made = released
    changed = bytes([files[name][0] ^ 1]) + files[name][1:]
    folder = written({**files, name: changed}, tmp_path / "out")
    with pytest.raises(StorageError, match=f"'{name}' is not the file that was signed"):
        verify(folder, key=made.key)
    with pytest.raises(StorageError, match="what the server sent is no release"):
        unpack(packed({**files, name: changed}), task=made.task, key=made.key, out=tmp_path / "new")


def test_files_that_are_missing_or_were_added_are_told(released, tmp_path):
    files, made = released
    with pytest.raises(StorageError, match=r"'data\.csv' was signed and is missing"):
        verify(written(without(files, "data.csv"), tmp_path / "less"), key=made.key)
    with pytest.raises(StorageError, match=r"'notes\.txt' was not signed"):
        verify(written({**files, "notes.txt": b"x"}, tmp_path / "more"), key=made.key)


@pytest.mark.parametrize("part", ["survey", "plans", "release"])
def test_a_seal_that_was_changed_is_refused(part, released, tmp_path):
    files, _ = released
    told = json.loads(files["survey.json"])
    signed = told[part][0] if part == "plans" else told[part]
    signed["payload"] = signed["payload"].replace('"sfumato":1', '"sfumato": 1')
    folder = written({**files, "survey.json": json.dumps(told).encode()}, tmp_path / "out")
    with pytest.raises(InputError, match="signature"):
        verify(folder)


def test_a_seal_of_somebody_else_is_refused_where_the_key_is_known(released, tmp_path):
    """With another key anybody can seal other files: only the key from elsewhere tells."""
    files, made = released
    told, other = json.loads(files["survey.json"]), Signer(bytes(32))
    texts = {part: json.loads(told[part]["payload"]) for part in ("survey", "release")}
    resealed = {
        "survey": other.sign(texts["survey"]).to_dict(),
        "key": other.key,
        "plans": [],
        "release": other.sign(texts["release"]).to_dict(),
    }
    forged = {**files, "survey.json": json.dumps(resealed).encode()}
    folder = written(forged, tmp_path / "out")
    assert verify(folder).key == other.key
    with pytest.raises(InputError, match="signature"):
        verify(folder, key=made.key)


def test_another_signed_text_of_the_survey_is_no_seal(released, tmp_path):
    files, made = released
    told = json.loads(files["survey.json"])
    swapped = {**told, "release": told["survey"]}
    folder = written({**files, "survey.json": json.dumps(swapped).encode()}, tmp_path / "out")
    with pytest.raises(StorageError, match="signs no release"):
        verify(folder, key=made.key)


def test_a_release_that_was_exported_can_be_replaced(released, tmp_path):
    files, made = released
    for force in (False, True):
        folder = unpack(
            packed(files), task=made.task, key=made.key, out=tmp_path / "out", force=force
        )
    assert verify(folder, key=made.key)
