"""DP2-Pub with a semi-honest server: one answer a person, and all else is post-processing.

Everybody answers every column by randomized response. The server learns a network, clusters and
budget shares from the answers, and redraws them by invariant PRAM with the channel that the clients
used. Jiang et al. 2023, arXiv 2208.11693, without its look at raw entropies. Nothing here sees
anything but answers, so nothing here costs anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr
from sfumato.models.bayes.network import LearnedNetwork, greedy_network_from_scores
from sfumato.models.code_counts import narrow
from sfumato.models.information import debiased_information, entropy
from sfumato.models.model import PublishedRows, repaired
from sfumato.models.pram import pram as redraws
from sfumato.models.pram.clusters import (
    Cluster,
    Pram,
    attribute_shares,
    budget_shares,
    disjoint_clusters,
    importance,
    joint_gain,
)
from sfumato.models.pram.pram import (
    MOST_CELLS,
    MOST_LIKELY_CELLS,
    Channel,
    Estimator,
    PramResult,
    compound_pram,
    redrawing_helps,
)
from sfumato.privacy.guarantees import Guarantee, LocalDP
from sfumato.privacy.sensitivity import OneRow
from sfumato.randomness import Rng, check_rng
from sfumato.release import TableRelease, draw_rows
from sfumato.schema import Schema

Codes = NDArray[Any]

LARGEST_PAIR: Final = 2**22
"""Cells of the largest two-way table that the network is learned from."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SemiHonestResult:
    """What the server found out from the answers, and the codes to publish in their place."""

    schema: Schema
    guarantee: LocalDP
    """Of all that one person sent: the sum over the columns, exact."""
    answers: Codes
    """As they came, a row for each column of the schema."""
    redrawn: Codes
    """All of them after PRAM, whether or not that is what to publish."""
    helped: bool
    """Whether the redrawn codes are predicted to be nearer to the truth than the answers."""
    asked: tuple[str, ...]
    """The columns with more than one value; attribute 0, 1, ... of the network."""
    learned: LearnedNetwork
    blankets: Mapping[str, Cluster]
    clusters: tuple[Cluster, ...]
    entropies: Mapping[str, float]
    """In nats, all terms, of the estimated marginals: not of the answers, nor of the raw data."""
    importance: tuple[Fraction, ...]
    """CIF of each cluster."""
    shares: tuple[Fraction, ...]
    """PBC of each cluster; they sum to exactly 1."""
    second_round: Mapping[str, Fraction]
    """The epsilon of each column, should there be a second round that costs as much as this one."""
    budgets: Mapping[str, Fraction]
    """The epsilon that each column's answers cost; they sum to that of the guarantee."""
    parts: Mapping[Cluster, PramResult]
    """What was redrawn together, with the estimate, whether it was clipped, and the gap."""

    @property
    def codes(self) -> Codes:
        """What to publish: the redrawn codes, or the answers where PRAM would make them worse."""
        return self.redrawn if self.helped else self.answers

    @property
    def clipped(self) -> tuple[Cluster, ...]:
        """Where the unbiased estimate was impossible, so that the redrawn codes miss it."""
        return tuple(names for names, part in self.parts.items() if part.clipped)

    def describe(self) -> dict[str, Any]:
        """The method as it stands in a release: all of it follows from the answers."""
        parents = zip(self.asked, self.learned.network.parents, strict=True)
        return {
            "name": "dp2pub",
            "trust": "semi-honest",
            "variant": "faithful",
            "published": "redrawn" if self.helped else "answers",
            "network": {child: [self.asked[index] for index in own] for child, own in parents},
            "clusters": [list(cluster) for cluster in self.clusters],
            "shares": [str(share) for share in self.shares],
            "budgets": {name: str(epsilon) for name, epsilon in self.budgets.items()},
            "redrawn": [
                {"columns": list(names), "clipped": part.clipped, "gap": part.gap}
                for names, part in self.parts.items()
            ],
        }

    def release(
        self,
        *,
        dataset: str,
        private: bool,
        ledger: Mapping[str, Any],
        rng: Rng,
        guarantee: Guarantee | None = None,
    ) -> TableRelease:
        """A table of the codes, without a model, in a random order of the rows.

        Args:
            dataset: Whose budget was spent.
            private: Whether the answers were drawn by secure generators, on the devices.
            ledger: The head and the entries that paid for the answers; of the collector.
            rng: Draws the order, and the values inside bins.
            guarantee: What was paid, if not the local promise of the answers: PureDP from who held
                the table and randomized it.
        """
        shuffled = self.codes[:, rng.permutation(self.codes.shape[1])]
        codes = dict(zip(self.schema.names, shuffled, strict=True))
        rows = PublishedRows(schema=self.schema, codes=repaired(self.schema, codes, rng=rng))
        drawn = draw_rows(rows, n_rows=self.codes.shape[1], rng=rng)
        return TableRelease(
            dataset=dataset,
            guarantee=self.guarantee if guarantee is None else guarantee,
            protect=OneRow(neighbors="replace"),
            private=private and rng.secure,
            method={**self.describe(), **drawn.facts},
            schema=self.schema,
            model=drawn.model,
            measurements=(),
            data=drawn.table,
            ledger=ledger,
        )


