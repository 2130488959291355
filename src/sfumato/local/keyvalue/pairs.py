"""People's lists of (key, value) pairs as three flat arrays.

A person holds some of ``keys`` public keys, each at most once, each with a value from -1 to 1.
Messages name nobody's keys and values: these are what the mechanisms hide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, ldexp
from numbers import Integral, Real
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import check
from sfumato.errors import InputError

MAX_KEYS: Final = 1_000_000
"""A limit against abuse: tallies have a few cells for each key."""

_BAD_VALUE: Final = (
    "every value must be a finite number from -1 to 1; one is not. Scale values to that range by "
    "public limits first."
)


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Pairs:
    """Many people's pairs: person i holds ``key[offsets[i]:offsets[i + 1]]``.

    The arrays are checked copies, the keys of each person in rising order, and can't be written.
    """

    keys: int
    offsets: NDArray[np.int64]
    key: NDArray[np.uint32]
    value: NDArray[np.float64]

    def __post_init__(self) -> None:
        check.keep_whole(self, at_least=1, at_most=MAX_KEYS, keys=self.keys)
        offsets = _checked_offsets(self.offsets, np.size(self.key))
        key = _checked_keys(self.key, self.keys)
        value = _checked_values(self.value, key.size)
        key, value = _in_order(offsets, key, value)
        for name, array in (("offsets", offsets), ("key", key), ("value", value)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def true_frequencies(self) -> NDArray[np.float64]:
        """The exact share of people who hold each key: for tests and simulations only."""
        if not len(self):
            raise InputError("there are no people, so no shares of them")
        shares: NDArray[np.float64] = np.bincount(self.key, minlength=self.keys) / len(self)
        return shares

    def true_means(self) -> NDArray[np.float64]:
        """The exact mean value of each key among its holders; NaN without holders."""
        people = np.bincount(self.key, minlength=self.keys)
        total = np.bincount(self.key, weights=self.value, minlength=self.keys)
        means: NDArray[np.float64] = np.where(people > 0, total / np.maximum(people, 1), np.nan)
        return means

    @classmethod
    def from_dicts(
        cls,
        people: Sequence[Mapping[Any, float]],
        *,
        keys: int | None = None,
        names: Sequence[str] | None = None,
    ) -> "Pairs":
        """From one mapping a person, of key to value.

        Args:
            people: Keys are indices below ``keys`` or, with ``names``, one of those.
            keys: The number of public keys; with ``names`` it is theirs.
            names: The public names of the keys, in their order.
        """
        index = _index_of(keys, names)
        rows = [checked_person(person, index) for person in people]
        return cls(
            keys=len(index),
            offsets=np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64),
            key=np.array([key for row in rows for key in row], dtype=np.uint32),
            value=np.array([value for row in rows for value in row.values()], dtype=np.float64),
        )

    @classmethod
    def from_dense(cls, table: ArrayLike) -> "Pairs":
        """From a matrix with one row a person and one column a key, NaN where it is absent."""
        matrix = np.asarray(table, dtype=np.float64)
        if matrix.ndim != 2:
            raise InputError(f"the table must have rows and columns, got shape {matrix.shape}")
        present = ~np.isnan(matrix)
        return cls(
            keys=matrix.shape[1],
            offsets=np.concatenate(([0], np.cumsum(present.sum(axis=1)))),
            key=np.nonzero(present)[1].astype(np.uint32),
            value=matrix[present],
        )

    @classmethod
    def one(cls, person: Mapping[int, float], *, keys: int) -> "Pairs":
        """One person's pairs."""
        return cls.from_dicts([person], keys=keys)


def checked_person(
    person: Mapping[Any, float], index: Mapping[Any, int] | range
) -> dict[int, float]:
    """One person's pairs as a new dictionary of key index to value, or an error.

    ``index`` says which keys there are: a range of indices, or names with their indices.
    """
    if not isinstance(person, Mapping):
        raise InputError(f"a person's pairs must be a mapping of key to value, got {type(person)}")
    pairs = {_key_index(key, index): _value(value) for key, value in person.items()}
    if len(pairs) != len(person):
        raise InputError("a person holds a key at most once.")
    return pairs


def plus_words(value: float) -> int:
    """Of 2^64 words, how many round a value from -1 to 1 up to +1: floor(2^64 (1 + value)/2).

    The product with a power of two is exact, so the rounding is without bias up to 2^-64.

    >>> plus_words(1.0) == 2**64, plus_words(0.0) == 2**63, plus_words(-1.0)
    (True, True, 0)
    """
    return floor(ldexp(value, 63)) + 2**63


def _index_of(keys: int | None, names: Sequence[str] | None) -> Mapping[str, int] | range:
    if (keys is None) == (names is None):
        raise InputError("give either keys, their number, or names, a list of them")
    if names is None:
        return range(check.whole(at_least=1, at_most=MAX_KEYS, keys=keys))
    index = {name: i for i, name in enumerate(names)}
    if len(index) != len(names) or not index:
        raise InputError("names must be different from each other, and at least one")
    return index


def _key_index(key: Any, index: Mapping[Any, int] | range) -> int:
    if isinstance(index, range):
        if isinstance(key, Integral) and not isinstance(key, bool) and key in index:
            return int(key)
    elif key in index:
        return index[key]
    allowed = f"an index below {len(index)}" if isinstance(index, range) else "a known name"
    raise InputError(f"every key must be {allowed}; one is not.")


def _value(value: Any) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not -1 <= float(value) <= 1:  # NaN too
        raise InputError(_BAD_VALUE)
    return float(value)


def _checked_offsets(offsets: Any, pairs: int) -> NDArray[np.int64]:
    array = np.array(offsets)
    whole = array.ndim == 1 and array.size > 0 and array.dtype.kind in "iu"
    if not whole or array[0] != 0 or array[-1] != pairs or (array[1:] < array[:-1]).any():
        raise InputError(
            f"offsets must be whole numbers that rise from 0 to the number of pairs, {pairs}."
        )
    return array.astype(np.int64)


def _checked_keys(key: Any, keys: int) -> NDArray[np.uint32]:
    array = np.asarray(key)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"key must be a list of whole numbers, got {array.dtype}")
    if array.size and (array.min() < 0 or array.max() >= keys):
        raise InputError(f"every key must be an index below {keys}; one is not.")
    return array.astype(np.uint32)


def _checked_values(value: Any, pairs: int) -> NDArray[np.float64]:
    array = np.array(value)
    if array.shape != (pairs,) or (pairs and array.dtype.kind not in "fiu"):
        raise InputError(f"value must have one number for each of the {pairs} keys")
    array = array.astype(np.float64)
    if not (np.abs(array) <= 1).all():  # false for NaN too
        raise InputError(_BAD_VALUE)
    return array


def _in_order(
    offsets: NDArray[np.int64], key: NDArray[np.uint32], value: NDArray[np.float64]
) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """Each person's keys in rising order, or an error when one is held twice."""
    if _rises(offsets, key):
        return key, value
    person = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    order = np.lexsort((key, person))
    key, value = key[order], value[order]
    if not _rises(offsets, key):
        raise InputError("a person holds a key at most once; one is held twice.")
    return key, value


def _rises(offsets: NDArray[np.int64], key: NDArray[np.uint32]) -> bool:
    rises = np.ones(key.size + 1, dtype=np.bool_)
    rises[1:-1] = key[1:] > key[:-1]
    rises[offsets] = True  # a person's first key follows no other
    return bool(rises.all())
