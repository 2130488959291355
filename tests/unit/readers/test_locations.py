"""Addresses of databases: what is taken apart, what is refused, and that secrets stay unsaid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.readers import locations


@pytest.mark.parametrize(
    ("text", "shown", "table"),
    [
        ("postgresql://h/db::t", "postgresql://h/db::t", "t"),
        ("POSTGRES://ada@h:5433/db", "postgresql://h:5433/db", None),
        ("postgres://ada:pw@[::1]:5/db::s.t", "postgresql://[::1]:5/db::s.t", "s.t"),
        ("postgresql://a,b:5433/db?sslmode=require::t", "postgresql://a,b:5433/db::t", "t"),
        ("postgresql:///db?host=/run/pg&user=ada::t", "postgresql:///db?host=/run/pg::t", "t"),
        ("postgresql://?service=clinic::t", "postgresql:///?service=clinic::t", "t"),
        ("postgresql://h/db::a::b", "postgresql://h/db::a::b", "a::b"),
        ("postgresql://h/db::نام", "postgresql://h/db::نام", "نام"),
        ("postgresql:/ada:pw@h/db::t", "postgresql://h/db::t", "t"),
        ("postgresql:/db?host=/run/pg", "postgresql:///db?host=/run/pg", None),
    ],
)
def test_an_address_is_taken_apart(text: str, shown: str, table: str | None) -> None:
    found = locations.parse(text)
    assert (found.shown, found.table) == (shown, table)
    assert locations.shown(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ada:gehe/im@h/db::t",
        "postgresql://ada:ge@heim@h/db::t",
        "postgresql://ada:gehe?im@h/db::t",
        "postgresql://ada:1?geheim@h/db::t",
        "postgresql://ada:gehe#im/x@h/db::t",
        "postgresql://ada@h/db?password=geheim::t",
        "postgresql://ada@h/db?%70assword=geheim::t",
        "postgresql://ada@h/db?sslpassword=geheim::t",
        "postgresql://ada:geheim@h/db::",
        "postgresql://ada:geheim@h::t",
        "postgresql://ada:geheim@h/db\x1b[31m::t",
    ],
)
def test_an_address_that_can_not_be_taken_apart_is_not_repeated(text: str) -> None:
    with pytest.raises(InputError, match="database address looks like") as caught:
        locations.parse(text)
    for part in ("geheim", "gehe", "heim", "ada"):
        assert part not in str(caught.value)
    assert locations.shown(text) == "postgresql://..."
    assert locations.has_password(text)


@given(st.text(min_size=1), st.sampled_from(["/db::t", "/db", "", "?host=x", "::t"]))
def test_whatever_stands_before_the_host_is_never_shown(secret: str, rest: str) -> None:
    shown = locations.shown(f"postgresql://ada:{secret}=SECRET=@h{rest}")
    assert "SECRET" not in shown
    assert "ada" not in shown


def test_a_password_is_noticed() -> None:
    assert locations.has_password("postgresql://ada:geheim@h/db::t")
    assert locations.has_password("postgresql://ada:@h/db::t")
    assert locations.has_password("postgresql:/ada:geheim@h/db::t")
    assert not locations.has_password("postgresql://ada@h/db::t")
    assert not locations.has_password("postgresql:/ada@h/db::t")
    assert not locations.has_password("C:data.csv")


def test_an_address_never_prints_its_password() -> None:
    assert "geheim" not in repr(locations.parse("postgresql://ada:geheim@h/db::t"))


def test_paths_are_shown_as_they_are() -> None:
    assert locations.shown("survey.db::people") == "survey.db::people"
