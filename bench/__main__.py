"""`make bench`: measures what should be fast, each figure against its bound.

Prints one JSON line a measurement on stdout; progress and a table for people on stderr, with the figures that were kept
in `bench/figures.tsv`. Then the new ones stand in that file: commit it. Exit code 1: a bound does not hold, or a part
broke off. At the end of a part, stderr says how long it took. `python -m bench fabric` runs one part.
"""

from __future__ import annotations

import sys

from bench.kept import compare, keep, read_kept
from bench.part_run import run_parts
from bench.parts import PARTS
from bench.table import format_table


def main(names: list[str]) -> int:
    """Run the named parts, or all; print the measurements and return the exit code, 2 for a name that is no part's."""
    if unknown := [name for name in names if name not in PARTS]:
        print(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)  # noqa: T201
        return 2
    runs = list(run_parts(names or list(PARTS)))
    taken = compare([measurement for run in runs for measurement in run.taken], read_kept())
    print(format_table(taken), file=sys.stderr)  # noqa: T201 — for people
    keep(taken)
    broken = [run for run in runs if run.broke_off]
    for run in broken:
        print(f"{run.name} broke off: {run.broke_off}", file=sys.stderr)  # noqa: T201 — for people
    return 0 if not broken and all(measurement.holds for measurement in taken) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
