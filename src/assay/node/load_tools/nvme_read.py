"""fio reads every local drive from its start, in large blocks: its speed."""

from __future__ import annotations

import json
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.load_tools.tool_call import LoadOrder, call_tool, quote_ending
from assay.node.probe.devices.nvme import NVME_CLASS, list_namespaces
from assay.node.probe.node_access import NodeRoot, leaf_for_error

NVME_READ_S = 5


def run_nvme_read(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Read each drive for at most `NVME_READ_S`. `--readonly` keeps fio from ever writing to one."""
    try:
        drives = root.list_names(NVME_CLASS)
    except OSError as error:
        return leaf_for_error(NVME_CLASS, error)
    each = LoadOrder(min(order.seconds, NVME_READ_S), order.env)
    return {"drives": {drive: _read_drive(root, drive, each) for drive in drives}}


def _read_drive(root: NodeRoot, drive: str, order: LoadOrder) -> ReadingTree:
    try:
        (namespace, *_) = list_namespaces(root, drive)
    except (OSError, ValueError):
        return absent(f"{NVME_CLASS}/{drive} has no namespace")
    job = [f"--name={drive}", f"--filename=/dev/{namespace}", "--readonly", "--rw=read", "--bs=1M"]
    how = ["--ioengine=libaio", "--iodepth=32", "--direct=1", f"--runtime={order.seconds}", "--time_based"]
    arguments = [*job, *how, "--output-format=json"]
    return call_tool(["fio", *arguments], order, lambda output: {"mb_s": parse_fio_read(output.text)})


def parse_fio_read(text: str) -> ReadingTree:
    """Parse `fio --output-format=json` of one read job: MB/s (10^6 bytes). Warnings before the JSON are skipped."""
    try:
        job: Any = json.loads(text[text.index("{") :])["jobs"][0]
        error, bytes_per_s = int(job["error"]), float(job["read"]["bw_bytes"])
    except (ValueError, KeyError, IndexError, TypeError):
        return failed(f"fio printed no result{quote_ending(text)}")
    if error or bytes_per_s <= 0:
        return failed(f"fio could not read: error {error}" if error else "fio read nothing")
    return value(round(bytes_per_s / 1e6, 1))
