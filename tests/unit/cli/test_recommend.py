"""``sfumato recommend`` as people type it: what it prints, writes, charges and refuses."""

import json
import subprocess
import sys
from typing import Any

import pytest

from sfumato.lab.ratings import made_ratings
from sfumato.ledger import Ledger
from sfumato.randomness import simulation_rng
from sfumato.release.recommender import RecommenderRelease

ITEMS = 30


class Films:
    """Ratings and a catalogue as files, and the three commands."""

    def __init__(self, world: Any) -> None:
        self.world = world
        made = made_ratings(200, items=ITEMS, ratings=1_500, rng=simulation_rng(2)).columns()
        lines = [f"{u},{i},{r:g}" for u, i, r in zip(*made.values(), strict=True)]
        self.ratings = world.write("ratings.csv", "\n".join(["user,item,rating", *lines]) + "\n")
        titles = [f"{code},Film {code}" for code in range(ITEMS)]
        self.items = world.write("items.csv", "\n".join(["item,title", *titles]) + "\n")

    def call(self, verb: str, *more: str, **options: Any) -> Any:
        given: dict[str, Any] = {
            "ratings": self.ratings, "catalogue": self.items, "scale": "1..5", "epsilon": "5",
            "unit": "rating", "dataset": "films", "ledger": self.world.ledger,
            **({"out": self.world.out} if verb == "fit" else {}), **options,
        }  # fmt: skip
        ratings = given.pop("ratings")
        named = [
            text
            for name, value in given.items()
            if value is not None
            for text in (f"--{name.replace('_', '-')}", str(value))
        ]
        return self.world.run("recommend", verb, ratings, *named, *more)

    def fit(self, *more: str, **options: Any) -> Any:
        return self.call("fit", *more, **options)

    def evaluate(self, *more: str, **options: Any) -> Any:
        return self.call("evaluate", *more, **options)

    def top(self, *more: Any) -> Any:
        return self.world.run("recommend", "top", self.world.out, *more)

    def history(self, text: str, name: str = "h.csv") -> Any:
        return self.world.write(name, text)

    def entries(self) -> list[Any]:
        if not self.world.ledger.exists():
            return []
        return list(Ledger.open(self.world.ledger, dataset="films", create=False).entries())

    def spends(self) -> list[Any]:
        return [entry for entry in self.entries() if entry.cost is not None]


@pytest.fixture
def films(world: Any) -> Films:
    return Films(world)


@pytest.mark.parametrize(
    ("unit", "promise"),
    [
        ("rating", "for one rating added or removed"),
        ("person", "for one person, with up to 200 ratings, added or removed"),
    ],
)
def test_fit_prints_the_promise_with_its_defaults_and_writes_a_folder(
    unit: str, promise: str, films: Films
) -> None:
    outcome = films.fit(unit=unit)
    assert outcome.code == 0
    assert f"guarantee   epsilon=5, delta=1e-09, approximate, {promise}" in outcome.out
    assert "published   a recommender of 30 items" in outcome.out
    assert "on 'films' so far, no cap is set" in outcome.out
    assert RecommenderRelease.load(films.world.out).private
    assert (films.world.out / "report.html").exists()
    assert len(films.spends()) == 1


def test_json_prints_the_content_of_release_json_and_nothing_else(films: Films) -> None:
    outcome = films.fit("--json", "--set", "goal=ratings")
    assert outcome.err == ""
    assert outcome.json == json.loads((films.world.out / "release.json").read_text())
    assert outcome.json["method"]["goal"] == "ratings"
    assert outcome.json["guarantee"]["unit"] == "row"
    command = outcome.json["command"]
    assert (command["command"], command["set"]) == ("recommend fit", {"goal": "ratings"})
    assert not {"ledger", "out", "ratings", "catalogue"} & set(command)  # no path is told


