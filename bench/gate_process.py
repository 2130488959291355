"""What a gate in a process of its own would cost: the same runs with the curator behind a pipe.

SFUMATO_DATA=... python bench/gate_process.py [--table nltcs] [--runs 5]

A prototype, for decision 23 only: the curator lives in a child process, its verbs are called
through a pipe, and the process of the algorithm never holds the table. Printed are the start, the
price of one call, and whole runs beside those of the curator as it is, in turn, as ratios of
seconds. The noise is seeded, so both must give the same measurements: that is checked.
"""

import argparse
import copyreg
import io
import multiprocessing
import os
import pickle
import statistics
import time
import types
from pathlib import Path

import numpy as np

import sfumato as sf

VERBS = ("measure", "score", "select", "total", "reserve", "pick", "sigma_of")
STATE = (
    "left",
    "knows_rows",
    "schema",
    "protect",
    "budget",
    "private",
    "run",
    "catalogue",
    "scale",
)
METHODS = {"independent": "", "mst": "", "aim": "", "auto": ""}
SEED = 1

copyreg.pickle(types.MappingProxyType, lambda mapping: (dict, (dict(mapping),)))


class _Pickler(pickle.Pickler):
    """The table's schema goes by name: verbs ask whether a view is of that very object."""

    def persistent_id(self, value):
        return "schema" if isinstance(value, sf.Schema) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, schema):
        super().__init__(file)
        self._schema = schema

    def persistent_load(self, name):
        return self._schema


def _packed(value):
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(value)
    return file.getvalue()


class Behind:
    """What an algorithm sees of a curator in another process."""

    def __init__(self, folder, *, start):
        context = multiprocessing.get_context(start)
        self._here, there = context.Pipe()
        self._child = context.Process(target=_serve, args=(there, folder), daemon=True)
        self._child.start()
        there.close()
        self.calls, self.bytes = 0, 0
        self.rng = sf.simulation_rng(SEED + 1)
        self.schema = _schema(folder)

    def __getattr__(self, name):
        if name in STATE:
            return self._ask(name, None)
        if name in VERBS:
            return lambda *args, **named: self._ask(name, [*enumerate(args), *named.items()])
        raise AttributeError(name)

    def tell(self, what, done, of):
        """Nobody watches."""

    def _ask(self, name, given):
        parts = None if given is None else [(key, _packed(value)) for key, value in given]
        message = pickle.dumps((name, parts), protocol=5)
        self.calls += 1
        self._here.send_bytes(message)
        answer = self._here.recv_bytes()
        self.bytes += len(message) + len(answer)
        value = _Unpickler(io.BytesIO(answer), self.schema).load()
        if isinstance(value, Exception):
            raise value
        return value

    def close(self):
        """End the child."""
        self._child.terminate()
        self._child.join()
        self._here.close()


def _serve(pipe, folder):
    """Answer; the same argument again is the same object, as verbs expect of views and targets."""
    curator, known = _curator(folder), {}

    def value_of(text):
        if text not in known:
            known[text] = _Unpickler(io.BytesIO(text), curator.schema).load()
        return known[text]

    while True:
        name, parts = pickle.loads(pipe.recv_bytes())
        try:
            value = getattr(curator, name)
            if parts is not None:
                args = [value_of(text) for key, text in parts if isinstance(key, int)]
                value = value(*args, **{k: value_of(t) for k, t in parts if isinstance(k, str)})
        except Exception as error:
            value = error
        pipe.send_bytes(_packed(value))


def _schema(folder):
    return sf.Schema.load(next(Path(folder).glob("*-domain.json")))


def _curator(folder):
    schema = _schema(folder)
    table = sf.open_table(next(Path(folder).glob("*.csv")), schema)
    return sf.Curator(
        table,
        protect=sf.OneRow(),
        budget=sf.ApproxDP("1", "1e-9"),
        ledger=sf.Ledger.in_memory(dataset="bench"),
        rng=sf.simulation_rng(SEED),
    )


def _algorithm(name, schema):
    from sfumato.publishing.methods import algorithm_named

    workload = sf.all_marginals(schema, degree=2)
    return algorithm_named(name, workload=workload, rows=None, totals=(), options={})


def _run(curator, name, schema):
    """Seconds of an algorithm's run, and what it measured."""
    algorithm = _algorithm(name, schema)
    start = time.perf_counter()
    outcome = algorithm.run(curator)
    return time.perf_counter() - start, outcome


def main():
    """Print the table."""
    given = argparse.ArgumentParser()
    given.add_argument("--table", default="nltcs")
    given.add_argument("--runs", type=int, default=5)
    given.add_argument("--methods", nargs="*", default=list(METHODS))
    given = given.parse_args()
    folder = str(Path(os.environ["SFUMATO_DATA"], given.table))
    schema = _schema(folder)
    for start in ("fork", "spawn"):
        begun = time.perf_counter()
        behind = Behind(folder, start=start)
        behind.pick(10)
        print(f"start by {start:6} {time.perf_counter() - begun:6.2f} s")
        begun = time.perf_counter()
        for _ in range(1_000):
            behind.pick(10)
        print(f"one call          {1e3 * (time.perf_counter() - begun):6.1f} microseconds")
        behind.close()
    begun = time.perf_counter()
    _curator(folder)
    print(f"a curator here    {time.perf_counter() - begun:6.2f} s")
    for name in given.methods:
        _run(_curator(folder), name, schema)  # compiles
        here, apart, calls, size = [], [], 0, 0
        for _ in range(given.runs):
            held = _curator(folder)
            held.pick(10)
            seconds, outcome = _run(held, name, schema)
            here.append(seconds)
            behind = Behind(folder, start="fork")
            behind.pick(10)
            seconds, other = _run(behind, name, schema)
            apart.append(seconds)
            calls, size = behind.calls, behind.bytes
            behind.close()
            _check_same(outcome, other)
        ratio = statistics.median(apart) / statistics.median(here)
        print(
            f"{name:12} here {statistics.median(here):6.3f} s, "
            f"apart {statistics.median(apart):6.3f} s, ratio {ratio:5.2f}, "
            f"{calls:,} calls, {size / 1e6:,.1f} MB"
        )


def _check_same(outcome, other):
    mine, yours = _measured(outcome), _measured(other)
    assert len(mine) == len(yours) > 0
    for one, another in zip(mine, yours, strict=True):
        assert one.target == another.target
        assert np.array_equal(one.values, another.values)


def _measured(outcome):
    return list(outcome.measurements)


if __name__ == "__main__":
    main()
