"""How long a person waits: `sfumato --help`, `import sfumato`, and `sfumato demo` the second time.

python bench/startup.py
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds(command, cwd):
    start = time.perf_counter()
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)
    return time.perf_counter() - start


def main():
    program = str(Path(sys.executable).with_name("sfumato"))
    with tempfile.TemporaryDirectory() as folder:
        cases = {
            "sfumato --help (hold: under 0.5 s)": ([program, "--help"], 5),
            "import sfumato (hold: under 0.3 s)": ([sys.executable, "-c", "import sfumato"], 5),
            "sfumato demo (hold: under 15 s)": ([program, "demo", "--force"], 2),
        }
        for name, (command, times) in cases.items():
            taken = [seconds(command, folder) for _ in range(times)]
            print(f"{name:<40} {taken[-1]:.2f} s")


if __name__ == "__main__":
    main()
