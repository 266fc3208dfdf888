"""Scans the real fabric and stores what the tools print, then compares a stored scan with the design, any time later.

A scan runs the discovery, and commands that describe the ports. A disabled port looks like an unplugged cable, and only
iblinkinfo tells them apart. That takes as long as the discovery, so it runs only where designed cables are missing.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from assay.fabric.compare.compare import FabricComparison, compare_cabling
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.health.stored_scan import COUNTERS_COMMAND, FIRST_SCAN_REASON, make_earlier_channel
from assay.fabric.lazy_discovery import LazyDiscovery
from assay.fabric.readers.format_detection import read_tool_output, read_topology
from assay.fabric.readers.port_guids import read_port_guids, resolve_port_guids
from assay.fabric.readers.tool_text import find_stderr_problems
from assay.model.clock import Clock, SystemClock
from assay.model.errors import AssayError
from assay.model.evidence import FABRIC_EVIDENCE_PREFIX, EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.reading import absent, failed, unsupported, value
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.text.packed_text import UnpackingError, read_text

DISCOVER_COMMAND = ("ibnetdiscover",)
LINKS_COMMAND = "links"
"""The name in `fabric_facts` of the command that reads port states, usually `iblinkinfo -l`. It runs only if needed."""
FACTS_COMMANDS = {COUNTERS_COMMAND: ("ibqueryerrors",), LINKS_COMMAND: ("iblinkinfo", "-l")}
"""What describes ports where the inventory has no `fabric_facts`: error counters, and states if cables are missing."""
NO_FACTS_COMMANDS = "no command describes the ports: the inventory has `fabric_discover` but no `fabric_facts`"
NO_NVLINK_COMMAND = (
    "no command discovers this NVLink domain: name one in `nvlink.discover` of the design; in the lab there is none"
)
NO_NVLINK_FACTS = "no command describes the ports of an NVLink domain"
MISSING_KINDS = {"missing", "device-missing"}


def format_fabric_subject(design: FabricDesign) -> str:
    """Return the subject under which the evidence store holds a fabric's scans."""
    return f"{FABRIC_EVIDENCE_PREFIX}{design.name}"


def find_discover_command(fleet: Fleet, design: FabricDesign) -> list[str]:
    """Return the `fabric_discover` of the first of the fabric's nodes that has one, else ibnetdiscover.

    A design may have a command of its own. An NVLink domain has that or none: the list is empty then. The lab runs no
    command of the site.
    """
    if design.discover and not fleet.is_lab:
        return design.discover
    if design.nvlink:
        return [] if fleet.is_lab else design.nvlink.discover
    for name in design.node_names():
        if name in fleet.nodes and (command := fleet.nodes[name].settings.fabric_discover):
            return command
    return list(DISCOVER_COMMAND)


def find_facts_commands(fleet: Fleet, design: FabricDesign) -> dict[str, list[str]]:
    """Return the commands that describe ports, by name: `fabric_facts` of the inventory, else `FACTS_COMMANDS`.

    Returns none where the inventory has `fabric_discover` alone: commands that run here could see another fabric. None
    describes the ports of an NVLink domain. A design may have commands of its own.
    """
    if (design.discover or design.facts) and not fleet.is_lab:
        return design.facts
    if design.nvlink:
        return {}
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
    """Discover the fabric now. A command that fails or misses the deadline is a failed reading, never an exception.

    All commands share one deadline. The evidence has these channels:

    - `discovery`: `text` and `stderr` as printed, `command` as run.
    - `ports`: the same for each command that describes ports, by its name.
    - `earlier`: the counters of the scan `before`, to count growth from. `previous`: the digest of that scan.

    `assay.fabric.health.stored_scan` reads `ports` and `earlier`.
    """
    discover, facts = find_discover_command(fleet, design), find_facts_commands(fleet, design)
    at = (clock or SystemClock()).now()
    end = time.monotonic() + deadline_s
    channels: dict[str, object] = {
        "discovery": _run(discover, deadline_s) if discover else unsupported(NO_NVLINK_COMMAND)
    }
    discovered = EvidenceDocument(format_fabric_subject(design), at, channels)
    names = [name for name in facts if name != LINKS_COMMAND or _lacks_cables(fleet, design, discovered)]
    ports = {name: _run(facts[name], max(end - time.monotonic(), 0.1), exit_code_judges=True) for name in names}
    channels["ports"] = ports if facts else unsupported(NO_NVLINK_FACTS if design.nvlink else NO_FACTS_COMMANDS)
    channels["earlier"] = make_earlier_channel(before, design.split)
    channels["previous"] = value(before.digest()) if before else absent(FIRST_SCAN_REASON)
    return EvidenceDocument(format_fabric_subject(design), at, channels)


def judge_scan(fleet: Fleet, design: FabricDesign, evidence: EvidenceDocument) -> FabricComparison:
    """Compare the discovery in a scan's evidence with the design. Raises AssayError as `compile_topology` does."""
    return compare_scan(compile_topology(design, fleet), evidence)


