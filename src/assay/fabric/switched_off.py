"""Ports that somebody disabled: they have no link, as if unplugged, and only iblinkinfo says why.

To ask it takes as long as the discovery itself, and it prints three times as much. So a scan asks only where designed
cables are missing: a fabric as designed costs nothing more.
"""

from __future__ import annotations

from assay.fabric.compare import Comparison
from assay.fabric.discovery import Discovery
from assay.fabric.readers import read
from assay.fabric.readers.addresses import addresses, by_device
from assay.model.errors import Trouble
from assay.model.evidence import Evidence

LINKS = "links"
"""The name in `fabric_facts` of the command that is asked only then, `iblinkinfo -l` as a rule."""
MISSING = {"missing", "device-missing"}


def is_in_question(comparison: Comparison) -> bool:
    """Say whether a whole discovery lacks cables of which somebody may have disabled a port."""
    return comparison.verdict == "mismatch" and any(one.kind in MISSING for one in comparison.discrepancies)


def with_states(discovery: Discovery, evidence: Evidence) -> Discovery:
    """Return the discovery with what the same scan was told of the state of ports, if anything was.

    A cable without link is no less so where that text cannot be read: it only stays open why.
    """
    said = evidence.read("ports", LINKS, "text")
    if said.kind != "value":
        return discovery
    try:
        links = read(str(said.value), str(evidence.read("ports", LINKS, "stderr").value or ""))
    except Trouble:
        return discovery  # the health of ports tells of it
    known = addresses(str(evidence.read("discovery", "text").value))
    return Discovery(discovery.cables, discovery.devices, discovery.problems, by_device(links, known).facts)
