"""``sfumato survey answer`` and ``simulate``: one person's device, and many made-up ones."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options, progress, show
from sfumato.errors import InputError, StorageError

if TYPE_CHECKING:
    from sfumato.server.simulator import Driven
    from sfumato.survey.device.remote import SurveyStep
    from sfumato.survey.owner import SurveyOwner
    from sfumato.survey.protocol.announcements import Announcement
    from sfumato.survey.protocol.links import SurveyLink

_LARGEST_RECORD = 2**20
_TOO_FAST = 429


def answer(
    link: Annotated[
        str, typer.Argument(help="The invitation, a link; - to read it from standard input.")
    ],
    record: Annotated[Path, typer.Option(help="Your values by column, FILE.json.")],
    state: Annotated[
        Path | None,
        typer.Option(help="What this device keeps. [default: in the state directory]"),
    ] = None,
    max_epsilon: Annotated[
        str, typer.Option(help="The largest epsilon that you agree to; say more to answer more.")
    ] = "5",
    survey_hash: Annotated[
        str | None,
        typer.Option(help="The survey's hash, as its owner published it: another is refused."),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would leave, and send nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Answer a survey from this device: randomized here, sent once, shown before it leaves.

    A value that the survey does not know is no error, which the server could see: you are warned.
    """
    from sfumato.randomness import secure_rng
    from sfumato.survey.device.remote import SurveyClient
    from sfumato.survey.protocol.http_client import Patience
    from sfumato.survey.protocol.links import SurveyLink

    found = _agreed_link(
        SurveyLink.read(sys.stdin.readline() if link == "-" else link), survey_hash
    )
    place = state if state is not None else _default_state(found.task)
    patience = Patience(tries=4)  # somebody waits, and can come again
    client = SurveyClient(
        found,
        _record(record),
        state=place,
        rng=secure_rng(),
        patience=patience,
        max_epsilon=max_epsilon,
    )
    announced = client.announcement()
    due = client.due()
    if not json:
        _print_due(announced, due)
    if preview:
        if json:
            show.as_json({"leaves": due.leaves, "sent": False, "misfits": due.misfits})
        elif due.misfits and due.leaves is not None:
            typer.echo("note        this answer is kept; a corrected record needs a new --state")
        return
    done = client.send(due)  # what was shown, whatever the server says meanwhile
    if json:
        told = {"leaves": due.leaves, "sent": done.what == "answered", "misfits": due.misfits}
        show.as_json({**told, "what": done.what, "round": done.round, "receipt": done.receipt})
        return
    typer.echo(f"done        {replace(done, misfits=())}")
    if done.what != "over":
        typer.echo(f"state       {place}  (keep it: without it this device would answer anew)")


