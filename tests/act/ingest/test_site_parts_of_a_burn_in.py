"""What a site adds to the shipped day in one line ends the burn-in when it finds something, and is told once.

The results are what the real adapters make of the tools' output; the controller's pass judges, decides and tells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from assay.act.loop.reconcile_pass import record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.tickets.ticket_diff import TICKETS
from assay.act.tickets.ticket_updates import update_tickets
from assay.decide.faults.incidents import list_incidents
from assay.ledger.ledger_reader import read_projection
from assay.model.entries.effects import BurnInEndedEntry
from assay.model.reading import ReadingTree
from assay.model.specs.node.load_tools import LoadToolSettings
from assay.model.ticket import Ticket
from assay.node.load_tools.fio import MISCOMPARE, parse_shared_storage
from assay.node.load_tools.site_commands import parse_output
from assay.node.load_tools.tool_call import ToolOutput
from tests.act.ingest.test_following_a_burn_in import NODE, RIGHT, ToldNode, far, look  # noqa: F401 — a fixture
from tests.act.quiet_site import FLEET, Site

DECLARED = {
    "command": ["bash", "/shared/pretrain-50-steps.sh"],
    "deadline_s": 1800,
    "least_steps": 2,
    "step": {"pattern": r"iteration\s+(\d+)/"},
    "loss": {"pattern": r"lm loss: (\S+)"},
}
SETTINGS = LoadToolSettings.model_validate({"storage": "/lustre/assay", "training": DECLARED})
"""The lines of `load_tools` that docs/load-tools.md and docs/silent-corruption.md show."""


def verify_with_fio(error: int) -> ReadingTree:
    ways = {way: {"io_bytes": 2**30, "bw_bytes": 2_100_000_000} for way in ("read", "write")}
    document = {"jobs": [{"jobname": "verify", "error": error, **ways}]}
    return parse_shared_storage(ToolOutput("fio", 1 if error else 0, json.dumps(document)))


def train(*losses: str) -> ReadingTree:
    lines = [f"iteration {step}/50 | lm loss: {loss}" for step, loss in enumerate(losses, 1)]
    return parse_output(ToolOutput("bash", 0, "\n".join(lines)), SETTINGS.as_json()["training"])


def begin(node: ToldNode) -> None:
    node.page = 20
    node.add(0, run={"boot": node.boot, "serials": {}})


def plant_forgetful_storage(node: ToldNode) -> Iterator[None]:
    begin(node)
    node.add(60, unit="shared_storage", s=60, result=verify_with_fio(0))
    node.add(120, unit="shared_storage", s=60, result=verify_with_fio(MISCOMPARE))
    yield


def plant_lost_loss(node: ToldNode) -> Iterator[None]:
    begin(node)
    node.add(60, unit="site_training", s=60, result=train("10.83", "10.21"))
    node.add(120, unit="site_training", s=60, result=train("10.83", "nan", "nan"))
    yield


def plant_tripping_supply(node: ToldNode) -> Iterator[None]:
    """The node restarts twice while its power swings."""
    node.page = 20
    for number, node.boot in enumerate(("b1", "b2", "b3")):
        start = 1800 * number
        node.add(start, p="heat-cycles", run={"boot": node.boot, "serials": {}})
        for t in (start + 60, start + 1000):
            burned = {"devices": {str(gpu): {"ok": {"value": True}} for gpu in range(8)}}
            node.add(t, p="heat-cycles", unit="gpu_burn", s=60, result=burned)
        yield


PLANTED: dict[str, tuple[Callable[[ToldNode], Iterator[None]], str, str]] = {
    "shared storage": (
        plant_forgetful_storage,
        "shared_storage read back other data than it had written",
        "storage.data.wrong",
    ),
    "own training": (plant_lost_loss, "site_training found 2 losses that are no number", "gpu.burn.failed"),
    "power in step": (plant_tripping_supply, "the node restarted 2 times under its load", "host.load.fault"),
}


def decide_and_tell(site: Site) -> list[Ticket]:
    """Let two passes decide and tell; return the open tickets."""
    for _ in range(2):
        memory = FleetSnapshotCache(site.desk)
        record_decisions(memory)
        update_tickets(site.desk, memory)
        site.later(minutes=1)
    return [one.ticket for one in read_projection(site.ledger, TICKETS).values() if not one.closed_at]


def read_end(site: Site) -> BurnInEndedEntry:
    (entry,) = site.ledger.entries(NODE, kinds=[BurnInEndedEntry.kind])
    return BurnInEndedEntry.read(entry)


def test_the_shipped_day_has_each_part_and_declares_it_in_one_line() -> None:
    day = FLEET.burn_ins["day"]
    parts = {part for phase in day.phases for part in (*phase.parts, *phase.beside)}
    assert {"shared_storage", "site_training"} <= parts
    assert [phase.name for phase in day.phases if phase.swings] == ["heat-cycles"]
    assert (day.stagger, day.model_copy(update={"step_kw": 500}).step_kw) == ("rack", 500)
    assert SETTINGS.storage == "/lustre/assay"


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_failure_ends_the_burn_in_and_is_one_incident_with_one_ticket(
    site: Site,
    memory: FleetSnapshotCache,
    far: ToldNode,  # noqa: F811
    name: str,
) -> None:
    plant, words, fault = PLANTED[name]
    for _ in plant(far):
        look(memory, far)
        memory.catch_up()
    ended = read_end(site)
    assert (ended.outcome, ended.reason, ended.fault) == ("failed", words, fault)
    assert far.orders[-1] == "stop"
    (ticket,) = decide_and_tell(site)
    node_state = FleetSnapshotCache(site.desk).node_states()[NODE]
    assert node_state.state == FLEET.policy.states["test"].fail_to == "triage"
    (incident,) = [each for each in list_incidents(FLEET.fault_relations, node_state) if each.is_open]
    assert (incident.cause.fault_class, incident.cause.detail, ticket.node) == (fault, words, NODE)
    assert words in ticket.seen
    assert fault in ticket.title
    site.fault(NODE, fault, "")
    assert [each.key for each in decide_and_tell(site)] == [ticket.key], "the check of the same result adds none"


def test_parts_that_are_well_end_nothing(site: Site, memory: FleetSnapshotCache, far: ToldNode) -> None:  # noqa: F811
    begin(far)
    far.add(60, unit="shared_storage", s=60, result=verify_with_fio(0))
    far.add(120, unit="site_training", s=60, result=train("10.83", "10.21"))
    look(memory, far)
    assert not list(site.ledger.entries(NODE, kinds=[BurnInEndedEntry.kind]))
    assert decide_and_tell(site) == []