def test_a_saved_fit_is_run_again_with_all_its_options(films: Films) -> None:
    kept = films.world.folder / "fit.toml"
    first = films.fit("--set", "goal=ratings", "--save-run", str(kept), "--json", max_rows="50",
                      unit="person", cap="20")  # fmt: skip
    assert first.code == 0
    text = kept.read_text()
    assert 'command = "recommend fit"' in text
    table = f'ratings = "{films.ratings}"'
    for line in (table, 'set = "goal=ratings"', "max-rows = 50", 'cap = "20"'):
        assert f"\n{line}\n" in text
    again = films.world.run("run", str(kept), "--out", str(films.world.folder / "b"), "--json")
    assert again.code == 0
    assert again.json["method"]["goal"] == "ratings"
    assert again.json["guarantee"] == first.json["guarantee"]
    assert len(films.spends()) == 2
    refused = films.world.run("run", str(kept), "--resume")
    check_refused(refused, 2, "recommend fit has no --resume")


def test_a_simulation_says_so_and_stays_internal(films: Films) -> None:
    outcome = films.fit(seed="3")
    assert "protects nobody" in outcome.out
    assert "guarantee   none" in outcome.out
    assert not films.world.out.exists()
    assert (films.world.internal / "report.html").exists()
    assert films.spends() == []


BAD = [
    ({"catalogue": None}, 2, "would tell which items somebody rated"),
    ({"scale": "1-5"}, 2, "LOW..HIGH"),
    ({"epsilon": "0"}, 2, "epsilon must be above 0"),
    ({"delta": "0"}, 2, "the noise is Gaussian"),
    ({"unit": "people"}, 2, "got 'people'"),
    ({"max_rows": "9"}, 2, "goes with --unit person"),
    ({"method": "best"}, 2, "got 'best'"),
    ({"set": "k"}, 2, "--set takes name=value"),
    ({"dataset": None}, 2, "--dataset NAME"),
    ({"rating": "stars"}, 2, "columns are missing: 'stars'"),
    ({"ratings": "nothing.csv"}, 4, "nothing.csv"),
    ({"catalogue": "nothing.csv"}, 4, "nothing.csv"),
]
BAD_RATINGS = {
    "off the scale": (
        "user,item,rating\n1,2,5\n1,3,6\n",
        "row 2: the value is not on the scale 1 to 5",
    ),
    "a pair twice": ("user,item,rating\n1,2,5\n1,2,4\n", "second rating of the same item"),
    "an unknown item": (
        "user,item,rating\n1,2,5\n1,77,4\n",
        "row 2: the value is not in",
    ),
    "a word": ("user,item,rating\n1,2,good\n", "not a number"),
    "no person": ("user,item,rating\n,2,5\n", "a missing id"),
    "no rows": ("user,item,rating\n", "there are no ratings"),
    "an empty file": ("", "the file is empty"),
    "a missing column": ("user,film,rating\n1,2,5\n", "columns are missing: 'item'"),
}


@pytest.mark.parametrize("verb", ["fit", "evaluate"])
@pytest.mark.parametrize(("options", "code", "reason"), BAD, ids=str)
def test_a_refusal_has_one_message_its_code_and_no_trace(
    options: Any, code: int, reason: str, verb: str, films: Films
) -> None:
    before = films.world.files()
    outcome = films.call(verb, **options)
    check_refused(outcome, code, reason)
    assert films.world.files() == before
    assert films.entries() == []


@pytest.mark.parametrize("name", BAD_RATINGS)
def test_ratings_that_do_not_fit_have_one_message_and_cost_nothing(name: str, films: Films) -> None:
    text, reason = BAD_RATINGS[name]
    table = films.world.write("bad.csv", text)
    before = films.world.files()
    check_refused(films.fit("--strict", ratings=table), 2, reason)
    assert films.world.files() == before
    assert films.spends() == []


@pytest.mark.parametrize(
    "name", ["off the scale", "a pair twice", "an unknown item", "a word", "no person"]
)
def test_unless_it_is_strict_ratings_that_do_not_fit_stop_nothing(name: str, films: Films) -> None:
    table = films.world.write("bad.csv", BAD_RATINGS[name][0])
    assert films.fit(ratings=table).code == 0
    assert films.spends()


