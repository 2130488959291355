"""What must stay light does: importing it loads nothing heavy."""

import subprocess
import sys

import pytest

import sfumato

HEAVY = ["duckdb", "numba", "pandas", "pyarrow", "pyspark", "fastapi", "dp_accounting", "scipy"]

MECHANISMS = [name for room, names in sfumato._ROOMS.items() if ".local." in room for name in names]

LIGHT = {
    "import sfumato": [*HEAVY, "numpy", "typer", "rich"],
    "import sfumato.survey.device.form, sfumato.survey.protocol.messages": HEAVY,
    "import sfumato.survey.device.device, sfumato.survey.protocol.rounds": HEAVY,
    "import sfumato.survey.protocol.rounds": HEAVY,
    "import sfumato.survey.device.remote, sfumato.survey.owner": HEAVY,
    f"from sfumato import {', '.join(MECHANISMS)}": HEAVY,
    "import sfumato.cli": [*HEAVY, "numpy", "jinja2"],
    "import sfumato.privacy": HEAVY,
    "import sfumato.schema": ["duckdb", "numba", "pandas", "dp_accounting", "scipy"],
}


@pytest.mark.parametrize(("statement", "heavy"), LIGHT.items(), ids=LIGHT)
def test_importing_it_loads_nothing_heavy(statement, heavy):
    code = f"{statement}; import sys; print([m for m in {heavy!r} if m in sys.modules])"
    outcome = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert outcome.stdout.strip() == "[]"


def test_every_public_name_can_be_fetched():
    for name in sfumato.__all__:
        assert getattr(sfumato, name) is not None
    assert set(sfumato.__all__) <= set(dir(sfumato))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'publish_tabel'"):
        _ = sfumato.publish_tabel


OPTIONAL = [
    *("pandas", "polars", "scipy", "sklearn", "dp_accounting", "opendp", "pyspark", "playwright"),
    *("adbc_driver_postgresql", "mkdocs", "pytest", "hypothesis"),
    *("fastapi", "starlette", "uvicorn", "sqlalchemy", "psycopg"),
]
"""What the base installation does not bring."""

ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {}:
            raise ModuleNotFoundError("not installed", name=name)
sys.meta_path.insert(0, Absent())
import sfumato
"""
IMPORT_ALL = """
import importlib, pkgutil
apart = ("sfumato.__main__", "sfumato.server", "sfumato.readers.spark")
for found in pkgutil.walk_packages(sfumato.__path__, "sfumato."):
    if not found.name.startswith(apart):
        importlib.import_module(found.name)
"""
PUBLISH = """
import pyarrow as pa
table = pa.table({"age": [*range(9)] * 100, "town": ["A", "B", "B"] * 300})
schema = {"sfumato": 1, "dataset": "towns", "columns": [
    {"name": "age", "kind": "integer", "low": 0, "high": 9},
    {"name": "town", "kind": "category", "values": ["A", "B"]}]}
sfumato.publish_table(table, schema=schema, epsilon=1, method="mst", out="out", evaluate=True)
"""


@pytest.mark.parametrize("code", [IMPORT_ALL, PUBLISH], ids=["import", "publish"])
def test_the_base_installation_needs_no_optional_library(code, tmp_path):
    hidden = ABSENT.format(OPTIONAL)
    subprocess.run([sys.executable, "-c", hidden + code], cwd=tmp_path, check=True)
