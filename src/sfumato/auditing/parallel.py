"""Many audits, in several processes: each case has a seed of its own, so the order is free."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial

from sfumato import check
from sfumato.auditing.cases.registry import CASES, Cases
from sfumato.auditing.results_table import FULL, Effort, Row, audit_case

Tell = Callable[[str, int, int], None]
"""Progress: what is being done, how much of it is, how much there is."""


def audit_cases(
    names: Sequence[str],
    *,
    effort: Effort = FULL,
    runs: int | None = None,
    seed: int = 0,
    processes: int = 1,
    cases: Cases = CASES,
    tell: Tell,
) -> list[Row]:
    """Audit several cases; the rows come in the order of the names, whoever made them.

    Args:
        names: Of ``cases``.
        effort: How much is drawn.
        runs: Fresh draws on each side, instead of what the cases ask for.
        seed: Of the simulation.
        processes: At once; a new interpreter each, as a fork would share locks and threads.
        cases: The list; its builders must be pickled where there are several processes.
        tell: Called with the progress.
    """
    check.whole(at_least=1, processes=processes)
    one = partial(audit_case, effort=effort, runs=runs, seed=seed, cases=cases)
    if min(processes, len(names)) == 1:
        rows = []
        for place, name in enumerate(names, start=1):
            tell(f"{place} of {len(names)}: {name}", 0, 0)
            rows.append(one(name))
        return rows
    longest = sorted(names, key=_begins_late)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(names)), mp_context=context) as pool:
        waiting = {pool.submit(one, name): name for name in longest}
        found = {}
        for place, done in enumerate(as_completed(waiting), start=1):
            found[waiting[done]] = done.result()
            tell(f"{place} of {len(names)} done: {waiting[done]}", 0, 0)
    return [found[name] for name in names]


def _begins_late(name: str) -> tuple[bool, bool]:
    """What takes longest begins first, so that no process is left alone with it."""
    return name in CASES, not name.startswith("Gate")
