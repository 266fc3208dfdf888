"""HPL, as the site runs it: a command of its node spec, such as one that starts NVIDIA's image."""

from __future__ import annotations

import re

from assay.model.reading import ReadingTree, absent, value
from assay.node.load_tools.json_output import read_speed
from assay.node.load_tools.tool_call import LoadOrder, ToolOutput, call_tool
from assay.node.probe.node_access import NodeRoot

HPL_S = 3600
RESULT_ROW = re.compile(r"^W[RC]\S+\s+\d+\s+\d+\s+\d+\s+\d+\s+\S+\s+(\S+)", re.MULTILINE)
RESIDUAL = re.compile(r"^\|\|Ax-b\|\|.*\.\.\.\s*(PASSED|FAILED)\s*$", re.MULTILINE)


def run_hpl(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Run the site's command. HPL's size decides how long it takes, up to an hour."""
    del root
    if not order.site.hpl:
        return absent("the node's spec declares no command for HPL (load.hpl)")
    return call_tool(order.site.hpl, LoadOrder(HPL_S, order.env), parse_hpl)


def parse_hpl(output: ToolOutput) -> ReadingTree:
    """Parse the table: `gflops` of the slowest run, and whether all residuals are `right`."""
    rates, residuals = RESULT_ROW.findall(output.stdout), RESIDUAL.findall(output.stdout)
    if not rates or len(residuals) < len(rates):
        return output.fail(
            f"HPL gave {len(rates)} results, of which {len(residuals)} are verified; exit code {output.exit_code}"
        )
    speeds = [read_speed(rate) for rate in rates]
    slowest = min(speeds, key=lambda leaf: leaf.get("value", 0.0))
    right = "FAILED" not in residuals
    if output.exit_code and right:
        return output.fail(f"HPL ended with exit code {output.exit_code}")
    return {"gflops": slowest, "right": value(right)}
