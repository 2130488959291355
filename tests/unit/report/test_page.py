"""Pages: self-contained, safe, honest about what they are."""

import base64
import errno
import hashlib
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sfumato.errors import InputError, StorageError
from sfumato.report import render, write
from sfumato.report.promise import Promise
from sfumato.report.view import (
    Account,
    ChanceTable,
    ColumnView,
    Figure,
    Formula,
    LedgerRow,
    PairView,
    QueryView,
    ReportView,
)

AGES = tuple(str(age) for age in range(4, 18))
HOSTILE = "<script>alert('1')</script>\"'><img src=x onerror=alert(1)>\x00\ud800"
VOID = {"meta", "link", "br", "img"}


class Page(HTMLParser):
    """Tags with their attributes, the text outside of them, and whether tags are balanced."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def column(name: str = "age", *, labels: tuple[str, ...] = AGES, real: bool = False) -> ColumnView:
    counts = tuple(100.0 * (i + 1) for i in range(len(labels)))
    return ColumnView(
        name=name,
        kind="integer",
        labels=labels,
        published=counts,
        sigma=12.5,
        real=counts if real else None,
    )


def pair(*, real: bool = False) -> PairView:
    table = tuple(tuple(float(i * j) for j in range(4)) for i in range(14))
    return PairView(
        x="age",
        y="help",
        x_labels=AGES,
        y_labels=("1", "2", "3", "4"),
        published=table,
        real=table if real else None,
    )


def queries(*, real: bool = False) -> QueryView:
    answers = tuple(float(i % 17) for i in range(60))
    labels = tuple(f"q{i}" for i in range(60))
    return QueryView(labels=labels, published=answers, real=answers if real else None, sigma=3.0)


def account(entries: int = 1, **changes: str) -> Account:
    row = LedgerRow(seq=1, label="measure (age)", cost="epsilon=1", hash="ab" * 32, total="sum")
    return Account(rows=(row,) * entries, head="cd" * 32, **changes)


def sample(**changes: object) -> ReportView:
    view = ReportView(
        title="Child health",
        dataset="child-health",
        private=True,
        internal=False,
        made="2025-01-31",
        promise=("Noise was added before anything was looked at.",),
        odds=Promise(epsilon=1.0).odds(),
        protects="One row added or removed.",
        not_protected=("What is true of a whole group.",),
        facts=(("Method", "MWEM"), ("Epsilon", "1")),
        account=account(),
        columns=(column(),),
        pairs=(pair(),),
        queries=queries(),
        measures=(Figure(name="Expected error", value="12", note="people per cell"),),
        notes=("The schema was confirmed.",),
    )
    return replace(view, **changes)  # type: ignore[arg-type]


def internal_sample(**changes: object) -> ReportView:
    parts = {
        "columns": (column(real=True),),
        "pairs": (pair(real=True),),
        "queries": queries(real=True),
    }
    return sample(internal=True, **(parts | changes))


def test_a_page_shows_every_part_of_its_view() -> None:
    text = Page(render(sample())).text
    for part in (
        "Child health", "child-health", "2025-01-31", "Noise was added", "73.2%",
        "One row added or removed.", "What is true of a whole group.", "MWEM", "measure (age)",
        "cd" * 32, "age × help", "Answers to queries", "Expected accuracy", "people per cell",
        "sfumato ledger verify", "The schema was confirmed.",
    ):  # fmt: skip
        assert part in text


def test_a_page_without_charts_has_no_empty_sections() -> None:
    bare = sample(columns=(), pairs=(), queries=None, measures=(), notes=(), not_protected=())
    page = Page(render(bare))
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert ids == {"content", "promise", "facts", "ledger", "check"}
    assert "Notes" not in page.text


def test_tags_are_balanced_and_every_link_has_its_target() -> None:
    page = Page(render(internal_sample(private=False)))
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    targets = {attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert page.open == []
    assert targets == {f"#{name}" for name in ids}
    assert page.tags[[tag for tag, _ in page.tags].index("a")][1]["href"] == "#content"


def test_the_policy_allows_one_style_sheet_by_its_hash_and_nothing_else() -> None:
    source = render(sample())
    styles = re.findall(r"<style>(.*?)</style>", source, flags=re.DOTALL)
    assert len(styles) == 1
    digest = base64.b64encode(hashlib.sha256(styles[0].encode()).digest()).decode()
    policy = next(
        attributes["content"]
        for _, attributes in Page(source).tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def test_a_page_asks_for_nothing_and_runs_nothing() -> None:
    for source in (render(sample()), render(internal_sample(private=False))):
        for tag, attributes in Page(source).tags:
            assert tag not in {"script", "img", "iframe", "object", "embed", "form", "base"}
            assert "style" not in attributes
            assert not any(name.startswith("on") or name == "src" for name in attributes)
            assert re.fullmatch(
                r"#\w+|data:,|[a-z]+\.(parquet|json)", attributes.get("href") or "#a"
            )
        assert not re.search(r"url\(|@import", source)


def test_hostile_text_anywhere_stays_text() -> None:
    labels = (HOSTILE, "b")
    view = sample(
        title=HOSTILE, dataset=HOSTILE, made=HOSTILE, promise=(HOSTILE,), odds=HOSTILE,
        protects=HOSTILE, not_protected=(HOSTILE,), facts=((HOSTILE, HOSTILE),),
        account=Account(
            rows=(LedgerRow(seq=1, label=HOSTILE, cost=HOSTILE, hash=HOSTILE, total=HOSTILE),),
            head=HOSTILE, spent=HOSTILE, cap=HOSTILE,
        ),
        strength=HOSTILE, method_words=HOSTILE, files=((HOSTILE, HOSTILE),),
        chances=ChanceTable(heads=(HOSTILE,) * 3, rows=((HOSTILE,) * 3,)),
        formulas=(Formula(figure=HOSTILE, what=HOSTILE, how=HOSTILE, formula=HOSTILE),),
        notes=(HOSTILE,), columns=(column(HOSTILE, labels=labels),),
        queries=QueryView(labels=labels, published=(1.0, 2.0)),
        measures=(Figure(name=HOSTILE, value=HOSTILE, note=HOSTILE),),
        pairs=(
            PairView(
                x=HOSTILE, y=HOSTILE, x_labels=labels, y_labels=labels,
                published=((1.0, 2.0), (3.0, 4.0)),
            ),
        ),
    )  # fmt: skip
    source = render(view)
    page = Page(source)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert page.text.count("<script>alert('1')</script>") > 12
    assert source.encode()
    assert "\x00" not in source


def test_labels_of_any_script_choose_their_own_direction() -> None:
    source = render(sample(columns=(column("استان", labels=("تهران", "管理人员")),)))
    assert '<h3 dir="auto">استان</h3>' in source
    assert '<th scope="row" dir="auto">تهران</th>' in source
    assert '<html lang="en">' in source


def test_the_name_of_a_data_set_turns_only_itself_around() -> None:
    source = render(sample(title="a private table", dataset="سلامت <b>"))
    assert "<h1><bdi>سلامت &lt;b&gt;</bdi>: a private table</h1>" in source
    assert "<title>سلامت &lt;b&gt;: a private table</title>" in source


@pytest.mark.parametrize("cells", [40, 84, 200, 5_000])
def test_labels_that_do_not_all_fit_are_thinned_to_a_few(cells: int) -> None:
    labels = tuple(f"label {number}" for number in range(cells))
    source = render(sample(columns=(column(labels=labels),), pairs=(), queries=None))
    written = re.findall(r"<text[^>]*>label \d+", source)
    assert 4 <= len(written) <= 12 or len(written) == cells


def test_an_internal_page_says_so_first() -> None:
    banner = "INTERNAL: compares with the real data. Do not publish."
    assert banner in Page(render(internal_sample())).text
    assert banner not in render(sample())
    assert "Compared with the real data" in render(internal_sample())


def test_a_simulation_says_so_first_and_promises_nothing() -> None:
    text = Page(render(sample(private=False))).text
    assert "SIMULATION: seeded noise protects nobody" in text
    assert "Nothing is promised." in text
    assert "SIMULATION" not in render(sample())
    assert "Nothing is promised." not in render(sample())


@pytest.mark.parametrize(
    "part",
    [
        {"columns": (column(real=True),)},
        {"pairs": (pair(real=True),)},
        {"queries": queries(real=True)},
    ],
)
def test_a_page_that_may_be_published_can_not_carry_real_counts(part: dict[str, object]) -> None:
    with pytest.raises(InputError, match="not marked internal"):
        sample(**part)


def test_distances_from_the_real_columns_are_internal() -> None:
    with pytest.raises(InputError, match="not marked internal"):
        sample(distances=(("age", 0.1),))
    page = Page(render(internal_sample(distances=(("age", 0.1234), ("help", 0.05)))))
    assert "0.1234" in page.text
    assert "1 of 2 have a chart" in page.text


def test_columns_without_a_chart_are_counted() -> None:
    assert "11 more are in data.parquet" in Page(render(sample(all_columns=12))).text
    assert "more are in data.parquet" not in Page(render(sample(all_columns=1))).text


def test_expected_errors_stand_below_their_charts() -> None:
    told = replace(column(), note="Expected error of each bar: ±12")
    page = render(sample(columns=(told,), pairs=(replace(pair(), note="Expected error: 3%"),)))
    assert "<figcaption>Expected error of each bar: ±12</figcaption>" in page
    assert "<figcaption>Expected error: 3%</figcaption>" in page


def test_files_are_links_by_their_names() -> None:
    files = (("data.parquet", "the table"), ("release.json", "for programs"))
    page = Page(render(sample(files=files)))
    links = [attributes.get("href") for tag, attributes in page.tags if tag == "a"]
    assert [link for link in links if link and not link.startswith("#")] == [n for n, _ in files]


def test_what_all_releases_cost_stands_beside_the_cap() -> None:
    told = Page(render(sample(account=account(spent="epsilon=1.5", cap="epsilon=3")))).text
    assert "this one included: epsilon=1.5. The cap for all of them: epsilon=3." in told
    assert "There is no cap" in Page(render(sample(account=account(spent="epsilon=1")))).text
    assert "this one included" not in Page(render(sample())).text


def test_many_values_without_an_order_and_with_long_names_lie() -> None:
    labels = tuple(f"country of birth {number}" for number in range(13))
    lying = replace(column(labels=labels), kind="category")
    assert "rotate(-40)" not in render(sample(columns=(lying,), pairs=(), queries=None))
    for standing in (replace(lying, kind="ordinal"), column(labels=labels[:12])):
        page = render(sample(columns=(standing,), pairs=(), queries=None))
        assert "rotate(-40)" in page


def test_the_mark_of_a_page_is_printed_on_every_sheet_and_stands_on_no_other_page() -> None:
    for view, mark in (
        (internal_sample(), "INTERNAL: compares"),
        (sample(private=False), "SIMULATION: seeded"),
    ):
        assert re.search(rf'@page {{ @top-center {{ content: "{mark}', render(view))
        assert mark not in render(sample())


def test_published_and_real_maps_share_their_shades() -> None:
    real = tuple(tuple(10.0 * count for count in row) for row in pair().published)
    source = render(internal_sample(pairs=(replace(pair(), real=real),)))
    ramps = re.findall(r'y="16">390</text>', source)
    assert len(ramps) == 2


def test_a_nan_is_refused_and_no_page_is_made() -> None:
    broken = ColumnView(name="age", kind="integer", labels=("4",), published=(float("nan"),))
    with pytest.raises(InputError, match="finite"):
        render(sample(columns=(broken,)))


def test_the_same_view_gives_the_same_bytes() -> None:
    assert render(internal_sample()) == render(internal_sample())


def test_a_report_of_ten_columns_takes_less_than_200_kilobytes() -> None:
    wide = tuple(f"2020-{i}" for i in range(84))
    columns = tuple(column(f"c{i}", labels=wide if i % 4 == 0 else AGES) for i in range(10))
    page = render(sample(columns=columns, pairs=(pair(),) * 9, account=account(60)))
    assert len(page.encode()) < 200_000


def test_a_very_long_ledger_is_cut_and_says_so() -> None:
    text = Page(render(sample(account=account(501)))).text
    assert text.count("measure (age)") == 500
    assert "The first 500 of 501 entries" in text


def test_writing_leaves_one_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("older", "utf-8")
    write(sample(), target)
    assert target.read_text("utf-8") == render(sample())
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_leaves_the_older_report_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = tmp_path / "report.html"
    target.write_text("older", "utf-8")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        write(sample(), target)
    assert target.read_text("utf-8") == "older"
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="can't be written: No such file"):
        write(sample(), tmp_path / "nowhere" / "report.html")
