"""What sfumato is made of, and whether it is built from that alone.

    python tools/supply_chain.py [CHECK ...] [--offline] [--keep FOLDER]

Checks, all of them by default: ``bounds`` (every requirement has a lowest and an upper version),
``reproducible`` (two builds, the same bytes), ``alone`` (the wheel by itself), ``licenses``,
``pinned`` (no version is left to chance), ``lowest`` and ``newest`` (smoke tests at both ends),
``audit`` (known flaws).
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name
from supply import advisories, builds, declared, licenses
from supply.declared import ROOT
from supply.environments import CommandError, Environment, made

PINNED: Final = ROOT / "constraints.txt"
SMOKE: Final = (
    "tests/unit/test_publishing.py",
    "tests/unit/test_release.py",
    "tests/unit/test_frames.py",
    "tests/unit/schema/test_codes.py",
    "tests/unit/engine/test_csv.py",
    "tests/unit/engine/test_tables.py",
    "tests/unit/engine/test_counting.py",
    "tests/unit/privacy/test_accounting.py",
    "tests/unit/privacy/test_ledger.py",
    "tests/unit/privacy/test_storages.py",
    "tests/unit/cli/test_main.py",
    "tests/unit/cli/test_publish.py",
    "tests/unit/cli/test_postgres.py",
    "tests/service/test_bodies.py",
    "tests/service/test_keeping.py",
)
"""Some of every part that leans on somebody else's package."""
LEFT_OUT: Final = "not float16 and not hardly_worse and not too_large_to_count"
"""The first asks pyarrow itself for what old ones lack; the others compare methods at length."""
COMMANDS: Final = ("", "demo", "publish", "plan", "ledger", "answers", "recommend", "audit", "run")


class CheckError(Exception):
    """A check that did not hold."""


@dataclass(frozen=True)
class Shop:
    """Where environments are made."""

    folder: Path

    @cached_property
    def builder(self) -> Environment:
        """With the build backend and pip-audit."""
        return made(self.folder / "builder", "hatchling>=1.25", "pip-audit>=2.7,<3")

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
    """The smoke tests at the lowest versions that pyproject.toml allows."""
    pins = declared.lowest(declared.needs())
    limits = shop.folder / "lowest.txt"
    limits.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
    return _tested(shop, "lowest", limits)


def newest(shop: Shop) -> str:
    """The smoke tests at the newest versions that pyproject.toml allows."""
    return _tested(shop, "newest", None)


def license_table(shop: Shop) -> str:
    """Every package that comes with the wheel and with each extra that people run."""
    found = shop.whole.packages()
    sys.stdout.write("\n".join(licenses.table(found)) + "\n")
    if unclear := [name for name, _, told in found if licenses.kind(told) == "read it"]:
        raise CheckError(f"licenses to be read by a person: {', '.join(unclear)}")
    return f"{len(found)} packages, every license known"


def pinned(shop: Shop) -> str:
    """Everything that an installation brings has its version in constraints.txt."""
    lines = PINNED.read_text().splitlines()
    known = {canonicalize_name(line.partition("==")[0]) for line in lines}
    brought = {canonicalize_name(name) for name, _, _ in shop.whole.packages()} - {"sfumato"}
    if loose := sorted(brought - known):
        raise CheckError(f"not in {PINNED.name}: {', '.join(loose)}")
    return f"{len(brought)} packages come with it, each has its version there"


def audit(shop: Shop) -> str:
    """No pinned package has a known vulnerability, and every one was asked about."""
    try:
        advice = advisories.ask(shop.builder, PINNED, shop.folder)
    except CommandError as error:
        raise CheckError(
            f"NOT ASKED: no database of advisories was reached\n{error}"[:400]
        ) from None
    if advice.vulnerable:
        raise CheckError(f"known vulnerabilities: {'; '.join(advice.vulnerable)}")
    if advice.unanswered:
        raise CheckError(f"NOT ASKED: {len(advice.unanswered)} of {advice.asked} packages")
    return f"{advice.asked} pinned packages, no known vulnerability"


def _tested(shop: Shop, name: str, limits: Path | None) -> str:
    wanted = (_with_extras(shop.wheel), *_testing())
    environment = made(shop.folder / name, *wanted, constraints=limits)
    words = ("-m", "pytest", "-p", "no:cacheprovider", "-v", "-k", LEFT_OUT, *SMOKE)
    said = environment.run(*words, folder=ROOT, settings={"OPENBLAS_NUM_THREADS": "1"})
    return f"{said.strip().splitlines()[-1].strip('= ')}; {_shown(environment)}"


def _with_extras(wheel: Path) -> str:
    return f"{wheel}[{','.join(declared.RUNNING)}]"


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
    """Run the checks that were asked for; exit code 1 if one does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    parser.add_argument("--offline", action="store_true", help="leave the audit out, and say so")
    parser.add_argument("--keep", type=Path, help="where to make environments, and leave them")
    asked = parser.parse_args()
    if unknown := set(asked.checks) - set(CHECKS):
        parser.error(f"no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    folder = asked.keep or Path(tempfile.mkdtemp(prefix="sfumato-supply-"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wanted = asked.checks or list(CHECKS)
        shop = Shop(folder)
        outcomes = [_told(name, shop, offline=asked.offline) for name in wanted]
    finally:
        if asked.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(not all(outcomes))


def _told(name: str, shop: Shop, *, offline: bool) -> bool:
    begun = time.perf_counter()
    if offline and name == "audit":
        sys.stdout.write("audit          LEFT OUT: --offline; nothing is known of advisories\n")
        return True
    try:
        holds, said = True, CHECKS[name](shop)
    except (CheckError, CommandError) as error:
        holds, said = False, str(error)
    seconds, verdict = time.perf_counter() - begun, "holds" if holds else "BROKEN"
    sys.stdout.write(f"{name:14} {verdict:7} {seconds:6.1f} s  {said}\n")
    sys.stdout.flush()
    return holds


if __name__ == "__main__":
    main()
