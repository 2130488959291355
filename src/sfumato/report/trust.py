"""Who saw what: where published rows come from, by the kind of trust that making them needed."""

from typing import Final, Literal

from sfumato.models.published_rows import PublishedRows
from sfumato.privacy.guarantees import LocalDP
from sfumato.release import TableRelease

Situation = Literal["devices", "rehearsal", "server", "table"]

_MADE: Final = {
    "redrawn": "They are {what}, drawn anew so that their frequencies fit",
    "answers": "They are {what} as they came, as drawing them anew would have made them worse",
    "model": "They were drawn from a model, and the model was fitted to {what}",
}
_WHO: Final = {
    "devices": "People's devices randomized the answers; nothing else of the people was used.",
    "rehearsal": "The answers were drawn by one program that held the table: this is the rehearsal "
    "of a survey. Whoever ran it saw the table; the promise is about everybody who sees what was "
    "published.",
    "server": "The server held the raw records, and whoever ran it saw them; the promise is about "
    "everybody who sees what was published.",
}
_TRUST: Final = {
    "server": "the server, which held the raw records",
    "semi-honest": "a semi-honest server, which saw randomized answers only",
    "nobody": "nobody: raw records stay on the devices",
}
_REHEARSED: Final = {"semi-honest": "a semi-honest server", "nobody": "nobody"}
_VARIANT: Final = {
    "faithful": "faithful: every column gets its part of epsilon",
    "grouped": "grouped: one question for each person, with the whole epsilon",
    "single": "one round: one question about one column for each person, with the whole epsilon",
}
_ROWS_ARE: Final = {
    "redrawn": "{what}, drawn anew",
    "answers": "{what}, as they came",
    "model": "rows drawn from a model",
}
_STRUCTURE: Final = {
    "none": "independent columns",
    "tree": "a tree of pairs of columns",
    "pairs": "pairs of columns",
}


def origin(release: TableRelease) -> str:
    """Where the published rows come from, and who saw more than these."""
    head, situation = "The rows are not real rows.", _situation(release)
    if situation == "table":
        return (
            f"{head} They were drawn from a model, and the model was fitted to counts with noise; "
            "nothing else of the data was used."
        )
    made = _MADE[_published(release)].format(what=_randomized(release))
    return f"{head} {made}. {_WHO[situation]}"


def method_facts(release: TableRelease) -> list[tuple[str, str]]:
    """What a person wants to know of how a DP2-Pub release was made; of others nothing."""
    method = release.method
    if "trust" not in method:
        return []
    facts = {
        "Trusted": _trusted(release),
        "Variant": _word(_VARIANT, method.get("variant")),
        "What the rows are": _ROWS_ARE[_published(release)].format(what=_randomized(release)),
        "Ties kept": _word(_STRUCTURE, method.get("structure")),
        "People asked": _people(method.get("answers")),
        "Second round": _shares(method.get("asked")),
        "Asked about pairs": _by_round(method.get("asked_about_pairs")),
    }
    return [(name, text) for name, text in facts.items() if text]


def _situation(release: TableRelease) -> Situation:
    if isinstance(release.guarantee, LocalDP):
        return "devices"
    if "trust" not in release.method and not isinstance(release.model, PublishedRows):
        return "table"
    return "server" if release.method.get("trust") == "server" else "rehearsal"


def _trusted(release: TableRelease) -> str:
    trust = release.method.get("trust")
    if _situation(release) == "rehearsal" and (asked := _word(_REHEARSED, trust)):
        return f"{asked}, in a rehearsal: one program held the table"
    return _word(_TRUST, trust)


def _randomized(release: TableRelease) -> str:
    """What the rows or the model come from."""
    if _situation(release) != "server":
        return "randomized answers"
    measured = _published(release) == "model"
    return "measurements with noise" if measured else "randomized values of real rows"


def _published(release: TableRelease) -> Literal["redrawn", "answers", "model"]:
    if not isinstance(release.model, PublishedRows):
        return "model"
    return "answers" if release.method.get("published") == "answers" else "redrawn"


def _word(words: dict[str, str], key: object) -> str:
    """A known word as a person reads it; a file that was edited may hold anything."""
    return words.get(key, "") if isinstance(key, str) else ""


def _people(counts: object) -> str:
    if not isinstance(counts, list | tuple) or not counts:
        return ""
    if not all(type(count) is int and count >= 0 for count in counts):
        return ""
    rounds = [f"{count:,} in round {number}" for number, count in enumerate(counts, 1)]
    return ", ".join(rounds)


def _shares(asked: object) -> str:
    if not isinstance(asked, dict):
        return ""
    known = [part for part in ("columns", "pairs") if _is_share(asked.get(part))]
    return ", ".join(f"{asked[part]:.0%} about {part}" for part in known)


def _by_round(shares: object) -> str:
    if not isinstance(shares, list | tuple) or not all(_is_share(share) for share in shares):
        return ""
    return ", ".join(f"{share:.0%} in round {number}" for number, share in enumerate(shares, 1))


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
