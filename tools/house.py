"""How large the source tree is, and how far one row, one answer and one rating travel in it.

    python tools/house.py [--counts] [--write | --check] [--test-seconds N] [--store FILE]
    python tools/house.py --walk publish|survey|recommend

Prints a table of before, now and target; ``--write`` puts it into ``docs/architecture.md`` and
writes ``TRUSTED.md``, ``--check`` ends with 1 if they are stale. ``--counts`` runs no walks: it
takes their figures from ``house_now.json``.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "src" / "sfumato"
PAGE: Final = ROOT / "docs" / "architecture.md"
TRUSTED: Final = ROOT / "TRUSTED.md"
BEFORE: Final = ROOT / "tools" / "house_before.json"
NOW: Final = ROOT / "tools" / "house_now.json"
WALKER: Final = ROOT / "tools" / "house_walks.py"

TRUSTED_ROOMS: Final = ("gate", "counting", "noise", "ledger", "privacy")
EARLIER_ROOMS: Final = ("curator", "engine", "mechanisms")
"""Rooms of the first house that were trusted; what is left of them still is."""
NOT_TRUSTED: Final = ("mechanisms/local/",)
ENCODING: Final = "schema/codes.py"
"""The encoding is this file and what it imports from its own room."""
ROW_READERS: Final = (
    *("readers/csv.py", "readers/csv_kernels.py", "readers/frames.py", "readers/parquet.py"),
    *("readers/source_table.py", "readers/sqlite.py", "readers/rating_rows.py"),
    *("readers/source.py", "readers/undeclared_table.py", "readers/value_texts.py"),
)
"""Files that read one row without regard to the others; names that are not there do not count."""
SERVER_COUNTS: Final = ("readers/pushdown.py",)
"""Files that turn the groups of a server into exact counts."""

WALKS: Final = {
    "publish": "One row from a CSV file to the report",
    "survey": "One answer from the page to the estimate",
    "recommend": "One rating from the file to a recommendation",
}
BASE_MODULES: Final = ("check", "durable", "errors", "randomness", "sfumato")
"""Single files that every room uses: counted as rooms, left out of the spine."""
MOST_SPINE: Final = 15
"""Lines of a walk in the page."""
HELP_RUNS: Final = 5
"""Starts of ``sfumato --help``, of which the fastest counts."""
PUBLISH_STARTS: Final = (*("commands/publication.py", "commands/publish.py", "jobs/publishing.py"),)
"""Where publishing starts: the first of them that is there. ``commands/publish.py`` is the request
alone, and loads the first of them when it runs."""
HELP: Final = """
import contextlib, io
sys.argv = ["sfumato", "--help"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    from sfumato.cli import main
    main()
"""

MOST_PUBLISH_FILES: Final = 60
"""Of the walk of publishing, templates included."""
MOST_PUBLISH_MODULES: Final = 120
"""Modules of sfumato that publishing may load where it starts."""
COUNTED: Final = (
    ("lines", "lines", "about 54,000"),
    ("lines of code", "code", ""),
    ("files", "files", "about 300"),
    ("trusted rooms: lines", "trusted lines", "below 6,600"),
    ("trusted rooms: lines of code", "trusted code", "below 3,500"),
    ("trusted rooms: files", "trusted files", ""),
)
"""Rows of the table that need no run: a name, the keys of the figure, the target."""
MEASURED: Final = (
    *(
        row
        for name in WALKS
        for row in (
            (
                f"{name}: files that run",
                f"walks {name} files",
                f"at most {MOST_PUBLISH_FILES}" if name == "publish" else "",
            ),
            (f"{name}: functions", f"walks {name} functions", ""),
            (f"{name}: rooms", f"walks {name} rooms", ""),
            (f"{name}: calls into another room", f"walks {name} crossings", ""),
        )
    ),
    ("modules loaded to publish", "modules publish", f"at most {MOST_PUBLISH_MODULES}"),
    ("modules loaded by `sfumato --help`", "modules help", ""),
    ("seconds of `sfumato --help`", "seconds help", "below 0.5"),
    ("seconds of `make test`", "seconds test", ""),
)
"""Rows of the table that need runs."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much some Python files hold; code is what is no blank line, comment or docstring."""

    files: int = 0
    lines: int = 0
    code: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(
            files=self.files + other.files,
            lines=self.lines + other.lines,
            code=self.code + other.code,
        )

    def to_dict(self) -> dict[str, int]:
        """As JSON."""
        return {"files": self.files, "lines": self.lines, "code": self.code}


def size_of(text: str) -> Size:
    """The size of one file; a string that is a statement is a docstring, wherever it stands."""
    documented = {
        number
        for node in _statements(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    code = 0
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip()
        code += bool(words) and not words.startswith("#") and number not in documented
    return Size(files=1, lines=len(text.splitlines()), code=code)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node, without a look into expressions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from _statements(child)


def sizes(package: Path = PACKAGE) -> dict[str, Size]:
    """The size of every file, by its path below the package."""
    paths = sorted(package.rglob("*.py"))
    return {
        path.relative_to(package).as_posix(): size_of(path.read_text(encoding="utf-8"))
        for path in paths
    }


def total(found: Mapping[str, Size], files: Iterable[str]) -> Size:
    """The size of some files together."""
    return sum((found[file] for file in files), Size())


def room_of(file: str) -> str:
    """The folder or module below the package that a file belongs to.

    >>> room_of("gate/curator.py"), room_of("check.py"), room_of("__init__.py")
    ('gate', 'check', 'sfumato')
    """
    room = file.split("/")[0].removesuffix(".py")
    return "sfumato" if room.startswith("_") else room


def rooms(found: Mapping[str, Size]) -> dict[str, Size]:
    """The size of every room."""
    names = sorted({room_of(file) for file in found})
    return {name: total(found, (file for file in found if room_of(file) == name)) for name in names}


def trusted_files(found: Iterable[str]) -> list[str]:
    """The files that a reviewer must read to believe a central promise, room by room."""
    order = [*TRUSTED_ROOMS, *EARLIER_ROOMS]
    files = [file for file in found if room_of(file) in order and not file.startswith(NOT_TRUSTED)]
    return sorted(files, key=lambda file: (order.index(room_of(file)), file))


def apart_files(found: Iterable[str]) -> dict[str, list[str]]:
    """What a promise rests on as well, outside of the trusted rooms."""
    files = set(found)
    return {
        "randomness and durable writes": sorted(
            file for file in files if room_of(file) in {"randomness", "durable"}
        ),
        "the encoding of values": _encoding(files),
        "reading one row without regard to the others": sorted(files.intersection(ROW_READERS)),
        "exact counts that a database server makes": sorted(files.intersection(SERVER_COUNTS)),
    }


def _encoding(files: set[str]) -> list[str]:
    """``ENCODING`` and all that it imports from its room, directly or not."""
    known: set[str] = set()
    waiting = [ENCODING] if ENCODING in files else []
    while waiting:
        file = waiting.pop()
        known.add(file)
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        same_room = {each for each in _imports(tree) if room_of(each) == room_of(file)}
        waiting += sorted(same_room & files - known)
    return sorted(known)


def _imports(tree: ast.Module) -> Iterator[str]:
    """The files of sfumato that a module may import, as paths below the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            base = node.module.removeprefix("sfumato").replace(".", "/").strip("/")
            yield f"{base}.py"
            yield from (f"{base}/{name.name}.py" for name in node.names)


def counted(found: Mapping[str, Size]) -> dict[str, Any]:
    """The figures that need no run."""
    return {
        **total(found, found).to_dict(),
        "trusted": total(found, trusted_files(found)).to_dict(),
        "rooms": {name: size.to_dict() for name, size in rooms(found).items()},
    }


def measured(*, test_s: int | None) -> dict[str, Any]:
    """The figures that need runs: walks, modules and seconds."""
    return {
        "walks": {name: summary(walk(name)) for name in WALKS},
        "modules": {"publish": publish_modules(), "help": modules_after(HELP)},
        "seconds": {"help": help_seconds(), "test": test_s},
    }


def walk(name: str) -> dict[str, Any]:
    """What ran in a walk, from a process of its own: functions in order of their first call."""
    with tempfile.TemporaryDirectory() as folder:
        _python(str(WALKER), name, folder)
        found: dict[str, Any] = json.loads(Path(folder, "walk.json").read_text(encoding="utf-8"))
    return found


def summary(found: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a walk, and its spine: the function that is entered first in each room."""
    functions: list[list[str]] = found["functions"]
    files = dict.fromkeys(file for file, _ in functions)
    by_room = Counter(room_of(file) for file, _ in functions)
    spine: dict[str, dict[str, Any]] = {}
    for file, function in functions:
        room = room_of(file)
        if room not in BASE_MODULES and room not in spine:
            inside = sum(room_of(other) == room for other in files)
            spine[room] = {"file": file, "function": function}
            spine[room] |= {"files": inside, "functions": by_room[room]}
    return {
        "files": len(files),
        "templates": sum(not file.endswith(".py") for file in files),
        "functions": len(functions),
        "rooms": len(by_room),
        "crossings": sum(room_of(caller[0]) != room_of(own[0]) for caller, own in found["calls"]),
        "spine": list(spine.values())[:MOST_SPINE],
    }


def publish_modules() -> int:
    """How many modules of sfumato are loaded where publishing starts."""
    start = next(file for file in PUBLISH_STARTS if (PACKAGE / file).is_file())
    return modules_after(f"import sfumato.{start.removesuffix('.py').replace('/', '.')}")


def modules_after(program: str) -> int:
    """How many modules of sfumato a new process has loaded after a program."""
    end = "print(sum(name.split('.')[0] == 'sfumato' for name in sys.modules))"
    return int(_python("-c", f"import sys\n{program}\n{end}"))


def help_seconds() -> float:
    """Seconds of ``sfumato --help``, the best of a few starts."""
    seconds = []
    for _ in range(HELP_RUNS):
        start = time.perf_counter()
        _python("-m", "sfumato", "--help")
        seconds.append(time.perf_counter() - start)
    return round(min(seconds), 2)


def _python(*arguments: str) -> str:
    """What a new process prints, with this tree's package on its path."""
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)[:80]} failed:\n{done.stderr[-2_000:]}")
    return done.stdout


def figures_table(
    now: Mapping[str, Any], rows: Iterable[tuple[str, str, str]] = (*COUNTED, *MEASURED)
) -> str:
    """Before, now and target."""
    before = figures_in(BEFORE)
    cells = [(name, _shown(before, keys), _shown(now, keys), to) for name, keys, to in rows]
    return table(("", "before", "now", "target"), cells)


def _shown(figures: Mapping[str, Any], keys: str) -> str:
    """One figure; the files of a walk with the templates among them."""
    value: Any = figures
    for key in keys.split():
        part, value = value, value.get(key) if isinstance(value, Mapping) else None
    if value is None:
        return "-"
    shown = f"{value:,}"
    templates = part.get("templates") if keys.endswith("files") else None
    return f"{shown} ({templates} templates)" if templates else shown


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown; columns of numbers are on the right."""
    texts = [tuple(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    right = [all(re.match(r"\d|-$", row[i]) for row in texts) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if end else cell.ljust(width)
            for cell, width, end in zip(cells, widths, right, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = (
        "-" * (width + 1) + (":" if end else "-") for width, end in zip(widths, right, strict=True)
    )
    return "\n".join([line(header), f"|{'|'.join(rule)}|", *map(line, texts)])


def rooms_table(found: Mapping[str, Size]) -> str:
    """The size of every room, the largest first."""
    largest = sorted(rooms(found).items(), key=lambda each: -each[1].lines)
    rows = [(name, size.files, f"{size.lines:,}", f"{size.code:,}") for name, size in largest]
    return table(("room", "files", "lines", "code"), rows)


def walks_text(now: Mapping[str, Any]) -> str:
    """The walks for people: room by room, the function that is entered first."""
    parts = [
        "Functions that ran, followed by a profile in all threads. Not seen: what runs while a "
        "module is imported, and kernels that numba compiled. A room is listed with the function "
        "that is entered first."
    ]
    for name, title in WALKS.items():
        found = now["walks"][name]
        templates = f" ({found['templates']} of them templates)" if found["templates"] else ""
        parts.append(f"### {title}")
        parts.append(
            f"{found['files']} files{templates} in {found['rooms']} rooms, {found['functions']} "
            f"functions, {found['crossings']} calls into another room."
        )
        rows = [
            (f"`{each['file']}`", f"`{each['function']}`", each["files"], each["functions"])
            for each in found["spine"]
        ]
        parts.append(table(("enters at", "function", "files", "functions"), rows))
    return "\n\n".join(parts)


def trusted_page(found: Mapping[str, Size]) -> str:
    """``TRUSTED.md``."""
    files = trusted_files(found)
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(map(room_of, files)))
    parts = [
        "# Trusted files",
        "What a reviewer must read to believe a central promise: all files of the rooms "
        f"{names}. Paths are below `src/sfumato`. Code is what is no blank line, no comment and "
        "no docstring. Written by `tools/house.py --write`.",
        _files_table(found, files),
        "## Apart",
        "A promise rests on these as well. They count no rows, draw no noise on counts and spend "
        "no budget.",
    ]
    for title, apart in apart_files(found).items():
        if apart:
            parts += [f"### {title.capitalize()}", _files_table(found, apart)]
    return "\n\n".join(parts) + "\n"


def _files_table(found: Mapping[str, Size], files: Sequence[str]) -> str:
    rows = [
        (f"`{file}`", f"{found[file].lines:,}", f"{found[file].code:,}", sentence(file))
        for file in files
    ]
    size = total(found, files)
    last = (
        "**total**",
        f"{size.lines:,}",
        f"{size.code:,}",
        f"{size.files} file{'s' * (size.files != 1)}",
    )
    return table(("file", "lines", "code", "what it is"), [*rows, last])


def sentence(file: str) -> str:
    """The first sentence of a file's docstring."""
    text = ast.get_docstring(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))) or "-"
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", paragraph)[0].replace("|", "\\|")


