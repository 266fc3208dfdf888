"""stress-ng writes and verifies most of the host's memory, with all of its patterns."""

from __future__ import annotations

import re

from assay.model.reading import ReadingTree, failed, value
from assay.node.load_tools.tool_call import LoadOrder, call_tool, quote_ending
from assay.node.probe.node_access import NodeRoot

MEMORY_BITS = re.compile(r"vm: detected (\d+) bit errors?")
MEMORY_FAIL = re.compile(r"^stress-ng: fail:", re.MULTILINE)
MEMORY_END = re.compile(r"\b(un)?successful run completed in")


def run_memory(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Verify 60 % of the memory that is free."""
    del root
    load = ["--vm", "4", "--vm-bytes", "60%", "--vm-method", "all", "--verify"]
    words = ["stress-ng", *load, "--timeout", f"{order.seconds}s", "--metrics-brief"]
    return call_tool(words, order, lambda output: {"errors": parse_stress_ng(output.text)})


def parse_stress_ng(text: str) -> ReadingTree:
    """Parse `stress-ng --vm N --verify`: the number of wrong bits; a failure without a number counts as one."""
    end = MEMORY_END.search(text)
    if end is None:
        return failed(f"stress-ng did not complete{quote_ending(text)}")
    bits = sum(map(int, MEMORY_BITS.findall(text)))
    failures = len(MEMORY_FAIL.findall(text))
    if end[1] and not failures:
        return failed(f"stress-ng completed unsuccessfully{quote_ending(text)}")
    return value(max(bits, failures))
