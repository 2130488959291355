"""A survey without trust, over HTTP: a server, an owner, a device, and a crowd that is simulated.

Needs the extra ``service``. The device draws its answer once, keeps it, shows it and sends it; the
server never sees the true one.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.server.simulator import Simulation, drive

import sfumato as sf

SCHEMA = {
    "sfumato": 1,
    "dataset": "town",
    "columns": [
        {"name": "smoker", "kind": "boolean"},
        {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
    ],
}


@contextmanager
def serving() -> Iterator[tuple[str, str]]:
    """The address and the token of a service on a new database."""
    command = [sys.executable, "-m", "sfumato", "survey", "serve"]
    options = ["--database", "surveys.db", "--port", "0"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as server:
        said: dict[str, str] = {}
        while "page" not in said and server.stdout is not None:
            name, _, value = server.stdout.readline().strip().partition(" ")
            said[name] = value.strip()
        try:
            yield said["address"], said["token"]
        finally:
            server.terminate()


def main() -> None:
    """One survey in two rounds, and how many answers each of them got."""
    with serving() as (address, token):
        wanted = {"title": "Health", "schema": SCHEMA, "epsilon": "2", "minimum": 100}
        wanted["rehearsal"] = True  # its crowd is simulated
        owner = sf.SurveyOwner.create(address, wanted, token=token)
        (personal,) = owner.invite(1)
        (shared,) = owner.invite(1, uses=3_000)
        record = {"smoker": "no", "health": "good"}
        client = sf.SurveyClient(personal, record, state="device.json", rng=sf.secure_rng())
        for _ in range(2):
            print(owner.open())
            print("  leaves this device:", client.preview())
            print(" ", client.step())
            print("  the crowd:", dict(drive(shared, Simulation(people=3_000)).outcomes))
            owner.close()
        print(owner.release(), owner.status()["answers"])


if __name__ == "__main__":
    main()
