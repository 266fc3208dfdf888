"""Whether this machine's clock is right: most BMCs and agents say so, before anything is judged or done by it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from statistics import median

from assay.act.ingest.silent_nodes import open_last_seen
from assay.act.loop.context import ControllerContext
from assay.adapters.bmc.client import open_fleet_bmc
from assay.adapters.bmc.readings import read_manager
from assay.decide.faults.telemetry_silence import silence_deadline
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from assay.model.timestamps import format_duration
from assay.observe.last_seen import CLOCK_OFF

CLOCKS_AGREE_S = 60.0
"""NTP holds a clock within a second. Clocks that nothing sets differ each by another time, and not most by the same."""
LEAST_CLOCKS, MOST_ASKED = 3, 7
ASKED_FOR_S = 10.0


class WrongClock(AssayError):
    """The clock of this controller is wrong: nothing that depends on age can be judged or decided."""


def require_right_clock(context: ControllerContext, documents: Sequence[EvidenceDocument] = ()) -> None:
    """Raise WrongClock where most BMCs and agents differ from this machine by the same time: then they are right.

    The documents that were just read say it. Where they are few, and without documents, agents and other BMCs do.
    """
    readings = {doc.node: doc.channels.get("bmc", {}).get("manager", {}).get("clock_off_s", {}) for doc in documents}
    offsets = {node: float(reading["value"]) for node, reading in readings.items() if "value" in reading}
    is_doubtful = not documents or any(abs(off_s) > CLOCKS_AGREE_S for off_s in offsets.values())
    if len(offsets) < LEAST_CLOCKS and (is_doubtful or not offsets):
        offsets = {**read_agent_clocks(context), **offsets}
    if len(offsets) < LEAST_CLOCKS and is_doubtful:
        offsets |= _ask_bmcs(context, offsets.keys())
    if problem := find_wrong_clock(offsets.values()):
        fix = "set it by a time server, such as: chronyc makestep"
        raise WrongClock(f"{problem}: nothing is judged or decided until it is right", fix=fix)


def find_wrong_clock(offsets: Collection[float]) -> str:
    """Return how this machine's clock is wrong, by how many seconds others are ahead of it; "" if it may be right."""
    if len(offsets) < LEAST_CLOCKS:
        return ""
    off_s = median(offsets)
    alike = [offset for offset in offsets if abs(offset - off_s) <= CLOCKS_AGREE_S]
    if abs(off_s) <= CLOCKS_AGREE_S or len(alike) * 2 <= len(offsets):
        return ""
    differs = f"{format_duration(timedelta(seconds=abs(off_s)))} {'behind' if off_s > 0 else 'ahead of'}"
    return f"the clock of this machine is {differs} the clocks of {len(alike)} of {len(offsets)} BMCs and agents"


def read_agent_clocks(context: ControllerContext) -> Mapping[str, float]:
    """Return by how many seconds agents that delivered just now were ahead of the server, by node.

    A server by another clock than ours, and a lab, whose time is made up, tell nothing of this machine's.
    """
    if context.fleet.is_lab:
        return {}
    last_seen, now = open_last_seen(context), context.clock.now()
    lately = silence_deadline(context.policy.silence, "agent")
    heard = {
        node
        for (node, source), contact in last_seen.contacts().items()
        if source == "agent" and contact.last_at and abs(now - contact.last_at) <= lately
    }
    states = {node: position.state for node, position in last_seen.positions().items() if node in heard}
    return {node: float(state[CLOCK_OFF]) for node, state in states.items() if CLOCK_OFF in state}


def _ask_bmcs(context: ControllerContext, known: Collection[str]) -> Mapping[str, float]:
    """Return by how many seconds some BMCs are ahead of us. Those that answered last are asked."""
    answered = open_last_seen(context).last_answers()
    nodes = [node for node in context.fleet.nodes.values() if node.bmc_address and node.name not in known]
    nodes.sort(key=lambda node: answered.get((node.name, "bmc"), 0.0), reverse=True)

    def ask(node: Node) -> float | None:
        try:
            with open_fleet_bmc(context.fleet, node, ASKED_FOR_S) as bmc:
                off = read_manager(bmc, bmc.system(), context.clock.now)["clock_off_s"].get("value")
        except AssayError:
            return None
        return None if off is None else float(off)

    asked = nodes[:MOST_ASKED]
    with ThreadPoolExecutor(MOST_ASKED) as pool:
        offsets = dict(zip((node.name for node in asked), pool.map(ask, asked), strict=True))
    return {node: off_s for node, off_s in offsets.items() if off_s is not None}
