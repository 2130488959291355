"""What sfumato is made of, and whether it is built from that alone.

    python tools/supply_chain.py [CHECK ...] [--offline] [--keep FOLDER]

Checks, all of them by default: ``bounds`` (every requirement has a lowest and an upper version),
``reproducible`` (two builds, the same bytes), ``alone`` (the wheel by itself), ``licenses``,
``pinned`` (no version is left to chance), ``lowest`` and ``newest`` (smoke tests at both ends),
``audit`` (known vulnerabilities).

Every check runs, whatever became of those before it, and a table of all of them comes last. Ends
with 0 if all hold; with 1 if one is broken, known vulnerabilities among that; with 3 if none is
broken but the advisories could not be asked about every package.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name
from supply import advisories, builds, declared, index, licenses
from supply.advisories import Advice
from supply.declared import ROOT
from supply.environments import CommandError, Environment, made

PINNED: Final = ROOT / "constraints.txt"
SMOKE: Final = (
    "tests/unit/publishing/test_auto.py",
    "tests/unit/release/test_table.py",
    "tests/unit/release/test_formats.py",
    "tests/unit/schema/test_codes.py",
    "tests/unit/readers/test_csv.py",
    "tests/unit/readers/test_source_table.py",
    "tests/unit/counting/test_exact_counts.py",
    "tests/privacy/test_exact_accounting.py",
    "tests/unit/ledger/test_ledger.py",
    "tests/unit/ledger/test_storage.py",
    "tests/unit/cli/test_main.py",
    "tests/unit/cli/test_publish.py",
    "tests/unit/cli/test_postgres.py",
    "tests/service/test_authorization.py",
    "tests/service/test_bodies.py",
    "tests/service/test_keeping.py",
)
"""Some of every part that leans on somebody else's package."""
LEFT_OUT: Final = "not hardly_worse and not too_large_to_count"
"""They compare methods at length, and lean on no package that others do not."""
WIDTH: Final = 140
COMMANDS: Final = ("", "demo", "publish", "plan", "ledger", "answers", "recommend", "audit", "run")


class CheckError(Exception):
    """A check that did not hold."""


class NotKnownError(Exception):
    """A check that neither holds nor fails, as those who know could not be asked."""


