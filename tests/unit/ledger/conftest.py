from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own."""
    monkeypatch.setenv("SFUMATO_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
