"""One look at the real fabric: run the discovery, keep what it said; judge that later, and again."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence

from assay.fabric.compare import Comparison, compare
from assay.fabric.design import plan
from assay.fabric.ends import lost_on
from assay.fabric.health.scanned import COUNTERS, FIRST, earlier
from assay.fabric.readers import topology
from assay.fabric.switched_off import LINKS, is_in_question, with_states
from assay.model.clock import Clock, SystemClock
from assay.model.design import FabricDesign
from assay.model.errors import Trouble
from assay.model.evidence import OF_FABRIC, Evidence
from assay.model.fleet import Fleet
from assay.model.reading import absent, failed, unsupported, value

COMMAND = ("ibnetdiscover",)
FACTS = {COUNTERS: ("ibqueryerrors",), LINKS: ("iblinkinfo", "-l")}
"""What is asked of the ports where the inventory does not say: error counters, of ports that have any; and where cables
are missing, whose ports are disabled."""

NOBODY = "nobody was asked about ports: the inventory has `fabric_discover` but no `fabric_facts`"


def subject_name(design: FabricDesign) -> str:
    """Return the name under which a fabric's evidence is kept."""
    return f"{OF_FABRIC}{design.name}"


def discover_command(fleet: Fleet, design: FabricDesign) -> list[str]:
    """Return the inventory's `fabric_discover` of the first of the fabric's nodes that has one, else ibnetdiscover."""
    for name in design.node_names():
        command = fleet.nodes[name].variables.get("fabric_discover") if name in fleet.nodes else None
        if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
            return command
        if command:
            raise Trouble(
                f"fabric_discover of {name} is {command!r}, not a list of words",
                where=f"inventory: {name}",
                fix='write it as a list, ["ssh", "HOST", "ibnetdiscover"]',
            )
    return list(COMMAND)


def facts_commands(fleet: Fleet, design: FabricDesign) -> dict[str, list[str]]:
    """Return the commands that describe ports, by name: the inventory's `fabric_facts`, else `FACTS`.

    A fabric that is discovered by a command of its own, and has no `fabric_facts`, has none: what runs here might see
    another fabric.
    """
    variables = [fleet.nodes[name].variables for name in design.node_names() if name in fleet.nodes]
    for one in variables:
        if isinstance(commands := one.get("fabric_facts"), dict) and commands:
            return {str(name): [str(word) for word in words] for name, words in commands.items()}
    elsewhere = any(one.get("fabric_discover") for one in variables)
    return {} if elsewhere else {name: list(words) for name, words in FACTS.items()}


def scan(
    fleet: Fleet,
    design: FabricDesign,
    deadline_s: float = 60,
    clock: Clock | None = None,
    before: Evidence | None = None,
) -> Evidence:
    """Discover the fabric now. What cannot be discovered by the deadline is a failed reading, never an exception.

    Channel `discovery`: `text` and `stderr` as printed, `command` as run. One deadline holds for all commands; the one
    named `links` is run where designed cables are missing. Channels `ports` and `earlier`: see
    `assay.fabric.health.scanned`; growth is counted from the scan `before`, whose digest is channel `previous`.
    """
    discover, facts = discover_command(fleet, design), facts_commands(fleet, design)
    at = (clock or SystemClock()).now()
    end = time.monotonic() + deadline_s
    channels: dict[str, object] = {"discovery": _run(discover, deadline_s)}
    found = Evidence(subject_name(design), at, channels)
    asked = [name for name in facts if name != LINKS or _lacks_cables(fleet, design, found)]
    ports = {name: _run(facts[name], max(end - time.monotonic(), 0.1), judged=True) for name in asked}
    channels["ports"] = ports if facts else unsupported(NOBODY)
    channels["earlier"] = earlier(before)
    channels["previous"] = value(before.digest()) if before else absent(FIRST)
    return Evidence(subject_name(design), at, channels)


def judge(fleet: Fleet, design: FabricDesign, evidence: Evidence) -> Comparison:
    """Compare the discovery in `evidence` with the design. Raises Trouble as `plan`.

    A discovery that failed, or that no known tool wrote, is partial.
    """
    compiled = plan(design, fleet)
    text, stderr = evidence.read("discovery", "text"), evidence.read("discovery", "stderr")
    if text.kind != "value":
        return Comparison(design.name, "partial", len(compiled.cables), 0, 0, problems=(text.reason,))
    try:
        discovery = with_states(topology(str(text.value), str(stderr.value or "")), evidence)
    except Trouble as unknown:
        why = (unknown.what, *lost_on(str(stderr.value or "")))
        return Comparison(design.name, "partial", len(compiled.cables), 0, 0, problems=why)
    return compare(compiled, discovery)


def _lacks_cables(fleet: Fleet, design: FabricDesign, found: Evidence) -> bool:
    try:
        return is_in_question(judge(fleet, design, found))
    except Trouble:
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
