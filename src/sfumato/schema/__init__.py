"""Public knowledge: columns and their codes, schemas, workloads, and noisy measurements.

Reading order: columns, calendar, files, impossible, axes, rules, schema, workload, measurement;
then codes and arrow_values for tables, values for a device.
"""

from sfumato.schema.columns import (
    Boolean,
    Category,
    Column,
    Date,
    DateTime,
    Integer,
    Number,
    Ordinal,
)
from sfumato.schema.measurement import Coarse, Measurement
from sfumato.schema.rules import Rule
from sfumato.schema.schema import Marginal, Schema
from sfumato.schema.workload import (
    Range,
    Target,
    Workload,
    all_marginals,
    chosen_marginals,
    load_workload,
    random_ranges,
    ranges,
)

__all__ = [
    "Boolean",
    "Category",
    "Coarse",
    "Column",
    "Date",
    "DateTime",
    "Integer",
    "Marginal",
    "Measurement",
    "Number",
    "Ordinal",
    "Range",
    "Rule",
    "Schema",
    "Target",
    "Workload",
    "all_marginals",
    "chosen_marginals",
    "load_workload",
    "random_ranges",
    "ranges",
]
