"""Tells of which host recorded files are, where they say it: the lines of a log often name their host."""

from __future__ import annotations

from collections.abc import Iterable

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument

HOST_LEAVES = (("probe", "host", "hostname"), ("bmc", "log_host"))
"""Where a recording stores the host that its lines name."""


def find_foreign_hosts(evidence: EvidenceDocument, nodes: Iterable[str]) -> list[str]:
    """Return the hosts that recorded files name, and that have not their node's name.

    Raises AssayError where such a host is another one of `nodes`.
    """
    read = [evidence.read(*path) for path in HOST_LEAVES]
    named = {str(leaf.value) for leaf in read if leaf.kind == "value"}
    foreign = sorted(host for host in named if not _is_same(host, evidence.node))
    for host in foreign:
        if other := next((node for node in nodes if _is_same(host, node)), None):
            what = f"the lines of the files are of {host}, which is another node than {evidence.node}"
            raise AssayError(what, fix=f"--node {other}, or files of {evidence.node}")
    return foreign


def _is_same(host: str, node: str) -> bool:
    """Whether two names are of one machine: the case of letters and a domain do not count."""
    return host.lower() == node.lower() or host.lower().partition(".")[0] == node.lower().partition(".")[0]
