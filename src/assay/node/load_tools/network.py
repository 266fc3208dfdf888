"""The node's network: each InfiniBand adapter writes to itself (ib_write_bw), and iperf3 measures the front end.

ib_write_bw of perftest writes from host memory, or from a GPU's by GPUDirect. The loop leaves the adapter's port
unused: it proves the adapter, its PCIe and its path to the GPU. The links are for `assay collectives`.
iperf3 runs against a host of the site. With -J it exits 0 on a refused connection.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from assay.model.reading import ReadingTree, absent, failed
from assay.node.load_tools.tool_call import (
    LoadOrder,
    ToolOutput,
    call_tool,
    parse_object,
    quote_text,
    read_speed,
    scrub_environment,
)
from assay.node.probe.devices.network_adapters import INFINIBAND_CLASS
from assay.node.probe.gpu.gpu_list import DRIVER_LIST
from assay.node.probe.isolated_reader import kill_tree
from assay.node.probe.node_access import NodeRoot, leaf_for_error

MESSAGE_BYTES = 8 * 2**20  # as Azure/azurehpc-health-checks
WRITE_S = 10
LISTENING_S = 5
FIRST_PORT = 18_515
IPERF_S = 10
STREAMS = 8
BITS = 1e-9


def run_ib_write_bw(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Write from host memory on each adapter, one after the other."""
    return _run_adapters(root, order, {})


def run_ib_write_bw_gpu(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Write from the memory of the GPU that is nearest to each adapter."""
    try:
        gpus = root.list_names(DRIVER_LIST)
    except OSError as error:
        return leaf_for_error(DRIVER_LIST, error)
    return _run_adapters(root, order, dict(enumerate(gpus)))


def _run_adapters(root: NodeRoot, order: LoadOrder, gpus: dict[int, str]) -> ReadingTree:
    try:
        adapters = root.list_names(INFINIBAND_CLASS)
    except OSError as error:
        return leaf_for_error(INFINIBAND_CLASS, error)
    if not adapters:
        return absent(f"{INFINIBAND_CLASS} is empty")
    seconds = min(order.seconds, WRITE_S)
    each = LoadOrder(seconds, order.env)
    readings = {}
    for at, adapter in enumerate(adapters):
        words = ["ib_write_bw", "-d", adapter, "-p", str(FIRST_PORT + at), "-s", str(MESSAGE_BYTES), "-D", str(seconds)]
        words += ["-F", "--report_gbits", *([f"--use_cuda={find_nearest_gpu(root, adapter, gpus)}"] if gpus else [])]
        readings[adapter] = _run_loop(words, each)
    return {"adapters": readings}


def find_nearest_gpu(root: NodeRoot, adapter: str, gpus: dict[int, str]) -> int:
    """Return the CUDA index of the GPU that shares most of its path in the PCIe tree with an adapter."""
    here = _resolve(root, f"{INFINIBAND_CLASS}/{adapter}/device")

    def count_shared_bridges(index: int) -> tuple[int, int]:
        there = _resolve(root, f"/sys/bus/pci/devices/{gpus[index].lower()}")
        shared = next(
            (at for at, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), min(len(here), len(there))
        )
        return shared, -index

    return max(gpus, key=count_shared_bridges)


def _resolve(root: NodeRoot, path: str) -> tuple[str, ...]:
    try:
        return Path(root.local_path(path)).resolve().parts
    except OSError:
        return ()


def _run_loop(words: list[str], order: LoadOrder) -> ReadingTree:
    """Start the server, then the client on the same adapter, and return what the client's report says."""
    with tempfile.TemporaryDirectory(prefix="assay-perftest-") as folder:
        report = Path(folder, "report.json")
        nothing = subprocess.DEVNULL
        environment = scrub_environment(order.env)
        try:
            server = subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing, env=environment)
        except FileNotFoundError:
            return absent(f"{words[0]} is not installed")
        try:
            return _run_client([*words, "--out_json", f"--out_json_file={report}", "localhost"], order, report)
        finally:
            kill_tree(server.pid)
            server.wait()


def _run_client(words: list[str], order: LoadOrder, report: Path) -> ReadingTree:
    """Run the client; again, for a while, where the server does not listen yet."""
    until = time.monotonic() + LISTENING_S
    while True:
        leaf = call_tool(words, order, lambda output: read_report(report, output))
        if "Couldn't connect" not in str(leaf.get("failed", "")) or time.monotonic() > until:
            return leaf
        time.sleep(0.2)


def read_report(report: Path, output: ToolOutput) -> ReadingTree:
    """Return the readings of the report that the client wrote, or why there are none."""
    try:
        text = report.read_text(errors="replace")
    except OSError:
        text = ""
    return parse_ib_write_bw(ToolOutput(output.tool, output.exit_code, text, output.text))


def parse_ib_write_bw(output: ToolOutput) -> ReadingTree:
    """Parse the report of `--out_json` with `--report_gbits`: the average, `gbps`. `stderr` is what was printed."""
    if output.exit_code:
        return output.fail(f"ib_write_bw ended with exit code {output.exit_code}")
    try:
        results = parse_object(output.stdout).get("results")
    except ValueError:
        results = None
    if not isinstance(results, dict):
        return output.fail("ib_write_bw wrote no results")
    return {"gbps": read_speed(results.get("BW_average"))}


def run_front_end(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Send to the server that the spec names."""
    del root
    if not order.site.iperf3_server:
        return absent("the node's spec names no server (load.iperf3_server)")
    seconds = min(order.seconds, IPERF_S)
    words = ["iperf3", "-J", "-c", order.site.iperf3_server, "-t", str(seconds), "-P", str(STREAMS)]
    return call_tool(words, LoadOrder(seconds, order.env), parse_iperf3)


def parse_iperf3(output: ToolOutput) -> ReadingTree:
    """Parse the document: what the server received, `gbps`."""
    try:
        document = parse_object(output.stdout)
    except ValueError:
        return output.fail(f"iperf3 printed no document; exit code {output.exit_code}")
    if document.get("error"):
        return failed(f"iperf3: {quote_text(document['error'])}")
    end = document.get("end")
    received = end.get("sum_received") if isinstance(end, dict) else None
    if output.exit_code or not isinstance(received, dict):
        return output.fail(f"iperf3 gave no result; exit code {output.exit_code}")
    return {"gbps": read_speed(received.get("bits_per_second"), BITS)}
