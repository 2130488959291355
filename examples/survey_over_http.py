"""A survey without trust, over HTTP: a server, an owner, a person, and a crowd that is made up.

Needs the extra ``service``. Every device draws its answer once, keeps it, shows it and sends it;
the server never sees the true one.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sfumato as sf

SCHEMA = {
    "sfumato": 1,
    "dataset": "town",
    "columns": [
        {"name": "smoker", "kind": "boolean"},
        {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
    ],
}
PEOPLE = 120


@contextmanager
def serving() -> Iterator[tuple[str, str]]:
    """The address and the token of a service on a new database."""
    command = [sys.executable, "-m", "sfumato", "survey", "serve"]
    options = ["--database", "surveys.db", "--port", "0", "--rate", "0"]  # one address for all
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as server:
        said: dict[str, str] = {}
        while "page" not in said and server.stdout is not None:
            name, _, value = server.stdout.readline().strip().partition(" ")
            said[name] = value.strip()
        try:
            yield said["address"], said["token"]
        finally:
            server.terminate()


def crowd(link: sf.SurveyLink) -> list[sf.SurveyClient]:
    """Devices of people who do not exist; their noise is seeded, and protects nobody."""
    Path("crowd").mkdir(exist_ok=True)
    rng, health = sf.simulation_rng(7), ("poor", "fair", "good")
    levels = rng.below(3, PEOPLE)
    records = [{"smoker": "no" if level else "yes", "health": health[level]} for level in levels]
    return [
        sf.SurveyClient(link, record, state=f"crowd/{n}.json", rng=rng)
        for n, record in enumerate(records)
    ]


def main() -> None:
    """One survey in two rounds, and how many answers each of them got."""
    with serving() as (address, token):
        wanted = {"title": "Health", "schema": SCHEMA, "epsilon": "2", "minimum": 30}
        wanted["rehearsal"] = True  # its crowd is made up
        owner = sf.SurveyOwner.create(address, wanted, token=token)
        (personal,) = owner.invite(1)
        (shared,) = owner.invite(1, uses=PEOPLE)
        record = {"smoker": "no", "health": "good"}
        client = sf.SurveyClient(personal, record, state="device.json", rng=sf.secure_rng())
        others = crowd(shared)
        for _ in range(2):
            print(owner.open())
            print("  leaves this device:", client.preview())
            print(" ", client.step())
            print("  the crowd:", dict(Counter(other.step().what for other in others)))
            owner.close()
        print(owner.release(), owner.status()["answers"])


if __name__ == "__main__":
    main()
