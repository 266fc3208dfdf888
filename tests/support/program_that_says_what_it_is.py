"""Says what a script can see of its process, and ends with the number that it is given."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    print(sys.argv, __file__, sys.path[0], Path.cwd())  # noqa: T201
    sys.exit(int(sys.argv[2]))
