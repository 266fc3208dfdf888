"""`dcgmi mndiag`: DCGM's test of all nodes of a rack at once, from one of them.

DCGM 4's code puts the title below the key `DCGM Diagnostic`, its schema (dcgm_mndiag_schema.json) below `DCGM
Multi-Node Diagnostic`; both are read.
"""

from __future__ import annotations

from typing import Any

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.load_tools.dcgm_diag import explain_refusal, make_leaf
from assay.node.load_tools.json_output import parse_object, read_list
from assay.node.load_tools.tool_call import LoadOrder, ToolOutput, call_tool, quote_text
from assay.node.probe.node_access import NodeRoot, leaf_for_error

HOST_NAME_FILE = "/proc/sys/kernel/hostname"
MNDIAG_S = 3600


def run_dcgm_mndiag(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Test the rack. A node that stands in no whole rack has nothing to test."""
    if not order.site.rack_hosts:
        return absent("the node's spec has no whole rack")
    words = ["dcgmi", "mndiag", "-r", "mnubergemm", "--hostList", ";".join(order.site.rack_hosts), "-j"]
    try:
        own = root.read_text(HOST_NAME_FILE)
    except OSError as error:
        return leaf_for_error(HOST_NAME_FILE, error)
    return call_tool(words, LoadOrder(MNDIAG_S, order.env), lambda output: parse_dcgm_mndiag(output, own))


def parse_dcgm_mndiag(output: ToolOutput, own: str) -> ReadingTree:
    """Parse the document: `devices` of the host `own`, by GPU and test; `hosts` with those of the others; `exit_code`.

    Leaves are as of `dcgmi diag`. A host without a result is not in it.
    """
    if (refusal := explain_refusal(output)) is not None:
        return refusal
    try:
        document = parse_object(output.stdout)
    except ValueError:
        return output.fail(f"dcgmi mndiag printed no document; exit code {output.exit_code}")
    if document.get("runtime_error"):
        return failed(f"dcgmi mndiag could not run: {quote_text(document['runtime_error'])}")
    tests = [test for category in read_list(document, "test_categories") for test in read_list(category, "tests")]
    names = {
        one.get("host_id"): quote_text(one.get("hostname", "")) for one in read_list(document, "hosts") if _is_id(one)
    }
    hosts: dict[str, ReadingTree] = {name: {} for name in names.values() if name}
    for test in tests:
        if isinstance(test.get("mpi_error"), dict):
            return failed(f"dcgmi mndiag: {quote_text(test['mpi_error'].get('warning', 'an error of MPI'))}")
        for result in read_list(test, "results"):
            host = names.get(result["host_id"]) if _is_id(result) else None
            if host and str(result.get("entity_group", "")).upper() == "GPU":
                gpu = hosts[host].setdefault(quote_text(result.get("entity_id")), {})
                gpu[quote_text(test.get("name", "")).lower()] = make_leaf(result)
    errors = [quote_text(one.get("warning", "")) for one in read_list(document, "global_errors")]
    if errors or not any(hosts.values()):
        return failed(f"dcgmi mndiag: {errors[0] if errors else 'it tested no GPU'}")
    mine = next((name for name in hosts if name.partition(".")[0] == own.partition(".")[0]), "")
    devices = hosts.pop(mine, {}) or failed(f"the document has no result of {quote_text(own)}")
    return {"exit_code": value(output.exit_code), "devices": devices, "hosts": hosts}


def _is_id(one: dict[str, Any]) -> bool:
    return isinstance(one.get("host_id"), int)
