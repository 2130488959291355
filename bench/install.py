"""A fresh virtual environment: what `pip install .` brings, and how fast the package starts.

    python bench/install.py [--keep FOLDER]

Holds: less than 700 MB in site-packages, `import sfumato` under 0.3 s, `sfumato --help` under
0.5 s (medians of CPU time over several starts, after one that fills the caches).
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_MB, IMPORT_S, HELP_S = 700, 0.3, 0.5
STARTS = 9
MB = 10**6


def install(folder: Path) -> Path:
    """The interpreter of a new environment that holds the package and what it needs."""
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    options = ["--quiet", "--disable-pip-version-check", "--constraint", ROOT / "constraints.txt"]
    subprocess.run([python, "-m", "pip", "install", *options, ROOT], check=True)
    return python


def sizes(folder: Path) -> Counter[str]:
    """Bytes of each part of site-packages; pip came with the environment and is left out."""
    (packages,) = folder.glob("lib/python*/site-packages")
    found: Counter[str] = Counter()
    for path in packages.rglob("*"):
        part = path.relative_to(packages).parts[0].partition("-")[0].removesuffix(".libs")
        if path.is_file() and part not in ("pip", "setuptools"):
            found[part] += path.stat().st_size
    return found


def cpu_seconds(command: list[str | Path]) -> float:
    """The median CPU time of a command."""
    subprocess.run(command, check=True, capture_output=True)
    times = []
    for _ in range(STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(times)


def report(python: Path, folder: Path) -> bool:
    """Print everything; whether all holds."""
    parts = sizes(folder)
    total = sum(parts.values()) / MB
    print(f"site-packages  {total:6.0f} MB (at most {MOST_MB})")
    for name, size in parts.most_common(14):
        print(f"  {name:24} {size / MB:6.1f} MB")
    bare = cpu_seconds([python, "-c", "pass"])
    imported = cpu_seconds([python, "-c", "import sfumato"])
    helped = cpu_seconds([folder / "bin" / "sfumato", "--help"])
    print(f"python alone     {bare:.3f} s CPU")
    print(f"import sfumato   {imported:.3f} s CPU (under {IMPORT_S})")
    print(f"sfumato --help   {helped:.3f} s CPU (under {HELP_S})")
    return total < MOST_MB and imported < IMPORT_S and helped < HELP_S


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="where to make the environment, and leave it")
    kept = parser.parse_args().keep
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""
    with tempfile.TemporaryDirectory() as temporary:
        folder = kept or Path(temporary) / "venv"
        sys.exit(not report(install(folder), folder))


if __name__ == "__main__":
    main()