def publish_answers(
    schema: Schema,
    block: Codes,
    mechanisms: Sequence[Grr | None],
    *,
    degree: int = 3,
    max_cluster: int = 3,
    estimator: Estimator = "norm-sub",
    pram: Pram = "auto",
    rng: Rng,
) -> SemiHonestResult:
    """Network, clusters, budget shares and redrawn codes, all from one round of answers.

    The network is greedy on the mutual information of debiased pair tables: a comparison of the
    answers themselves would favor columns of few values, whose answers are less noisy.

    Args:
        schema: The columns.
        block: Answers, a row for each column and a column for each person.
        mechanisms: What randomized each column; None for a column of one value, which passes.
        degree: The most parents of an attribute.
        max_cluster: The most members of a cluster.
        estimator: Of the true frequencies, as in ``models.pram``.
        pram: Redraw attributes by themselves, clusters jointly, or what ``joint_gain`` predicts.
        rng: Chooses the root and the clusters' seeds, and draws the codes.
    """
    check_rng(rng)
    check.one_of(get_args(Pram), pram=pram)
    answers = _Answers.checked(schema, block, mechanisms)
    check_pairs(schema)
    learned = greedy_network_from_scores(_debiased_scores(answers), degree=degree, rng=rng)
    blankets = {
        name: tuple(answers.names[other] for other in learned.network.markov_blanket(index))
        for index, name in enumerate(answers.names)
    }
    clusters = disjoint_clusters(answers.names, blankets, max_size=max_cluster, rng=rng)
    single = {name: _redraw(answers, (name,), estimator, rng) for name in answers.names}
    entropies = {name: entropy(part.frequencies) for name, part in single.items()}
    shares = budget_shares(clusters, entropies)
    budgets = dict(zip(answers.names, (m.epsilon for m in answers.mechanisms), strict=True))
    epsilon = sum(budgets.values(), Fraction(0))
    parts = _parts(answers, clusters, single, pram, estimator, rng)
    return SemiHonestResult(
        schema=schema,
        guarantee=LocalDP(epsilon),
        answers=np.asarray(block),
        redrawn=_whole_block(schema, np.asarray(block), parts),
        helped=redrawing_helps(tuple(parts.values())),
        asked=answers.names,
        learned=learned,
        blankets=blankets,
        clusters=clusters,
        entropies=entropies,
        importance=importance(clusters, entropies),
        shares=shares,
        budgets=budgets,
        second_round={n: epsilon * s for n, s in attribute_shares(clusters, shares).items()},
        parts=parts,
    )


def check_pairs(schema: Schema) -> None:
    """Refuse two columns whose table is too large to learn a network from."""
    largest = sorted(schema, key=lambda column: column.size)[-2:]
    cells = prod(column.size for column in largest)
    if len(largest) == 2 and cells > LARGEST_PAIR:
        raise InputError(
            f"the table of {largest[0].name!r} and {largest[1].name!r} has {cells:,} cells, at "
            f"most {LARGEST_PAIR:,} are compared. Use coarser bins."
        )


