"""all_reduce_perf of nccl-tests over all GPUs of the node: bus bandwidth, and wrong elements."""

from __future__ import annotations

import tempfile
from pathlib import Path

from assay.model.reading import ReadingTree, absent, value
from assay.node.load_tools.nccl_tests import parse_all_reduce, parse_report
from assay.node.load_tools.tool_call import TOOL_GRACE_S, LoadOrder, call_tool
from assay.node.probe.gpu.gpu_list import DRIVER_LIST, count_gpus
from assay.node.probe.node_access import NodeRoot

USAGE_S = 20


def run_all_reduce(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Reduce 1 to 8 GiB over all GPUs. nccl-tests counts iterations, not time."""
    gpus = count_gpus(root)
    if gpus == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    words = ["all_reduce_perf", "-b", "1G", "-e", "8G", "-f", "2", "-g", str(gpus), "-c", "1"]
    allowed = LoadOrder(TOOL_GRACE_S, order.env)
    if not _writes_reports(order):
        return call_tool(words, allowed, lambda output: parse_all_reduce(output.text))
    with tempfile.TemporaryDirectory(prefix="assay-nccl-") as folder:  # -J never overwrites: it would write FILE.0
        report = Path(folder, "report.json")
        return call_tool([*words, "-J", str(report)], allowed, lambda output: _read_report(report, output.text))


def _writes_reports(order: LoadOrder) -> bool:
    """Whether this all_reduce_perf knows `-J FILE`: older versions refuse it."""
    asked = LoadOrder(USAGE_S, order.env)
    usage = call_tool(["all_reduce_perf", "-h"], asked, lambda output: value(output.text), grace_s=0)
    return "--output_file" in str(usage.get("value", ""))


def _read_report(report: Path, text: str) -> ReadingTree:
    """Return the readings of the report, or of the table where the tool ended before it wrote a whole one."""
    try:
        return parse_report(report.read_text(errors="replace"))
    except (OSError, ValueError):
        return parse_all_reduce(text)
