"""Other recommenders, run in an environment of their own; one line of JSON each.

``recommend_peers.py neighbors FILE`` times implicit's cosine neighbors and scipy's X'X (which is
only the products, not the best of them); ``recommend_peers.py surprise FILE`` fits Surprise's
item neighbors to one part of the ratings and predicts the other. FILE is an .npz that the bench
wrote.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

NEIGHBORS = 40


def megabytes(field: str) -> float:
    """VmRSS: what is in memory now; VmHWM: the most since it was last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def start_peak() -> float:
    """What is in memory now, from which the peak is counted anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return megabytes("VmRSS")


def timed(run, times: int) -> float:
    """CPU seconds of the fastest of several runs, all threads together."""
    found = []
    for _ in range(times):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def neighbors(given, times: int) -> None:
    from implicit.nearest_neighbours import CosineRecommender
    from scipy.sparse import csr_matrix

    shape = (given["starts"].size - 1, int(given["catalogue"]))
    rated = csr_matrix((given["ratings"], given["items"], given["starts"]), shape=shape)
    before = start_peak()

    def fit() -> None:  # an item is its own first neighbor here
        CosineRecommender(K=NEIGHBORS + 1, num_threads=1).fit(rated, show_progress=False)

    seconds = timed(fit, times)
    told = {"seconds": seconds, "grown": megabytes("VmHWM") - before}
    print(json.dumps({"peer": "implicit", "version": version("implicit"), **told}))
    if rated.nnz < 5_000_000:
        before = start_peak()
        seconds = timed(lambda: rated.T @ rated, times)
        found = {
            "peer": "scipy, X'X alone",
            "version": version("scipy"),
            "seconds": seconds,
            "grown": megabytes("VmHWM") - before,
        }
        print(json.dumps(found))
        surprise_neighbors(rated, 1 if rated.nnz > 500_000 else times)


def surprise_neighbors(rated, times: int) -> None:
    """Its cosine of common raters, all pairs of items; the best of each are found when predicting.

    The ratings it is given are ready: reading them is not timed.
    """
    from surprise import Dataset, KNNBasic, Reader

    people, items = rated.nonzero()
    rows = zip(people.tolist(), items.tolist(), rated.data.tolist(), strict=True)
    learned = Dataset(Reader(rating_scale=(1, 5))).construct_trainset(
        [(*row, None) for row in rows]
    )
    options = {"name": "cosine", "user_based": False}
    before = start_peak()
    seconds = timed(
        lambda: KNNBasic(k=NEIGHBORS, sim_options=options, verbose=False).fit(learned), times
    )
    told = {"seconds": seconds, "grown": megabytes("VmHWM") - before}
    print(json.dumps({"peer": "Surprise", "version": version("scikit-surprise"), **told}))


def surprise(given) -> None:
    from surprise import Dataset, KNNBaseline, KNNWithMeans, Reader, accuracy

    reader = Reader(rating_scale=(1, 5))
    rows = [(int(u), int(i), float(r), None) for u, i, r in given["train"]]
    data = Dataset(reader)
    learned = data.construct_trainset(rows)
    told = [(int(u), int(i), float(r)) for u, i, r in given["test"]]
    for kind in (KNNWithMeans, KNNBaseline):
        options = {"name": "pearson", "user_based": False}
        model = kind(k=NEIGHBORS, sim_options=options, verbose=False).fit(learned)
        found = model.test(told)
        values = np.array([one.est for one in found])
        errors = {
            "mae": accuracy.mae(found, verbose=False),
            "rmse": accuracy.rmse(found, verbose=False),
        }
        print(json.dumps({"peer": kind.__name__, **errors, "sum": values.sum()}))


def main() -> None:
    warnings.filterwarnings("ignore")
    task, path, times = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with np.load(path) as file:
        given = dict(file)
    if task == "neighbors":
        neighbors(given, times)
    else:
        surprise(given)


if __name__ == "__main__":
    main()
