"""Running a fold: batches decoded and added by two threads, partial states summed.

Memory is bounded by the batches under way and one state a thread; a large state is not doubled.
Errors surface in the order of the rows, so the message names the first row that does not fit.
"""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from queue import SimpleQueue
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.table import CodeBatch, FoldKernel

THREADS: Final = 2
_UNDER_WAY: Final = 2 * THREADS
_SHARED_STATE_BYTES: Final = 64 * 2**20

Decode = Callable[[], CodeBatch]
"""A batch that is not decoded yet, so that the threads share that work too."""


def run(kernel: FoldKernel, batches: Iterable[Decode]) -> NDArray[np.int64]:
    """The sum of the kernel over the batches."""
    state = kernel.zero()
    waiting = iter(batches)
    first = list(islice(waiting, 2))
    if len(first) < 2 or state.nbytes > _SHARED_STATE_BYTES:
        for decode in chain(first, waiting):
            kernel.add(state, decode())
        return state
    return _run_in_threads(kernel, state, chain(first, waiting))


def _run_in_threads(
    kernel: FoldKernel, state: NDArray[np.int64], batches: Iterable[Decode]
) -> NDArray[np.int64]:
    states = [state, *(kernel.zero() for _ in range(THREADS - 1))]
    free: SimpleQueue[NDArray[np.int64]] = SimpleQueue()
    for partial in states:
        free.put(partial)

    def work(decode: Decode) -> None:
        codes = decode()
        partial = free.get()
        try:
            kernel.add(partial, codes)
        finally:
            free.put(partial)

    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="sfumato-fold")
    pending: deque[Future[None]] = deque()
    try:
        for decode in batches:
            pending.append(pool.submit(work, decode))
            if len(pending) >= _UNDER_WAY:
                pending.popleft().result()
        for future in pending:
            future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    for partial in states[1:]:
        state += partial
    return state
