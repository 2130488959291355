"""The one gate between exact counts and everything else: charge, look, add noise, return.

Every public verb charges the ledger before it looks, and what it returns may be published; it is
journaled first, so that a stopped run can go on. Exact counts stay in this object; algorithms hand
in public arrays and get public numbers back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.counting.binned_table import BinnedTable, FineCounts
from sfumato.counting.exact_counts import MAX_CELLS, count_marginals, refuse_too_many_cells
from sfumato.counting.ratings import Ratings
from sfumato.counting.table import Table
from sfumato.durable import SingleProcess
from sfumato.errors import InputError
from sfumato.gate import rating_sums, requests
from sfumato.gate.budget import BY_ROW, Journal, RunBudget, journal_for, ledger_for
from sfumato.gate.rating_sums import Gram, GramMeasurement, ItemMeasurement, ItemSums
from sfumato.gate.requests import label_of, noise_of, noisy, question, selection_of, verb
from sfumato.gate.scores import MutualInformation, Score, TargetList, check_score
from sfumato.ledger.ledger import Ledger, spending_boundary
from sfumato.noise import Noise
from sfumato.privacy import sensitivity
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ZCDP, Cost, PureDP
from sfumato.privacy.sensitivity import Protection
from sfumato.randomness import Rng
from sfumato.schema.columns import GridColumn
from sfumato.schema.measurement import Coarse, KnownNumbers, Measurement
from sfumato.schema.schema import Marginal, Schema
from sfumato.schema.workload import Range, Target, check_targets, sum_ranges

if TYPE_CHECKING:
    from sfumato.gate.row_answers import Interview, Responses
    from sfumato.local.layout import Answers
    from sfumato.local.means.grid import Grid
    from sfumato.local.mechanism import LocalMechanism

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is, and how much there is in all."""

MOST_CELLS: Final = MAX_CELLS
"""Cells that can be asked for at once, as they are or as a view merges them."""


