"""One look at the real fabric: run the discovery, keep what it said; judge that later, and again.

Ports that somebody disabled: they have no link, as if unplugged, and only iblinkinfo says why.

To ask it takes as long as the discovery itself, and it prints three times as much. So a scan asks only where designed
cables are missing: a fabric as designed costs nothing more.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence

from assay.fabric.comparison.compare import FabricComparison, compare_cabling
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.health.scan_facts import COUNTERS_COMMAND, FIRST_SCAN_REASON, make_earlier_channel
from assay.fabric.readers.format_detection import read_tool_output, read_topology
from assay.fabric.readers.lid_addresses import read_addresses, resolve_port_guids
from assay.fabric.readers.port_listing import find_stderr_problems
from assay.fabric.topology.design_compiler import compile_topology
from assay.model.clock import Clock, SystemClock
from assay.model.errors import AssayError
from assay.model.evidence import FABRIC_EVIDENCE_PREFIX, EvidenceDocument
from assay.model.fabric.fabric_design import FabricDesign
from assay.model.fleet import Fleet
from assay.model.reading import absent, failed, unsupported, value

LINKS_COMMAND = "links"
"""The name in `fabric_facts` of the command that is asked only then, `iblinkinfo -l` as a rule."""
MISSING_KINDS = {"missing", "device-missing"}


def has_missing_cables(comparison: FabricComparison) -> bool:
    """Say whether a whole discovery lacks cables of which somebody may have disabled a port."""
    return comparison.verdict == "mismatch" and any(one.kind in MISSING_KINDS for one in comparison.discrepancies)


def add_port_states(discovery: FabricDiscovery, evidence: EvidenceDocument) -> FabricDiscovery:
    """Return the discovery with what the same scan was told of the state of ports, if anything was.

    A cable without link is no less so where that text cannot be read: it only stays open why.
    """
    said = evidence.read("ports", LINKS_COMMAND, "text")
    if said.kind != "value":
        return discovery
    try:
        links = read_tool_output(str(said.value), str(evidence.read("ports", LINKS_COMMAND, "stderr").value or ""))
    except AssayError:
        return discovery  # the health of ports tells of it
    known = read_addresses(str(evidence.read("discovery", "text").value))
    return FabricDiscovery(
        discovery.cables, discovery.devices, discovery.problems, resolve_port_guids(links, known).facts
    )


DISCOVER_COMMAND = ("ibnetdiscover",)
FACTS_COMMANDS = {COUNTERS_COMMAND: ("ibqueryerrors",), LINKS_COMMAND: ("iblinkinfo", "-l")}
"""What is asked of the ports where the inventory does not say: error counters, of ports that have any; and where cables
are missing, whose ports are disabled."""

NO_FACTS_COMMANDS = "nobody was asked about ports: the inventory has `fabric_discover` but no `fabric_facts`"


def format_fabric_subject(design: FabricDesign) -> str:
    """Return the name under which a fabric's evidence is kept."""
    return f"{FABRIC_EVIDENCE_PREFIX}{design.name}"


def find_discover_command(fleet: Fleet, design: FabricDesign) -> list[str]:
    """Return the inventory's `fabric_discover` of the first of the fabric's nodes that has one, else ibnetdiscover."""
    for name in design.node_names():
        if name in fleet.nodes and (command := fleet.nodes[name].settings.fabric_discover):
            return command
    return list(DISCOVER_COMMAND)


def find_facts_commands(fleet: Fleet, design: FabricDesign) -> dict[str, list[str]]:
    """Return the commands that describe ports, by name: the inventory's `fabric_facts`, else `FACTS_COMMANDS`.

    A fabric that is discovered by a command of its own, and has no `fabric_facts`, has none: what runs here might see
    another fabric.
    """
    settings = [fleet.nodes[name].settings for name in design.node_names() if name in fleet.nodes]
    for node_settings in settings:
        if node_settings.fabric_facts:
            return node_settings.fabric_facts
    elsewhere = any(node_settings.fabric_discover for node_settings in settings)
    return {} if elsewhere else {name: list(words) for name, words in FACTS_COMMANDS.items()}


