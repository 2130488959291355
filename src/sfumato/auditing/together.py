"""Many audits, in several processes: each case has a seed of its own, so the order is free."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Final

from sfumato import check
from sfumato.auditing.table import FULL, Effort, Row, audit_case

Tell = Callable[[str, int, int], None]
"""Progress: what is being done, how much of it is, how much there is."""

_FIRST: Final = ("Dp2Pub", "Publish", "Recommend", "Survey", "Gate")
"""What takes longest begins first, so that no process is left alone with it."""


def audit_cases(
    names: Sequence[str],
    *,
    effort: Effort = FULL,
    runs: int | None = None,
    seed: int = 0,
    processes: int = 1,
    tell: Tell,
) -> list[Row]:
    """Audit several cases; the rows come in the order of the names, whoever made them.

    Args:
        names: Of ``CASES``.
        effort: How much is drawn.
        runs: Fresh draws on each side, instead of what the cases ask for.
        seed: Of the simulation.
        processes: At once; a new interpreter each, as a fork would share locks and threads.
        tell: Called with the progress.
    """
    check.whole(at_least=1, processes=processes)
    one = partial(audit_case, effort=effort, runs=runs, seed=seed)
    if min(processes, len(names)) == 1:
        rows = []
        for place, name in enumerate(names, start=1):
            tell(f"{place} of {len(names)}: {name}", 0, 0)
            rows.append(one(name))
        return rows
    longest = sorted(names, key=lambda name: not name.startswith(_FIRST))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(names)), mp_context=context) as pool:
        waiting = {pool.submit(one, name): name for name in longest}
        found = {}
        for place, done in enumerate(as_completed(waiting), start=1):
            found[waiting[done]] = done.result()
            tell(f"{place} of {len(names)} done: {waiting[done]}", 0, 0)
    return [found[name] for name in names]
