"""stressapptest: copies blocks of host memory with all processors, and compares them."""

from __future__ import annotations

import re

from assay.model.reading import ReadingTree, failed, value
from assay.node.load_tools.tool_call import LoadOrder, ToolOutput, call_tool
from assay.node.probe.node_access import NodeRoot

SHARE = 0.6  # of the memory that is free
MEMORY_FILE = "/proc/meminfo"
AVAILABLE = re.compile(r"^MemAvailable:\s+(\d+) kB", re.MULTILINE)
COMPLETED = re.compile(r"^Stats: Completed: .* with (\d+) hardware incidents, (\d+) errors\s*$", re.MULTILINE)
STATUS = re.compile(r"^Status: (PASS|FAIL)\b(.*)$", re.MULTILINE)
PROCESS_ERROR = re.compile(
    r"^(?:Process Error|Log: Process Error|Report Error).*procedural.*$|^Process Error.*$", re.MULTILINE
)


def run_stressapptest(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Test most of the free memory of the host."""
    try:
        found = AVAILABLE.search(root.read_text(MEMORY_FILE))
    except OSError as error:
        return failed(f"{MEMORY_FILE}: {error.strerror}")
    if found is None:
        return failed(f"{MEMORY_FILE} does not say how much memory is free")
    megabytes = int(int(found[1]) / 1024 * SHARE)
    words = ["stressapptest", "-W", "-s", str(order.seconds), "-M", str(megabytes)]
    return call_tool(words, order, parse_stressapptest)


def parse_stressapptest(output: ToolOutput) -> ReadingTree:
    """Parse the last lines: `errors`, the wrong blocks and hardware incidents that it counted.

    Without a status it was stopped. A failure without a count is a failure of the test, such as too little memory.
    """
    status, counts = STATUS.findall(output.stdout), COMPLETED.findall(output.stdout)
    if not status:
        return output.fail("stressapptest did not complete")
    if PROCESS_ERROR.search(output.stdout) or not counts:
        return output.fail(f"stressapptest could not test; exit code {output.exit_code}")
    errors = max(map(int, counts[-1]))
    has_failed = status[-1][0] == "FAIL" or output.exit_code != 0
    if has_failed and not errors:
        return output.fail(f"stressapptest failed without an error; exit code {output.exit_code}")
    return {"errors": value(errors)}