def simulate(
    survey: Annotated[
        str, typer.Argument(help="A file of keys, or a link whose invitation is for so many.")
    ],
    people: Annotated[int, typer.Option(help="How many people take part.")],
    public_table: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Its rows are the people, and only if everybody may see them: whoever runs the "
            "server can undo seeded noise. [default: people are made up]",
        ),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The description of the table's columns.")
    ] = None,
    hostile: Annotated[float, typer.Option(help="How many of 100 people are hostile.")] = 0.0,
    attack: Annotated[
        str, typer.Option(help="What the hostile do: copies, crafted, replay or garbage.")
    ] = "copies",
    together: Annotated[int, typer.Option(help="Answers of one request; 1 for single ones.")] = 100,
    connections: Annotated[int, typer.Option(help="How many are open at once.")] = 8,
    seed: Annotated[int, typer.Option(help="Makes the people, their answers and their noise.")] = 0,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Drive a real server with many simulated clients, some of them hostile.

    Their answers are seeded and say so: they protect nobody, and a release with them is internal.
    """
    from sfumato import check
    from sfumato.server.simulator import Simulation, drive
    from sfumato.server.simulator_attacks import ATTACKS

    wanted = Simulation(
        people=people,
        together=together,
        connections=connections,
        hostile=hostile / 100,
        attack=check.one_of(ATTACKS, attack=attack),
        seed=seed,
    )
    if schema is not None and public_table is None:
        raise InputError("--schema describes a --public-table, and there is none.")
    codes = None if public_table is None else _codes(public_table, schema, people)
    with progress.shown(quiet=quiet or json) as tell:
        link, owner = _invited(survey, people)
        driven = drive(link, wanted, codes=codes, tell=tell)
    verdict = None if owner is None else owner.poisoning()["verdict"]
    if json:
        show.as_json({**driven.to_dict(), "verdict": verdict})
        return
    _print(driven, verdict)


def _agreed_link(link: "SurveyLink", given: str | None) -> "SurveyLink":
    """The link with the hash that was given, which must not be another than its own."""
    from sfumato.survey.protocol.announcements import HASH, is_text_like

    if given is None:
        return link
    if not is_text_like(HASH, given):
        raise InputError(
            "--survey-hash: a survey hash is 40 hexadecimal digits (0-9, a-f), as the owner of "
            "the survey published it. Copy it whole, or leave --survey-hash out."
        )
    if link.survey_hash not in (None, given):
        raise InputError(
            "the link holds another hash than --survey-hash. Ask whoever invited you which one is "
            "right."
        )
    return replace(link, survey_hash=given)


def _print_due(announced: "Announcement", due: "SurveyStep") -> None:
    """What the survey is, what leaves, and what the server must not learn: what does not fit."""
    from sfumato.schema.values import expected
    from sfumato.survey.device.remote import MAX_EPSILON, epsilon_words

    typer.echo(f"survey      {show.label(announced.title, 60)}")
    if announced.rehearsal:
        typer.echo("rehearsal   this is no real survey: its owner is shown everything at once")
    typer.echo(f"promise     {announced.agreement.guarantee}, for all that you answer in it")
    if (asked := announced.agreement.epsilon) > MAX_EPSILON:
        typer.echo(f"WARNING     epsilon {asked} is large. {epsilon_words(asked)}", err=True)
    typer.echo(f"leaves      {due.leaves if due.leaves is not None else 'nothing now'}")
    for name in due.misfits:
        wanted = expected(announced.agreement.schema[name])
        typer.echo(
            f"WARNING     your {show.label(repr(name), 60)} is not {show.label(wanted, 80)}. In "
            "what leaves, missing, other or the first value stands for it; the server can't tell",
            err=True,
        )


def _print(driven: "Driven", verdict: dict[str, Any] | None) -> None:
    typer.echo("A simulation: seeded noise protects nobody.")
    speed = driven.answers / driven.seconds if driven.seconds else 0.0
    typer.echo(
        f"simulated   {driven.answers:,} honest answers in round {driven.round}, "
        f"{driven.seconds:.1f} s ({speed:,.0f} a second)"
    )
    for who, statuses in (("honest", driven.honest), ("hostile", driven.hostile)):
        if statuses:
            listed = ", ".join(f"{n:,} x {status}" for status, n in sorted(statuses.items()))
            typer.echo(f"{who:11} requests by status: {listed}")
    told = ", ".join(f"{n:,} {what}" for what, n in sorted(driven.outcomes.items()))
    typer.echo(f"server      answers: {told or 'none'}")
    if driven.lost:
        typer.echo(f"lost        {show.counted(driven.lost, 'connection')}")
    if driven.honest[_TOO_FAST]:
        typer.echo(
            "note        the server slows down requests of one address: start it with --rate 0"
        )
    if verdict is not None:
        typer.echo(f"fakes       {'ALARM' if verdict['alarm'] else 'no alarm'}")
        if driven.hostile:
            typer.echo(f"            {verdict['words']}")


def _invited(survey: str, uses: int) -> "tuple[SurveyLink, SurveyOwner | None]":
    """The link that simulated people use; the owner's keys make one for all of them."""
    from sfumato.survey.owner import SurveyKeys, SurveyOwner
    from sfumato.survey.protocol.http_client import Patience
    from sfumato.survey.protocol.links import SurveyLink

    if "://" in survey:
        return SurveyLink.read(survey), None
    owner = SurveyOwner(SurveyKeys.load(survey), patience=Patience(tries=3))
    if not owner.status()["state"].startswith("open"):
        raise InputError("no round of this survey is open. Open one first.")
    (link,) = owner.invite(1, uses=uses)
    return link, owner


def _codes(table: str, schema: Path | None, people: int) -> dict[str, Any]:
    """The first rows of a public table, as codes by column; its ledger notes the look.

    Seeded noise protects nobody, so this is as if the rows themselves were sent.
    """
    from sfumato.counting.exact_counts import exact_codes
    from sfumato.ledger import Ledger
    from sfumato.readers.open_table import open_table
    from sfumato.schema import Schema

    if schema is None:
        raise InputError("--public-table needs --schema, the description of its columns.")
    known = Schema.load(schema)
    rows = open_table(table, known)
    if known.dataset is not None:
        Ledger.open(dataset=known.dataset).simulation("survey simulate: seeded, to a server")
    held = exact_codes(rows, known.names)
    if len(held[known.names[0]]) < people:
        raise InputError(
            f"the table has fewer rows than the {people:,} people that were asked for. Lower "
            "--people."
        )
    return {name: held[name][:people] for name in known.names}


def _record(path: Path) -> Any:
    """The values of one person; the file stays here."""
    import json

    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_LARGEST_RECORD))
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path} is no JSON object of values by column.") from None
    return found


def _default_state(task: str) -> Path:
    from sfumato.ledger import default_path

    folder = default_path().parent / "surveys"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StorageError(f"can't make {folder}: {error.strerror}. Name a --state file.") from None
    return folder / f"{task}.json"
