"""What all tests share: a ledger home of their own, repeatable hypothesis, real data, `--quick`."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
"""Before numpy is loaded, here and in the processes that tests start: a process runs on each core
already, and threads of two processes that wait for each other took five times as long."""

pytest_plugins = ("browser", "servers", "spark")

settings.register_profile(
    "sfumato",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sfumato")

SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").split())
"""Test functions that `--quick` leaves out; `tools/slow_tests.py` writes the list."""

REAL_PARTS = frozenset({"spark", "postgres", "database", "browser", "visit"})
"""Fixtures that start Spark, PostgreSQL or Chromium."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="no browser, Spark or PostgreSQL, and none of the slow tests of tests/slow.txt",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--quick"):
        return
    left_out = [item for item in items if _is_slow(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not _is_slow(item)]


def _is_slow(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.name.split("[")[0] in SLOW or bool(fixtures & REAL_PARTS)


@pytest.fixture(autouse=True, scope="session")
def home_of_all(tmp_path_factory):
    """Also where a fixture is made for many tests at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory, monkeypatch):
    """No test touches the ledger or the anchors of whoever runs it."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("SFUMATO_HOME", str(home))
    return home


@pytest.fixture
def real_data() -> Path:
    """The folder of real data sets, or a skip that says so."""
    folder = os.environ.get("SFUMATO_DATA")
    if not folder:
        pytest.skip("needs real data: set SFUMATO_DATA")
    return Path(folder)
