"""The benchmarks that ``bench/run.py`` runs, in the order of docs/benchmarks.md.

What the page says beside the figures stands here, under ``remarks`` and ``why``.
"""

from typing import Final

import earlier
from goals import Goal, Task

NO_PEERS: Final = ("--no-peers",)
SMALL: Final = ("--quick",)
LOOPS: Final = "the document's loops"

TASKS: Final = (
    Task(
        name="noise",
        title="Noise",
        script="noise.py",
        compares="exact discrete noise: OpenDP, diffprivlib",
        minutes=1,
        quick=SMALL,
        alone=NO_PEERS,
        environments=("noise",),
        remarks=(
            "One million draws of ours; the limit is the random words that they take, by AES-CTR. "
            "OpenDP draws vectors, exactly, as ours. diffprivlib has no bulk form and uses "
            "floating point; its package does not import with scikit-learn 1.9.",
        ),
    ),
    Task(
        name="local",
        title="Local protocols",
        script="local.py",
        compares="people per second: pure-ldp, multi-freq-ldpy, OpenDP",
        minutes=3,
        quick=SMALL,
        alone=NO_PEERS,
        environments=("local",),
        goals=tuple(
            Goal(
                case=case,
                at_least=rate,
                why="a prototype's figure, on a machine whose random source was faster; the "
                "kernels alone take 1.0 ns (GRR) and 0.8 ns (Hadamard) a person, the random bytes "
                "1.1 to 1.5",
            )
            for case, rate in (
                ("GRR", 417e6),
                ("OUE", 12.6e6),
                ("OLH", 10.5e6),
                ("Hadamard response", 474e6),
                ("subset selection", 2.75e6),
            )
        ),
        remarks=(
            "128 categories, epsilon 1, one core; individual answers are randomized and counted. "
            "Each peer at its best: compiled loops of ours around its clients where it has none. "
            "pure-ldp's fast OLH uses 10,000 hash functions and has a bias that ours has not; "
            "multi-freq-ldpy's subset selection leaks. OLH is limited by hashing, not by random "
            "bytes.",
            "In an earlier run: 100 million people by GRR (`--stream 100000000`) in 0.31 s, memory "
            "grows by 0.2 MB; people a second for means by Duchi 390-420M, Piecewise 87-122M, "
            "square wave 69-80M, Hybrid 54-80M, Laplace 8-11M; key-value by PrivKV, state, F2M, "
            "BiSample 14-32M, PCKV-GRR 39-63M, PCKV-UE 3-8M (100 keys).",
        ),
    ),
    Task(
        name="counting",
        title="Counting",
        script="counting.py",
        compares="all 105 pairs of 3,000,000 x 15: numpy, DuckDB, Polars",
        minutes=2,
        arguments=("--rows", "3000000"),
        quick=SMALL,
        alone=NO_PEERS,
        environments=("counting",),
        goals=(
            Goal(
                case="Parquet against memory",
                at_most=2,
                why="the kernel takes a fifth of the prototype's time, so decoding "
                "64-bit integers weighs as much as counting",
            ),
            Goal(case="all 105 pairs, from Parquet: memory of the process", at_most=600),
        ),
        remarks=(
            "CPU-seconds of all threads together. Limits: one pass over the codes in memory; "
            "pyarrow's decoding alone for the file. In memory the process also holds the table.",
            "Ten million rows (`python bench/counting.py`) in an earlier run: "
            "0.53 CPU-s in memory, 1.39 from Parquet with 364 MB, one pass 0.05, decoding 0.47.",
        ),
    ),
    Task(
        name="recommend_speed",
        title="Item neighbors",
        script="recommend_speed.py",
        compares="cosine, best 40 of each item: implicit, Surprise, scipy's product alone",
        minutes=2,
        quick=SMALL,
        alone=NO_PEERS,
        environments=("recommend",),
        goals=(
            Goal(case="MovieLens 100K", at_most=0.052, why="a prototype's figure, in another run"),
            Goal(case="made up, 1M", at_most=0.595, why="a prototype's figure, in another run"),
        ),
        remarks=(
            "One thread each. scipy makes the products only, without norms or the best of each "
            "row; Surprise takes the cosine over common raters and sorts later. Memory is what the "
            "run added. `--large` adds 20 million ratings.",
        ),
    ),
    Task(
        name="mwem_speed",
        title="MWEM",
        script="mwem_speed.py",
        compares="multiplicative weights: the document's own loops",
        minutes=2,
        quick=SMALL,
        goals=(
            *(
                Goal(
                    case=f"1-D, 14 cells, T = 30: {part}",
                    ahead=100,
                    than=LOOPS,
                    why="so few cells take the document only milliseconds; ours is mostly 60 "
                    "passes through a gate that checks, charges, journals and draws exactly, 0.1 "
                    "ms each",
                )
                for part in (
                    "multiplicative weights",
                    "whole, from a histogram",
                    "whole, from the rows",
                )
            ),
            *(
                Goal(case=f"2-D, 56 cells, T = 200: {part}", ahead=100, than=LOOPS)
                for part in (
                    "multiplicative weights",
                    "whole, from a histogram",
                    "whole, from the rows",
                )
            ),
            Goal(case="1,048,576 cells, 200 marginals, T = 50: memory", at_most=6),
        ),
        remarks=("The rows are 1,013,184. Accuracy is in [the MWEM lab](mwem-lab.md).",),
        earlier=earlier.MWEM_SPEED,
        missed=(earlier.MWEM_MISSED,),
    ),
    Task(
        name="synthesis",
        title="Central synthesis",
        script="synthesis.py",
        compares="Adult and NLTCS, all pairs: OpenDP, smartnoise-synth, dpmm, DataSynthesizer",
        minutes=8,
        arguments=(
            *("--table", "adult", "--table", "nltcs", "--seeds", "3"),
            *("--method", "auto", "--method", "mst", "--method", "aim"),
            *("--epsilon", "1", "--epsilon", "10", "--beside", "nltcs"),
        ),
        quick=("--table", "nltcs", "--seeds", "1", "--method", "mst", "--epsilon", "1"),
        needs_data=True,
        goals=(
            Goal(case="adult, epsilon 1: error of pairs", at_most=0.0395),
            Goal(
                case="adult, epsilon 10: error of pairs",
                at_most=0.0173,
                why="a stretch; a larger model would reach it for more than 15 CPU-seconds",
            ),
        ),
        remarks=(
            "Total variation, the mean over all pairs; delta 1e-9. The first line of ours is what "
            "ratios compare. On NLTCS at epsilon 1 all were run in the same run; the peers' other "
            "figures are those stored by `python bench/synthesis_peers.py`, by the same metric. "
            "Their CPU-seconds hold the start of the process and compilation, ours do not (the "
            "first use on a machine compiles for some seconds). All tables, epsilons and methods: "
            "[central synthesis](synthesis.md).",
            "Trees alone on NLTCS: the tree of the largest L1 errors of pairs has an error of .087 "
            "before any noise (that of the largest mutual information .080), so what is missing "
            "there is the tree's, not the noise's; the automatic choice does not take a tree.",
        ),
        earlier=earlier.SYNTHESIS,
        missed=(earlier.SYNTHESIS_MISSED,),
    ),
    Task(
        name="network",
        title="Network of DP2-Pub",
        script="network.py",
        compares="greedy network: the document's own method",
        minutes=3,
        arguments=("--quick",),
        goals=(Goal(case="network of 50 attributes of 100 to 150 values, 3 parents", at_most=27),),
        remarks=(
            "10,000 records. The document's method runs whole on 6 attributes and is extrapolated "
            "by the number of evaluations: with data frames of text as written, with plain text, "
            "and in a fair numpy version. Ours scores parent sets from pairs; with one parent both "
            "find the same network.",
        ),
        earlier=earlier.NETWORK,
    ),
    Task(
        name="startup",
        title="Waiting",
        script="startup.py",
        compares="`sfumato --help`, `import sfumato`, `sfumato demo`",
        minutes=1,
        quick=(),
        goals=(
            Goal(case="sfumato --help", at_most=0.5),
            Goal(case="import sfumato", at_most=0.3),
            Goal(case="sfumato demo, the second time", at_most=15),
        ),
    ),
    Task(
        name="dp2pub_speed",
        title="DP2-Pub at full size",
        script="dp2pub_speed.py",
        compares="1,000,000 people x 50 columns by step; the document's loops",
        minutes=4,
        remarks=(
            "Goals: tens of milliseconds for 10,000 people, minutes and below 2 GB for a million.",
        ),
        earlier=earlier.DP2PUB_SPEED,
    ),
    Task(
        name="methods",
        title="Methods",
        script="methods.py",
        compares="histogram, independent columns, MWEM and auto on three tables",
        minutes=4,
        needs_data=True,
        remarks=(
            "Mean total variation over all 2-way marginals, pure budgets, 3 seeds. The automatic "
            "choice is not the best at epsilon 0.1: it does not know how strongly the columns are "
            "tied ([limits](limits.md)).",
        ),
        earlier=earlier.METHODS,
    ),
    Task(
        name="auto",
        title="Automatic choice",
        script="auto.py",
        compares="auto against the best single method",
        minutes=6,
        missed=(earlier.AUTO_MISSED,),
    ),
    Task(
        name="plan",
        title="Plans",
        script="plan.py",
        compares="predicted error beside the measured",
        minutes=10,
        needs_data=True,
        missed=(earlier.PLAN_MISSED,),
    ),
    Task(
        name="local_variances",
        title="Variances of local protocols",
        script="local_variances.py",
        compares="measured variance beside the formula",
        minutes=2,
    ),
    Task(
        name="dp2pub",
        title="DP2-Pub",
        script="dp2pub.py",
        compares="accuracy by trust and epsilon",
        minutes=6,
        needs_data=True,
    ),
    Task(
        name="faithful",
        title="DP2-Pub, faithful",
        script="faithful.py",
        compares="the document's own method, accuracy",
        minutes=6,
        needs_data=True,
    ),
    Task(
        name="grouped",
        title="DP2-Pub, grouped",
        script="grouped.py",
        compares="our variant beside the document's",
        minutes=10,
        needs_data=True,
    ),
    Task(
        name="recommend",
        title="Private recommenders",
        script="recommend.py",
        compares="accuracy against epsilon, MovieLens 100K",
        minutes=15,
        needs_data=True,
    ),
    Task(
        name="baselines",
        title="Recommenders without a guarantee",
        script="recommend_baselines.py",
        compares="accuracy: Surprise, published figures",
        minutes=6,
        environments=("recommend",),
        needs_data=True,
    ),
    Task(
        name="pncf_attack",
        title="PNCF under attack",
        script="pncf_attack.py",
        compares="the published method and ours under the same attacks",
        minutes=15,
        needs_data=True,
    ),
    Task(
        name="pncf_lists",
        title="What lists give away",
        script="pncf_lists.py",
        compares="the published method, exact recommenders and ours",
        minutes=10,
        needs_data=True,
    ),
    Task(
        name="mwem_lab",
        title="MWEM lab",
        script="mwem_lab.py",
        compares="accuracy of the document's experiments",
        minutes=6,
        needs_data=True,
    ),
    Task(
        name="synthesis_wide",
        title="A wide table",
        script="synthesis_wide.py",
        compares="auto on 1,000,000 x 100",
        minutes=4,
    ),
    Task(
        name="peer_synthesis",
        title="Peers of central synthesis",
        script="synthesis_peers.py",
        compares="every peer, table and epsilon that is not stored yet",
        minutes=60,
        environments=(
            "synthesis-opendp",
            "synthesis-smartnoise",
            "synthesis-dpmm",
            "synthesis-datasynthesizer",
        ),
        needs_data=True,
    ),
    Task(
        name="pushdown",
        title="Counting on a PostgreSQL server",
        script="pushdown.py",
        compares="GROUP BY on the server against reading its rows",
        minutes=5,
    ),
    Task(
        name="spark",
        title="Spark",
        script="spark.py",
        compares="the embedded engine and Spark in local mode",
        minutes=10,
        goals=(
            Goal(case="Spark, Parquet files, against the embedded engine", at_most=8),
            Goal(
                case="Spark, DataFrame, against the embedded engine",
                at_most=8,
                why="three quarters of it is the JVM turning rows into Arrow; give the files with "
                "spark:: where tasks can read them",
            ),
            Goal(case="Spark, CPU against the number of partitions", at_most=1.1),
        ),
        remarks=(
            "All 105 pairs of 10,000,000 x 15. Files named by `spark::` are read by the tasks "
            "themselves; a DataFrame's rows come through the JVM. Partitions are of equal size.",
        ),
    ),
    Task(
        name="survey_load",
        title="The survey service",
        script="survey_load.py",
        compares="durable answers per CPU-second, delays",
        minutes=5,
    ),
    Task(
        name="service_drills",
        title="Drills of the service",
        script="service_drills.py",
        compares="killed, crowded, copied to: what is promised and what was found",
        minutes=15,
    ),
    Task(
        name="poisoning",
        title="Poisoning drill",
        script="poisoning.py",
        compares="fakes found, false alarms",
        minutes=15,
    ),
    Task(
        name="install",
        title="Installing",
        script="install.py",
        compares="size and start of a fresh environment",
        minutes=2,
    ),
)
