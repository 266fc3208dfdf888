"""all_reduce_perf of nccl-tests over all GPUs of the node: bus bandwidth, and wrong elements.

It reports by a table on stdout, and by the JSON document that `-J FILE` writes. The document's `env` is the whole
environment of the process, secrets included: nothing here returns it.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.load_tools.tool_call import TOOL_GRACE_S, LoadOrder, ToolOutput, call_tool, quote_ending, quote_text
from assay.node.probe.gpu.gpu_list import DRIVER_LIST, count_gpus
from assay.node.probe.node_access import NodeRoot

RANK = re.compile(r"^\[\d+,\d+\]<std(?:out|err)>: ?", re.MULTILINE)  # mpirun --tag-output
AVERAGE = re.compile(r"^# Avg bus bandwidth\s*: (\d+(?:\.\d+)?(?:e[+-]\d+)?)", re.MULTILINE)
OUT_OF_BOUNDS = re.compile(r"^# Out of bounds values\s*: (\d+) (OK|FAILED)", re.MULTILINE)
DESCRIPTION_COLUMNS = 5  # size, count, type, redop, root
WRONG_COLUMNS: dict[int, tuple[int, ...]] = {8: (3, 7), 16: (3, 11)}
"""Where #wrong stands after the description: in a plain row, and in one with the columns of each iteration (`-I 1`)."""
TIMESTAMP_COLUMNS = 2
RANK_LINE = re.compile(r"^#\s+Rank\s+\d+ ", re.MULTILINE)
STARTING, CONCLUDED = "# Collective test starting", "# Collective test concluded"
FAILURE = re.compile(r"^.*Test (?:NCCL|CUDA) failure.*$|^.*Test failure .*$", re.MULTILINE)
UNCHECKED = "the results were not checked (#wrong is N/A)"
USAGE_S = 20


def parse_all_reduce(text: str) -> ReadingTree:
    """Parse nccl-tests' table: the average bus bandwidth in GB/s, and the number of wrong elements."""
    text = RANK.sub("", text)
    average = AVERAGE.search(text)
    bandwidth = (
        value(float(average[1])) if average else failed(f"no average bus bandwidth in the output{quote_ending(text)}")
    )
    return {"bus_bandwidth_gb_s": bandwidth, "wrong": _count_in_table(text)}


def parse_report(text: str) -> ReadingTree:
    """Parse the document of `-J`: the same two readings. Raises ValueError if it is no whole document of nccl-tests."""
    document: Any = json.loads(text)
    try:
        rows, summary, average = (document[key] for key in ("results", "out_of_bounds", "average_bus_bandwidth"))
        counts = [half["nwrong"] for row in rows for name in ("out_of_place", "in_place") if (half := row[name])]
        wrong = int(summary["count"])
        bandwidth = float(average["bandwidth"])
    except (KeyError, TypeError) as error:
        raise ValueError("this is no whole report of nccl-tests") from error
    is_number = counts and math.isfinite(bandwidth)
    return {
        "bus_bandwidth_gb_s": value(bandwidth) if is_number else failed("the report has no average bus bandwidth"),
        "wrong": _sum_wrong([None if count is None else _parse_count(str(count)) for count in counts], wrong),
    }


def _count_in_table(text: str) -> ReadingTree:
    counts = list(_list_wrong(text))
    summary = OUT_OF_BOUNDS.search(text)
    if not counts or summary is None:
        return failed(f"no result rows and summary in the output{quote_ending(text)}")
    return _sum_wrong([_parse_count(count) for count in counts], int(summary[1]))


def _list_wrong(text: str) -> Iterator[str]:
    """Yield #wrong out of place and in place of every result row."""
    for line in text.splitlines():
        words = line.split()
        if len(words) <= DESCRIPTION_COLUMNS or not (words[0].isdecimal() and words[1].isdecimal()):
            continue
        figures = words[DESCRIPTION_COLUMNS:]
        places = WRONG_COLUMNS.get(len(figures)) or WRONG_COLUMNS.get(len(figures) - TIMESTAMP_COLUMNS, ())
        yield from (figures[place] for place in places)


def _parse_count(text: str) -> int | None:
    """Return a count, which `%g` prints as 1e+06 from a million on; None if nothing was counted."""
    try:
        count = float(text)
    except ValueError:
        return None
    return int(count) if math.isfinite(count) and count >= 0 else None


def _sum_wrong(counts: list[int | None], summary: int) -> ReadingTree:
    """Return the wrong elements. One that was counted is wrong, whatever else was not checked."""
    wrong = max(sum(count or 0 for count in counts), summary)
    return value(wrong) if wrong or (counts and None not in counts) else failed(UNCHECKED)


def run_all_reduce(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Reduce 1 to 8 GiB over all GPUs. nccl-tests counts iterations, not time."""
    gpus = count_gpus(root)
    if gpus == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    words = ["all_reduce_perf", "-b", "1G", "-e", "8G", "-f", "2", "-g", str(gpus), "-c", "1"]
    allowed = LoadOrder(TOOL_GRACE_S, order.env)
    # Older versions refuse `-J FILE`.
    question = LoadOrder(USAGE_S, order.env)
    usage = call_tool(["all_reduce_perf", "-h"], question, lambda output: value(output.text), grace_s=0)
    if "--output_file" not in str(usage.get("value", "")):
        return call_tool(words, allowed, lambda output: read_all_reduce(output, gpus))
    with tempfile.TemporaryDirectory(prefix="assay-nccl-") as folder:  # -J never overwrites: it would write FILE.0
        report = Path(folder, "report.json")
        return call_tool([*words, "-J", str(report)], allowed, lambda output: read_all_reduce(output, gpus, report))


def read_all_reduce(output: ToolOutput, gpus: int, report: Path | None = None) -> ReadingTree:
    """Return the readings of a run over `gpus`: of its report, or of the table where it wrote no whole one.

    Wrong elements count however it ended. None of them counts only where it ended well, and on all GPUs.
    """
    try:
        tree = parse_report(report.read_text(errors="replace") if report else "")
    except (OSError, ValueError):
        tree = parse_all_reduce(output.text)
    ranks = len(RANK_LINE.findall(RANK.sub("", output.text)))
    if tree["wrong"].get("value"):
        return tree
    if output.exit_code:
        return output.fail(f"all_reduce_perf ended with exit code {output.exit_code}")
    if failure := FAILURE.search(output.text):
        return failed(f"all_reduce_perf: {quote_text(failure[0])}")
    if STARTING in output.text and CONCLUDED not in output.text:
        return output.fail("all_reduce_perf did not conclude its test")
    return tree if ranks == gpus else failed(f"all_reduce_perf used {ranks} of {gpus} GPUs")
