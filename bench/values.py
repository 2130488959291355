"""Raw values as users hold them: published against real, ours beside other libraries.

SFUMATO_DATA=FOLDER python bench/values.py [--table skewed bank] [--seeds 5] [--json FILE]
    [--only sfumato dpmm] [--ours declared edges drafted none] [--method auto]
    [--no-models] [--no-sdmetrics] [--show FILE]

Epsilon 1, delta 1e-9. Ours goes through `sfumato schema draft`, `schema confirm` and `publish` as
a user would, with seeded noise: with the declared limits and no bins ("declared"), with the same
limits and 1-2-5 edges by hand ("edges"), with a drafted schema confirmed as it is ("drafted"), and
without a schema ("none"). Peers get the declared limits in environments of their own (bench/peers).
Generated tables publish 30,000 rows, and 7,500 more test the models; of a real file, models are
tested on a fifth of the rows, which a second release leaves out.

Prints every release, then the losses: bars that were missed, peers that are ahead. With --json
what was found is kept there at once, in the place of what the file has of the same run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from environments import HERE, ask, peer_python
from recording import machine, versions
from sfumato.privacy import ApproxDP
from sfumato.privacy.guarantees import zcdp_budget
from synthesis_peers import LIMIT_CPU_S, PEERS, Usage, run_measured
from value_figures import NAMES, OURS, SHOWN, averages, losses, merged, stored
from value_judges import (
    as_numbers,
    as_texts,
    auc_on_real,
    error_alone,
    judge_values,
    scale_of_mean,
)
from value_tables import (
    LARGE,
    MADE,
    TABLES,
    ValueTable,
    class_edges,
    limits,
    table_named,
    with_edges,
)

EPSILON: Final = "1"
DELTA: Final = "1e-9"
VARIANTS: Final = ("declared", "edges", "drafted", "none")
PEER_METHODS: Final = {
    "dpmm": ("mst", "aim", "privbayes"),
    "smartnoise": ("mst",),
    "datasynthesizer": ("privbayes, k=1",),
    "opendp": ("mst",),
}
"""Of each peer the first is run, unless --peer-method names others."""
BEFORE: Final = HERE / "results" / "values_before.json"
SPLIT_SEED: Final = 0
NONE: Final = float("nan")

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Given:
    """A table on disk in a folder of its own: what a program is given, and what judges need."""

    table: ValueTable
    folder: Path

    @cached_property
    def parts(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows that models' releases publish, and the rows that test the models."""
        return self.table.split(SPLIT_SEED)

    @property
    def second_release(self) -> bool:
        """Whether models need a release of their own: not where rows were held back anyway."""
        return self.table.label is not None and self.table.held_back is None

    @cached_property
    def files(self) -> dict[str, Path]:
        """The whole table and the part for models, as plain CSV and as people have it."""
        found = {"whole": self._csv("whole", self.table.frame)}
        if self.second_release:
            found["part"] = self._csv("part", self.parts[0])
        if self.table.file is None:
            return found | {f"{name} as it is": path for name, path in found.items()}
        found["whole as it is"] = self.table.file
        if self.second_release:
            head, *lines = self.table.file.read_text(encoding="utf-8").splitlines()
            kept = self.table.kept_rows(SPLIT_SEED)
            path = self.folder / "part-as-it-is.csv"
            path.write_text("\n".join([head, *(lines[row] for row in kept)]) + "\n")
            found["part as it is"] = path
        return found

    def _csv(self, name: str, frame: pd.DataFrame) -> Path:
        path = self.folder / f"{name}.csv"
        written = frame.copy()
        for title in self.table.dates:
            form = "%Y-%m-%d" if self.table.columns[title]["kind"] == "date" else "%Y-%m-%dT%H:%M"
            written[title] = written[title].dt.strftime(form)
        written.to_csv(path, index=False)
        return path

    @cached_property
    def public(self) -> Path:
        """What peers are told: the declared columns, and round edges for those that need them."""
        path = self.folder / "public.json"
        edges = {name: class_edges(self.table.columns[name]) for name in self.table.numbers}
        path.write_text(json.dumps({"columns": self.table.schema["columns"], "edges": edges}))
        return path

    @cached_property
    def auc_real(self) -> float:
        """Of models that learn from the real rows."""
        return self.auc(self.parts[0])

    def auc(self, published: pd.DataFrame) -> float:
        """Of models that learn from published rows; a table that lost the label teaches nothing."""
        table, label = self.table, self.table.label
        if label is None or label not in published.columns:
            return NONE if label is None else 0.5
        return auc_on_real(
            published,
            self.parts[1],
            label=label,
            categories=[name for name in table.categories if name in published.columns],
            numbers=[name for name in table.numbers if name in published.columns],
        )