def compare_scan(topology: CompiledTopology, evidence: EvidenceDocument) -> FabricComparison:
    """Compare the discovery in a scan's evidence. It is partial if that failed, or if no known tool wrote it."""
    text, stderr = evidence.read("discovery", "text"), evidence.read("discovery", "stderr")
    if text.kind != "value":
        return _know_nothing(topology, text.reason)
    try:
        discovery = add_port_states(read_topology(str(text.value), str(stderr.value or "")), evidence)
    except AssayError as error:
        return _know_nothing(topology, error.what, *find_stderr_problems(str(stderr.value or "")))
    return compare_cabling(topology, discovery)


def read_discovery(evidence: EvidenceDocument) -> FabricDiscovery | None:
    """Return what a scan discovered, None where that cannot be read."""
    text, stderr = evidence.read("discovery", "text"), evidence.read("discovery", "stderr")
    with suppress(AssayError):
        return read_topology(str(text.value), str(stderr.value or "")) if text.kind == "value" else None
    return None


def list_discovery_remarks(evidence: EvidenceDocument) -> tuple[str, ...]:
    """Return what could not be read in the discovery of a scan, and what was foreign in it.

    Whether the two ends of each cable agree is for a comparison to tell: it takes long.
    """
    problems, notes = _read_problems_and_notes(evidence)
    return (*(f"could not tell: {problem}" for problem in problems), *(f"note: {note}" for note in notes))


def list_discovery_problems(evidence: EvidenceDocument) -> Sequence[str]:
    """Return what could not be read in the discovery of a scan, nothing if it is whole."""
    return _read_problems_and_notes(evidence)[0]


def _read_problems_and_notes(evidence: EvidenceDocument) -> tuple[Sequence[str], Sequence[str]]:
    text, stderr = evidence.read("discovery", "text"), str(evidence.read("discovery", "stderr").value or "")
    if text.kind != "value":
        return ((text.reason,) if text.kind in ("failed", "unsupported") else (), ())
    try:
        discovery = read_topology(str(text.value), stderr)
    except AssayError as error:
        return (error.what,), ()
    if not isinstance(discovery, LazyDiscovery):
        return discovery.problems, discovery.notes
    empty = () if any(discovery.rows.values()) else ("no cable was discovered",)
    return (*discovery.stderr_problems, *empty), discovery.notes


def _know_nothing(topology: CompiledTopology, *problems: str) -> FabricComparison:
    cables = topology.cables
    return FabricComparison(topology.name, "partial", len(cables), 0, 0, problems=problems, unknown=cables)


def _lacks_cables(fleet: Fleet, design: FabricDesign, discovered: EvidenceDocument) -> bool:
    try:
        return has_missing_cables(judge_scan(fleet, design, discovered))
    except AssayError:
        return False  # the caller of judge_scan gets the same error


def has_missing_cables(comparison: FabricComparison) -> bool:
    """Return whether the discovery shows that cables are missing, so that their ports may be disabled."""
    return any(discrepancy.kind in MISSING_KINDS for discrepancy in comparison.discrepancies)


def add_port_states(discovery: FabricDiscovery, evidence: EvidenceDocument) -> FabricDiscovery:
    """Return the discovery with the port states that the same scan read, if it did.

    Without readable states the discovery is returned as it is: a missing cable stays missing, for an unknown reason.
    """
    text = evidence.read("ports", LINKS_COMMAND, "text")
    if text.kind != "value":
        return discovery
    try:
        links = read_tool_output(str(text.value), str(evidence.read("ports", LINKS_COMMAND, "stderr").value or ""))
    except AssayError:
        return discovery  # the port health names the problem
    known = read_port_guids(str(evidence.read("discovery", "text").value))
    states = resolve_port_guids(links, known).facts
    return FabricDiscovery(
        discovery.cables,
        discovery.devices,
        discovery.problems,
        states,
        notes=discovery.notes,
        port_guids=discovery.port_guids,
    )


def _run(command: Sequence[str], deadline_s: float, *, exit_code_judges: bool = False) -> Mapping[str, object]:
    """Run a command and return its `text`, `stderr` and `command`, or a failed reading.

    With `exit_code_judges`, a command that printed something succeeded: ibqueryerrors exits with 1 if it finds errors.
    """
    line = shlex.join(command)
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return failed(f"{line}: {error.strerror or error}")
    try:
        out, err = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        return failed(f"{line}: no answer within {deadline_s:g} s")
    stderr = err.decode(errors="replace")
    try:
        text = read_text(io.BytesIO(out))
    except UnpackingError as error:
        return failed(f"{line}: what it printed cannot be unpacked: {error}")
    if process.returncode and not (exit_code_judges and text.strip()):
        last = (stderr.strip() or text.strip() or "it printed nothing").splitlines()[-1]
        return failed(f"{line}: exit code {process.returncode}: {last}")
    return {"text": value(text), "stderr": value(stderr), "command": value(list(command))}


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the command and the processes that it started. One that cannot be ended must not block the scan."""
    os.killpg(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=1)
    except subprocess.TimeoutExpired:
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
