"""An owner's program: makes a survey on a server, invites, opens and closes rounds, releases.

Its keys are in a file that only its owner can read; owners' tokens stand in no command and no
message.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from sfumato.durable import write_file
from sfumato.errors import InputError, StorageError
from sfumato.survey.protocol.announcements import ID, TOKEN, SurveyLink, matching
from sfumato.survey.protocol.http_client import Patience, Server
from sfumato.survey.protocol.messages import VERSION

_KIND: Final = "survey-keys"
_FIELDS: Final = {
    *("sfumato", "kind", "server", "task", "key", "admin", "reader", "survey_hash"),
}
_LARGEST_RELEASE: Final = 2 * 2**30
"""Bytes of a release that are downloaded, at most: a limit against abuse."""


@dataclass(frozen=True, kw_only=True)
class SurveyKeys:
    """What the owner of a survey holds: where it is, and the tokens that were shown once."""

    server: str
    task: str
    key: str
    """The public key that the survey signs with."""
    admin: str = field(repr=False)
    """The token that runs the survey: invites, opens, closes, releases."""
    reader: str = field(repr=False)
    """Reads the counts, estimates and the release; changes nothing."""
    survey_hash: str | None = None
    """The hash of what the survey announced; None in files of older versions."""

    def __post_init__(self) -> None:
        link = SurveyLink(
            server=self.server, task=self.task, key=self.key, survey_hash=self.survey_hash
        )
        object.__setattr__(self, "server", link.server)
        matching(TOKEN, admin=self.admin)
        matching(TOKEN, reader=self.reader)

    def save(self, path: str | Path) -> None:
        """Write the keys into a new file, for its owner alone."""
        text = json.dumps({"sfumato": VERSION, "kind": _KIND, **asdict(self)}, indent=1)
        write_secret(Path(path), text + "\n")

    @staticmethod
    def load(path: str | Path) -> "SurveyKeys":
        """The keys in a file."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise StorageError(f"can't read {path}: {error.strerror}.") from None
        except (ValueError, RecursionError):
            content = None
        known = isinstance(content, dict) and set(content) | {"survey_hash"} == _FIELDS
        if not known or content["kind"] != _KIND:
            raise InputError(
                f"{path} is not a file of survey keys, as `sfumato survey create` writes it."
            )
        names = _FIELDS - {"sfumato", "kind"}
        return SurveyKeys(**{name: content[name] for name in names if name in content})

    def link(self, token: str | None = None) -> SurveyLink:
        """The link for a person."""
        return SurveyLink(
            server=self.server,
            task=self.task,
            key=self.key,
            survey_hash=self.survey_hash,
            token=token,
        )


class SurveyOwner:
    """The owner of one survey.

    Args:
        keys: Of the survey.
        patience: How often a server that does not answer is asked.
    """

    def __init__(self, keys: SurveyKeys, *, patience: Patience | None = None) -> None:
        self.keys = keys
        matching(ID, task=keys.task)
        self._server = Server(address=keys.server, patience=patience or Patience())

    @classmethod
    def create(
        cls,
        server: str,
        request: Mapping[str, Any],
        *,
        token: str,
        patience: Patience | None = None,
    ) -> Self:
        """Make a survey.

        Args:
            server: Its address.
            request: What ``POST /v1/surveys`` takes: title, schema, epsilon, and more.
            token: The server's.
            patience: How often a server that does not answer is asked.
        """
        matching(TOKEN, token=token)
        called = Server(address=server, patience=patience or Patience())
        made = called.owned("/v1/surveys", dict(request), token=token).message
        names = ("task", "key", "admin", "reader", "survey_hash")
        try:
            keys = SurveyKeys(server=server, **{name: made[name] for name in names})
        except KeyError:
            raise StorageError(
                f"{server} does not answer like a survey server of sfumato."
            ) from None
        return cls(keys, patience=patience)

    def status(self) -> dict[str, Any]:
        """The state, and how many answers came, by round and hour."""
        return self._ask("status")

    def estimates(self) -> dict[str, Any]:
        """Frequencies with standard errors; refused below the promised number of answers."""
        return self._ask("estimates")

    def poisoning(self) -> dict[str, Any]:
        """What fakes can gain here, and whether the answers look as if there were some."""
        return self._ask("poisoning")

    def invite(self, number: int, *, uses: int = 1) -> list[SurveyLink]:
        """New invitations; they are shown now and never again."""
        made = self._do("invitations", {"number": number, "uses": uses})
        return [self.keys.link(token) for token in made["tokens"]]

    def open(self) -> str:
        """Open the next round; the new state."""
        return str(self._do("open", {})["state"])

    def close(self, *, abandon: bool = False) -> str:
        """Close the open round, or give the survey up; the new state."""
        return str(self._do("close", {"abandon": abandon})["state"])

    def release(self) -> str:
        """Fit and draw the table that may be published, once; the new state."""
        return str(self._do("release", {})["state"])

    def archive(self) -> bytes:
        """The release and its report, as the server packed them."""
        path = f"/v1/surveys/{self.keys.task}/release.zip"
        return self._server.owned(path, token=self.keys.reader, most=_LARGEST_RELEASE).body

    def _ask(self, what: str) -> dict[str, Any]:
        path = f"/v1/surveys/{self.keys.task}/{what}"
        return dict(self._server.owned(path, token=self.keys.reader).message)

    def _do(self, what: str, request: Mapping[str, Any]) -> dict[str, Any]:
        path = f"/v1/surveys/{self.keys.task}/{what}"
        return dict(self._server.owned(path, dict(request), token=self.keys.admin).message)


def write_secret(path: Path, text: str) -> None:
    """Write a new file that only its owner can read; an older one is never replaced."""
    try:
        write_file(path, text.encode(), mode=0o600, new=True)
    except FileExistsError:
        raise InputError(f"{path} exists, and may hold secrets. Name another file.") from None
    except OSError as error:
        raise StorageError(f"can't write {path}: {error.strerror}.") from None


def check_new(path: Path) -> None:
    """Refuse a path that can't be written, before secrets are made that are shown only once."""
    if path.exists() or path.is_symlink():
        raise InputError(f"{path} exists, and may hold secrets. Name another file.")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise StorageError(f"can't write into {folder}. Name another folder.")
