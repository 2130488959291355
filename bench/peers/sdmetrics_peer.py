"""SDMetrics' quality report of published tables: run in its own environment, prints JSON.

sdmetrics_peer.py PUBLIC.json REAL.csv PUBLISHED.csv [PUBLISHED.csv ...]

Numbers are numerical (dates as days), everything else is categorical. A column that the published
table lost is left out of its report. Prints a line for each published table.
"""

import json
import sys
import warnings
from pathlib import Path

import pandas as pd
from sdmetrics.reports.single_table import QualityReport

warnings.simplefilter("ignore")


def main() -> None:
    given, real_path, *published = sys.argv[1:]
    kinds = json.loads(Path(given).read_text())
    real = read_table(real_path, kinds)
    for path in published:
        made = read_table(path, kinds)
        kept = [name for name in kinds if name in made.columns]
        columns = {name: {"sdtype": kinds[name]} for name in kept}
        report = QualityReport()
        report.generate(real[kept], made[kept], {"columns": columns}, verbose=False)
        parts = report.get_properties().set_index("Property")["Score"]
        told = {"score": report.get_score(), "shapes": parts.iloc[0], "pairs": parts.iloc[1]}
        print(json.dumps({"file": path, **told}), flush=True)


def read_table(path: str, kinds: dict[str, str]) -> pd.DataFrame:
    texts = {name: str for name, kind in kinds.items() if kind == "categorical"}
    frame = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=[""])
    return frame[[name for name in kinds if name in frame.columns]]


if __name__ == "__main__":
    main()