def pages(found: Mapping[str, Size], runs: Mapping[str, Any]) -> dict[Path, str]:
    """The files that are written from figures, with their texts."""
    text = PAGE.read_text(encoding="utf-8")
    text = between(text, "figures", figures_table({**counted(found), **runs}))
    return {PAGE: between(text, "walks", walks_text(runs)), TRUSTED: trusted_page(found)}


def between(text: str, name: str, content: str) -> str:
    """A text with other content between the markers of a name."""
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found_first, rest = text.partition(first)
    _, found_last, after = rest.partition(last)
    if not found_first or not found_last:
        raise SystemExit(f"{PAGE.name} has no {first} ... {last}. Nothing was written.")
    return f"{before}{first}\n\n{content}\n\n{last}{after}"


def stale(found: Mapping[str, Size], runs: Mapping[str, Any]) -> list[str]:
    """What is not as the tree says; times and numbers of walks are taken as they are stored."""
    if not runs:
        return [f"{NOW.name} is missing"]
    wrong = [
        f"{path.name} is not as the tree says"
        for path, text in pages(found, runs).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    for name in WALKS:
        for each in runs["walks"][name]["spine"]:
            path, word = PACKAGE / each["file"], each["function"].split(".")[-1]
            if not path.is_file() or f"def {word}(" not in path.read_text(encoding="utf-8"):
                wrong.append(f"the walk {name} names {each['file']}, {each['function']}: not there")
    if {"gate", "readers"} <= rooms(found).keys():
        wrong += [
            f"no file is known for {title}"
            for title, files in apart_files(found).items()
            if not files
        ]
    return wrong


def figures_in(path: Path) -> dict[str, Any]:
    """Stored figures; none if there is no such file."""
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _store(path: Path, figures: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _print(*texts: str) -> None:
    sys.stdout.write("".join(f"{text}\n" for text in texts))


def print_walk(name: str) -> None:
    """Print the files of a walk, each with the number of its functions that ran."""
    found = walk(name)
    files = Counter(file for file, _ in found["functions"])
    _print("\n".join(f"{count:4} {file}" for file, count in sorted(files.items())))


def parsed() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--counts", action="store_true", help="run nothing: lines and files only")
    parser.add_argument("--write", action="store_true", help="write the table and TRUSTED.md")
    parser.add_argument("--check", action="store_true", help="end with 1 if they are stale")
    parser.add_argument("--store", type=Path, metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--test-seconds", type=int, metavar="N", help="what `make test` took")
    parser.add_argument("--walk", choices=WALKS, help="list the files of one walk, and no more")
    asked = parser.parse_args()
    if asked.test_seconds is not None and not (asked.write or asked.store):
        parser.error("--test-seconds needs --write or --store: it is kept nowhere else")
    if asked.counts and asked.write and not NOW.is_file():
        parser.error(f"{NOW.name} is missing: run --write without --counts first")
    return asked


def main() -> int:
    """Count, run, print, and write or check what was asked for."""
    asked = parsed()
    if asked.walk:
        print_walk(asked.walk)
        return 0
    found, runs = sizes(), figures_in(NOW)
    if asked.check:
        wrong = stale(found, runs)
        _print(*(f"{each}: run python tools/house.py --write" for each in wrong))
        return 1 if wrong else 0
    test_s = asked.test_seconds or runs.get("seconds", {}).get("test")
    if not asked.counts:
        runs = measured(test_s=test_s)
    elif runs:
        runs["seconds"]["test"] = test_s
    now = {**counted(found), **runs}
    rows = COUNTED if asked.counts else (*COUNTED, *MEASURED)
    _print(figures_table(now, rows), "", rooms_table(found))
    if asked.store:
        _store(asked.store, now)
    if asked.write:
        for path, text in pages(found, runs).items():
            path.write_text(text, encoding="utf-8")
        _store(NOW, runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