class Curator(SingleProcess):
    """Holds a table, a budget and a ledger, and answers only through noise.

    Formal guarantees: everything that the verbs return, together, satisfies ``budget`` for the
    neighbors that ``protect`` names, also when each call depends on the answers to the earlier
    ones (``privacy.composition``). The guarantee needs ``rng`` to be secure; with a simulation
    generator ``private`` is False and nothing is charged. Verbs take turns between threads; a
    curator can't be copied, and answers in the process that made it only.
    """

    __slots__ = (
        "__budget", "__counts", "__division", "__fine", "__journal", "__ledger", "__progress",
        "__table", "__targets", "__whole", "budget", "catalogue", "numbers", "private",
        "protect", "rng", "scale", "schema",
    )  # fmt: skip

    @spending_boundary()
    def __init__(
        self,
        table: Table | Ratings,
        *,
        protect: Protection,
        budget: Cap,
        rng: Rng,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
        journal: Journal | None = None,
    ) -> None:
        super().__init__()
        self.schema: Schema = table.schema
        self.catalogue = table.catalogue if isinstance(table, Ratings) else None
        """Of ratings, the public items."""
        self.scale = table.scale if isinstance(table, Ratings) else None
        requests.check_protection(protect)
        self.protect = protect = requests.named(protect, table)
        self.budget = budget
        self.private = rng.secure
        self.rng = rng
        """The run's generator; algorithms may use it for post-processing, such as shuffles."""
        self.__ledger = ledger_for(table.schema, ledger, private=rng.secure)
        self.__journal = journal_for(self.__ledger, journal, rng=rng)
        self.__budget = RunBudget(budget, protect, self.__journal)
        self.__progress = progress
        self.__targets = TargetList.of(table.schema, protect, ())
        self.__budget.precheck()
        self.__table = requests.bounded(table, protect)
        self.__table.validate()
        requests.log_misfits(self.__table)
        self.__counts = Counts(self.__table)
        self.__whole = self.__table
        self.__fine: FineCounts | None = None
        self.__division = ""  # the bins of divided columns, for the journal
        self.numbers: KnownNumbers | None = None
        """What is known of columns that were divided into bins."""

    @verb
    def binned(
        self, bins: Mapping[str, tuple[int, ...]], *, numbers: KnownNumbers | None = None
    ) -> "Curator":
        """The same run on columns divided into bins: no look, and nothing is charged.

        Budget, ledger and journal are those of this curator: what one spends the other has not.

        Args:
            bins: For columns on a grid the first cell of each bin; they take the place of others.
            numbers: What is publicly known of these columns, for algorithms.
        """
        whole = self.__whole
        if isinstance(whole, Ratings):
            raise InputError("ratings have items and grades, no columns to divide into bins.")
        bins = {name: tuple(own) for name, own in bins.items()}  # what is checked is what is used
        self.__fine = self.__fine or FineCounts(whole)
        other = object.__new__(type(self))
        other._take_turns(self._turns())
        other.__whole, other.__fine = whole, self.__fine
        other.__table = BinnedTable(whole, bins)
        other.__division = f" divided {bins!r}" if bins else ""
        other.schema = other.__table.schema
        other.numbers = None if numbers is None else numbers.on(other.schema)
        other.__counts = Counts(other.__table, self.__fine)
        other.__targets = TargetList.of(other.schema, self.protect, ())
        other.catalogue, other.scale = self.catalogue, self.scale
        other.protect, other.budget, other.private = self.protect, self.budget, self.private
        other.rng = self.rng
        other.__ledger, other.__journal = self.__ledger, self.__journal
        other.__budget, other.__progress = self.__budget, self.__progress
        return other

    @property
    def ledger(self) -> Ledger:
        """Where the charges went; in memory for a simulation."""
        return self.__ledger

    @property
    def run(self) -> str:
        """The name under which the ledger keeps this curator's charges."""
        return self.__journal.run

    @property
    def journal(self) -> Journal:
        """What this run paid and the answers it got."""
        return self.__journal

    @property
    def left(self) -> Cost:
        """What is left of the budget, in the kind that its steps are charged in.

        Pure epsilon for a PureDP budget, otherwise rho.
        """
        return self.__budget.left

    @property
    def knows_rows(self) -> bool:
        """Whether the number of rows is public: only if one row is replaced by one.

        Never that of ratings: a row that is replaced may have a rating before, and none after.
        """
        return self.catalogue is None and sensitivity.total(self.protect) == 0

    def tell(self, what: str, done: int, of: int) -> None:
        """Report the progress of an algorithm."""
        if self.__progress is not None:
            self.__progress(what, done, of)

    def sigma_of(self, target: Target, cost: Cost) -> float:
        """The noise, in counts, that measuring a target for ``cost`` would have. No look."""
        is_range = isinstance(target, Range)
        return noise_of(cost, is_range, self.protect).sigma_counts

    @verb
    def reserve(self, cost: Cost, *, label: str) -> None:
        """Pay now, in one entry, for the steps that follow until it is used up."""
        self.__budget.charge(cost, label=label, reserve=True)

    @verb
    def pick(self, number: int) -> int:
        """A random number below ``number``, without a look: for choices that decide what is asked.

        Journaled like an answer, so that a run that is resumed asks the same; free.
        """
        drawn = self.__journal.outcome(
            f"pick {number}", lambda: self.rng.below(number, 1).astype(np.float64)
        )
        return int(drawn[0])

    @verb
    def total(self, *, cost: Cost | None = None) -> Measurement:
        """The number of rows; exact and free where it is public, else with noise for ``cost``."""
        if self.knows_rows:
            self.__ledger.look("number of rows, public when one row is replaced")
            rows = self.__counts.rows()
            return Measurement(target=(), values=rows.astype(np.float64), sigma_counts=0.0)
        if cost is None:
            raise InputError("the number of rows is private here: counting it needs a cost")
        requests.check_counted(self.__table, self.protect)
        noises = self.__budget.noises([Range(())], [cost])  # a range without bounds: all rows
        self.__budget.charge(cost, label="number of rows")
        return self._measured([()], noises, question("total", "()", noises))[0]

    @verb
    def measure(
        self, targets: Sequence[Target], *, costs: Sequence[Cost], merged: Coarse | None = None
    ) -> list[Measurement]:
        """Counts of marginals and ranges with noise, each for its own cost, in one look.

        Args:
            targets: What to count.
            costs: What each of them costs.
            merged: Codes to count together; then targets are marginals.
        """
        if len(targets) != len(costs) or not targets:
            raise InputError(f"{len(targets)} targets need as many costs, got {len(costs)}")
        requests.check_counted(self.__table, self.protect)
        targets, costs = tuple(targets), tuple(costs)  # what is checked and paid for is counted
        requests.check_kinds(targets)
        check_targets(self.schema, [t for t in targets if t not in self.__targets.ranges])
        requests.check_merged(merged, self.schema, targets)
        self.__counts.check(targets, merged)
        noises = self.__budget.noises(targets, costs)
        self.__budget.charge(*costs, label=label_of("measure", targets))
        text = question("measure", repr(targets), noises, merged) + self.__division
        return self._measured(targets, noises, text, merged)

    def _measured(
        self,
        targets: Sequence[Target],
        noises: Sequence[Noise],
        text: str,
        merged: Coarse | None = None,
    ) -> list[Measurement]:
        """Counts with noise, which was paid for."""

        def look() -> NDArray[np.float64]:
            self.__counts.count(targets, merged)
            paired = zip(targets, noises, strict=True)
            parts = [noisy(t, self.__counts.exact(t, merged), n, self.rng) for t, n in paired]
            return np.concatenate([part.values.reshape(-1) for part in parts])

        values = self.__journal.outcome(text, look)
        return requests.measurements(self.schema, targets, noises, values, merged)

    @verb
    def score(
        self,
        targets: Sequence[Target],
        *,
        score: Score,
        cost: Cost,
        merged: Coarse | None = None,
    ) -> NDArray[np.float64]:
        """The score of every target with noise: the whole vector is paid for and published."""
        listed = self._prepare(targets, score, merged)
        noise = self.__budget.score_noise(score, listed, cost)
        self.__budget.charge(cost, label=label_of("score", listed.targets))

        def look() -> NDArray[np.float64]:
            scores = score.of(self.__counts.answers(listed), listed)
            return (scores + noise.sample(scores.size, rng=self.rng)).astype(np.float64)

        kind = f"score {type(score).__name__}"
        text = question(kind, listed.text, [noise], merged) + self.__division
        return self.__journal.outcome(text, look)

    @verb
    def select(
        self,
        targets: Sequence[Target],
        *,
        score: Score,
        cost: Cost,
        allowed: NDArray[np.bool_] | None = None,
        merged: Coarse | None = None,
    ) -> int:
        """The index of one target with a high score; its score is not published."""
        listed = self._prepare(targets, score, merged)
        allowed = requests.check_allowed(allowed, len(listed.targets))
        selection = selection_of(cost, score.sensitivity(listed))
        self.__budget.charge(cost, label=label_of("select", listed.targets))

        def look() -> NDArray[np.float64]:
            scores = score.of(self.__counts.answers(listed), listed)
            return np.array([selection.select(scores, rng=self.rng, allowed=allowed)], float)

        kind = f"select {type(score).__name__}"
        text = question(kind, listed.text, [selection], merged) + self.__division
        return requests.check_choice(int(self.__journal.outcome(text, look)[0]), allowed)

    @verb
    def perturb(
        self,
        marginal: Marginal,
        mechanism: "LocalMechanism",
        *,
        grid: "Grid | None" = None,
        numbers: NDArray[np.float64] | None = None,
    ) -> "Iterator[Answers]":
        """Every row as one answer of a local mechanism, in batches; charged before the first.

        In a random order: that of the table may reveal values of its rows.

        Args:
            marginal: The columns whose cell a row answers about.
            mechanism: What randomizes; its epsilon is what all answers together cost.
            grid: For an answer about a number, the public points it is rounded to.
            numbers: The public number that stands for each code.
        """
        from sfumato.gate import row_answers

        kernel = row_answers.Perturbation.of(
            self.schema, marginal, mechanism, grid=grid, numbers=numbers, rng=self.rng
        )
        requests.check_row_by_row(self.__table, self.protect)
        self.__budget.charge(PureDP(mechanism.epsilon), label=label_of("perturb", [marginal]))
        self.__journal.close(BY_ROW)
        return row_answers.answers(self.__table, kernel, check=self._check_process)

    @verb
    def perturb_to(
        self,
        folder: str,
        marginal: Marginal,
        mechanism: "LocalMechanism",
        *,
        grid: "Grid | None" = None,
        numbers: NDArray[np.float64] | None = None,
    ) -> int:
        """As ``perturb``, written to Parquet by the machines that hold the rows; how many."""
        from sfumato.gate import row_answers

        table = row_answers.check_folder(self.__table, folder)
        kernel = row_answers.Perturbation.of(
            self.schema, marginal, mechanism, grid=grid, numbers=numbers, rng=self.rng
        )
        requests.check_row_by_row(self.__table, self.protect)
        self.__budget.charge(PureDP(mechanism.epsilon), label=label_of("perturb", [marginal]))
        self.__journal.close(BY_ROW)
        return table.map_to_parquet(kernel, folder)

    @verb
    def respond(self, epsilons: Mapping[str, Fraction]) -> "Responses":
        """Every row as answers about the named columns, each by randomized response.

        Rows come in a random order, the same one in all columns. Charged with the sum of the
        epsilons before the rows are read, once.
        """
        from sfumato.gate import row_answers

        mechanisms = row_answers.mechanisms_for(self.schema, epsilons)
        cost = row_answers.cost_of(mechanisms)
        requests.check_row_by_row(self.__table, self.protect)
        self.__budget.charge(cost, label=label_of("respond", [(name,) for name in mechanisms]))
        self.__journal.close(BY_ROW)
        return row_answers.responses(self.__table, mechanisms, rng=self.rng)

    @verb
    def interview(self, cost: PureDP, *, columns: Marginal, groups: int = 2) -> "Interview":
        """Divide the rows into groups of which each will answer once, with up to ``cost``.

        Charged once, before the rows are read: a row is in one group.
        """
        from sfumato.gate.row_answers import Interview

        check.whole(at_least=1, at_most=64, groups=groups)
        if not columns or self.schema.marginal(columns) != tuple(columns):
            raise InputError("an interview names one or more columns in the schema's order")
        requests.check_row_by_row(self.__table, self.protect)
        self.__budget.charge(cost, label=label_of("interview", [(name,) for name in columns]))
        self.__journal.close(BY_ROW)
        return Interview(
            self.__table, epsilon=cost.epsilon, groups=groups, columns=columns, rng=self.rng
        )

    @verb
    def item_sums(self, ask: ItemSums, *, cost: ZCDP) -> ItemMeasurement:
        """For every item, weighted counts and sums of people's ratings, with noise."""
        ratings = rating_sums.check_request(self.__table, ask, ItemSums, cost, self.protect)
        self.__budget.charge(cost, label="sums of ratings by item")
        self.__journal.close(BY_ROW)
        return rating_sums.measured_sums(ratings, ask, cost, self.protect, rng=self.rng)

    @verb
    def gram(self, ask: Gram, *, cost: ZCDP) -> GramMeasurement:
        """For any two items, the weighted products of people's ratings, with noise."""
        ratings = rating_sums.check_request(self.__table, ask, Gram, cost, self.protect)
        self.__budget.charge(cost, label=f"products of ratings of {ask.items.size:,} items")
        self.__journal.close(BY_ROW)
        return rating_sums.measured_gram(ratings, ask, cost, self.protect, rng=self.rng)

    def _prepare(
        self, targets: Sequence[Target], score: Score, merged: Coarse | None = None
    ) -> TargetList:
        """What is public about a list of targets, checked before anything is charged.

        The last tuple is remembered; a list could have changed since.
        """
        if not targets:
            raise InputError("there is nothing to choose from.")
        requests.check_counted(self.__table, self.protect)
        known = self.__targets
        if known.targets is not targets or known.merged is not merged:  # a list is never the same
            targets = tuple(targets)  # what is checked is what is counted
            requests.check_kinds(targets)
            requests.check_merged(merged, self.schema, targets)
            known = TargetList.of(self.schema, self.protect, targets, merged=merged)
            self.__counts.check(targets, merged)
            self.__targets = known
        check_score(score, known)
        if isinstance(score, MutualInformation):
            self._check_rows(score.rows)
        return known

    def _check_rows(self, claimed: int) -> None:
        """Refuse a number of rows that is not the table's, where that number is public."""
        if not self.knows_rows:
            raise InputError(
                "mutual information needs a public number of rows, and that of ratings is "
                "private: a row may have none."
            )
        self.__ledger.look("number of rows, public when one row is replaced")
        rows = int(self.__counts.rows())
        if claimed != rows:
            raise InputError(
                f"rows must be the table's number of rows, {rows:,}, which is public here, got "
                f"{claimed:,}: the noise depends on it."
            )


