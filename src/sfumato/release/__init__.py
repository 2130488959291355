"""What may be published: a table or a recommender, its guarantee, its ledger entries, its origin.

Everything here is post-processing of measurements. A folder that ``save`` wrote may be published
whole.
"""

from sfumato.release.description import describe_guarantee, versions
from sfumato.release.folder import (
    INTERNAL,
    check_apart,
    check_free,
    check_usable,
    is_internal,
    new_folder,
    release_around,
)
from sfumato.release.table import FORMAT, TableRelease, draw_rows, draw_table, noisy_marginals

__all__ = [
    "FORMAT",
    "INTERNAL",
    "TableRelease",
    "check_apart",
    "check_free",
    "check_usable",
    "describe_guarantee",
    "draw_rows",
    "draw_table",
    "is_internal",
    "new_folder",
    "noisy_marginals",
    "release_around",
    "versions",
]
