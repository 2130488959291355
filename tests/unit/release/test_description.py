"""What notebooks and prompts show: escaped, well formed, small, without script or request."""

import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.charts import cards
from sfumato.schema.codes import decode

EVIL = "<script>alert(1)</script>"
EVIL_SCHEMA = sf.Schema.from_dict(
    {
        "sfumato": 1,
        "dataset": f"data {EVIL}",
        "columns": [
            {"name": f"town {EVIL}", "kind": "category", "values": [EVIL, "<img src=x>", "شهر"]},
            {"name": "age", "kind": "integer", "low": 0, "high": 3, "missing": True},
            {"name": "day", "kind": "date", "low": "2024-01-01", "high": "2024-12-31"},
        ],
    }
)
VOID = {"br", "img", "meta", "link", "input", "hr"}


class _Tags(HTMLParser):
    """Every tag in order, and whether they close as they open."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.open, self.attributes = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(thing) -> _Tags:
    """The display of anything, checked for what no display may hold."""
    shown = thing._repr_html_()
    tags = _Tags(shown)
    assert tags.open == []
    assert not {"script", "img", "link", "iframe", "object"} & set(tags.seen)
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    assert not [v for name, v in tags.attributes if name in ("src", "href")]
    assert "url(" not in shown
    assert len(shown) < 60_000
    return tags


def made_table(schema, rows):
    """Rows in which every column runs through its values, one after the other."""
    codes = {column.name: np.arange(rows) % column.size for column in schema}
    rng = sf.simulation_rng(9)
    values = {column.name: decode(column, codes[column.name], rng=rng) for column in schema}
    return sf.open_table(pa.table(values), schema)


def table_release(*, rng=None, schema=EVIL_SCHEMA, rows=40):
    rng = sf.secure_rng() if rng is None else rng
    table = made_table(schema, rows)
    budget, ledger = sf.PureDP(1), sf.Ledger.in_memory(dataset=schema.dataset)
    curator = sf.Curator(table, protect=sf.OneRow(), budget=budget, ledger=ledger, rng=rng)
    return sf.publish(sf.Independent(), curator)


def test_a_release_shows_its_promise_and_escapes_every_label():
    release = table_release()
    tags = parsed(release)
    shown = release._repr_html_()
    assert {"table", "svg"} <= set(tags.seen)
    assert "epsilon=1, one row added or removed" in shown
    assert "&lt;script&gt;" in shown
    assert "(missing)" in shown


def test_no_display_runs_or_fetches_anything_in_a_browser(tmp_path, visit):
    shown = [
        table_release()._repr_html_(),
        sf.audit(sf.Grr(categories=2, epsilon=1), runs=500, rng=sf.simulation_rng(3))._repr_html_(),
    ]
    page = tmp_path / "cells.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><title>t</title>{''.join(shown)}")
    found = visit(page, width=390)
    assert found.locator(".sf-card").count() == 2
    assert found.locator("svg").count() >= 3


def test_the_plain_form_of_a_release_is_one_short_line():
    told = repr(table_release())
    assert "\n" not in told
    assert len(told) < 200
    assert "epsilon=1" in told


def test_a_simulation_says_that_it_protects_nobody():
    release = table_release(rng=sf.simulation_rng(1))
    assert "Do not publish" in release._repr_html_()
    assert "simulation" in repr(release)
    assert "epsilon" not in repr(release)


def test_a_wide_table_shows_some_columns_and_says_how_many_more():
    schema = sf.integer_schema([3] * 40, dataset="wide")
    shown = table_release(schema=schema)._repr_html_()
    assert "28 more columns" in shown
    assert shown.count("<svg") == 6


def test_a_frequency_estimate_shows_its_chart_and_its_promise():
    column = EVIL_SCHEMA[f"town {EVIL}"]
    question = sf.Question(column=column, epsilon=1)
    batch = question.answer_many(np.zeros(500, dtype=int), rng=sf.secure_rng())
    estimate = question.estimate(batch)
    parsed(estimate)
    assert "epsilon=1 on the device" in estimate._repr_html_()
    assert "±" in repr(estimate)
    simulated = question.answer_many(np.zeros(50, dtype=int), rng=sf.simulation_rng(1))
    assert "simulated" in question.estimate(simulated)._repr_html_()


def test_means_moments_pairs_and_records_show_themselves():
    rng = sf.simulation_rng(2)
    number = sf.Number(name=f"pay {EVIL}", edges=(0.0, 10.0))
    mean = sf.Question(column=number, epsilon=1, protocol="hybrid")
    variance = sf.VarianceQuestion(column=number, epsilon=1)
    pairs = sf.PairsQuestion(keys=(EVIL, "b: c"), epsilon=2)
    records = sf.RecordQuestion(schema=EVIL_SCHEMA, epsilon=3)
    record = {f"town {EVIL}": EVIL, "age": 2, "day": "2024-05-01"}
    estimates = [
        mean.estimate([mean.answer(4.0, rng=rng) for _ in range(50)]),
        variance.estimate([variance.answer(4.0, rng=rng) for _ in range(50)]),
        pairs.estimate([pairs.answer({EVIL: 0.5}, rng=rng) for _ in range(50)]),
        records.estimate([records.answer(record, rng=rng) for _ in range(50)]),
    ]
    for estimate in estimates:
        parsed(estimate)
    assert "±" in repr(estimates[0])
    assert "b: c" in estimates[2]._repr_html_()


def test_a_finding_shows_claim_and_verdict_and_a_refuted_one_warns():
    grr = sf.Grr(categories=2, epsilon=1)
    honest = sf.audit(grr, runs=2_000, rng=sf.simulation_rng(3))
    parsed(honest)
    assert "stands" in honest._repr_html_()
    assert "The claim is false" not in honest._repr_html_()
    false = replace(honest, guarantee=sf.LocalDP(Fraction(1, 2)))
    assert "The claim is false" in false._repr_html_()


def test_an_evaluation_is_marked_internal_wherever_it_is_shown():
    rng = sf.simulation_rng(4)
    release = table_release(rng=rng, rows=200)
    real = made_table(EVIL_SCHEMA, 200)
    ledger = sf.Ledger.in_memory(dataset=EVIL_SCHEMA.dataset)
    found = sf.evaluate(
        release, against=real, measures=[sf.TotalVariation(degree=2)], ledger=ledger, rng=rng
    )
    parsed(found)
    assert "Do not publish" in found._repr_html_()
    assert "internal" in repr(found)


def test_a_recommender_shows_the_list_of_a_person_without_ratings():
    rows = sf.made_ratings(100, items=8, ratings=200, rng=sf.simulation_rng(5)).columns()
    names = [f"film {code} {EVIL}" for code in range(8)]
    catalogue = sf.Catalogue.of(names)
    ratings = sf.open_ratings(
        pa.table({**rows, "item": [names[code] for code in rows["item"]]}),
        catalogue=catalogue,
        scale=sf.RatingScale(1, 5),
        dataset="films",
    )
    curator = sf.Curator(
        ratings,
        protect=sf.OnePerson(max_rows=20),
        budget=sf.ApproxDP(2, "1e-6"),
        ledger=sf.Ledger.in_memory(dataset="films"),
        rng=sf.secure_rng(),
    )
    release = sf.publish(sf.ItemPopularity(), curator)
    parsed(release)
    assert "8 items, ratings 1" in release._repr_html_()
    assert "epsilon=2" in repr(release)


@pytest.mark.parametrize("theme", ["color:#", "background"])
def test_text_takes_the_notebooks_own_color(theme):
    said = cards.card("a", cards.facts({"b": "c"}), cards.rows_table(["d"], [["e"]]))
    assert not re.search(rf"[;\"]{theme}", said)


def test_many_rows_are_cut_and_the_rest_is_counted():
    said = cards.rows_table(["a"], [[str(number)] for number in range(30)])
    assert said.count("<tr>") == 13
    assert "and 18 more" in said
