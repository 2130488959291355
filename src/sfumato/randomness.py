"""The only place where random numbers come from.

A generator is an AES-128-CTR stream read as 64-bit words. ``secure_rng`` keys it from the
operating system; ``simulation_rng`` from a seed, and whatever such a generator made says that it
carries no guarantee; ``derived_rng`` from a secret. All fill buffers at memory speed and are safe
to share between threads; a secure one starts again after a fork, with a new key if it has one, and
goes to no other process: the tasks of a cluster make their own (``TaskRngs``).
"""

import hashlib
import hmac
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError

Words = NDArray[np.uint64]

_BUFFER_WORDS: Final = 8_192  # 64 KiB: stays in the first- and second-level cache
_SECRET_BYTES: Final = 16  # 128 bits: what the cipher itself offers
_SORTED_DIRECTLY: Final = 4_096
"""Words below which a plain argsort is as fast as ``_stable_order``'s way, as measured."""
_ZEROS: Final = memoryview(bytes(2**18))  # 256 KiB a call: fewer calls are faster
_secure_generators: "weakref.WeakSet[Rng]" = weakref.WeakSet()


class Rng:
    """A stream of uniform 64-bit words. Make one with ``secure_rng`` or ``simulation_rng``."""

    def __init__(self, new_key: Callable[[], bytes], *, secure: bool) -> None:
        if "_stream" in self.__dict__:
            raise TypeError("a generator is keyed once; make another one")
        self.secure: Final = secure
        """Whether the words come from the operating system's entropy."""
        self._new_key = new_key
        self._lock = threading.RLock()
        self._start()
        if secure:
            _secure_generators.add(self)

    def words(self, n: int) -> Words:
        """``n`` fresh uniform words."""
        out = np.empty(n, dtype=np.uint64)
        self.fill(out)
        return out

    def fill(self, out: Words) -> None:
        """Overwrite ``out``, a contiguous array of words, with fresh uniform words."""
        if out.dtype != np.uint64 or not out.flags.c_contiguous:
            raise TypeError("fill needs a contiguous array of uint64")
        flat = out.reshape(-1)
        with self._lock:
            if flat.size <= _BUFFER_WORDS // 8:
                self._fill_from_buffer(flat)
            else:
                self._fill_directly(flat)

    def below(self, bound: int, n: int) -> NDArray[np.int64]:
        """``n`` integers uniform on ``0 .. bound - 1``, exactly, by rejection."""
        check.whole(at_least=1, at_most=2**62, bound=bound)
        mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
        out = np.empty(n, dtype=np.int64)
        done = 0
        while done < n:
            drawn = self.words(2 * (n - done) + 8) & mask
            accepted = drawn[drawn < bound][: n - done]
            out[done : done + accepted.size] = accepted
            done += accepted.size
        return out

    def uniform(self, n: int) -> NDArray[np.float64]:
        """``n`` multiples of 2^-53 in [0, 1). For post-processing only, never for noise."""
        return (self.words(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def permutation(self, n: int) -> NDArray[np.int64]:
        """A random order of ``0 .. n - 1``."""
        return _stable_order(self.words(n))

    def token(self) -> str:
        """32 hexadecimal digits nobody can guess: run and ledger names."""
        return self.words(2).tobytes().hex()

    def __copy__(self) -> NoReturn:
        """Refused: two generators with one stream would draw the same noise."""
        raise TypeError("a generator can't be copied; make another one")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        """Refused, as ``__copy__``."""
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        """Refused: a key must not leave the process."""
        raise TypeError("a generator can't be pickled; make another one where it is needed")

    def _start(self) -> None:
        key = self._new_key()
        cipher = Cipher(algorithms.AES128(key[:16]), modes.CTR(key[16:32]))
        self._stream: Any = cipher.encryptor()
        self._buffer = np.empty(_BUFFER_WORDS + 2, dtype=np.uint64)  # room for one cipher block
        self._next = _BUFFER_WORDS

    def _fill_from_buffer(self, out: Words) -> None:
        if self._next + out.size > _BUFFER_WORDS:
            self._stream.update_into(_ZEROS[: _BUFFER_WORDS * 8], self._buffer.view(np.uint8))
            self._next = 0
        end = self._next + out.size
        out[:] = self._buffer[self._next : end]
        self._buffer[self._next : end] = 0  # used words do not linger in memory
        self._next = end

    def _fill_directly(self, out: Words) -> None:
        """All but the last two words straight into place: the cipher asks for 15 bytes of slack."""
        raw, whole = out.view(np.uint8), (out.size - 2) * 8
        for start in range(0, whole, len(_ZEROS)):
            size = min(len(_ZEROS), whole - start)
            self._stream.update_into(_ZEROS[:size], raw[start : start + size + 15])
        self._fill_from_buffer(out[-2:])


def _stable_order(words: Words) -> NDArray[np.int64]:
    """As ``np.argsort(words, kind="stable")``, at half its cost where there are many.

    Numbers sort faster than indices, so each index is written over the low bits of its word. Where
    all other bits of two words agree, which is rare, the whole words decide.
    """
    if words.size < _SORTED_DIRECTLY:
        return np.argsort(words, kind="stable")
    bits = (words.size - 1).bit_length()
    low = np.uint64((1 << bits) - 1)
    keys = (words & ~low) | np.arange(words.size, dtype=np.uint64)
    keys.sort()
    order = (keys & low).astype(np.int64)
    keys >>= np.uint64(bits)
    ties = np.flatnonzero(keys[1:] == keys[:-1])
    for run in np.split(ties, np.flatnonzero(np.diff(ties) > 1) + 1) if ties.size else ():
        tied = order[run[0] : run[-1] + 2]
        tied[:] = tied[np.argsort(words[tied], kind="stable")]
    return order


def secure_rng() -> Rng:
    """A cryptographic generator keyed by the operating system: the one for releases."""
    return Rng(lambda: os.urandom(32), secure=True)


def simulation_rng(seed: int) -> Rng:
    """A repeatable generator for simulation and tests.

    Its noise can be recomputed by anyone who knows the seed and so protects nobody: what it
    makes is marked ``private: false``.
    """
    check.whole(at_least=0, seed=seed)
    key = hashlib.sha256(b"sfumato simulation %d" % seed).digest()
    return Rng(lambda: key, secure=False)


def derived_rng(secret: bytes, context: bytes, *, secure: bool = False) -> Rng:
    """The generator that belongs to a secret and a context: the same words each time.

    Its key is HMAC-SHA256(secret, context). Who does not know the secret can't tell the words of
    any contexts from independent uniform ones. So it repeats, and a fork repeats it too: use one
    context for one purpose.

    Args:
        secret: At least 16 bytes.
        context: What the words are for.
        secure: Say True only if the secret was drawn by the operating system (as by
            ``secure_rng``) and is known to nobody from whom the words are to be hidden.
    """
    if not isinstance(secret, bytes) or len(secret) < _SECRET_BYTES:
        given = f"{len(secret)}" if isinstance(secret, bytes) else type(secret).__name__
        raise InputError(
            f"a secret must be at least {_SECRET_BYTES} bytes, got {given}. Draw one with "
            "secure_rng and keep it."
        )
    key = hmac.digest(secret, b"sfumato derived\0" + context, "sha256")
    return Rng(lambda: key, secure=secure)


@dataclass(frozen=True)
class TaskRngs:
    """Makes a generator for each task that runs in another process.

    What is sent there holds no key of a secure generator and nothing that one was made of: each
    task, and each time that it is run again, gets a new key from the system that runs it. Those
    of a simulation are keyed by words that it drew and by the number of the task.
    """

    words: bytes | None = field(repr=False)
    """Drawn by a simulation; None stands for the operating system."""

    @staticmethod
    def of(rng: Rng) -> "TaskRngs":
        """For generators of the same kind as ``rng``; a simulation moves on."""
        return TaskRngs(None if rng.secure else rng.words(4).tobytes())

    def make(self, task: int) -> Rng:
        """The generator of one task, where it runs."""
        if self.words is None:
            return secure_rng()
        return derived_rng(self.words, b"task %d" % task)


def check_rng(rng: object) -> None:
    """Refuse what is no generator of this module, before anything is drawn."""
    if not isinstance(rng, Rng):
        raise InputError(
            "rng must be made by secure_rng(), or by simulation_rng(seed) for tests; got "
            f"{type(rng).__name__}."
        )


def _rekey_after_fork() -> None:
    for rng in list(_secure_generators):
        rng._lock = threading.RLock()  # noqa: SLF001 - a lock held at the fork never opens
        rng._start()  # noqa: SLF001


os.register_at_fork(after_in_child=_rekey_after_fork)
