"""Names of time zones: ``UTC``, one of the time zone database, or an offset like ``+02:00``."""

import re
from zoneinfo import ZoneInfo

from sfumato.errors import SchemaError


def check_zone(name: str) -> None:
    """Raise unless the name is one of a time zone."""
    if name == "UTC" or (isinstance(name, str) and re.fullmatch(r"[+-][0-9]{2}:[0-9]{2}", name)):
        return
    try:
        ZoneInfo(name)
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        raise SchemaError(
            f"zone must be a time zone like UTC, Europe/Rome or +02:00, got {name!r}"
        ) from None