def channel_of(mechanism: Grr) -> Channel:
    """The very probabilities that a client's integers have: PRAM with another Q corrects wrongly.

    >>> channel_of(Grr(categories=2, epsilon=1)).matrix.round(4).tolist()
    [[0.7311, 0.2689], [0.2689, 0.7311]]
    """
    return Channel.randomized_response(size=mechanism.categories, p=mechanism.p, q=mechanism.q)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Answers:
    """The columns that were asked about: those of more than one value."""

    names: tuple[str, ...]
    block: Codes
    """A row for each of them, in a small unsigned type."""
    mechanisms: tuple[Grr, ...]
    channels: Mapping[str, Channel]

    @staticmethod
    def checked(schema: Schema, block: Codes, mechanisms: Sequence[Grr | None]) -> "_Answers":
        """The answers by column, or an error before anything is estimated."""
        codes = np.asarray(block)
        if codes.ndim != 2 or len(codes) != len(schema) or codes.dtype.kind not in "iu":
            raise InputError(
                f"block must hold whole codes, a row for each of the {len(schema)} columns, got "
                f"{codes.dtype} of shape {codes.shape}."
            )
        if len(mechanisms) != len(schema):
            raise InputError(
                f"mechanisms must have an entry for each of the {len(schema)} columns, got "
                f"{len(mechanisms)}."
            )
        answered: dict[str, tuple[int, Grr]] = {}
        for index, (column, row, made) in enumerate(zip(schema, codes, mechanisms, strict=True)):
            if row.size and (row.min() < 0 or row.max() >= column.size):
                raise InputError(f"{column.name!r} has answers that are no codes of the column")
            if (1 if made is None else made.categories) != column.size:
                given = "none" if made is None else f"one of {made.categories} categories"
                raise InputError(
                    f"{column.name!r} has {column.size} values and needs the mechanism that its "
                    f"answers went through, got {given}."
                )
            if made is not None:
                answered[column.name] = index, made
        if not answered or not codes.shape[1]:
            raise InputError("there are no answers about a column of two values or more.")
        rows = [index for index, _ in answered.values()]
        own = codes if len(rows) == len(codes) else codes[rows]
        return _Answers(
            names=tuple(answered),
            block=narrow(own, max(column.size for column in schema)),
            mechanisms=tuple(made for _, made in answered.values()),
            channels={name: channel_of(made) for name, (_, made) in answered.items()},
        )

    def of(self, names: Cluster) -> tuple[Codes, list[Channel]]:
        """Answers and channels of some columns."""
        rows = [self.names.index(name) for name in names]
        return self.block[rows], [self.channels[name] for name in names]

    def cells(self, names: Cluster) -> int:
        """Of their joint table."""
        return prod(self.channels[name].size for name in names)


def _debiased_scores(answers: _Answers) -> NDArray[np.float64]:
    """The mutual information of every pair, in nats, of its debiased table."""
    sizes = [made.categories for made in answers.mechanisms]
    responses = [(made.p, made.q) for made in answers.mechanisms]
    return debiased_information(answers.block, sizes, responses)


def _redraw(answers: _Answers, names: Cluster, estimator: Estimator, rng: Rng) -> PramResult:
    codes, channels = answers.of(names)
    if len(names) == 1:
        return redraws.pram(codes[0], channels[0], rng=rng, estimator=estimator)
    return compound_pram(codes, channels, rng=rng, estimator=estimator)


def _parts(
    answers: _Answers,
    clusters: Sequence[Cluster],
    single: Mapping[str, PramResult],
    kind: Pram,
    estimator: Estimator,
    rng: Rng,
) -> dict[Cluster, PramResult]:
    """The redrawn parts: attributes, or clusters where that is asked for or predicted to help.

    Predicted for all clusters together, as one alone tells too little, and twice: joint redrawing
    must beat redrawing one by one, and the answers as they came.
    """
    joint = [cluster for cluster in clusters if len(cluster) > 1]
    if kind == "auto":
        limit = MOST_CELLS if estimator == "norm-sub" else MOST_LIKELY_CELLS
        joint = [cluster for cluster in joint if answers.cells(cluster) <= limit]
    together = {name for cluster in joint for name in cluster}
    alone: dict[Cluster, PramResult] = {(name,): part for name, part in single.items()}
    if kind == "attribute" or not joint or (kind == "auto" and not _gains(answers, joint, single)):
        return alone
    parts = {cluster: _redraw(answers, cluster, estimator, rng) for cluster in joint}
    parts |= {names: part for names, part in alone.items() if names[0] not in together}
    return alone if kind == "auto" and not redrawing_helps(tuple(parts.values())) else parts


def _gains(
    answers: _Answers, clusters: Sequence[Cluster], single: Mapping[str, PramResult]
) -> bool:
    """Whether joint redrawing is predicted to beat redrawing one by one."""
    gains = [
        joint_gain(*answers.of(cluster), [single[name].frequencies for name in cluster])
        for cluster in clusters
    ]
    return sum(gains) > 0


def _whole_block(schema: Schema, block: Codes, parts: Mapping[Cluster, PramResult]) -> Codes:
    """The redrawn codes in the schema's order; columns of one value as they came."""
    index = {name: number for number, name in enumerate(schema.names)}
    codes = block.copy()
    for names, part in parts.items():
        codes[[index[name] for name in names]] = part.codes
    return codes
