"""What is left of a run that failed after its schema was found: the schema, if it was paid for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.commands.inferred_schema import Inferred
from sfumato.errors import StorageError
from sfumato.schema import Schema


@contextmanager
def keeping_schema(inferred: Inferred, out: Path | None) -> Iterator[None]:
    """If the release fails, leave the schema that was paid for beside its folder and say so."""
    try:
        yield
    except BaseException as error:
        error.add_note(_what_is_left(inferred, out))
        raise


def _what_is_left(inferred: Inferred, out: Path | None) -> str:
    """Of a run that failed after a schema was found: nothing, if it was a simulation."""
    if not inferred.private:
        return (
            "Before that, a schema was inferred with seeded noise. This was a simulation: nothing "
            "was charged, and nothing was kept."
        )
    paid = f"Before that, a schema was inferred for {inferred.cost}, which is spent."
    again = "give this command again: it does not pay for the schema again."
    beside = None if out is None else out.with_name(f"{out.name}.schema.json")
    if beside is None or not _written(inferred.schema, beside):
        return f"{paid} The ledger keeps it: {again}"
    return (
        f"{paid} It is in {beside} and may be published. To go on, give it with --schema, where "
        f"the guarantee includes that cost too, or {again}"
    )


def _written(schema: Schema, path: Path) -> bool:
    """Whether a schema could be written into a new file: why not matters less than what failed."""
    if os.path.lexists(path):
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        schema.save(path)
    except (OSError, StorageError):
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return False
    return True
