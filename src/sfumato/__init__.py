"""Publish data about people without publishing the people.

``import sfumato as sf`` loads nothing heavy: each name below is fetched from its room on first
use. The rooms and who may import whom are described in ``docs/architecture.md``.
"""

from importlib import import_module
from typing import Any

from sfumato._version import __version__

_ROOMS = {
    "sfumato.curator": ("Curator", "L1Error"),
    "sfumato.engine": ("open_table",),
    "sfumato.errors": (
        "BudgetError",
        "InputError",
        "InternalError",
        "LedgerCorruptError",
        "SchemaError",
        "SfumatoError",
        "StorageError",
        "TableError",
    ),
    "sfumato.evaluation": (
        "CountError",
        "Evaluation",
        "QueryErrors",
        "RangeQueries",
        "TotalVariation",
        "evaluate",
    ),
    "sfumato.jobs": ("evaluate_release", "publish_table"),
    "sfumato.mechanisms": (
        "DiscreteGaussian",
        "DiscreteLaplace",
        "ExponentialMechanism",
        "PermuteAndFlip",
    ),
    "sfumato.privacy": ("ApproxDP", "Ledger", "LocalDP", "OnePerson", "OneRow", "PureDP", "ZCDP"),
    "sfumato.publishing": ("Auto", "publish"),
    "sfumato.randomness": ("Rng", "secure_rng", "simulation_rng"),
    "sfumato.release": ("TableRelease",),
    "sfumato.schema": (
        "Boolean",
        "Category",
        "Date",
        "Integer",
        "Measurement",
        "Number",
        "Ordinal",
        "Range",
        "Schema",
        "Workload",
        "all_marginals",
        "chosen_marginals",
        "load_workload",
        "random_ranges",
        "ranges",
    ),
    "sfumato.synthesis": ("Histogram", "Independent", "Mwem"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
