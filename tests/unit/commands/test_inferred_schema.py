"""Publishing without a schema: what it costs, what it finds, and what happens when it stops."""

import json
import re
import runpy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.commands import inferred_schema, publication
from sfumato.commands.inferred_schema import RUN, SCHEMA, Inferred
from sfumato.errors import BudgetError, InputError, StorageError, TableError
from sfumato.gate.scout import Scout
from sfumato.ledger import Ledger
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    ApproxZCDP,
    OneRow,
    PureDP,
    composed,
    epsilon_from_zcdp,
    zcdp_budget,
)
from sfumato.publishing.column_rules import LeftOut
from sfumato.schema import Schema

MADE = runpy.run_path(str(Path(__file__).parents[2] / "made" / "adult_like.py"))
ROWS = 4_000


@pytest.fixture(scope="module")
def people():
    """4,000 rows: two towns, ages, a key, free text, a rare value."""
    return pa.table(
        {
            "key": [f"k{n}" for n in range(ROWS)],
            "town": [(" Rome", "Oslo")[n % 2] for n in range(ROWS)],
            "age": [str(20 + n % 60) if n % 10 else "" for n in range(ROWS)],
            "member": [("yes", "no")[n % 3 == 0] for n in range(ROWS)],
            "born": [f"{1990 + n % 5}-0{1 + n % 9}-15" for n in range(ROWS)],
            "note": [f"a long remark about somebody, number {n}, {'x' * 40}" for n in range(ROWS)],
        }
    )


WHOLE = ApproxDP(5, "1e-9")


def charges(ledger=None):
    """What the looks at the table cost, by what they asked."""
    book = Ledger.open(dataset="study") if ledger is None else ledger
    own = (e for e in book.entries() if (e.request or "").startswith(f"{RUN}/"))
    return {e.request.rpartition("/")[2]: e.cost for e in own if e.event == "spend"}


def refused(table, tmp_path, kind=TableError, **said):
    """What a run says that ends with an error, and its notes."""
    with pytest.raises(kind) as stopped:
        published(table, tmp_path, **said)
    return " ".join([str(stopped.value), *getattr(stopped.value, "__notes__", [])])


def published(people, tmp_path, **said):
    said = {"epsilon": 5, "dataset": "study", "out": tmp_path / "out", **said}
    return sf.publish_table(people, **said)


def test_a_table_without_a_schema_is_published_with_one(people, tmp_path):
    release = published(people, tmp_path)
    assert release.guarantee == WHOLE
    kinds = {column.name: column.kind for column in release.schema}
    assert kinds == {"town": "category", "age": "integer", "member": "boolean", "born": "date"}
    assert set(release.schema.exclude) == {"key", "note"}
    assert release.schema["town"].values == ("Oslo", "Rome")
    assert not release.schema.file.strict
    kept = Schema.load(tmp_path / "out" / "schema.json")
    assert kept == release.schema.without_bins()
    told = json.loads((tmp_path / "out" / "release.json").read_text())
    found = told["method"]["inferred"]
    assert found["delta"] == 5e-10
    assert "no text is shared by" in found["left_out"]["key"]
    assert f"{found['texts']['shown_from_rows']} or more of about" in found["left_out"]["key"]
    assert "free text" in found["left_out"]["note"]
    kinds = [entry["cost"]["kind"] for entry in told["ledger"]["entries"]]
    assert kinds[:3] == ["approximate", "zcdp", "approximate-zcdp"]
    assert set(kinds[3:]) == {"zcdp"}
    assert told["guarantee"]["exact"] == {
        "kind": "approximate", "epsilon": "5", "delta": "1/1000000000"
    }  # fmt: skip
    assert told["ledger"]["spent"]["kind"] == "approximate"


def test_what_is_released_is_evaluated_with_the_same_reading(people, tmp_path):
    published(people, tmp_path)
    found = sf.evaluate_release(tmp_path / "out", against=people)
    assert found.to_dict()["tv"]


def test_the_cap_counts_schema_and_release_together(people, tmp_path):
    published(people, tmp_path, cap=WHOLE)
    book = Ledger.open(dataset="study")
    assert book.spent.delta == Fraction("5e-10")
    assert book.spent.rho <= zcdp_budget(ApproxDP(5, "5e-10")).rho
    assert book.spent.rho >= zcdp_budget(ApproxDP(5, "5e-10")).rho * Fraction(999, 1000)
    assert book.verify().head == book.head
    assert book.composed(WHOLE.delta).epsilon <= 5
    with pytest.raises(BudgetError):
        published(people, tmp_path, out=tmp_path / "more")