# Releases: each program gets a file and leaves a CSV file


def publish_ours(
    given: Given, rows: str, *, variant: str, method: str, seed: int
) -> tuple[Path, Usage]:
    """By the commands, as a user would; seeded noise, so the release is an internal one."""
    out = given.folder / f"{variant}-{method}-{seed}-{rows}"
    as_it_is = variant in ("drafted", "none")
    file = given.files[f"{rows} as it is" if as_it_is else rows]
    options: list[str] = []
    if variant != "none":
        options = ["--schema", str(given.folder / f"{variant}-{rows}.json")]
        failed = write_schema(given, file, Path(options[1]), variant=variant)
        if failed is not None:
            return out, failed
    words = ["publish", str(file), *options, "--dataset", given.table.schema["dataset"]]
    words += ["--epsilon", EPSILON, "--delta", DELTA, "--method", method, "--seed", str(seed)]
    usage = run_measured(sfumato_command(*words, "--out", str(out), "--csv", "--quiet", "--force"))
    return out.with_name(f"{out.name}-internal") / "data.csv", usage


def write_schema(given: Given, file: Path, path: Path, *, variant: str) -> Usage | None:
    """The schema of a variant; what went wrong if drafting did."""
    if path.exists():
        return None
    if variant != "drafted":
        schema = given.table.schema
        if given.table.name == "airquality":  # the file that is published has plain dates
            columns = [{k: v for k, v in c.items() if k != "format"} for c in schema["columns"]]
            schema = {**schema, "columns": columns}
        path.write_text(json.dumps(with_edges(schema) if variant == "edges" else schema))
        return None
    draft = ["draft", str(file), "--out", str(path), "--dataset", given.table.schema["dataset"]]
    for words in (draft, ["confirm", str(path), "--yes"]):
        usage = run_measured(sfumato_command("schema", *words))
        if usage.outcome != "done":
            path.unlink(missing_ok=True)
            return usage
    return None


def sfumato_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "sfumato", *words]


def publish_peer(
    given: Given, rows: str, *, peer: str, method: str, seed: int
) -> tuple[Path, Usage]:
    """In the peer's own environment."""
    out = given.folder / f"{peer}-{seed}-{rows}.csv"
    command = [str(peer_python(f"synthesis-{peer}")), str(HERE / "peers" / "values_peer.py")]
    command += [peer, method, str(given.public), str(given.files[rows]), str(out)]
    command += ["--epsilon", EPSILON, "--delta", DELTA, "--seed", str(seed)]
    return out, run_measured(command, limit_cpu_s=2 * LIMIT_CPU_S)


def read_published(path: Path, table: ValueTable) -> pd.DataFrame:
    """As somebody reads it who knows the kinds of the real columns."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    for name, column in table.columns.items():
        if name in frame.columns and name in table.dates:
            texts = frame[name]
            dates = pd.to_datetime(texts, errors="coerce", format="ISO8601")
            if "format" in column and dates.isna().sum() > texts.isna().sum():
                dates = pd.to_datetime(texts, errors="coerce", format=column["format"])
            frame[name] = dates
    return frame


# Judging


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One program on one table."""

    who: str
    peer: str | None
    variant: str
    """Of ours how the schema comes about; of a peer its method."""
    method: str = "auto"

    def publish(self, given: Given, rows: str, seed: int) -> tuple[Path, Usage]:
        if self.peer is not None:
            return publish_peer(given, rows, peer=self.peer, method=self.variant, seed=seed)
        return publish_ours(given, rows, variant=self.variant, method=self.method, seed=seed)


def release_and_judge(given: Given, wanted: Wanted, seed: int, *, models: bool) -> Row:
    """One seed: a row with figures, or with the reason why there are none."""
    table = given.table
    path, usage = wanted.publish(given, "whole", seed)
    row: Row = {
        "table": table.name,
        "who": wanted.who,
        "version": version_of(wanted),
        **({} if wanted.peer else {"commit": commit()}),
        "seed": seed,
        "epsilon": float(EPSILON),
        "delta": float(DELTA),
        "outcome": usage.outcome.replace(str(given.folder), "(folder)"),
        "cpu_s": usage.cpu_s,
        "memory_mb": usage.memory_mb,
        "load": round(os.getloadavg()[0], 1),
        "date": datetime.now(UTC).date().isoformat(),
    }
    if usage.outcome != "done":
        return row
    published = read_published(path, table)
    figures = judge_values(
        table.frame,
        published,
        categories=table.categories,
        numbers=table.numbers,
        edges={name: class_edges(table.columns[name]) for name in table.numbers},
        dates=table.dates,
    )
    columns = figures.pop("columns")
    for name, errors in columns.items():
        errors["alone"] = alone(table, name)
    figures["rows"] = len(published)
    if models and table.label is not None:
        taught, outcome = published, "done"
        if given.second_release:
            path, usage = wanted.publish(given, "part", seed)
            outcome = usage.outcome
            taught = read_published(path, table) if outcome == "done" else published
        if outcome == "done":
            figures["auc_real"] = given.auc_real
            figures["auc"] = given.auc(taught)
            figures["auc_gap"] = figures["auc_real"] - figures["auc"]
        else:
            row["models"] = outcome
    return row | {"figures": rounded(figures), "columns": rounded(columns), "csv": path}