class Verdict(StrEnum):
    """What became of a check."""

    HOLDS = "holds"
    BROKEN = "BROKEN"
    NOT_KNOWN = "NOT KNOWN"
    LEFT_OUT = "left out"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A check, and what it found."""

    check: str
    verdict: Verdict
    said: str
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.check:14} {self.verdict:9} {self.seconds:6.1f} s  {self.said}"


@dataclass(frozen=True)
class Shop:
    """Where environments are made."""

    folder: Path

    @cached_property
    def builder(self) -> Environment:
        """With the build backend and pip-audit."""
        return made(self.folder / "builder", *_backend(), "pip-audit>=2.7,<3")

    @cached_property
    def wheel(self) -> Path:
        """Of the source tree."""
        return builds.built(self.builder, self.folder / "wheel")

    @cached_property
    def bare(self) -> Environment:
        """The wheel and what it needs, pinned, and nothing else."""
        return made(self.folder / "alone", self.wheel, constraints=PINNED)

    @cached_property
    def whole(self) -> Environment:
        """The wheel with every extra that people run, pinned."""
        return made(self.folder / "whole", _with_extras(self.wheel), constraints=PINNED)


def bounds(_: Shop) -> str:
    """Every requirement has a lowest and an upper version."""
    needs = declared.needs()
    if loose := declared.unbounded(needs):
        raise CheckError("no bound on one side: " + "; ".join(loose))
    return f"{len(needs)} requirements, each with a lowest and an upper version"


def reproducible(shop: Shop) -> str:
    """Two builds of two copies give the same bytes."""
    one, other = builds.two_builds(shop.builder, shop.folder / "twice")
    if differ := [name for name in one if one[name] != other.get(name)]:
        raise CheckError(f"two builds differ: {', '.join(differ)}")
    return "; ".join(f"{name} sha256 {digest[:16]}..." for name, digest in one.items())


def alone(shop: Shop) -> str:
    """The wheel runs with what it needs and nothing else."""
    here = shop.folder / "elsewhere"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    settings = {"SFUMATO_HOME": str(here / "home")}
    for name in COMMANDS:
        words = ("-m", "sfumato", *([name] if name else []), "--help")
        shop.bare.run(*words, folder=here, settings=settings)
    shop.bare.run("-m", "sfumato", "demo", "--out", "demo", folder=here, settings=settings)
    if not (here / "demo" / "release.json").is_file():
        raise CheckError("sfumato demo left no release")
    brought = len(shop.bare.packages()) - 1
    return f"{len(COMMANDS)} helps and the demo run; {brought} packages come with it"


def lowest(shop: Shop) -> str:
    """Built and smoke-tested at the lowest versions that pyproject.toml allows."""
    needs = declared.needs()
    limits = shop.folder / "lowest.txt"
    pins = declared.lowest(needs, groups=("sfumato", "build", *declared.RUNNING))
    limits.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
    builder = made(shop.folder / "lowest-builder", *_backend(), constraints=limits)
    wheel = builds.built(builder, shop.folder / "lowest-wheel")
    return f"{_tested(shop, 'lowest', wheel, limits)}; built by {_shown(builder)}"


def newest(shop: Shop) -> str:
    """The smoke tests at the newest versions that pyproject.toml allows."""
    return _tested(shop, "newest", shop.wheel, None)


def license_table(shop: Shop) -> str:
    """Every package that comes with the wheel and with each extra that people run."""
    found = shop.whole.packages()
    sys.stdout.write("\n".join(licenses.table(found)) + "\n")
    if unclear := [name for name, _, told in found if licenses.kind(told) == "read it"]:
        raise CheckError(f"licenses to be read by a person: {', '.join(unclear)}")
    return f"{len(found)} packages, every license known"


def pinned(shop: Shop) -> str:
    """Everything that an installation brings has its version in constraints.txt."""
    known = declared.pins(PINNED).keys()
    brought = {canonicalize_name(name) for name, _, _ in shop.whole.packages()} - {"sfumato"}
    if loose := sorted(brought - known):
        raise CheckError(f"not in {PINNED.name}: {', '.join(loose)}")
    return f"{len(brought)} packages come with it, each has its version there"


def audit(shop: Shop) -> str:
    """No pinned package has a known vulnerability, and every one was asked about."""
    pins = declared.pins(PINNED)
    try:
        advice = advisories.ask(shop.builder, PINNED, shop.folder)
    except CommandError:  # its database can't be reached
        advice = Advice(asked=len(pins), unanswered=tuple(pins), vulnerable=())
    answered = advice.asked - len(advice.unanswered)
    if advice.unanswered and (base := index.address(shop.builder)):
        left = {name: pins[name] for name in advice.unanswered}
        advice = advice.completed(index.ask(index.pages(base), left))
    return judged(advice, by_pip_audit=answered)


def judged(advice: Advice, *, by_pip_audit: int) -> str:
    """Clean, in words; or holes, or a question that nobody answered, as errors."""
    known = advice.asked - len(advice.unanswered)
    told = f"{by_pip_audit} told by pip-audit, {known - by_pip_audit} by the package index"
    open_questions = f"COULD NOT ASK about {len(advice.unanswered)} of {advice.asked} packages: "
    if advice.vulnerable:
        left = f"; {open_questions}{_few(advice.unanswered)}" if advice.unanswered else ""
        raise CheckError(f"HOLES FOUND: {'; '.join(advice.vulnerable)} ({told}){left}")
    if not advice.clean:
        rest = f"; no known vulnerability in the other {known} ({told})" if known else ""
        raise NotKnownError(f"{open_questions}{_few(advice.unanswered)}{rest}")
    return f"CLEAN: no known vulnerability in {advice.asked} pinned packages ({told})"


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _tested(shop: Shop, name: str, wheel: Path, limits: Path | None) -> str:
    wanted = (_with_extras(wheel), *_testing())
    environment = made(shop.folder / name, *wanted, constraints=limits)
    words = ("-m", "pytest", "-p", "no:cacheprovider", "-v", "-k", LEFT_OUT, *SMOKE)
    said = environment.run(*words, folder=ROOT, settings={"OPENBLAS_NUM_THREADS": "1"})
    return f"{said.strip().splitlines()[-1].strip('= ')}; {_shown(environment)}"


def _with_extras(wheel: Path) -> str:
    return f"{wheel}[{','.join(declared.RUNNING)}]"


def _backend() -> list[str]:
    return [str(need.requirement) for need in declared.needs() if need.group == "build"]


def _testing() -> list[str]:
    return [
        str(need.requirement)
        for need in declared.needs()
        if need.group == "test" and need.requirement.name in declared.TESTING
    ]


def _shown(environment: Environment) -> str:
    direct = {need.requirement.name.lower() for need in declared.needs()}
    found = [
        (name, version) for name, version, _ in environment.packages() if name.lower() in direct
    ]
    return ", ".join(f"{name} {version}" for name, version in found)


CHECKS: Final[dict[str, Callable[[Shop], str]]] = {
    "bounds": bounds,
    "reproducible": reproducible,
    "alone": alone,
    "licenses": license_table,
    "pinned": pinned,
    "lowest": lowest,
    "newest": newest,
    "audit": audit,
}


def main() -> None:
    """Run the checks that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    parser.add_argument("--offline", action="store_true", help="leave the audit out, and say so")
    parser.add_argument("--keep", type=Path, help="where to make environments, and leave them")
    asked = parser.parse_args()
    if unknown := set(asked.checks) - set(CHECKS):
        parser.error(f"no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    # Started in the background of a script it would ignore Ctrl-C, and so would tests of Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = asked.keep or Path(tempfile.mkdtemp(prefix="sfumato-supply-"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shop, outcomes = Shop(folder.resolve()), []
        for name in asked.checks or CHECKS:
            outcomes.append(outcome(name, shop, offline=asked.offline))
            sys.stdout.write(f"{outcomes[-1]}\n")
            sys.stdout.flush()
    finally:
        if asked.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write("\n" + "\n".join(summary(outcomes)) + "\n")
    sys.exit(exit_code(outcomes))


def outcome(name: str, shop: Shop, *, offline: bool = False) -> Outcome:
    """What became of one check; whatever goes wrong in it is its own."""
    if offline and name == "audit":
        said = "--offline: nothing is known of advisories"
        return Outcome(check=name, verdict=Verdict.LEFT_OUT, said=said)
    begun = time.perf_counter()
    try:
        verdict, said = Verdict.HOLDS, CHECKS[name](shop)
    except NotKnownError as error:
        verdict, said = Verdict.NOT_KNOWN, str(error)
    except (CheckError, CommandError) as error:
        verdict, said = Verdict.BROKEN, str(error)
    except Exception as error:  # a check that trips must not keep the others from running
        verdict, said = Verdict.BROKEN, f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - begun
    return Outcome(check=name, verdict=verdict, said=said, seconds=seconds)


def summary(outcomes: list[Outcome]) -> list[str]:
    """One line for each check."""
    head = f"{'check':14} {'verdict':9} {'time':>8}  found"
    lines = [str(each).partition("\n")[0] for each in outcomes]
    return [head, *(line if len(line) <= WIDTH else line[: WIDTH - 3] + "..." for line in lines)]


def exit_code(outcomes: list[Outcome]) -> int:
    """0 if all hold or were left out, 1 if one is broken, 3 if one is not known and none broken."""
    verdicts = {each.verdict for each in outcomes}
    if Verdict.BROKEN in verdicts:
        return 1
    return 3 if Verdict.NOT_KNOWN in verdicts else 0


if __name__ == "__main__":
    main()