def test_the_looks_cost_a_share_of_rho_and_half_of_delta(people, tmp_path):
    published(people, tmp_path)
    rho = zcdp_budget(ApproxDP(5, "5e-10")).rho
    looks = charges()
    assert looks["rows"] == ApproxDP("0.05", "5e-13")
    assert looks["kinds"] == ZCDP(rho * Fraction(3, 20) / 4)
    assert looks["texts"] == ApproxZCDP(rho * Fraction(3, 20) * 3 / 4, "4.995e-10")


def test_where_rows_are_replaced_their_number_is_free_and_the_first_look_has_a_delta(
    people, tmp_path
):
    release = published(people, tmp_path, neighbors="replace", cap=WHOLE)
    assert release.guarantee == WHOLE
    looks = charges()
    assert set(looks) == {"kinds", "texts"}
    assert looks["kinds"].delta + looks["texts"].delta == Fraction("5e-10")


def test_without_texts_their_part_is_left_to_the_method_but_for_the_delta(people, tmp_path):
    numbers = people.select(["age", "born"])
    release = published(numbers, tmp_path, cap=WHOLE)
    assert release.guarantee == WHOLE
    assert set(charges()) == {"rows", "kinds"}
    spent = Ledger.open(dataset="study").spent
    assert spent.rho >= zcdp_budget(ApproxDP(5, "5e-10")).rho * Fraction(999, 1000)


LOOKS = (ApproxDP("0.05", "5e-13"), ZCDP("0.01"), ApproxZCDP("0.03", "4.995e-10"))


def inferred(*costs):
    schema = Schema(columns=(sf.Boolean(name="member"),))
    return Inferred(schema=schema, costs=costs or LOOKS, about={})


def test_what_schema_and_release_promise_together_is_the_sum_of_both(people, tmp_path):
    found, budget = inferred(), ApproxDP(2, "3e-10")
    both = found.spent.plus(zcdp_budget(budget))
    assert found.total(budget) == ApproxDP(
        epsilon_from_zcdp(both.rho, budget.delta), Fraction("8e-10")
    )
    assert found.total(budget) == composed(both, Fraction("8e-10"))
    assert found.total(budget).epsilon > 2
    pure = found.total(PureDP(4))
    assert pure.delta == Fraction("1e-9")
    assert pure.epsilon == 4 + epsilon_from_zcdp(found.spent.rho, Fraction("5e-10"))
    zcdp = found.total(ZCDP(1))
    assert zcdp == ApproxDP(
        epsilon_from_zcdp(found.spent.rho + 1, Fraction("5e-10")), Fraction("1e-9")
    )
    release = published(people, tmp_path, method="mst", delta="1e-9")
    assert release.guarantee == WHOLE


def test_of_two_processes_that_infer_at_once_both_use_the_draw_that_was_kept_first(
    people, tmp_path, monkeypatch
):
    infer, others = inferred_schema.infer, []

    def without_town(scout, costs):
        found = infer(scout, costs)
        return replace(found, columns={**found.columns, "town": LeftOut(name="town", why="rare")})

    def slower(scout, costs):
        monkeypatch.setattr(inferred_schema, "infer", without_town)
        others.append(published(people, tmp_path, out=tmp_path / "faster"))
        return infer(scout, costs)

    monkeypatch.setattr(inferred_schema, "infer", slower)
    release = published(people, tmp_path, out=tmp_path / "slower")
    assert "town" not in release.schema.names
    assert release.schema.without_bins() == others[0].schema.without_bins()
    spends = [e.request for e in Ledger.open(dataset="study").entries() if e.event == "spend"]
    assert sum(f"{each}".startswith(RUN) for each in spends) == 3


def test_a_second_release_uses_the_schema_that_was_paid_for(people, tmp_path, monkeypatch):
    first = published(people, tmp_path)
    paid = charges()
    monkeypatch.setattr(inferred_schema, "infer", lambda *_: pytest.fail("it looked again"))
    second = published(people, tmp_path, out=tmp_path / "two", epsilon=4, infer_share="0.4")
    assert second.schema.without_bins() == first.schema.without_bins()
    assert second.guarantee == ApproxDP(4, "1e-9")  # the same inference, and another release
    assert charges() == paid


