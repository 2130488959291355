"""What may be published: a table or a recommender, its guarantee, its ledger entries, its origin.

Everything here is post-processing of measurements. A folder that ``save`` wrote may be published
whole.
"""

from sfumato.release.described import describe_guarantee, describe_measurements, versions
from sfumato.release.drawing import draw_table
from sfumato.release.folders import check_apart, check_free, check_usable, new_folder
from sfumato.release.marginals import noisy_marginals
from sfumato.release.table import FORMAT, TableRelease

__all__ = [
    "FORMAT",
    "TableRelease",
    "check_apart",
    "check_free",
    "check_usable",
    "describe_guarantee",
    "describe_measurements",
    "draw_table",
    "new_folder",
    "noisy_marginals",
    "versions",
]
