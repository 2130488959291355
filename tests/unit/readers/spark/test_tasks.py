"""Work for executors, without Spark: what is sent holds no key, what comes back adds up."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kernels import Copy, Draw, Wide
from sfumato.counting.exact_counts import MarginalCounts
from sfumato.counting.table import RowCount
from sfumato.errors import SfumatoError, TableError
from sfumato.randomness import Rng, secure_rng, simulation_rng
from sfumato.readers.spark import tasks
from sfumato.readers.spark.output import writable
from sfumato.schema import Category, Integer, Schema
from sfumato.schema.files import FileForm
from sfumato.schema.measurement import Coarse

SCHEMA = Schema(columns=(Integer(name="x", low=0, high=9), Category(name="y", values=("a", "b"))))
KEY = bytes(range(32))


def opening(*columns: str) -> tasks.RawRows:
    return tasks.RawRows(schema=SCHEMA, columns=columns, where="made up")


def rows(n: int) -> tasks.Batches:
    return iter([pa.record_batch({"c0": pa.array(range(n)), "c1": pa.array(["a"] * n)})])


def drawn(work: bytes, task: int) -> tuple[int, ...]:
    """The words that a task draws for four rows."""
    found = tasks.contents(tasks.run(work, rows(4), task))
    return tuple(
        word for _, data in found for batch in tasks.unpacked(data) for word in batch[0].to_pylist()
    )


def drawing(rng: Rng) -> tasks.Applying:
    return tasks.Applying(opening=opening("x", "y"), kernel=Draw("x", rng))


def carries_the_generator(ship: Callable[[Any], bytes]) -> bool:
    """Whether what is sent holds the key, or a part of it, or words of its stream."""
    work = drawing(Rng(lambda: KEY, secure=True))
    words = Rng(lambda: KEY, secure=True).words(2**10).tobytes()
    sent = ship(work)
    secrets = (KEY, KEY[:16], KEY[16:], *(words[at : at + 8] for at in range(0, len(words), 8)))
    return any(secret in sent for secret in secrets)


def test_what_is_sent_holds_nothing_of_a_secure_generator() -> None:
    assert not carries_the_generator(tasks.shipped)


def test_the_check_above_rejects_work_that_carries_the_key(monkeypatch: Any) -> None:
    monkeypatch.setattr(Rng, "__reduce__", lambda rng: (Rng, (rng._new_key(),)))
    assert carries_the_generator(pickle.dumps)


def test_each_task_and_each_time_that_it_is_run_draws_with_a_new_key() -> None:
    work = tasks.shipped(drawing(secure_rng()))
    streams = [drawn(work, task) for task in (0, 1, 2, 0, 0)]
    assert len({word for stream in streams for word in stream}) == 20


def test_a_simulation_is_keyed_by_its_seed_its_place_and_the_task() -> None:
    rng, again = simulation_rng(3), simulation_rng(3)
    first, second = tasks.shipped(drawing(rng)), tasks.shipped(drawing(rng))
    assert drawn(first, 1) == drawn(tasks.shipped(drawing(again)), 1)
    assert len({drawn(first, 0), drawn(first, 1), drawn(second, 0), drawn(second, 1)}) == 4


@pytest.mark.parametrize("rng", [secure_rng(), simulation_rng(0)], ids=["secure", "simulation"])
def test_a_generator_says_in_the_task_too_whether_it_is_secure(rng: Rng) -> None:
    found = tasks.contents(tasks.run(tasks.shipped(drawing(rng)), rows(1), 0))
    (batch,) = [batch for _, data in found for batch in tasks.unpacked(data)]
    assert batch["secure"].to_pylist() == [rng.secure]


def test_pieces_of_a_state_add_up_and_those_without_a_count_are_left_out() -> None:
    cells = 9 * tasks.PIECE_CELLS + 5
    kernel = Wide("x", cells)
    work = tasks.shipped(tasks.Folding(opening=opening("x", "y"), kernel=kernel))
    parcels = [batch for task in range(3) for batch in tasks.run(work, rows(4), task)]
    assert len(parcels) == 3 * 4
    state = kernel.zero()
    tasks.add_pieces(state, tasks.contents(iter(parcels)))
    assert {int(cell) // (cells // 7): int(state[cell]) for cell in np.flatnonzero(state)} == {
        0: 3, 1: 3, 2: 3, 3: 3
    }  # fmt: skip
    reduced = tasks.run(tasks.shipped(tasks.Adding()), iter(parcels), 0)
    once = kernel.zero()
    tasks.add_pieces(once, tasks.contents(reduced))
    np.testing.assert_array_equal(once, state)


def test_an_error_of_ours_arrives_as_it_was_said_and_the_rows_are_read_to_their_end() -> None:
    bad = iter([*rows(2), pa.record_batch({"c0": ["SECRET"], "c1": ["a"]}), *rows(2)])
    strict = tasks.RawRows(
        schema=replace(SCHEMA, file=FileForm(strict=True)), columns=("x", "y"), where="made up"
    )
    work = tasks.shipped(tasks.Folding(opening=strict, kernel=RowCount(("x",))))
    parcels = list(tasks.run(work, bad, 7))
    assert next(bad, None) is None
    with pytest.raises(TableError, match="made up, partition 7: column 'x', row 3") as caught:
        list(tasks.contents(iter(parcels)))
    assert "SECRET" not in str(caught.value)
    with pytest.raises(TableError, match="partition 7"):  # and once more, out of another task
        list(tasks.contents(tasks.run(tasks.shipped(tasks.Adding()), iter(parcels), 0)))


def test_every_error_of_ours_can_be_named_in_a_parcel() -> None:
    for kind in (SfumatoError, *SfumatoError.__subclasses__()):
        parcel = pa.RecordBatch.from_pylist([{"error": f"{kind.__name__}: a: b"}], tasks.PARCEL)
        with pytest.raises(kind, match=r"^a: b$"):
            tasks.refuse_errors(parcel)


def test_rows_come_back_out_of_the_shuffle_as_they_went_in() -> None:
    codes = {"x": np.array([3, 200], np.uint8), "y": np.array([70_000, 5], np.uint32)}
    row = np.rec.fromarrays(list(codes.values()))
    sent = tasks.by_person(pa.array(["ä", "b"]), row)
    assert sent.schema == tasks.PARCEL
    ((people, found),) = tasks.of_people(iter([sent]), row.dtype)
    assert people.to_pylist() == ["ä", "b"]
    for (name, before), field in zip(codes.items(), found.dtype.names, strict=True):
        np.testing.assert_array_equal(found[field], before, err_msg=name)


def test_what_is_written_has_types_that_spark_has_and_the_same_values() -> None:
    batch = pa.record_batch(
        {
            "a": pa.array([255], pa.uint8()),
            "b": pa.array([2**32 - 1], pa.uint32()),
            "c": pa.array([2**64 - 1], pa.uint64()),
            "d": pa.array([b"xy"], pa.binary(2)),
        }
    )
    found = writable(batch)
    assert found.schema.types == [pa.int16(), pa.int64(), pa.decimal128(20, 0), pa.binary()]
    values = [int(v) if n != 3 else v for n, v in enumerate(found.to_pylist()[0].values())]
    assert values == [255, 2**32 - 1, 2**64 - 1, b"xy"]


def test_a_map_keeps_the_order_of_the_rows() -> None:
    work = tasks.shipped(tasks.Applying(opening=opening("x", "y"), kernel=Copy("x")))
    parcels = list(tasks.run(work, iter([*rows(3), *rows(2)]), 0))
    found = [place for place, _ in tasks.contents(iter(parcels))]
    assert all(before < after for before, after in pairwise(found))
    values = [
        value
        for _, data in tasks.contents(iter(parcels))
        for batch in tasks.unpacked(data)
        for value in batch[0].to_pylist()
    ]
    assert values == [0, 1, 2, 0, 1]


def test_merged_counts_arrive_in_a_task_as_they_were_sent() -> None:
    """Codes are merged in the executors where a pair would have too many cells."""
    schema = Schema(columns=(Integer(name="a", low=0, high=5), Integer(name="b", low=0, high=1)))
    view = Coarse(fine=schema, groups={"a": np.array([0, 0, 1, 1, 2, 2])})
    kernel = MarginalCounts.of_view(view, (("a", "b"),))
    rows = pa.record_batch({"a": [0, 1, 2, 5, 5], "b": [0, 0, 1, 1, 1]})
    opening = tasks.RawRows(schema=schema, columns=("a", "b"), where="here")
    work = tasks.shipped(tasks.Folding(opening=opening, kernel=kernel))
    state = kernel.zero()
    tasks.add_pieces(state, tasks.contents(tasks.run(work, iter([rows]), 0)))
    assert state.tolist() == [2, 0, 0, 1, 0, 2]
