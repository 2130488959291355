"""Every other command: one message, the right exit code, and nothing left behind."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bad import INPUT, IO, SECRET, assert_one_message

RATINGS = "user,item,rating\n" + "".join(f"u{n % 9},i{n % 4},{1 + n % 5}\n" for n in range(36))
ITEMS = "item,title\n" + "".join(f"i{n},Title {n}\n" for n in range(4))
DRAFTED = {
    "sfumato": 1,
    "dataset": "towns",
    "columns": [{"name": "age", "kind": "integer", "low": 0, "high": 9, "unconfirmed": ["low"]}],
}


@dataclass(frozen=True, kw_only=True)
class Call:
    """A command line, in which {name} is a file of the folder, and its end."""

    line: str
    says: str
    code: int = INPUT
    files: tuple[tuple[str, str], ...] = ()
    prepare: Callable[[Any], object] | None = None


def call(line: str, says: str, code: int = INPUT, **files: str) -> Call:
    return Call(line=line, says=says, code=code, files=tuple(files.items()))


DRAFTS = {
    "a draft of nothing": call("schema draft none.csv -o d.json", "can't read none.csv", IO),
    "a draft of an empty file": call(
        "schema draft {t.csv} -o d.json", "the file is empty", t_csv=""
    ),
    "a draft of a header": call("schema draft {t.csv} -o d.json", "no rows", t_csv="age,town\n"),
    "a draft of values": call(
        "schema draft {t.csv} -o d.json", "looks like a row of values", t_csv=f"39,{SECRET}\n4,x\n"
    ),
    "a draft of keys alone": call(
        "schema draft {t.csv} -o d.json",
        "no column can be published",
        t_csv="key\n" + "".join(f"{SECRET}{n}\n" for n in range(200)),
    ),
    "a draft with a ragged row": call(
        "schema draft {t.csv} -o d.json",
        "t.csv, line 3: this row has 1",
        t_csv=f"a,b\n1,2\n{SECRET}\n",
    ),
    "a draft over a file": call("schema draft table.csv -o schema.json", "schema.json exists"),
    "a draft into no folder": call("schema draft table.csv -o no/d.json", "no folder", IO),
    "a draft with too many names": call(
        "schema draft {t.csv} -o d.json --names a,b,c",
        "line 1: this row has 2 fields",
        t_csv="1,2\n",
    ),
    "a draft with a name twice": call(
        "schema draft table.csv -o d.json --names a,a", "stand twice"
    ),
    "a draft with names and a header": call(
        "schema draft table.csv -o d.json --names a,b --header", "Give one of both"
    ),
    "Parquet without a header": call(
        "schema draft {t.parquet} -o d.json --no-header", "only CSV files", t_parquet="PAR1"
    ),
    "nothing to confirm": call("schema confirm none.json --yes", "can't read none.json", IO),
    "a confirmation of no draft": call("schema confirm {d.json} -y", "no drafted", d_json="[]"),
    "a confirmation of bad JSON": call(
        "schema confirm {d.json} -y", r"d.json:1:\d+: not valid JSON", d_json='{"columns": ['
    ),
    "a confirmation of another column": call(
        "schema confirm {d.json} agee -y", "no column 'agee'", d_json=json.dumps(DRAFTED)
    ),
    "a confirmation that nobody gives": call(
        "schema confirm {d.json}", "no terminal to ask at.*--yes", d_json=json.dumps(DRAFTED)
    ),
}
PLANS = {
    "a plan of no rows": call("plan --schema schema.json --rows 0 --epsilon 1", "rows must be"),
    "a plan of text": call("plan --schema schema.json --rows many --epsilon 1", "'--rows'"),
    "a plan without epsilon": call(
        "plan --schema schema.json --rows 10 --epsilon 0", "epsilon must"
    ),
    "a plan of an unknown method": call(
        "plan --schema schema.json --rows 10 --epsilon 1 --method magic", "method"
    ),
    "a plan without a schema": call(
        "plan --schema none --rows 10 --epsilon 1", "can't read none", IO
    ),
    "a chart that is none": call(
        "plan --schema schema.json --rows 10 --epsilon 1 --chart c.png", "ends in .svg"
    ),
}
ANSWERS = {
    "answers about no column": call(
        "answers simulate table.csv --schema schema.json --column agee --epsilon 1 -o a.parquet",
        "no column 'agee'.*Did you mean 'age'",
    ),
    "answers for nothing": call(
        "answers simulate table.csv --schema schema.json --column age --epsilon 0 -o a.parquet",
        "epsilon of an answer must be between 0.0001 and 32, got 0",
    ),
    "answers by no protocol": call(
        "answers simulate table.csv --schema schema.json --column age --epsilon 1 "
        "--protocol magic -o a.parquet",
        "protocol must be auto or one of",
    ),
    "answers into a table": call(
        "answers simulate table.csv --schema schema.json --column age --epsilon 1 -o a.csv",
        r"\.parquet or \.jsonl",
    ),
    "answers into the ledger": call(
        "answers simulate table.csv --schema schema.json --column age --epsilon 1 -o l.parquet "
        "--ledger l.parquet",
        "holds the ledger",
    ),
    "answers from no table": call(
        "answers simulate none.csv --schema schema.json --column age --epsilon 1 -o a.parquet",
        "can't read none.csv",
        IO,
    ),
    "estimates from nothing": call("answers estimate none.parquet", "can't read none.parquet", IO),
    "estimates from a table": call("answers estimate table.csv", "table.csv"),
    "estimates of no confidence": call(
        "answers estimate {a.jsonl} --confidence 2", "conf", a_jsonl=""
    ),
    "estimates from half a file": call("answers estimate {a.jsonl}", "a.jsonl:1", a_jsonl='{"a": '),
    "advice for nobody": call("answers advise --epsilon 1 --people 0", "people must be"),
    "advice on one category": call(
        "answers advise --epsilon 1 --people 9 --categories 1", "categories"
    ),
}
DP2PUB = {
    "trust in somebody else": call(
        "dp2pub table.csv --schema schema.json --epsilon 1 --trust me --out o", "trust must be one"
    ),
    "an unknown variant": call(
        "dp2pub table.csv --schema schema.json --epsilon 1 --trust nobody --variant x --out o",
        "variant must be one",
    ),
    "groups on a trusted server": call(
        "dp2pub table.csv --schema schema.json --epsilon 1 --trust server --variant grouped "
        "--out o",
        "there are no groups",
    ),
    "added rows": call(
        "dp2pub table.csv --schema schema.json --epsilon 1 --trust server --neighbors add-remove "
        "--out o",
        "replace",
    ),
    "an epsilon that randomizes nothing": call(
        "dp2pub table.csv --schema schema.json --epsilon 9999 --trust server --out o", "epsilon"
    ),
}
RECOMMEND = {
    "ratings without a catalogue": call(
        "recommend fit {r.csv} --scale 1..5 --epsilon 1 --unit rating --dataset d --out o",
        "catalogue",
        r_csv=RATINGS,
    ),
    "a scale the wrong way round": call(
        "recommend fit {r.csv} --catalogue {i.csv} --scale 5..1 --epsilon 1 --unit rating "
        "--dataset d --out o",
        "scale|above",
        r_csv=RATINGS,
        i_csv=ITEMS,
    ),
    "a unit of nobody": call(
        "recommend fit {r.csv} --catalogue {i.csv} --scale 1..5 --epsilon 1 --unit town "
        "--dataset d --out o",
        "unit must be one of",
        r_csv=RATINGS,
        i_csv=ITEMS,
    ),
    "ratings that are their own catalogue": call(
        "recommend fit {r.csv} --catalogue {r.csv} --scale 1..5 --epsilon 1 --unit rating "
        "--dataset d --out o",
        "table of ratings itself",
        r_csv=RATINGS,
    ),
    "ratings beside the scale": call(
        "recommend fit {r.csv} --catalogue {i.csv} --scale 1..4 --epsilon 1 --unit rating "
        "--dataset d --strict --out o",
        "r.csv",
        r_csv=RATINGS.replace("u0,i0,1", "u0,i0,SECRET123", 1),
        i_csv=ITEMS,
    ),
    "no data set for ratings": call(
        "recommend fit {r.csv} --catalogue {i.csv} --scale 1..5 --epsilon 1 --unit rating --out o",
        "dataset",
        r_csv=RATINGS,
        i_csv=ITEMS,
    ),
    "a list from no folder": call("recommend top none --item i0", "none", IO),
    "a list from a table": call("recommend top table.csv --item i0", "table.csv", IO),
    "an evaluation without epsilon": call(
        "recommend evaluate {r.csv} --scale 1..5 --unit rating", "give --epsilon", r_csv=RATINGS
    ),
}
OTHERS = {
    "an evaluation of no release": call("evaluate none --against table.csv", "none", IO),
    "an evaluation of a file": call("evaluate table.csv --against table.csv", "table.csv", IO),
    "an evaluation of nonsense": call(
        "evaluate . --against table.csv", "not a complete release", IO, release_json="{}"
    ),
    "no ledger to show": call("ledger show --ledger none.ledger", "there is no ledger", IO),
    "no ledger to verify": call("ledger verify --ledger none.ledger", "there is no ledger", IO),
    "no ledger to export": call("ledger export --ledger none.ledger", "there is no ledger", IO),
    "a ledger that is a table": call("ledger show --ledger table.csv", "table.csv", IO),
    "a cap of text": call("ledger cap towns much --ledger l.ledger", "a cap is EPSILON or"),
    "a cap of nothing": call("ledger cap towns 0 --ledger l.ledger", "epsilon must be"),
    "an audit of nothing we know": call("audit magic", "magic"),
    "an audit of too few runs": call("audit Grr --runs 5", "'--runs'"),
    "an audit into no folder": call("audit Grr --markdown no/page.md", "can't be written"),
    "a demo over other files": call("demo --out .", "out must name a folder"),
    "a demo over a file": call("demo --out table.csv", "table.csv exists"),
    "a demo for nothing": call("demo --out d --epsilon 0", "epsilon must be"),
    "a run file that is not there": call("run none.toml", "none.toml", IO),
    "a run file that is no TOML": call("run {r.toml}", "r.toml", r_toml='command = "publish\n'),
    "a run file of another command": call("run {r.toml}", "r.toml", r_toml='command = "rm"\n'),
    "an unknown command": call("nope", "No such command"),
    "an unknown part of a command": call("ledger nope", "No such command"),
}
CALLS = {**DRAFTS, **PLANS, **ANSWERS, **DP2PUB, **RECOMMEND, **OTHERS}


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_command_meets_one_message_and_leaves_nothing(
    name: str, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CALLS[name]
    monkeypatch.chdir(world.folder)
    for file, content in case.files:
        world.write(file.replace("_", "."), content)
    before = _everything(world.folder)
    line = re.sub(r"\{(.*?)\}", r"\1", case.line)
    outcome = world.run(*line.split())
    assert outcome.code == case.code, outcome
    assert outcome.out == "" or name == "a confirmation that nobody gives"
    assert_one_message(outcome.err, case.says)
    assert {*_everything(world.folder)} - {*before} <= {"l.ledger", "d-internal"}
    assert {path: _everything(world.folder)[path] for path in before} == before


def _everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.iterdir()
    }


def test_the_cases_are_enough() -> None:
    assert len(CALLS) >= 60


def test_a_name_that_the_terminal_does_not_know_can_be_printed(world: Any) -> None:
    """In a process of its own, which writes to a terminal of plain ASCII."""
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", *world.arguments(out=world.folder / "café", seed="1")],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert b"/caf" in done.stdout


@pytest.mark.parametrize(("option", "code"), [("table", IO), ("out", INPUT), ("schema", IO)])
def test_a_name_that_is_no_text_is_refused_before_the_spend(
    option: str, code: int, world: Any
) -> None:
    name = os.fsdecode(os.fsencode(world.folder) + b"/caf\xe9.csv")
    if option != "out":
        Path(name).write_bytes(getattr(world, option).read_bytes())
    outcome = world.publish(**{option: name})
    assert outcome.code == code
    assert_one_message(outcome.err, r"caf\\udce9.csv.* UTF-8 text.*Nothing was spent")
    assert world.spends() == []


def test_escapes_in_the_name_of_a_file_do_not_reach_the_terminal(world: Any) -> None:
    outcome = world.publish(table="\x1b[2J\x07none.csv")
    assert outcome.code == IO
    assert_one_message(outcome.err, r"can't read \\x1b\[2J\\x07none.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_not_be_written_is_found_out_before_the_spend(world: Any) -> None:
    closed = world.folder / "closed"
    closed.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    outcome = world.publish(out=closed / "out")
    assert outcome.code == IO
    assert_one_message(outcome.err, "closed: Permission denied. Nothing was spent")
    assert world.spends() == []
