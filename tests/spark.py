"""A fixture that starts Spark in this process: one session in local mode, for all of its tests.

Spark is given little: one Java machine without its second compiler, two tasks at a time, no web
page. The folder of the tests is on the path of its workers, so that kernels of tests arrive.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from absent import absent

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "Asia/Tehran",  # readers that forget about zones are found out
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session, started when the first test asks for it."""
    if shutil.which("java") is None:
        absent("Java")
    if find_spec("pyspark") is None:
        absent("PySpark")
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", _with_tests(os.environ.get("PYTHONPATH")))
        patch.setenv("SPARK_LOCAL_DIRS", str(folder))
        session = builder.getOrCreate()
    yield session
    session.stop()


def _with_tests(path: str | None) -> str:
    return os.pathsep.join([str(Path(__file__).parent), *([path] if path else [])])
