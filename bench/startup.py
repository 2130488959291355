"""How long a person waits: `sfumato --help`, `import sfumato`, and `sfumato demo` the second time.

python bench/startup.py
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recording import OURS, record


def seconds(command, cwd):
    """By the clock and of the processor, of one process that ends."""
    start, before = time.perf_counter(), os.times()
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)
    after, wall = os.times(), time.perf_counter() - start
    cpu = after.children_user + after.children_system
    return wall, cpu - before.children_user - before.children_system


def main():
    program = str(Path(sys.executable).with_name("sfumato"))
    with tempfile.TemporaryDirectory() as folder:
        cases = {
            "sfumato --help": ([program, "--help"], 5),
            "import sfumato": ([sys.executable, "-c", "import sfumato"], 5),
            "sfumato demo, the second time": ([program, "demo", "--force"], 2),
        }
        for name, (command, times) in cases.items():
            taken = [seconds(command, folder) for _ in range(times)]
            wall, cpu = min(wall for wall, _ in taken[1:]), min(cpu for _, cpu in taken[1:])
            print(f"{name:<40} {wall:.2f} s, {cpu:.2f} CPU-s")
            record(name, OURS, cpu, "CPU-s", note=f"{wall:.2f} s by the clock")


if __name__ == "__main__":
    main()
