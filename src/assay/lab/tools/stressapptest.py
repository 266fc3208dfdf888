"""stressapptest on a virtual node: its last lines, with the node's memory errors."""

from __future__ import annotations

import sys

from assay.lab.tools.state_reader import load_node_state, print_lines


def main() -> None:
    """Print the lines; exit with 1 if there are errors."""
    errors = int(load_node_state()["active"]["memory_errors"])
    counts = f"with {min(errors, 1)} hardware incidents, {errors} errors"
    status = "FAIL - test discovered HW problems" if errors else "PASS - please verify no corrected errors"
    print_lines([f"Stats: Completed: 11114.00M in 5.02s 2214.03MB/s, {counts}", "", f"Status: {status}", ""])
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
