"""What a test does on a machine that lacks a part: it skips and says so; with CI=true it fails."""

import os
from typing import NoReturn

import pytest


def absent(part: str) -> NoReturn:
    """Skip the test that needs ``part``, or fail it where every part must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"there is no {part}; run make system-deps")
    pytest.skip(f"needs {part} (make system-deps)")
