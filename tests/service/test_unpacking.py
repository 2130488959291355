"""An archive that a server sends is a stranger's: whatever is no signed release is refused."""

import io
import json
import zipfile

import pytest

from sfumato.collection.envelopes import Signer
from sfumato.collection.links import SurveyLink
from sfumato.errors import InputError, SfumatoError
from sfumato.service import unpacking
from sfumato.service.driving import Simulation, drive
from sfumato.service.unpacking import unpack

COLUMNS = [{"name": "smoker", "kind": "boolean"}]


@pytest.fixture
def released(service):
    """The files of a release, its survey and its key."""
    made = service.create(COLUMNS, invited=False)
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
    monkeypatch.setattr(unpacking, "LARGEST", 1_000)
    with pytest.raises(SfumatoError, match="larger than"):
        unpack(packed(files), task=made.task, key=made.key, out=tmp_path / "out")