def test_a_second_release_that_has_no_room_for_the_schemas_cost_is_refused(people, tmp_path):
    published(people, tmp_path)
    with pytest.raises(BudgetError, match=r"leaves nothing of epsilon=0\.5"):
        published(people, tmp_path, out=tmp_path / "two", epsilon="0.5")


def test_another_protection_does_not_reuse_what_was_found(people, tmp_path):
    published(people, tmp_path, neighbors="replace")
    with pytest.raises(BudgetError, match="was inferred for one row replaced"):
        published(people, tmp_path, out=tmp_path / "two")


def test_what_the_cap_would_refuse_afterwards_is_refused_before(people, tmp_path):
    for cap, why in ((ApproxDP(4, "1e-9"), "is left of the cap"), (PureDP(9), "a delta does not")):
        with pytest.raises(BudgetError, match=why) as refusal:
            published(people, tmp_path, cap=cap)
        assert "Nothing was spent." in str(refusal.value)
        book = Ledger.open(dataset="study")
        assert book.spent.nothing
        book.set_cap(ApproxDP(4, "1e-9") if cap.kind == "pure" else PureDP(9))


def test_under_a_cap_a_data_set_that_was_charged_before_needs_a_schema(people, tmp_path):
    book = Ledger.open(dataset="study", cap=ApproxDP(50, "1e-6"))
    book.spend(PureDP(1), label="earlier", protect=sf.OneRow())
    with pytest.raises(BudgetError, match="schema draft"):
        published(people, tmp_path)
    assert Ledger.open(dataset="study").spent.delta == 0


def test_dp2pub_has_no_delta_for_a_schema(people, tmp_path):
    with pytest.raises(InputError, match="choose another method"):
        published(people, tmp_path, method="dp2pub", neighbors="replace")
    assert Ledger.open(dataset="study").spent.nothing


SMALL = {"epsilon": 1, "dataset": "study"}


@pytest.fixture(scope="module")
def small(people):
    """1,500 rows of 26 columns: too small if the noise of their number is below 1,000, once in
    20,000 times not."""
    table = people.slice(0, 1_500)
    for number in range(20):
        table = table.append_column(f"copy {number}", table["town"])
    return table


def test_a_small_table_is_refused_before_the_rest_is_paid(small, tmp_path):
    """At most 1% of epsilon is spent, and the message has the numbers that say why."""
    said = refused(small, tmp_path, **SMALL)
    assert "too small to infer a schema from: it has about" in said
    assert "of 26 columns a text would be shown only if" in said
    assert "`sfumato schema draft`" in said
    assert "Charged, and recorded" in said
    assert "epsilon=0.01, delta=5e-13" in said
    book = Ledger.open(dataset="study")
    assert charges() == {"rows": ApproxDP("0.01", "5e-13")}
    assert book.composed() == ApproxDP("0.01", "5e-13")
    assert book.outcome(SCHEMA, step=1) is None


def test_after_a_refusal_the_number_of_rows_is_neither_paid_nor_drawn_again(small, tmp_path):
    numbers = [re.findall(r"[\d,]+", refused(small, tmp_path, **SMALL))[:3] for _ in range(2)]
    assert numbers[0] == numbers[1]
    assert charges() == {"rows": ApproxDP("0.01", "5e-13")}
    release = published(small, tmp_path, epsilon=40)
    assert release.guarantee == ApproxDP(40, "1e-9")
    assert charges()["rows"] == ApproxDP("0.01", "5e-13")


def test_more_epsilon_after_a_refusal_counts_rows_with_less_noise(people, tmp_path):
    """The first count had noise of 14,000 rows: to go by it would refuse, or pass, for ever."""
    Ledger.open(dataset="study", cap=ApproxDP(40, "1e-9"))
    refused(people, tmp_path, epsilon="0.01")
    release = published(people, tmp_path, epsilon=40)
    assert charges()["rows"].epsilon == Fraction(1, 10_000)
    assert charges()["rows 2"] == PureDP("0.4")
    assert abs(release.method["inferred"]["rows"] - ROWS) < 100
    assert release.guarantee == ApproxDP(40, "1e-9")
    costs = [each["cost"] for each in release.ledger["entries"] if "infer" in each["label"]]
    assert len(costs) == 4
    assert Ledger.open(dataset="study").composed().epsilon <= 40


