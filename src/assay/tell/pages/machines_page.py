"""The page of machines that were seen: strangers, what stands elsewhere, contradictions, and what was delivered."""

from __future__ import annotations

from assay.tell.pages.page_frame import PageRequest, render_frame
from assay.tell.views.live_records import LiveRecords
from assay.tell.views.machine_list import VERDICT_WORDS, ListedMachine, build_machine_list

SHOWN = 100
"""Machines of one kind. The API has all."""
TITLES = {
    "contradiction": "Contradictions",
    "misplaced": "In the wrong place",
    "expected": "Of a delivery",
    "stranger": "Strangers",
}
"""Verdict → heading. A machine that is a node, as declared, is only counted."""


def render_machines_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page, of the machines in which the query's `text` stands."""
    listed = build_machine_list(records.fleet, records.read_machines(), records.ledger_for_reading)
    text = request.query.get("text", "").strip()
    found = [one for one in listed.machines if _has(one, text)]
    groups = {verdict: [one for one in found if one.verdict == verdict] for verdict in VERDICT_WORDS}
    return render_frame(
        "machines.html.j2",
        request,
        listed=listed,
        text=text,
        nodes=len(groups.pop("node")),
        groups=groups,
        titles=TITLES,
        shown=SHOWN,
        known=records.fleet.nodes,
    )


def _has(machine: ListedMachine, text: str) -> bool:
    return text.lower() in f"{machine.node} {machine.delivery} {machine.describe()}".lower()