def run_fabric_scan(
    fleet: Fleet,
    design: FabricDesign,
    deadline_s: float = 60,
    clock: Clock | None = None,
    before: EvidenceDocument | None = None,
) -> EvidenceDocument:
    """Discover the fabric now. What cannot be discovered by the deadline is a failed reading, never an exception.

    Channel `discovery`: `text` and `stderr` as printed, `command` as run. One deadline holds for all commands; the one
    named `links` is run where designed cables are missing. Channels `ports` and `make_earlier_channel`: see
    `assay.fabric.health.scan_facts`; growth is counted from the scan `before`, whose digest is channel `previous`.
    """
    discover, facts = find_discover_command(fleet, design), find_facts_commands(fleet, design)
    at = (clock or SystemClock()).now()
    end = time.monotonic() + deadline_s
    channels: dict[str, object] = {"discovery": _run(discover, deadline_s)}
    found = EvidenceDocument(format_fabric_subject(design), at, channels)
    asked = [name for name in facts if name != LINKS_COMMAND or _lacks_cables(fleet, design, found)]
    ports = {name: _run(facts[name], max(end - time.monotonic(), 0.1), judged=True) for name in asked}
    channels["ports"] = ports if facts else unsupported(NO_FACTS_COMMANDS)
    channels["earlier"] = make_earlier_channel(before)
    channels["previous"] = value(before.digest()) if before else absent(FIRST_SCAN_REASON)
    return EvidenceDocument(format_fabric_subject(design), at, channels)


def judge_scan(fleet: Fleet, design: FabricDesign, evidence: EvidenceDocument) -> FabricComparison:
    """Compare the discovery in `evidence` with the design. Raises Trouble as `compile_topology`.

    A discovery that failed, or that no known tool wrote, is partial.
    """
    compiled = compile_topology(design, fleet)
    text, stderr = evidence.read("discovery", "text"), evidence.read("discovery", "stderr")
    if text.kind != "value":
        return FabricComparison(design.name, "partial", len(compiled.cables), 0, 0, problems=(text.reason,))
    try:
        discovery = add_port_states(read_topology(str(text.value), str(stderr.value or "")), evidence)
    except AssayError as unknown:
        why = (unknown.what, *find_stderr_problems(str(stderr.value or "")))
        return FabricComparison(design.name, "partial", len(compiled.cables), 0, 0, problems=why)
    return compare_cabling(compiled, discovery)


def _lacks_cables(fleet: Fleet, design: FabricDesign, found: EvidenceDocument) -> bool:
    try:
        return has_missing_cables(judge_scan(fleet, design, found))
    except AssayError:
        return False  # whoever judges the scan is told


def _run(command: Sequence[str], deadline_s: float, *, judged: bool = False) -> dict[str, object]:
    """Run a command. `judged`: its exit code judges what it printed (ibqueryerrors: 1 for errors), so that counts."""
    said = shlex.join(command)
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return failed(f"{said}: {error.strerror or error}")  # type: ignore[return-value]
    try:
        out, err = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        return failed(f"{said}: no answer within {deadline_s:g} s")  # type: ignore[return-value]
    text, stderr = out.decode(errors="replace"), err.decode(errors="replace")
    if process.returncode and not (judged and text.strip()):
        last = (stderr.strip() or text.strip() or "it said nothing").splitlines()[-1]
        return failed(f"{said}: exit code {process.returncode}: {last}")  # type: ignore[return-value]
    return {"text": value(text), "stderr": value(stderr), "command": value(list(command))}


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it started. A process that cannot be ended must not hold the scan."""
    os.killpg(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=1)
    except subprocess.TimeoutExpired:
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