def test_after_a_refusal_a_cap_that_has_no_room_for_the_release_refuses_before_the_looks(
    small, tmp_path
):
    """Kinds and texts would fit, and the release would not: nothing more is spent on them."""
    refused(small, tmp_path, **SMALL, cap=ApproxDP(20, "1e-9"))
    said = refused(small, tmp_path, BudgetError, epsilon=40)
    assert "is left of the cap" in said
    assert set(charges()) == {"rows"}


def test_a_small_table_may_keep_some_columns(small, tmp_path):
    said = refused(small, tmp_path, **SMALL, neighbors="replace")
    assert re.search(r"or keep at most \d of the 26 columns", said)


def test_where_rows_are_replaced_a_refusal_costs_nothing(small, tmp_path):
    said = refused(small, tmp_path, **SMALL, neighbors="replace")
    assert "it has 1,500 rows" in said
    assert "Nothing was spent" in said
    assert Ledger.open(dataset="study").spent.nothing


def test_a_table_of_which_few_values_are_shown_comes_with_a_warning(people, tmp_path, caplog):
    published(people, tmp_path, epsilon="1.5")
    assert "the table is small for inferring a schema: only texts shared by" in caplog.text
    caplog.clear()
    published(people, tmp_path, dataset="larger", out=tmp_path / "more", epsilon=40)
    assert "small" not in caplog.text


def stopped_before_the_charge(monkeypatch):
    monkeypatch.setattr(Ledger, "spend", interrupt)


def stopped_before_the_look(monkeypatch):
    monkeypatch.setattr("sfumato.readers.undeclared_table.UndeclaredTable.shapes", interrupt)


def stopped_before_the_second_look(monkeypatch):
    monkeypatch.setattr(Scout, "texts", interrupt)


def stopped_before_the_outcome_is_kept(monkeypatch):
    monkeypatch.setattr(Ledger, "journal", interrupt)


def stopped_after_the_outcome_was_kept(monkeypatch):
    monkeypatch.setattr(inferred_schema, "_from_json", interrupt)


def interrupt(*args, **named):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("stop", "paid", "kept"),
    [
        (stopped_before_the_charge, 0, False),
        (stopped_before_the_look, 1, False),
        (stopped_before_the_second_look, 2, False),
        (stopped_before_the_outcome_is_kept, 1, False),
        (stopped_after_the_outcome_was_kept, 3, True),
    ],
)
def test_a_stopped_run_pays_once_and_goes_on(people, tmp_path, monkeypatch, stop, paid, kept):
    with monkeypatch.context() as broken:
        stop(broken)
        with pytest.raises(KeyboardInterrupt):
            published(people, tmp_path)
    book = Ledger.open(dataset="study")
    assert len(charges()) == paid
    assert (book.outcome(SCHEMA, step=1) is not None) == kept
    release = published(people, tmp_path)
    assert len(charges()) == 3
    assert release.guarantee == WHOLE


def test_a_stopped_run_goes_on_with_what_it_paid_whatever_share_is_asked_for(
    people, tmp_path, monkeypatch
):
    with monkeypatch.context() as broken:
        stopped_before_the_second_look(broken)
        with pytest.raises(KeyboardInterrupt):
            published(people, tmp_path)
    before = charges()
    release = published(people, tmp_path, infer_share="0.5")
    assert {step: charges()[step] for step in before} == before
    assert charges()["texts"].rho > 9 * charges()["kinds"].rho
    assert release.guarantee == WHOLE


