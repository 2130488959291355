"""Exact counts: the rooms below read tables; only the curator may enter.

Reading order: table (the seam), counting, kernels, folding, coded, source, grouping, pushdown,
mixing; then where rows come from: opening, csv and tokens, parquet, duckdb, sqlite, postgres,
frames, arrays; beyond one machine: spark, spark_tasks.
"""

from sfumato.engine.arrays import ArrayTable
from sfumato.engine.counting import (
    MAX_CELLS,
    ExactCounts,
    MarginalCounts,
    RowCount,
    count_marginals,
    count_merged,
    rows,
)
from sfumato.engine.opening import open_table
from sfumato.engine.table import CodeBatch, FoldKernel, MapKernel, Table

__all__ = [
    "MAX_CELLS",
    "ArrayTable",
    "CodeBatch",
    "ExactCounts",
    "FoldKernel",
    "MapKernel",
    "MarginalCounts",
    "RowCount",
    "Table",
    "count_marginals",
    "count_merged",
    "open_table",
    "rows",
]
