"""The jobs that ``profile_jobs.py`` runs: commands on the tables of ``profile_tables.py``.

Only the standard library is loaded here: a child's peak memory is never below its parent's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Job:
    """A command as a function of the folder of its tables, and what has to run before it."""

    command: Callable[[Path], list[str]]
    before: tuple[Callable[[Path], list[str]], ...] = ()
    profiled: bool = True


def _publish(
    method: str, ending: str, schema: str = "mixed", neighbors: str = "add-remove"
) -> Callable[[Path], list[str]]:
    def command(tables: Path) -> list[str]:
        table = "wide" if schema == "wide" else "mixed"
        given = [str(tables / f"{table}.{ending}"), "--schema", str(tables / f"{schema}.json")]
        asked = ["--method", method, "--neighbors", neighbors, "--out", "out"]
        return ["publish", *given, *_paid(), *asked]

    return command


def _dp2pub(trust: str) -> Callable[[Path], list[str]]:
    def command(tables: Path) -> list[str]:
        given = [str(tables / "few.parquet"), "--schema", str(tables / "few.json")]
        return ["dp2pub", *given, *_paid(), "--trust", trust, "--out", "out"]

    return command


def _simulate(protocol: str) -> Callable[[Path], list[str]]:
    def command(tables: Path) -> list[str]:
        given = [str(tables / "people.parquet"), "--schema", str(tables / "people.json")]
        asked = ["--column", "answer", "--protocol", protocol, "-o", "answers.parquet"]
        return ["answers", "simulate", *given, *_paid(), *asked]

    return command


def _fit(method: str) -> Callable[[Path], list[str]]:
    def command(tables: Path) -> list[str]:
        given = [str(tables / "ratings.csv"), "--catalogue", str(tables / "items.csv")]
        asked = ["--scale", "1..5", "--unit", "person", "--dataset", "ratings", "--out", "out"]
        return ["recommend", "fit", *given, *_paid(), *asked, "--method", method]

    return command


def _evaluate(tables: Path) -> list[str]:
    return ["evaluate", "out", "--against", str(tables / "mixed.parquet"), *_ledger()]


def _plan(tables: Path) -> list[str]:
    return ["plan", "--schema", str(tables / "mixed.json"), "--rows", "1000000", "--epsilon", "1"]


def _ledger() -> list[str]:
    return ["--ledger", "a.ledger"]


def _paid() -> list[str]:
    return ["--epsilon", "1", *_ledger(), "-q"]


def _estimate(_: Path) -> list[str]:
    return ["answers", "estimate", "answers.parquet", "-q"]


def _infer(tables: Path) -> list[str]:
    given = [str(tables / "mixed.csv"), "--dataset", "mixed", *_paid()]
    return ["publish", *given, "--method", "independent", "--out", "out"]


def _draft(tables: Path) -> list[str]:
    return ["schema", "draft", str(tables / "mixed.csv"), "-q", *_ledger(), "--dataset", "mixed"]


PROTOCOLS: Final = ("grr", "oue", "olh", "hadamard", "subset")
JOBS: Final = {
    "help": Job(lambda _: ["--help"]),
    "import": Job(lambda _: ["-c", "import sfumato"], profiled=False),
    "demo": Job(lambda _: ["demo", "-q"]),
    "plan": Job(_plan),
    **{
        f"publish {method}, CSV": Job(_publish(method, "csv"))
        for method in ("independent", "mst", "auto")
    },
    **{
        f"publish {method}": Job(_publish(method, "parquet"))
        for method in ("independent", "mst", "auto", "aim")
    },
    "publish privbayes": Job(_publish("privbayes", "parquet", neighbors="replace")),
    "publish mst, two columns of 10^6 values": Job(_publish("mst", "parquet", schema="wide")),
    **{
        f"publish {method}": Job(_publish(method, "parquet", schema="cells"))
        for method in ("histogram", "mwem")
    },
    **{f"dp2pub {trust}": Job(_dp2pub(trust)) for trust in ("server", "semi-honest", "nobody")},
    **{f"answers simulate {each}": Job(_simulate(each)) for each in PROTOCOLS},
    **{f"answers estimate {each}": Job(_estimate, (_simulate(each),)) for each in PROTOCOLS},
    **{f"recommend fit {method}": Job(_fit(method)) for method in ("auto", "neighbors", "tastes")},
    "evaluate": Job(_evaluate, (_publish("mst", "parquet"),)),
    "infer": Job(_infer),
    "draft": Job(_draft),
    "audit quick": Job(lambda _: ["audit", "--quick", "-q"]),
}
"""By name. Their tables have a million rows, those of answers five, unless asked otherwise."""
