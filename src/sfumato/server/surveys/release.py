"""The release of a survey: the folder that may be published, packed, made once.

``release.json`` tells under ``method`` what people were shown (the announcement, the key that it
was signed with, the page) and what was found when the answers were checked for fakes; all files
are sealed (``seal``). No ledger of the server is charged: each device keeps its own, and none
answers beyond what was agreed.
"""

import io
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select

from sfumato import report
from sfumato.errors import InputError
from sfumato.randomness import secure_rng
from sfumato.release import TableRelease
from sfumato.report.table_page import report_view
from sfumato.report.view import ReportView
from sfumato.server.storage import tables
from sfumato.server.surveys import poisoning, rounds
from sfumato.server.surveys.lifecycle import RELEASED, Survey, Surveys
from sfumato.survey.dp2pub.round_tally import RoundTally
from sfumato.survey.protocol import seal

_MOMENT: Final = (1980, 1, 1, 0, 0, 0)
"""Of the files in the archive: when it was made is nobody's business."""
_REPORT: Final = "report.html"
_LEDGER: Final = (
    "No ledger of a server was charged. Every device keeps its own, and refuses to answer beyond "
    "what the survey announced."
)

_SEALED: Final = (
    f"{seal.SEAL} holds the SHA-256 of every file of this release, signed with the key above, "
    "which also stands in every invitation: `sfumato survey verify FOLDER` tells if one was "
    "changed."
)


def release(surveys: Surveys, survey: Survey) -> dict[str, Any]:
    """Fit, draw, pack and keep; afterwards the survey is over."""
    if survey.state == RELEASED:
        return {"state": RELEASED}
    if survey.state != f"closed-{survey.rounds}":
        raise InputError("a release is made when the last round is closed. Close it first.")
    tallies = [surveys.tally(survey, number) for number in range(1, survey.rounds + 1)]
    agreed = survey.announcement.agreement
    questions = [each.question for each in surveys.rounds(survey)]
    drawn = rounds.release(agreed, tallies, questions, rng=secure_rng())
    method = {**drawn.method, **_collected(surveys, survey, tallies)}
    if "dependence" in method and (second := surveys.round(survey, 2)) is not None:
        method["dependence"] = second.why.get("dependence")  # None if too few answered about pairs
    private = drawn.private and not survey.announcement.rehearsal
    made = replace(drawn, method=method, dataset=_dataset(surveys, survey), private=private)
    surveys.keep_archive(survey, _packed(made, survey, surveys))
    return {"state": RELEASED}


def _collected(surveys: Surveys, survey: Survey, tallies: Sequence[RoundTally]) -> dict[str, Any]:
    """What a release says of how its answers were collected."""
    announcement = survey.announcement
    return {
        "task": announcement.task,
        "title": announcement.title,
        "announcement": survey.envelope.digest,
        "key": survey.signer.key,
        "page": announcement.page,
        "invitations": "needed" if announcement.invited else "not needed",
        "ledger": _LEDGER,
        "poisoning": {
            **poisoning.verdict(surveys, survey, tallies),
            "gain": poisoning.figure(surveys, survey, surveys.counts(survey)),
        },
    }


def _dataset(surveys: Surveys, survey: Survey) -> str:
    """The name that the schema gave, or else the title."""
    columns = tables.surveys.c
    with surveys.storage.reading() as connection:
        query = select(columns.dataset).where(columns.id == survey.id)
        return connection.execute(query).scalar_one() or survey.announcement.title


def _packed(made: TableRelease, survey: Survey, surveys: Surveys) -> bytes:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made.write_into(folder, csv=True)
        report.write(with_survey(report_view(made, csv=True), made.method), folder / _REPORT)
        files = seal.read_folder(folder)
    signed = [each.signed for each in surveys.rounds(survey)]
    files[seal.SEAL] = seal.seal(files, survey.envelope, signed, signer=survey.signer)
    return _zipped(files)


def _zipped(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, date_time=_MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return packed.getvalue()


def with_survey(view: ReportView, method: Mapping[str, Any]) -> ReportView:
    """A report that also tells how the answers were collected, and whether some look fake."""
    check = method["poisoning"]
    facts = [
        ("Survey", str(method["title"])),
        ("Announcement, SHA-256", str(method["announcement"])),
        ("Signed with the key", str(method["key"])),
        ("Invitations", str(method["invitations"])),
        ("Page for people, SHA-256", str(method["page"])),
        ("Fake answers", "the alarm was raised" if check["alarm"] else "no alarm"),
    ]
    notes = [check["words"], check["gain"]["words"], str(method["ledger"]), _SEALED]
    files = [(seal.SEAL, "what people were shown and asked, and the hash of every file, signed")]
    return replace(
        view,
        facts=(*view.facts, *facts),
        notes=(*view.notes, *notes),
        files=(*view.files, *files),
    )
