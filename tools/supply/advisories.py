"""Known vulnerabilities of pinned packages, asked of pip-audit.

pip-audit says "No known vulnerabilities found" also of packages that it could not ask about, and
ends with 0. Here such a package counts as not asked, and not asked is not clean.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supply.environments import CommandError, Environment


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What is known of some packages."""

    asked: int
    unanswered: tuple[str, ...]
    vulnerable: tuple[str, ...]
    """As ``NAME VERSION: ADVISORY``."""

    @property
    def clean(self) -> bool:
        """Whether every package was asked about and none has a known vulnerability."""
        return not self.unanswered and not self.vulnerable and self.asked > 0

    def completed(self, further: "Advice") -> "Advice":
        """With what somebody else says of the packages that were left unanswered."""
        return Advice(
            asked=self.asked,
            unanswered=further.unanswered,
            vulnerable=self.vulnerable + further.vulnerable,
        )


def read(answer: dict[str, Any]) -> Advice:
    """What pip-audit's JSON says."""
    found = answer["dependencies"]
    return Advice(
        asked=len(found),
        unanswered=tuple(each["name"] for each in found if "skip_reason" in each),
        vulnerable=tuple(
            f"{each['name']} {each['version']}: {flaw['id']}"
            for each in found
            for flaw in each.get("vulns", ())
        ),
    )


def ask(auditor: Environment, pinned: Path, folder: Path) -> Advice:
    """Ask about every pinned package.

    Raises:
        CommandError: If pip-audit gives no answer at all, as where its database can't be reached.
    """
    out = folder / "advice.json"
    words = ("-m", "pip_audit", "--requirement", str(pinned), "--no-deps", "--disable-pip")
    told = ("--format", "json", "--progress-spinner", "off", "--output", str(out))
    try:
        auditor.run(*words, *told)
    except CommandError:  # it also ends with 1 when it found something, and then it wrote that
        if not out.exists() or not out.read_text().strip():
            raise
    return read(json.loads(out.read_text()))
