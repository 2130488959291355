"""The drills of the survey service alone: kill it, crowd it, copy to it, and count.

``bench/drill.py`` has them all; options as there.
"""

import sys

from drill import main

if __name__ == "__main__":
    main(["--only", "service", *sys.argv[1:]])
