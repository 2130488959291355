"""Finding a ledger, or making it where there was none: in a file or in a database."""

from pathlib import Path

from sfumato.errors import StorageError
from sfumato.privacy import _bodies, _places, _postgres, _sqlite
from sfumato.privacy._entries import genesis
from sfumato.privacy._storage import Storage
from sfumato.randomness import secure_rng


def opened(path: str | Path | None, *, create: bool) -> tuple[Storage, Path | str]:
    """A ledger's store, and where it is: a file, or the place of a database.

    Args:
        path: A file, None for the default one, or postgresql://user@host/database.
        create: Whether a missing ledger is made; one that was lost is not.
    """
    if path is not None and _postgres.is_address(str(path)):
        return _database(str(path), create=create)
    where = Path(path) if path is not None else _places.default_path()
    if path is None and create:
        _places.make_directory(where.parent)
    if not where.exists():
        if not create:
            raise _missing(where)
        _places.refuse_lost(_places.anchors_directory(), where)
        token = secure_rng().token()
        _sqlite.create(where, genesis(token, _bodies.today()), token)
    return _sqlite.SqliteStorage(where), where


def _database(address: str, *, create: bool) -> tuple[Storage, str]:
    storage = _postgres.PostgresStorage(address)
    with storage.reading() as view:
        there = view.exists()
    if not there and not create:
        raise _missing(storage.place)
    if not there:
        with storage.writing() as writing:
            if not writing.exists():  # somebody else may just have made it
                _places.refuse_lost(_places.anchors_directory(), storage.place)
                writing.create(genesis(secure_rng().token(), _bodies.today()))
    return storage, storage.place


def _missing(where: Path | str) -> StorageError:
    return StorageError(f"there is no ledger at {where}. Nothing was looked at")