FINE_CELLS: Final = 2**22
"""Cells of marginals that a view merges which are still counted by single codes, 32 MB: they serve
every later view too."""


class Counts:
    """Exact counts of a table: every marginal is counted once."""

    def __init__(self, table: Table | Ratings, fine: FineCounts | None = None) -> None:
        self._table = table
        self._fine = fine
        self._known: dict[Marginal, NDArray[np.int64]] = {}
        self._view: Coarse | None = None
        self._known_in_view: dict[Marginal, NDArray[np.int64]] = {}
        self._targets: TargetList | None = None
        self._answers: NDArray[np.int64] | None = None

    def rows(self) -> NDArray[np.int64]:
        """The number of rows."""
        self.count([()])
        return self._known[()]

    def check(self, targets: Sequence[Target], merged: Coarse | None = None) -> None:
        """Refuse targets whose counts do not fit in memory: called before anything is charged."""
        missing, view = self._missing(targets, merged)
        refuse_too_many_cells(self._table.schema if view is None else view.schema, missing)

    def count(self, targets: Sequence[Target], merged: Coarse | None = None) -> None:
        """Count, in one pass over the table, what these targets need and is not known yet.

        By single codes if that fits in memory; else as a view merges them, for that view only.
        """
        missing, view = self._missing(targets, merged)
        if merged is not None and merged is not self._view:
            self._view, self._known_in_view = merged, {}
        if self._fine is not None and view is None:
            self._known |= _divided(self._table.schema, missing, self._fine)
            missing = [each for each in missing if each not in self._known]
        if missing:
            counts = count_marginals(self._table, missing, view)
            known = self._known if view is None else self._known_in_view
            known |= {marginal: counts[marginal] for marginal in missing}

    def _missing(
        self, targets: Sequence[Target], merged: Coarse | None
    ) -> tuple[list[Marginal], Coarse | None]:
        """The marginals of these targets that are not known, and the view to count them in."""
        marginals = dict.fromkeys(t if isinstance(t, tuple) else t.marginal for t in targets)
        in_view = self._known_in_view if merged is not None and merged is self._view else {}
        missing = [each for each in marginals if each not in self._known and each not in in_view]
        most = MAX_CELLS if merged is None else FINE_CELLS
        fits = sum(map(self._table.schema.cells, missing)) <= most
        return missing, None if fits else merged

    def exact(self, target: Target, merged: Coarse | None = None) -> NDArray[np.int64]:
        """The counts of a target that was counted, in the view that it was counted for."""
        if isinstance(target, tuple):
            if merged is not None and merged is self._view and target in self._known_in_view:
                return self._known_in_view[target]
            counts = self._known[target]
            return counts if merged is None else merged.sum(counts, target)
        if self._targets is not None and self._answers is not None:
            index = self._targets.ranges.get(target)
            if index is not None:
                return np.asarray(self._answers[self._targets.offsets[index]])
        return np.asarray(sum_ranges(self._table.schema, [target], self._known.__getitem__)[0])

    def answers(self, targets: TargetList) -> NDArray[np.int64]:
        """The answers to all targets of a list in one flat vector; the last one is remembered."""
        if self._answers is None or self._targets is not targets:
            self.count(targets.targets, targets.merged)
            self._targets, self._answers = None, None
            self._answers = self._all_answers(targets)
            self._targets = targets
        return self._answers

    def _all_answers(self, targets: TargetList) -> NDArray[np.int64]:
        """One flat vector; the ranges of a marginal are summed together."""
        offsets = targets.offsets
        out = np.empty(offsets[-1], dtype=np.int64)
        ranges = {i: each for i, each in enumerate(targets.targets) if isinstance(each, Range)}
        sums = sum_ranges(self._table.schema, list(ranges.values()), self._known.__getitem__)
        out[offsets[list(ranges)]] = sums
        for index, target in enumerate(targets.targets):
            if isinstance(target, tuple):
                counts = self.exact(target, targets.merged)
                out[offsets[index] : offsets[index + 1]] = counts.reshape(-1)
        return out


def _divided(
    schema: Schema, missing: Sequence[Marginal], fine: FineCounts
) -> dict[Marginal, NDArray[np.int64]]:
    """Counts of single columns that are sums of counts of single values."""
    counts: dict[Marginal, NDArray[np.int64]] = {}
    for marginal in missing:
        column = schema[marginal[0]] if len(marginal) == 1 else None
        own = fine.of(column) if isinstance(column, GridColumn) else None
        if own is not None:
            counts[marginal] = own
    return counts