def check_refused(outcome: Any, code: int, reason: str) -> None:
    last = outcome.err.strip().splitlines()[-1]
    assert (outcome.code, outcome.out) == (code, "")
    assert last.startswith("sfumato: ")
    assert reason in last
    assert "Traceback" not in outcome.err


def test_ids_of_mixed_kind_are_compared_as_text(films: Films) -> None:
    mixed = [{"user": 1, "item": 2, "rating": 5}, {"user": "x", "item": "3", "rating": 4}]
    table = films.world.write("mixed.json", json.dumps(mixed))
    assert films.fit(ratings=table).code == 0


def test_a_person_with_very_many_ratings_is_bounded_and_stops_nothing(films: Films) -> None:
    many = 100_000
    items = films.world.write("many.csv", "item\n" + "\n".join(map(str, range(many))) + "\n")
    rows = "\n".join(f"1,{item},{item % 5 + 1}" for item in range(many))
    table = films.world.write("heavy.csv", f"user,item,rating\n{rows}\n2,5,3\n")
    outcome = films.fit(ratings=table, catalogue=items, unit="person", method="popularity")
    assert outcome.code == 0
    assert "published   a recommender of 100,000 items" in outcome.out


def test_a_cap_refuses_with_its_own_code(films: Films) -> None:
    outcome = films.fit(cap="0.5,1e-9")
    assert (outcome.code, films.spends()) == (3, [])


def test_top_lists_titles_and_leaves_out_what_was_seen(films: Films) -> None:
    films.fit()
    history = films.history("item,rating\n3,5\n7,2\n")
    shown = films.top("--history", history, "-n", "28")
    assert shown.code == 0
    assert shown.out.count("Film ") == 28
    assert "Film 3 " not in shown.out
    rows = films.top("--history", history, "-n", "4", "--json").json
    assert [row["rank"] for row in rows] == [1, 2, 3, 4]
    assert set(rows[0]) == {"item", "title", "score", "rank"}
    assert {"3", "7"}.isdisjoint(row["item"] for row in rows)
    every = films.top("--history", history, "-n", "30", "--include-seen", "--json").json
    assert len(every) == 30


def test_top_keeps_to_the_candidates(films: Films) -> None:
    films.fit()
    few = films.history("item\n4\n9\n", "few.csv")
    rows = films.top(
        "--history", films.history("item,rating\n3,5\n"), "--candidates", few, "--json"
    )
    assert {row["item"] for row in rows.json} == {"4", "9"}


def test_top_says_that_an_empty_history_gives_everybodys_list(films: Films) -> None:
    films.fit()
    outcome = films.top("--history", films.history("{}", "h.json"))
    assert outcome.code == 0
    assert outcome.out.startswith("The history is empty: everybody's list is the same.")


def test_top_finds_similar_items(films: Films) -> None:
    films.fit(method="neighbors", epsilon="100")
    rows = films.top("--item", "3", "-n", "5", "--json").json
    assert 1 <= len(rows) <= 5
    assert "3" not in {row["item"] for row in rows}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("item,rating\n77,5\n", "number 1: this item is not in the catalogue"),
        ("item,rating\n3,9\n", "not on the scale 1 to 5"),
        ("item,rating\n3,5\n3,4\n", "twice"),
        ("item,rating\n3,\n", "must be a number"),
        ("item,score\n3,5\n", "columns are missing: rating"),
        ("", "the file is empty"),
    ],
)
def test_a_wrong_history_has_one_message(text: str, reason: str, films: Films) -> None:
    films.fit()
    check_refused(films.top("--history", films.history(text)), 2, reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 3000 + "]" * 3000, "odd.json is not JSON"),
        ('{"3": ' + "9" * 5000 + "}", "odd.json is not JSON"),
        ('{"3": ' + "9" * 4000 + "}", "must be a number"),
        ('{"3": [1]}', "must be a number"),
    ],
    ids=["deep", "many digits", "a large number", "a list"],
)
def test_a_history_of_odd_json_is_one_plain_message(text: str, reason: str, films: Films) -> None:
    films.fit()
    path = films.world.write("odd.json", text)
    check_refused(films.top("--history", str(path)), 2, reason)


