"""The report of a survey speaks of the survey's own account, and of what checks it."""

import re
import sys

import pytest

from service.crowd import Crowd
from sfumato.cli import main
from sfumato.commands.survey_release import unpack
from sfumato.randomness import simulation_rng

COLUMNS = [
    {"name": "smoker", "kind": "boolean"},
    {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
]


@pytest.fixture(params=["single", "grouped", "faithful"])
def released(request, service, tmp_path):
    """The variant, the folder of a release, and the number of answers by round."""
    made = service.create(COLUMNS, variant=request.param, minimum=50, epsilon="2")
    crowd = Crowd(made, 600, rng=simulation_rng(1), simulated=False)
    kept = []
    for number in (1, 2)[: 1 if request.param == "single" else 2]:
        made.act("open")
        kept.append(crowd.answer(number))
        made.act("close")
    made.act("release")
    archive = made.look("release.zip")
    folder = unpack(archive, task=made.task, key=made.key, out=tmp_path / "out")
    assert folder == tmp_path / "out"
    return request.param, folder, kept


def test_a_report_tells_rounds_epsilon_and_answers_and_no_ledger(released):
    variant, folder, kept = released
    page = (folder / "report.html").read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "Every noisy result" not in text
    assert "ledger verify" not in text
    assert "sfumato survey verify FOLDER" in text
    epsilon = "up to 1" if variant == "faithful" else "2"
    for number, answers in enumerate(kept, start=1):
        assert f"{number} {answers} {epsilon} " in text
    if variant == "single":
        assert len(kept) == 1
    else:
        assert "no pair was measured" not in text


def test_a_ledger_accuses_no_survey_and_says_what_to_use(released, monkeypatch, capsys, tmp_path):
    _, folder, _ = released
    monkeypatch.setenv("SFUMATO_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "argv", ["sfumato", "ledger", "verify", "--release", str(folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code != 0
    said = capsys.readouterr().err
    assert "sfumato survey verify" in said
    assert "who changed it" not in said
    monkeypatch.setattr(sys, "argv", ["sfumato", "survey", "verify", str(folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
