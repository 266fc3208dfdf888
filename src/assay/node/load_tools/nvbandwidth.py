"""nvbandwidth: copies between host and GPUs, and between GPUs. It exits 0 where it waived or did not know a test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from assay.model.reading import ReadingTree, failed, unsupported, value
from assay.node.load_tools.tool_call import (
    LoadOrder,
    ToolOutput,
    call_tool,
    parse_number,
    parse_object,
    quote_text,
    read_list,
)
from assay.node.probe.node_access import NodeRoot

COPIES = {
    "host_to_device": "host_to_device_memcpy_ce",
    "device_to_host": "device_to_host_memcpy_ce",
    "device_to_device": "device_to_device_memcpy_read_ce",
}
"""Reading → test case. The first two have one row, with a column a GPU; the last has a row and a column a GPU."""
COPIES_S = 600  # it counts samples, not time
SAMPLES = 10


def run_nvbandwidth(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Measure each of `COPIES`."""
    del root
    chosen = [word for test in COPIES.values() for word in ("-t", test)]
    words = ["nvbandwidth", "-j", "-i", str(SAMPLES), *chosen]
    return call_tool(words, LoadOrder(COPIES_S, order.env), parse_nvbandwidth)


def parse_nvbandwidth(output: ToolOutput) -> ReadingTree:
    """Parse the document: for each copy, each GPU's `gb_s`; between GPUs, that of its slowest pair."""
    try:
        document = parse_object(output.stdout).get("nvbandwidth")
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return output.fail(f"nvbandwidth printed no document; exit code {output.exit_code}")
    if document.get("error"):
        return failed(f"nvbandwidth: {quote_text(document['error'])}")
    if output.exit_code:
        return output.fail(f"nvbandwidth ended with exit code {output.exit_code}")
    cases = read_list(document, "testcases")
    return {
        copy: _read_case(test, [case for case in cases if case.get("name") == test]) for copy, test in COPIES.items()
    }


def _read_case(test: str, cases: list[dict[str, Any]]) -> ReadingTree:
    """Return a copy's speeds. A test that failed is in the document twice: nvbandwidth adds its status at the end."""
    for case in cases:
        status = str(case.get("status", ""))
        if status != "Passed":
            reason = f"nvbandwidth says {quote_text(status or 'nothing')} of {test}"
            return unsupported(reason) if status == "Waived" else failed(reason)
    if not cases:
        return failed(f"the document has no {test}")
    rows = cases[-1].get("bandwidth_matrix")
    matrix = [row for row in rows if isinstance(row, list)] if isinstance(rows, list) else []
    count = max(map(len, matrix), default=0)
    if count == 0:
        return failed(f"{test} has no row")
    is_square = len(matrix) == count > 1 or "device_to_device" in test
    return {str(gpu): _read_gpu(matrix, gpu, is_square=is_square) for gpu in range(count)}


def _read_gpu(matrix: list[list[Any]], gpu: int, *, is_square: bool) -> ReadingTree:
    """Return the slowest of a GPU's cells, failed where one was not measured."""
    cells: Mapping[str, Any] = {"host": matrix[0][gpu] if gpu < len(matrix[0]) else None}
    if is_square:
        cells = {}
        for other in range(max(len(matrix), len(matrix[0]))):
            if other != gpu:
                ways = (_cell(matrix, other, gpu), _cell(matrix, gpu, other))
                cells[f"GPU {other}"] = min(ways, key=_speed_or_none_first)
        if not cells:
            return unsupported("there is no other GPU")
    speeds = {peer: parse_number(cell) for peer, cell in cells.items()}
    for peer, speed in speeds.items():
        if speed is None or speed <= 0:
            return failed(f"not measured with {peer}: {quote_text(cells[peer])!r}")
    return {"gb_s": value(min(speed for speed in speeds.values() if speed is not None))}


def _speed_or_none_first(cell: Any) -> float:
    speed = parse_number(cell)
    return -math.inf if speed is None else speed


def _cell(matrix: list[list[Any]], row: int, column: int) -> Any:
    return matrix[row][column] if row < len(matrix) and column < len(matrix[row]) else None
