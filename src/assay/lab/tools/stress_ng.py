"""stress-ng --vm --verify on a virtual node: its log lines, with the node's memory errors."""

from __future__ import annotations

from collections.abc import Iterator

from assay.lab.tools.state_reader import State, load_node_state, print_lines

PID = 4242


def format_stress_log(state: State) -> Iterator[str]:
    """Yield the log of a run."""
    errors = int(state["active"]["memory_errors"])
    yield f"stress-ng: info:  [{PID}] dispatching hogs: 4 vm"
    if errors:
        yield f"stress-ng: fail:  [{PID + 1}] vm: detected {errors} bit errors while stressing memory"
        yield f"stress-ng: error: [{PID}] process {PID + 1} (vm) terminated with an error, exit status=2"
    yield f"stress-ng: info:  [{PID}] {'un' if errors else ''}successful run completed in 60.00s (1 min, 0.00 secs)"


def main() -> None:
    """Print the log."""
    print_lines(format_stress_log(load_node_state()))


if __name__ == "__main__":
    main()
