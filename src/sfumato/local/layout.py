"""What an answer looks like when it leaves the device: fixed length, one spelling per meaning.

A layout that carried anything beyond the drawn value (an order, a length, unused bits) would be a
leak that no formula sees. So an answer is one integer below a public bound, or a fixed number of
bits packed into bytes with the unused bits zero. Many answers are one array.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.randomness import Words

Answer = int | bytes
"""One answer: an integer, or packed bits (bit i is bit i mod 8 of byte i div 8)."""

Answers = NDArray[np.unsignedinteger[Any]]
"""Many answers: integers (n,), or packed bits (n, bytes)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntegerLayout:
    """An integer from 0 to ``below - 1``; in JSON a number."""

    below: int

    def __post_init__(self) -> None:
        check.keep_whole(self, at_least=1, at_most=2**63, below=self.below)

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The smallest unsigned type that holds an answer."""
        sizes = (np.uint8, np.uint16, np.uint32, np.uint64)
        return np.dtype(next(t for t in sizes if self.below - 1 <= np.iinfo(t).max))

    @property
    def width(self) -> int:
        """Bytes of one answer in memory and in files."""
        return self.dtype.itemsize

    @property
    def cells(self) -> int:
        """The length of a tally with one count for each answer."""
        return self.below

    def empty(self, n: int) -> Answers:
        """Room for n answers."""
        return np.empty(n, dtype=self.dtype)

    def to_json(self, answer: Answer) -> int:
        """The answer as JSON holds it."""
        return int(self.checked(answer))

    def from_json(self, value: Any) -> Answer:
        """The answer that ``to_json`` wrote; anything else is refused."""
        return self.checked(value)

    def checked(self, answer: Any) -> int:
        """The answer as a plain integer, if it is one of this layout."""
        whole = isinstance(answer, int | np.integer) and not isinstance(answer, bool)
        if not whole or not 0 <= answer < self.below:
            raise InputError(
                f"an answer must be a whole number from 0 to {self.below - 1}, got {answer!r:.60}."
            )
        return int(answer)

    def checked_many(self, answers: Any) -> Answers:
        """The answers as one array of this layout, or an error that names the first misfit."""
        array = np.asarray(answers)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InputError(
                f"answers must be a list of whole numbers, got {array.dtype} of shape "
                f"{array.shape}."
            )
        fits = array.dtype.kind == "u" and np.iinfo(array.dtype).max < self.below
        if array.size and not fits and (array.min() < 0 or array.max() >= self.below):
            first = int(np.argmax((array < 0) | (array >= self.below)))
            raise InputError(
                f"answer {first} must be from 0 to {self.below - 1}, got {array[first]}."
            )
        return native(array, self.dtype)

    def one(self, answer: Answer) -> Answers:
        """One answer as an array of one."""
        return np.array([self.checked(answer)], dtype=self.dtype)


@dataclass(frozen=True, kw_only=True, slots=True)
class BitLayout:
    """``length`` bits packed into bytes, the unused ones zero; in JSON base64 text."""

    length: int
    ones: int | None = None
    """How many bits are set, where that is fixed."""

    def __post_init__(self) -> None:
        check.keep_whole(self, at_least=1, length=self.length)

    @property
    def width(self) -> int:
        """Bytes of one answer."""
        return (self.length + 7) // 8

    @property
    def cells(self) -> int:
        """The length of a tally with one count for each bit."""
        return self.length

    def empty(self, n: int) -> Answers:
        """Room for n answers."""
        return np.empty((n, self.width), dtype=np.uint8)

    def empty_words(self, n: int) -> tuple[Answers, Words]:
        """Room for n answers, and the same memory as words: the last may reach beyond them."""
        words = np.zeros((n * self.width + 7) // 8, dtype=np.uint64)
        return words.view(np.uint8)[: n * self.width].reshape(n, self.width), words

    def clear_unused(self, answers: Answers) -> None:
        """Set the bits beyond the length to zero."""
        if self.length % 8:
            answers[:, -1] &= (1 << self.length % 8) - 1

    def to_json(self, answer: Answer) -> str:
        """The answer as JSON holds it."""
        return base64.b64encode(self.checked(answer)).decode()

    def from_json(self, value: Any) -> Answer:
        """The answer that ``to_json`` wrote; anything else is refused."""
        text = 4 * ((self.width + 2) // 3)
        if not isinstance(value, str) or len(value) != text:
            raise InputError(
                f"an answer must be base64 text of {text} characters, got {value!r:.60}."
            )
        try:
            packed = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise InputError(f"not base64: {value!r:.60}.") from None
        if base64.b64encode(packed).decode() != value:
            raise InputError(f"not canonical base64: {value!r:.60}.")
        return self.checked(packed)

    def checked(self, answer: Any) -> bytes:
        """The packed bits, if they are of this layout."""
        if not isinstance(answer, bytes):
            raise InputError(f"an answer must be packed bits, got {answer!r:.60}")
        if len(answer) != self.width:
            raise InputError(f"an answer has {self.width} bytes, got {len(answer)}.")
        self.checked_many(np.frombuffer(answer, dtype=np.uint8).reshape(1, -1))
        return answer

    def checked_many(self, answers: Any) -> Answers:
        """The answers as one array of this layout, or an error that names the first misfit."""
        array = np.asarray(answers)
        if array.ndim != 2 or array.shape[1] != self.width or array.dtype != np.uint8:
            raise InputError(
                f"answers must be rows of {self.width} bytes, got {array.dtype} of shape "
                f"{array.shape}."
            )
        used = self.length % 8
        if used and array.size and (array[:, -1] >> used).any():
            first = int(np.argmax(array[:, -1] >> used > 0))
            raise InputError(f"answer {first} has bits beyond {self.length}.")
        if self.ones is not None and array.size:
            ones = np.bitwise_count(array).sum(axis=1, dtype=np.int64)
            if (ones != self.ones).any():
                first = int(np.argmax(ones != self.ones))
                raise InputError(
                    f"answer {first} has {ones[first]} bits set instead of {self.ones}."
                )
        return np.ascontiguousarray(array)

    def one(self, answer: Answer) -> Answers:
        """One answer as an array of one."""
        return np.frombuffer(self.checked(answer), dtype=np.uint8).reshape(1, -1)


Layout = IntegerLayout | BitLayout


def packed(bits: NDArray[np.bool_]) -> bytes:
    """Bits as one answer of a ``BitLayout``."""
    return np.packbits(bits, bitorder="little").tobytes()


def native(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array as compiled code may read it: one aligned block in this machine's byte order.

    It is copied only where it is not that already. Compiled code takes numbers in another byte
    order for others of the same size, which may lie outside of every range that was checked.
    """
    return np.require(array, dtype=dtype.newbyteorder("="), requirements=["C", "A"])