def test_a_release_that_fails_leaves_the_schema_beside_it(people, tmp_path, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(inferred_schema, "released", interrupt)
        with pytest.raises(KeyboardInterrupt) as stopped:
            published(people, tmp_path)
    beside = tmp_path / "out.schema.json"
    assert str(beside) in " ".join(stopped.value.__notes__)
    again = sf.publish_table(people, schema=beside, epsilon=1, out=tmp_path / "out")
    assert again.schema.without_bins() == Schema.load(beside)


def failed(people, tmp_path, monkeypatch, **said):
    """What a run says that is stopped between the schema and the release."""
    with monkeypatch.context() as broken:
        broken.setattr(publication, "run", interrupt)
        with pytest.raises(KeyboardInterrupt) as stopped:
            published(people, tmp_path, **said)
    return " ".join(stopped.value.__notes__)


def test_the_schema_of_a_failed_run_is_kept_also_where_no_folder_is_yet(
    people, tmp_path, monkeypatch
):
    said = failed(people, tmp_path, monkeypatch, out=tmp_path / "no" / "such" / "out")
    beside = tmp_path / "no" / "such" / "out.schema.json"
    assert str(beside) in said
    assert "delta=5e-10, which is spent" in said
    assert Schema.load(beside).names == ("town", "age", "member", "born")


def a_file_of_that_name(tmp_path):
    (tmp_path / "out.schema.json").write_text("mine")


def a_folder_that_can_not_be_made(tmp_path):
    (tmp_path / "out.schema.json").symlink_to(tmp_path / "nowhere" / "else")


@pytest.mark.parametrize("prepare", [a_file_of_that_name, a_folder_that_can_not_be_made])
def test_a_schema_that_could_not_be_written_is_not_named(people, tmp_path, monkeypatch, prepare):
    prepare(tmp_path)
    before = sorted(tmp_path.iterdir())
    said = failed(people, tmp_path, monkeypatch)
    assert "which is spent. The ledger keeps it: give this command again" in said
    assert "schema.json" not in said
    assert sorted(tmp_path.iterdir()) == before
    assert published(people, tmp_path).guarantee == WHOLE


def test_a_save_that_fails_never_hides_why_the_run_failed(people, tmp_path, monkeypatch):
    def full(self, path):
        path.write_text("{")
        raise StorageError("no space left")

    monkeypatch.setattr(Schema, "save", full)
    said = failed(people, tmp_path, monkeypatch)
    assert "which is spent. The ledger keeps it" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", ["out", None])
def test_a_simulation_that_fails_keeps_nothing_and_says_so(people, tmp_path, monkeypatch, folder):
    out = None if folder is None else tmp_path / folder
    said = failed(people, tmp_path, monkeypatch, seed=5, out=out)
    assert "This was a simulation: nothing was charged, and nothing was stored." in said
    assert not any(word in said for word in ("spent", "published", "--schema"))
    assert list(tmp_path.iterdir()) == []
    book = Ledger.open(dataset="study")
    assert [entry.event for entry in book.entries()] == ["simulation"]
    assert book.spent.nothing


def test_a_simulation_that_finds_no_column_does_not_say_that_it_paid(tmp_path):
    keys = pa.table({"key": [f"k{n}" for n in range(5_000)]})
    with pytest.raises(TableError, match="'key'") as refusal:
        published(keys, tmp_path, seed=1)
    assert "which was simulated" in str(refusal.value)
    assert "is spent" not in str(refusal.value)


def test_a_release_with_a_schema_that_was_inferred_counts_what_that_cost(people, tmp_path):
    first = published(people, tmp_path)
    paid = charges()
    looks = inferred(*paid.values())
    kept, out = tmp_path / "out" / "schema.json", tmp_path / "two"
    second = sf.publish_table(people, schema=kept, epsilon=2, method="independent", out=out)
    assert second.guarantee == looks.total(PureDP(2))
    assert second.guarantee.delta == Fraction("1e-9")
    assert second.method["inferred"] == first.method["inferred"]
    assert second.ledger["entries"][:3] == first.ledger["entries"][:3]
    assert Schema.load(out / "schema.json") == first.schema.without_bins()
    assert "found privately, within the promise" in (out / "report.html").read_text()
    assert charges() == paid
    gaussian = sf.publish_table(people, schema=kept, epsilon=2, method="mst")
    assert gaussian.guarantee == looks.total(ApproxDP(2, "1e-9"))
    assert gaussian.guarantee.delta == Fraction("1.5e-9")


def test_an_earlier_release_s_schema_with_its_bins_is_known_as_inferred(people, tmp_path):
    """Bins that a release found are no declaration: else its cost would count for nothing."""
    first = published(people, tmp_path, method="independent")
    assert any(getattr(column, "bins", None) for column in first.schema)
    ledger = Ledger.open(dataset="study")
    known = inferred_schema.inferred_earlier(ledger, first.schema, OneRow())
    assert known is not None
    assert known.schema == first.schema.without_bins()


def test_dp2pub_counts_what_its_schema_cost_too(people):
    replaced = {"epsilon": 5, "method": "independent", "neighbors": "replace", "dataset": "study"}
    first = sf.publish_table(people, **replaced)
    second = sf.dp2pub_table(people, schema=first.schema, epsilon=2, trust="server")
    assert second.guarantee == inferred(*charges().values()).total(PureDP(2))
    assert second.ledger["entries"][:2] == first.ledger["entries"][:2]
    assert "inferred" in second.method


@pytest.mark.parametrize("seed", [None, 3])
def test_some_of_the_inferred_columns_in_any_order_are_still_inferred(people, tmp_path, seed):
    found = published(people, tmp_path).schema
    some = Schema(columns=(found["born"], found["town"]), dataset="study", file=found.file)
    release = sf.publish_table(people, schema=some, epsilon=1, method="independent", seed=seed)
    assert release.guarantee == inferred(*charges().values()).total(PureDP(1))
    assert "inferred" in release.method


def test_a_schema_that_a_person_changed_or_wrote_is_taken_as_theirs(people, tmp_path):
    found = published(people, tmp_path).schema
    changed = replace(found["town"], values=("Bonn", "Oslo", "Rome"))
    columns = tuple(changed if each.name == "town" else each for each in found)
    own = replace(found, columns=columns)
    release = sf.publish_table(people, schema=own, epsilon=1, method="independent")
    assert release.guarantee == PureDP(1)
    assert "inferred" not in release.method


def test_an_inferred_schema_is_not_used_for_another_protection(people, tmp_path):
    found = published(people, tmp_path, neighbors="replace").schema
    paid = Ledger.open(dataset="study").spent
    with pytest.raises(BudgetError, match=r"was inferred for one row replaced.*Nothing was spent"):
        sf.publish_table(people, schema=found, epsilon=1)
    assert Ledger.open(dataset="study").spent == paid


def test_nothing_is_left_where_no_column_can_be_described(tmp_path):
    keys = pa.table({"key": [f"k{n}" for n in range(5_000)]})
    said = refused(keys, tmp_path)
    assert "'key' (no text is shared by" in said
    assert "which stays charged" in said
    assert "Nothing was spent" not in said
    paid = charges()
    refused(keys, tmp_path)  # and not drawn again
    assert charges() == paid


def test_one_odd_value_stops_nothing(people, tmp_path):
    town = people["town"].to_pylist()
    age = ["soon", "1e400", "2020-02-31", *people["age"].to_pylist()[3:]]
    odd = people.set_column(1, "town", [town]).set_column(2, "age", [age])
    assert published(odd, tmp_path).schema["age"].kind == "integer"


def test_a_person_with_many_rows_is_protected_as_a_person(people, tmp_path):
    people = people.append_column("who", [[f"p{n // 2}" for n in range(ROWS)]])
    release = published(people, tmp_path, person="who", max_rows=2, epsilon=8)
    assert "who" not in release.schema.names
    assert release.protect == sf.OnePerson(column="who", max_rows=2)
    assert Ledger.open(dataset="study").protect == release.protect


def test_a_simulation_costs_nothing_and_repeats_itself(people, tmp_path):
    one = published(people, tmp_path, seed=1, out=None)
    two = published(people, tmp_path, seed=1, out=None)
    assert not one.private
    assert one.schema == two.schema
    assert Ledger.open(dataset="study").spent.nothing


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"dataset": None}, "none is named"),
        ({"infer_share": 0}, "infer_share must be above 0"),
        ({"infer_share": "1"}, "below 1"),
        ({"workload": "mine.json"}, "not known without a schema"),
        ({"strict": True}, "is for a schema that is given"),
        ({"method": "magic"}, "method must be one of"),
        ({"method": "privbayes"}, "replace"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"person": "key"}, "max_rows"),
        ({"schema": {"a": 2}, "infer_share": "0.2"}, "one of both"),
    ],
)
def test_what_can_be_refused_is_refused_unpaid(people, tmp_path, said, message):
    with pytest.raises(InputError, match=message) as refusal:
        published(people, tmp_path, **said)
    assert "nothing was" in str(refusal.value).lower()
    assert not (tmp_path / "out").exists()
    if said.get("dataset", "study"):
        assert Ledger.open(dataset="study").spent.nothing


