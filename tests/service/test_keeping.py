"""What one transaction keeps: the same on SQLite and PostgreSQL, and between two servers."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, update

from service.crowd import Crowd
from sfumato.errors import StorageError
from sfumato.randomness import simulation_rng
from sfumato.server.storage import tables
from sfumato.server.storage.answers import FAN, AnswerIndex, RoundId, keys, statements
from sfumato.server.storage.database import Storage
from sfumato.server.storage.uploads import Incoming, Outcome, keep, settle
from sfumato.server.tokens import digest

STORED, REPEATED, CONFLICT = Outcome.STORED, Outcome.REPEATED, Outcome.CONFLICT
HOUR = "2026-11-16T10Z"
NO_ENTRY = ((2, None), (3, "bad"))
"""Names of answers and the invitations that they bring."""
_surveys = count(1)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def storage(request, tmp_path_factory) -> Iterator[Storage]:
    with ExitStack() as stack:
        where = str(tmp_path_factory.mktemp("keeping") / "survey.db")
        if request.param == "postgresql":
            server = request.getfixturevalue("postgres")
            where = stack.enter_context(server.fresh()).address
        outcomes = Storage(where)
        stack.callback(outcomes.close)
        yield outcomes


def opened(storage: Storage, *, invited: bool = False, **uses: int) -> RoundId:
    """A new survey with its first round open, and invitations by name."""
    number = next(_surveys)
    row = {"id": number, "task": f"{number:032x}", "state": "open-1", "payload": "{}"}
    signed = {"signature": "", "secret": b"", "created": HOUR}
    plan = {"survey": number, "round": 1, "payload": "{}", "signature": "", "planned": "{}"}
    with storage.writing() as connection:
        connection.execute(insert(tables.surveys), row | signed)
        connection.execute(insert(tables.rounds), plan)
        for token, most in uses.items():
            invitation = {"survey": number, "token": digest(token), "uses": most}
            connection.execute(insert(tables.invitations), invitation)
    return RoundId(number, 1, invited)


def upload(
    *answers: tuple[int, int], token: str | None = None, simulated: bool = False
) -> Incoming:
    """Answers by the number of their name and what they say."""
    names = b"".join(name.to_bytes(8) + bytes(8) for name, _ in answers)
    contents = b"".join(said.to_bytes(4, "little") for _, said in answers)
    return Incoming(names, contents, len(answers), simulated, token)


def store(
    storage: Storage, round_id: RoundId, *uploads: Incoming, index: AnswerIndex
) -> list[list[Outcome]]:
    with storage.writing() as connection:
        return keep(connection, round_id, uploads, hour=HOUR, index=index)


def stored(storage: Storage, round_id: RoundId) -> dict[int, int]:
    """What the blocks hold; no name twice."""
    outcomes = []
    with storage.reading() as connection:
        for block in statements(connection).blocks(round_id):
            said = [int.from_bytes(bytes(row), "little") for row in block.contents]
            outcomes += zip(keys(block.names).tolist(), said, strict=True)
    assert len(dict(outcomes)) == len(outcomes)
    return dict(outcomes)


def test_an_answer_is_kept_once_and_the_first_one_stays(storage):
    round_id, index = opened(storage), AnswerIndex()
    assert store(storage, round_id, upload((1, 5)), index=index) == [[STORED]]
    assert store(storage, round_id, upload((1, 5)), upload((1, 6)), index=index) == [
        [REPEATED],
        [CONFLICT],
    ]
    assert stored(storage, round_id) == {1: 5}


def test_copies_within_one_transaction_are_kept_once(storage):
    round_id = opened(storage)
    outcomes = store(
        storage, round_id, upload((1, 5), (1, 5), (1, 6)), upload((1, 5)), index=AnswerIndex()
    )
    assert outcomes == [[STORED, REPEATED, CONFLICT], [REPEATED]]
    assert stored(storage, round_id) == {1: 5}


def test_an_answer_that_was_refused_is_not_taken_for_one_that_came_before(storage):
    round_id = opened(storage, invited=True, good=1)
    first, again = upload((1, 5), token="bad"), upload((1, 5), token="good")
    assert store(storage, round_id, first, again, index=AnswerIndex()) == [
        [Outcome.UNINVITED],
        [STORED],
    ]
    assert stored(storage, round_id) == {1: 5}


def test_an_invitation_lets_in_as_many_as_it_says_in_one_transaction_or_several(storage):
    round_id, index = opened(storage, invited=True, a=3, b=1), AnswerIndex()
    outcomes = store(
        storage,
        round_id,
        upload((1, 0), (2, 0), token="a"),
        upload((3, 0), token="b"),
        upload((1, 0), (4, 0), (5, 0), token="a"),
        index=index,
    )
    assert outcomes == [[STORED, STORED], [STORED], [REPEATED, STORED, Outcome.SPENT]]
    again = store(
        storage, round_id, upload((6, 0), token="b"), upload((4, 0), token="b"), index=index
    )
    assert again == [[Outcome.SPENT], [REPEATED]]
    assert sorted(stored(storage, round_id)) == [1, 2, 3, 4]


def test_a_round_that_is_not_open_keeps_nothing(storage):
    round_id, index = opened(storage), AnswerIndex()
    store(storage, round_id, upload((1, 5)), index=index)
    with storage.writing() as connection:
        closed = update(tables.surveys).where(tables.surveys.c.id == round_id.survey)
        connection.execute(closed.values(state="closed-1"))
        settle(connection, round_id)
    assert store(storage, round_id, upload((1, 5), (2, 5)), index=index) == [[Outcome.CLOSED] * 2]
    assert stored(storage, round_id) == {1: 5}
    assert store(
        storage, RoundId(round_id.survey, 2, False), upload((9, 9)), index=AnswerIndex()
    ) == [[Outcome.CLOSED]]


def test_two_servers_know_what_the_other_wrote_also_after_blocks_were_merged(storage):
    round_id, servers = opened(storage), (AnswerIndex(), AnswerIndex())
    for number in range(3 * FAN):
        outcomes = store(storage, round_id, upload((number, 0)), index=servers[number % 2])
        assert outcomes == [[STORED]]
    for index in (*servers, AnswerIndex()):
        copies = [upload((number, number % 2)) for number in range(3 * FAN)]
        outcomes = store(storage, round_id, *copies, index=index)
        assert outcomes == [[CONFLICT if number % 2 else REPEATED] for number in range(3 * FAN)]
    assert len(stored(storage, round_id)) == 3 * FAN
    with storage.reading() as connection:
        assert len(list(statements(connection).blocks(round_id))) == 3


def test_blocks_of_a_closed_round_lie_in_the_order_of_names(storage):
    round_id, index = opened(storage), AnswerIndex()
    for number in (5, 3, 9, 1):
        store(storage, round_id, upload((number, 0)), index=index)
    with storage.writing() as connection:
        settle(connection, round_id)
    with storage.reading() as connection:
        (block,) = statements(connection).blocks(round_id)
    assert keys(block.names).tolist() == [1, 3, 5, 9]


def says_simulated(storage: Storage, round_id: RoundId) -> bool:
    with storage.reading() as connection:
        return any(block.simulated for block in statements(connection).blocks(round_id))


def test_a_refused_upload_can_not_say_that_the_answers_beside_it_were_simulated(storage):
    round_id, index = opened(storage, invited=True, good=1), AnswerIndex()
    honest = upload((1, 5), token="good")
    outsiders = [upload((name, 5), token=token, simulated=True) for name, token in NO_ENTRY]
    outcomes = store(storage, round_id, *outsiders, honest, *outsiders, index=index)
    assert outcomes.count([STORED]) == 1
    assert not says_simulated(storage, round_id)
    repeated = upload((1, 5), token="good", simulated=True)
    assert store(storage, round_id, repeated, index=index) == [[REPEATED]]
    assert not says_simulated(storage, round_id)


def test_one_kept_answer_that_was_simulated_marks_the_round(storage):
    round_id = opened(storage, invited=True, good=1, other=1)
    parts = upload((1, 5), token="good"), upload((2, 5), (3, 5), token="other", simulated=True)
    assert store(storage, round_id, *parts, index=AnswerIndex()) == [
        [STORED],
        [STORED, Outcome.SPENT],
    ]
    assert says_simulated(storage, round_id)


def close_round(storage: Storage, round_id: RoundId) -> None:
    with storage.writing() as connection:
        closed = update(tables.surveys).where(tables.surveys.c.id == round_id.survey)
        connection.execute(closed.values(state="closed-1"))
        settle(connection, round_id)


def rows(storage: Storage, sql: str) -> list[tuple]:
    with storage.reading() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(sql)]


def used_one_by_one(storage: Storage, number: int) -> RoundId:
    tokens = [f"person {person}" for person in range(number)]
    round_id, index = opened(storage, invited=True, **dict.fromkeys(tokens, 1)), AnswerIndex()
    for name, token in enumerate(tokens):
        assert store(storage, round_id, upload((name, 0), token=token), index=index) == [[STORED]]
    return round_id


def test_invitations_stay_used_when_their_round_is_closed(storage):
    round_id, index = opened(storage, invited=True, a=2, b=1), AnswerIndex()
    store(storage, round_id, upload((1, 0), token="a"), index=index)
    close_round(storage, round_id)
    query = f"SELECT token, uses, taken1, taken2 FROM invitations WHERE survey = {round_id.survey}"
    outcomes = {(bytes(token), *numbers) for token, *numbers in rows(storage, query)}
    assert outcomes == {(digest("a"), 2, 1, 0), (digest("b"), 1, 0, 0)}


def test_no_row_of_a_closed_round_says_when_its_invitation_was_used(database):
    """In PostgreSQL, where rows name the transaction that wrote them."""
    storage = Storage(database.address)
    round_id = used_one_by_one(storage, 40)
    of = f"FROM invitations WHERE survey = {round_id.survey}"
    assert rows(storage, f"SELECT count(DISTINCT xmin::text) {of}") == [(40,)]
    close_round(storage, round_id)
    assert rows(storage, f"SELECT count(DISTINCT xmin::text) {of}") == [(1,)]
    lying = [bytes(token) for (token,) in rows(storage, f"SELECT token {of} ORDER BY ctid")]
    assert lying == sorted(lying)
    storage.close()


def test_a_scrubbed_database_holds_no_earlier_state(storage):
    round_id = used_one_by_one(storage, 40)
    close_round(storage, round_id)
    storage.scrub()
    if storage.is_postgres:
        with storage.writing() as connection:
            connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS pageinspect")
        for table in ("invitations", "blocks"):
            held = (
                f"SELECT count(*) FROM generate_series(0, pg_relation_size('{table}') / 8192 - 1) "
                f"AS page, heap_page_items(get_raw_page('{table}', page::int)) "
                "WHERE t_data IS NOT NULL"
            )
            assert rows(storage, held) == rows(storage, f"SELECT count(*) FROM {table}")
    else:
        assert Path(f"{storage.name}-wal").stat().st_size == 0
    assert len(stored(storage, round_id)) == 40


@pytest.mark.parametrize("abandon", [False, True])
def test_a_round_that_is_closed_or_given_up_leaves_no_log_of_its_commits(service, abandon):
    made = service.create([{"name": "smoker", "kind": "boolean"}], rehearsal=True)
    made.act("open")
    Crowd(made, 20, rng=simulation_rng(1)).answer(1)
    log = Path(f"{service.service.storage.name}-wal")
    assert log.stat().st_size > 0
    made.act("close", {"abandon": abandon})
    assert log.stat().st_size == 0
    survey = service.service.surveys.find(made.task)
    with service.service.storage.reading() as connection:
        (block,) = statements(connection).blocks(survey.round_id(1))
    assert keys(block.names).tolist() == sorted(keys(block.names).tolist())


def test_a_database_that_is_being_read_is_left_as_it_is(storage, monkeypatch):
    monkeypatch.setattr("sfumato.server.storage.database._SCRUB_MS", 50)
    round_id, index = opened(storage), AnswerIndex()
    store(storage, round_id, upload((1, 5)), index=index)
    with storage.reading() as reader:
        reader.exec_driver_sql("SELECT count(*) FROM blocks").fetchall()
        storage.scrub()
        assert store(storage, round_id, upload((2, 5)), index=index) == [[STORED]]
    assert stored(storage, round_id) == {1: 5, 2: 5}


def test_a_round_that_is_over_leaves_the_memory_when_another_one_begins(storage):
    from sfumato.server.storage.uploads import Writer

    first, second, third = (opened(storage) for _ in range(3))
    writer = Writer(storage)
    for each in (first, second):
        writer._store({each: [upload((1, 5), (2, 5))]}, HOUR)
    close_round(storage, first)
    writer._store({third: [upload((1, 5))]}, HOUR)
    assert {each: len(index) for each, index in writer._indexes.items()} == {second: 2, third: 1}
    outcomes = writer._store({first: [upload((1, 5))], second: [upload((1, 5))]}, HOUR)
    assert [list(outcomes[each]) for each in (first, second)] == [
        [[Outcome.CLOSED]],
        [[REPEATED]],
    ]


def test_a_failed_transaction_leaves_no_memory_of_answers_that_are_not_there(tmp_path: Path):
    from sfumato.server.storage.uploads import Writer

    storage = Storage(tmp_path / "survey.db")
    round_id, writer = opened(storage), Writer(storage)
    with storage.writing() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE INSERT ON arrivals BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
    with pytest.raises(StorageError):
        writer._store({round_id: [upload((1, 5))]}, HOUR)
    assert stored(storage, round_id) == {}
    with storage.writing() as connection:
        connection.exec_driver_sql("DROP TRIGGER full")
    outcomes = writer._store({round_id: [upload((1, 5))]}, HOUR)
    assert list(outcomes[round_id]) == [[STORED]]
    assert stored(storage, round_id) == {1: 5}


ANSWERS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1)), min_size=1, max_size=4)
UPLOADS = st.tuples(ANSWERS, st.sampled_from(["a", "b", "none", None]), st.integers(0, 1))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(groups=st.lists(st.lists(UPLOADS, min_size=1, max_size=4), max_size=5))
def test_whatever_comes_is_treated_as_by_a_slow_and_simple_book(storage, groups):
    round_id = opened(storage, invited=True, a=2, b=5)
    servers, book, left = (AnswerIndex(), AnswerIndex()), {}, {"a": 2, "b": 5}

    def one(name: int, said: int, token: str | None) -> Outcome:
        if name in book:
            return REPEATED if book[name] == said else CONFLICT
        if token not in left:
            return Outcome.UNINVITED
        if not left[token]:
            return Outcome.SPENT
        left[token] -= 1
        book[name] = said
        return STORED

    for group in groups:
        expected = [[one(*answer, token) for answer in answers] for answers, token, _ in group]
        uploads = [upload(*answers, token=token) for answers, token, _ in group]
        assert store(storage, round_id, *uploads, index=servers[group[0][2]]) == expected
    assert stored(storage, round_id) == book