def alone(table: ValueTable, name: str) -> float:
    """The error of a mean that is measured alone, on the scale of our errors."""
    low, high = limits(table.columns[name])
    rho = float(zcdp_budget(ApproxDP(EPSILON, DELTA)).rho)
    error = error_alone(low, high, rows=len(table.frame), columns=len(table.columns), rho=rho)
    return error / scale_of_mean(as_numbers(table.frame[name]), has_zero=name not in table.dates)


def commit() -> str:
    """Of the code that publishes; a plus where files were changed since."""
    import sfumato

    def git(*words: str) -> str:
        folder = str(Path(sfumato.__file__).parent)
        done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True)
        return done.stdout.strip()

    return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "--", "."))


def version_of(wanted: Wanted) -> str:
    if wanted.peer is None:
        return versions()[OURS]
    return next(peer.version for peer in PEERS if peer.name == wanted.peer)


def rounded(value: Any) -> Any:
    """Four digits, and null for what is no number, so that a file can be read."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, float | np.floating):
        return float(f"{value:.4g}") if np.isfinite(value) else None
    return value


def add_sdmetrics(given: Given, rows: list[Row]) -> None:
    """The quality reports of several releases of one table, in one process."""
    judged = [row for row in rows if "csv" in row and row["figures"]]
    if not judged:
        return
    table = given.table
    kinds = dict.fromkeys(table.categories, "categorical")
    kinds |= dict.fromkeys(table.numbers, "numerical")
    public = given.folder / "kinds.json"
    public.write_text(json.dumps({name: kinds[name] for name in table.columns}))
    real = given.folder / "sdmetrics-real.csv"
    plain(table.frame, table).to_csv(real, index=False)
    paths = {}
    for row in judged:
        path = given.folder / f"sdmetrics-{row['seed']}.csv"
        plain(read_published(row["csv"], table), table).to_csv(path, index=False)
        paths[str(path)] = row
    script = str(HERE / "peers" / "sdmetrics_peer.py")
    command = [
        str(peer_python("sdmetrics")),
        "-W",
        "ignore",
        script,
        str(public),
        str(real),
        *paths,
    ]
    for told in ask(command):
        figures = paths[told["file"]]["figures"]
        figures["sdmetrics"] = rounded(told["score"])
        figures["sdmetrics_shapes"] = rounded(told["shapes"])
        figures["sdmetrics_pairs"] = rounded(told["pairs"])


def plain(frame: pd.DataFrame, table: ValueTable) -> pd.DataFrame:
    """Numbers (dates as days) and texts, in the real words."""
    columns: dict[str, Any] = {}
    for name in table.columns:
        if name not in frame.columns:
            continue
        if name in table.numbers:
            columns[name] = as_numbers(frame[name])
        else:
            columns[name] = as_texts(frame[name], table.frame[name])
    return pd.DataFrame(columns)


# Running, printing, keeping


def run(given: Given, wanted: Wanted, asked: argparse.Namespace) -> list[Row]:
    """All seeds of one program on one table; a failure is tried once, not by every seed."""
    rows: list[Row] = []
    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
        rows.append(release_and_judge(given, wanted, seed, models=not asked.no_models))
        if "figures" not in rows[-1] and wanted.variant != "none":
            break
    if not asked.no_sdmetrics:
        add_sdmetrics(given, rows)
    return [{key: value for key, value in row.items() if key != "csv"} for row in rows]


def keep(rows: list[Row], path: Path) -> None:
    """One line for each release."""
    found = merged(stored(path)["releases"], rows)
    order = {table: place for place, table in enumerate(TABLES)}
    found.sort(key=lambda row: (order[row["table"]], not row["who"].startswith(OURS)))
    about = {
        "task": "values",
        "command": "python bench/values.py",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "versions": versions(),
    }
    lines = ",\n".join(f"    {json.dumps(row)}" for row in found)
    head = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in about.items())
    path.write_text(f'{{\n{head},\n  "releases": [\n{lines}\n  ]\n}}\n')


def show(rows: list[Row], *, columns: bool) -> None:
    """Losses first, then a line for each program and table, then the bar of every mean."""
    found = averages(rows)
    before = averages(stored(BEFORE)["releases"])
    lost = losses(found, before, generated=LARGE)
    print(f"\n{len(lost)} losses")
    for loss in lost:
        print(f"  {loss.table:<11}{loss.who:<22}{loss.what}: {loss.reached}, wanted {loss.wanted}")
    print("\n" + f"{'table':<11}{'program':<26}{'seeds':>6}", end="")
    print("".join(f"{NAMES[figure]:>13}" for figure in SHOWN) + f"{'CPU-s':>8}{'MB':>6}")
    for one in found:
        print(f"{one.table:<11}{one.who:<26}{one.seeds:>6}", end="")
        if not one.judged:
            print(f"  {one.outcome}")
            continue
        print("".join(f"{one.figure(figure):>13.3f}" for figure in SHOWN), end="")
        print(f"{one.cost('cpu_s'):>8.1f}{one.cost('memory_mb'):>6.0f}")
    for one in found if columns else ():
        if one.judged and one.who.startswith(OURS):
            print(f"\n{one.table}, {one.who}: error of each mean, and of it measured alone")
            for name, errors in one.columns().items():
                most = max(0.10, 3 * errors["alone"])
                verdict = "pass" if errors["mean"] <= most else "FAIL"
                print(
                    f"  {name:<18}{errors['mean']:>8.3f}  alone {errors['alone']:.3f}  {verdict}"
                    f"   median {errors['median']:.3f}  KS {errors['ks']:.3f}"
                    f"  deciles off {errors['deciles_off']:.1f}  zero {errors['zero']:.3f}"
                    f"  heaviest {errors['heaviest']:.3f}"
                    f"  {errors['real_mean']:.6g} -> {errors['published_mean']:.6g}"
                )


def wanted_programs(asked: argparse.Namespace) -> list[Wanted]:
    found = []
    told = "" if asked.method == "auto" else f", {asked.method}"
    for variant in asked.ours or VARIANTS:
        name = f"{OURS} {variant}{told}"
        found.append(Wanted(who=name, peer=None, variant=variant, method=asked.method))
    for peer, methods in PEER_METHODS.items():
        for method in asked.peer_method or methods[:1]:
            if method in methods:
                found.append(Wanted(who=f"{peer} {method}", peer=peer, variant=method))
    only = asked.only or ([OURS] if asked.ours else [OURS, *PEER_METHODS])
    return [one for one in found if (one.peer or OURS) in only]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--table", nargs="+", choices=TABLES, help="default: all that there are")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=(OURS, *PEER_METHODS), metavar="PROGRAM")
    parser.add_argument("--ours", nargs="+", choices=VARIANTS, help="and no peer without --only")
    parser.add_argument("--method", default="auto", help="of ours")
    parser.add_argument("--peer-method", nargs="+", help="default: the first of each")
    parser.add_argument("--no-models", action="store_true", help="no classifiers")
    parser.add_argument("--no-sdmetrics", action="store_true")
    parser.add_argument("--columns", action="store_true", help="also the bar of every number")
    parser.add_argument("--json", type=Path, metavar="FILE", help="kept there, release by release")
    parser.add_argument("--show", type=Path, metavar="FILE", help="only print what is kept there")
    return parser.parse_args()


def main() -> int:
    asked = options()
    if asked.show:
        show(stored(asked.show)["releases"], columns=True)
        return 0
    os.nice(10)
    tables = asked.table or [t for t in TABLES if t in MADE or "SFUMATO_DATA" in os.environ]
    every: list[Row] = []
    for name in tables:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["SFUMATO_HOME"] = f"{folder}/home"
            given = Given(table=table_named(name), folder=Path(folder))
            for wanted in wanted_programs(asked):
                start = time.monotonic()
                rows = run(given, wanted, asked)
                every += rows
                if asked.json:
                    keep(rows, asked.json)
                done = averages(rows)[0]
                told = "  ".join(f"{NAMES[f]} {done.figure(f):.3f}" for f in SHOWN)
                seconds = time.monotonic() - start
                print(f"{name} {wanted.who}: {told if done.judged else done.outcome}", end="")
                print(f"  ({seconds:.0f} s)", flush=True)
    show(every, columns=asked.columns or bool(asked.ours))
    return 0


if __name__ == "__main__":
    sys.exit(main())
