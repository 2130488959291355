"""What all tests share: a ledger home of their own, repeatable hypothesis, real data."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("browser", "servers", "spark")

settings.register_profile(
    "sfumato",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sfumato")


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
