"""iperf3 against a host of the site: the speed of the front-end network. With -J it exits 0 on a refused connection."""

from __future__ import annotations

from assay.model.reading import ReadingTree, absent, failed
from assay.node.load_tools.json_output import parse_object, read_speed
from assay.node.load_tools.tool_call import LoadOrder, ToolOutput, call_tool, quote_text
from assay.node.probe.node_access import NodeRoot

IPERF_S = 10
STREAMS = 8
BITS = 1e-9


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