def test_neither_message_nor_log_tells_what_a_person_rated(films: Films) -> None:
    films.fit()
    history = films.world.write("h.json", '{"HIV-test-kit": "SECRETRATING"}')
    log = films.world.folder / "run.log"
    told = films.world.run(
        "--log", str(log), "recommend", "top", str(films.world.out), "--history", str(history)
    )
    assert told.code == 2
    for secret in ("HIV", "SECRETRATING"):
        assert secret not in told.err + log.read_text()


def test_top_needs_a_history_or_an_item_and_a_recommender(films: Films) -> None:
    films.fit()
    check_refused(films.top(), 2, "--history FILE")
    history = films.history("item,rating\n3,5\n")
    check_refused(films.top("--history", history, "--item", "3"), 2, "--history FILE")
    check_refused(films.top("--item", "3", "--include-seen"), 2, "go with --history")
    check_refused(films.top("--history", history, "-n", "0"), 2, "n must be")
    elsewhere = films.world.run("recommend", "top", "nowhere", "--history", history)
    check_refused(elsewhere, 4, "can't read the release nowhere")


def test_evaluate_prints_internal_figures_and_charges_nothing(films: Films) -> None:
    outcome = films.evaluate()
    assert outcome.code == 0
    assert "Do not publish" in outcome.out
    for word in ("MAE", "NDCG@10", "own mean", "popularity"):
        assert word in outcome.out
    assert films.spends() == []
    assert {entry.event for entry in films.entries()} == {"look", "simulation"}
    assert not films.world.out.exists()


def test_evaluate_json_has_the_four_figures_and_the_baselines(films: Films) -> None:
    told = films.evaluate("--json").json
    assert told["internal"] is True
    for figure in ("mae", "rmse", "ndcg@10", "recall@10", "coverage"):
        assert 0 <= told[figure] <= 4
    assert set(told["baselines"]["own mean"]) >= {"mae", "rmse"}
    assert set(told["baselines"]["popularity"]) >= {"ndcg@10", "recall@10"}


def test_evaluate_draws_accuracy_against_epsilon_into_the_internal_folder(films: Films) -> None:
    outcome = films.evaluate(epsilon=None, epsilons=".1,1,10", out=films.world.out)
    assert outcome.code == 0
    assert "(do not publish)" in outcome.out
    page = (films.world.internal / "internal.html").read_text()
    assert page.count("<svg") == 2
    assert "INTERNAL" in page
    told = json.loads((films.world.internal / "internal.json").read_text())
    assert [run["epsilon"] for run in told["runs"]] == [0.1, 1.0, 10.0]


def test_evaluate_writes_for_its_owner_only_also_into_an_open_folder(films: Films) -> None:
    films.world.internal.mkdir(mode=0o755)
    assert films.evaluate(out=films.world.out).code == 0
    modes = {path.stat().st_mode & 0o777 for path in films.world.internal.iterdir()}
    assert modes == {0o600}


def test_evaluate_begins_with_the_single_epsilon_and_repeats_none(films: Films) -> None:
    runs = films.evaluate("--json", epsilon="1", epsilons=".5,1, .5", method="bias").json["runs"]
    assert [run["epsilon"] for run in runs] == [1.0, 0.5]


def test_evaluate_needs_an_epsilon(films: Films) -> None:
    check_refused(films.evaluate(epsilon=None), 2, "--epsilons")
    check_refused(films.evaluate(epsilon=None, epsilons="1,,2"), 2, "epsilon must be")


@pytest.mark.parametrize("command", [(), ("fit",), ("top",), ("evaluate",)], ids=str)
def test_help_loads_nothing_heavy(command: tuple[str, ...]) -> None:
    script = (
        "import sys\nfrom sfumato.cli import main\n"
        f"sys.argv = ['sfumato', 'recommend', *{command!r}, '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'numba', 'duckdb', 'pyarrow', 'numpy', 'sklearn'} & set(sys.modules)\n"
        "sys.exit(bool(heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0
    assert b"Usage: sfumato recommend" in done.stdout
