"""What must stay light does: importing it loads nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = ["duckdb", "numba", "pandas", "pyarrow", "pyspark", "fastapi", "dp_accounting", "scipy"]

LIGHT = {
    "import sfumato": [*HEAVY, "numpy", "typer", "rich"],
    "import sfumato.collection.client, sfumato.collection.messages": HEAVY,
    "import sfumato.collection.device, sfumato.collection.plans": HEAVY,
    "import sfumato.collection.record_plans": HEAVY,
    "import sfumato.mechanisms.local": HEAVY,
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
    import sfumato

    for name in sfumato.__all__:
        assert getattr(sfumato, name) is not None
    assert set(sfumato.__all__) <= set(dir(sfumato))


def test_an_unknown_name_is_an_attribute_error():
    import sfumato

    with pytest.raises(AttributeError, match="no attribute 'publish_tabel'"):
        _ = sfumato.publish_tabel