def test_an_output_that_exists_is_refused_unpaid(people, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="exists"):
        published(people, tmp_path)
    assert Ledger.open(dataset="study").spent.nothing


def test_an_older_release_with_its_schema_is_replaced_by_force(people, tmp_path):
    published(people, tmp_path)
    assert (tmp_path / "out" / "schema.json").exists()
    published(people, tmp_path, force=True, resume=False)
    assert (tmp_path / "out" / "release.json").exists()


def test_a_file_whose_first_line_is_data_is_refused_without_its_values(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text(MADE["adult_like"](50, seed=1))
    with pytest.raises(TableError, match="looks like a row of values") as refusal:
        published(path, tmp_path)
    assert "Private" not in str(refusal.value)
    assert Ledger.open(dataset="study").spent.nothing


def test_the_raw_adult_file_gets_a_usable_schema(tmp_path):
    """At epsilon 3: 15 columns in 10,000 rows. A simulation, so it is the same each time."""
    path = tmp_path / "adult.csv"
    path.write_text(",".join(MADE["NAMES"]) + "\n" + MADE["adult_like"](10_000, seed=1))
    release = sf.publish_table(path, epsilon=3, dataset="adult", seed=4)
    schema = release.schema
    kinds = {column.name: column.kind for column in schema}
    assert kinds["age"] == kinds["hours-per-week"] == "integer"
    assert kinds["sex"] == kinds["race"] == kinds["income"] == "category"
    assert set(schema["sex"].values) == {"Female", "Male"}
    assert set(schema["income"].values) == {"<=50K", ">50K"}
    assert "United-States" in schema["native-country"].values
    assert not any(text.startswith("Country-4") for text in schema["native-country"].values)
    assert 0 <= schema["age"].low <= 20
    assert 80 <= schema["age"].high < 200


def test_seeded_noise_of_the_schema_is_another_stream_than_that_of_the_release(
    people, tmp_path, monkeypatch
):
    seeds, real = [], publication.simulation_rng
    monkeypatch.setattr(
        publication, "simulation_rng", lambda seed: seeds.append(seed) or real(seed)
    )
    published(people, tmp_path, out=tmp_path / "out", seed=7)
    schema_seed, release_seed = seeds
    assert release_seed == 7 != schema_seed


def test_a_later_run_with_less_delta_sets_the_same_part_aside_whatever_was_found(people, tmp_path):
    """Else the part of delta would depend on the data: on whether a column of texts was found."""
    found = []
    for name, columns in (("texts", ["town", "age"]), ("none", ["age"])):
        table = people.select(columns)
        published(table, tmp_path, out=tmp_path / name, dataset=name, delta="1.8e-9")
        book = Ledger.open(dataset=name)
        earlier = inferred_schema.inferred_earlier(
            book, Schema.load(tmp_path / name / "schema.json"), OneRow()
        )
        found.append(earlier.rest(ApproxDP(5, "1e-9")).rho + earlier.spent.rho)
    assert found[0] == found[1] == zcdp_budget(ApproxDP(5, "1e-10")).rho


def test_what_a_schema_cost_is_taken_off_a_budget_in_rho():
    found = inferred()
    spent = found.spent.rho
    assert found.rest(WHOLE) == ZCDP(zcdp_budget(ApproxDP(5, "5e-10")).rho - spent)
    generous = ApproxDP(5, "4e-9")  # half of its delta is set aside all the same
    assert found.rest(generous) == ZCDP(zcdp_budget(ApproxDP(5, "2e-9")).rho - spent)
    narrow = ApproxDP(5, "6e-10")
    assert found.rest(narrow) == ZCDP(zcdp_budget(ApproxDP(5, "1e-10")).rho - spent)
    for nothing_left in (ApproxDP("0.5", "2e-9"), ApproxDP(5, "5e-10")):
        with pytest.raises(BudgetError, match="leaves nothing"):
            found.rest(nothing_left)
    both = found.spent.plus(found.rest(WHOLE))
    assert both.epsilon(WHOLE.delta) <= WHOLE.epsilon
