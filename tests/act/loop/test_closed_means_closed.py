"""A node in a state that is not in service is closed by assay, or `status` says who stopped it; and vice versa.

However it came there, however its scheduler reads it, whoever stops assay: a property of every fleet of such nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.act.effects import pending_effect_runner
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_unknown_jobs
from assay.act.loop.reconcile_pass import compare_cordons, record_decisions, run_outstanding_effects
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.orders.orders import list_fleet_waits
from assay.act.tickets.ticket_updates import update_tickets
from assay.adapters.scheduler import SchedulerNodeStatus
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.decide.state.node_state import NodeState
from assay.ledger.store import Ledger
from assay.model.cordon_ownership import is_our_reason
from assay.model.entries.node_entries import (
    CertifiedEntry,
    HoldEntry,
    MoveEntry,
    NodeRenamedEntry,
    ReleaseEntry,
    TransitionEntry,
)
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.trust_rules import TrustRules
from assay.model.timestamps import format_time
from assay.observe.evidence_store import EvidenceStore
from assay.tell.views.node_status import make_node_status
from tests.act.loop.test_opened_nodes_are_closed import Scheduler
from tests.act.quiet_site import FLEET, NODES, START, Hands

WAYS = ("enrolled", "renamed", "moved", "ordered", "certified")
STOPPERS = ("nobody", "hold", "profile", "watch", "suggest", "silent", "stranger", "others")
OURS, THEIRS = "assay: gpu.xid.79 of another life", "bob: fans"
HANDS_OFF = FLEET.profiles["managed"].model_copy(update={"actions": ["ticket"], "name": "hands-off"})
TRUST = TrustRules.model_validate({"fleet": "act", "pools": {"watch": "watch", "suggest": "suggest"}})
POLICY = FLEET.policy.model_copy(update={"trust": TRUST})
ORIGINS = {target: origin for origin, targets in POLICY.edges.items() for target in targets}
CERTIFIED = {state.certified_to: name for name, state in POLICY.states.items() if state.certified_to}


@dataclass(frozen=True)
class Arrival:
    """One node: its state, how it came there, how its scheduler reads it then, and who stops assay."""

    state: str
    way: str
    reads: str
    stopper: str

    def list_entries(self, name: str) -> Iterator[LedgerEntry]:
        """Yield the entries that bring the node into its state."""
        at, serial = format_time(START), f"s-{name}"
        before = {"ordered": ORIGINS, "certified": CERTIFIED}.get(self.way, {}).get(self.state, self.state)
        called = f"old-{name}" if self.way == "renamed" else name
        yield make_enrolled_entry(called, self.stopper, "debug" if self.way == "moved" else before, START, serial)
        if self.way == "renamed":
            yield NodeRenamedEntry(serial, called, self.stopper).make_entry(f"renamed-{name}", at, name)
        elif self.way == "moved":
            yield TransitionEntry("debug", self.state, "").make_entry(f"moved-{name}", at, name)
        elif self.way == "ordered":
            yield MoveEntry(self.state, "ann", "fans", now=True).make_entry(f"ordered-{name}", at, name)
        elif self.way == "certified":
            yield CertifiedEntry("ann", "looked").make_entry(f"certified-{name}", at, name)
        if self.stopper == "hold":
            yield HoldEntry("ann", "mine", "").make_entry(f"hold-{name}", at, name)


class Fallible(Scheduler):
    """One of whose nodes some have a scheduler that does not answer, which is another one for the loop."""

    def __init__(self, silent: bool) -> None:
        super().__init__()
        self.is_silent = silent

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        if self.is_silent:
            raise AssayError("slurmctld does not answer")
        return super().read_statuses(nodes)


@dataclass
class World:
    """A fleet of such nodes: each pool is a stopper, since trust is a pool's."""

    context: ControllerContext
    far: Fallible
    clock: Hands
    arrivals: dict[str, Arrival]

    def start(self) -> FleetSnapshotCache:
        """Start a controller, which knows nothing but the ledger."""
        return FleetSnapshotCache(self.context)

    def run_pass(self, memory: FleetSnapshotCache) -> None:
        names = list(self.context.fleet.nodes)
        compare_cordons(memory, names)
        run_outstanding_effects(memory, names)
        record_decisions(memory)
        run_outstanding_effects(memory, names)
        self.clock.at = self.clock.at.replace(minute=(self.clock.at.minute + 1) % 60)

    def list_told(self, state: NodeState) -> list[str]:
        """Return what `assay status` says of who stops assay there."""
        waits = [wait.text for wait in list_fleet_waits(self.context.fleet, [state])]
        unknown = read_unknown_jobs(self.context.home)
        status = make_node_status(state, unknown_jobs=unknown.get(state.node))
        return [word for word in (status.scheduler, *waits, status.jobs_unknown and status.jobs_unknown.reason) if word]

    def judge(self, memory: FleetSnapshotCache) -> None:
        for name, arrival in self.arrivals.items():
            state, cordon = memory.node_states()[name], self.far.cordons.get(name, "")
            told = self.list_told(state)
            if not POLICY.is_in_service(state.state):
                assert cordon or told, f"{arrival}: open in {state.state}, and nobody is told"
                assert is_our_reason(cordon) or arrival.stopper != "nobody", f"{arrival}: open in {state.state}"
            elif is_our_reason(cordon):
                assert told or state.hold, f"{arrival}: closed in {state.state}, and nobody is told"
            if arrival.stopper == "others":
                assert cordon == THEIRS, "what others closed stays theirs"


@contextmanager
def world_of(home: Path, arrivals: dict[str, Arrival]) -> Iterator[World]:
    nodes = {}
    for name, arrival in arrivals.items():
        profile = "hands-off" if arrival.stopper == "profile" else "managed"
        nodes[name] = replace(FLEET.nodes[name], pool=arrival.stopper, profile=profile, serial=f"s-{name}")
    profiles = {**FLEET.profiles, "hands-off": HANDS_OFF}
    fleet = replace(FLEET, nodes=nodes, profiles=profiles, policies={POLICY.name: POLICY}, is_lab=False)
    far, silent, clock = Fallible(silent=False), Fallible(silent=True), Hands()
    far.strangers = {name for name, arrival in arrivals.items() if arrival.stopper == "stranger"}
    for name, arrival in arrivals.items():
        far.cordons[name] = THEIRS if arrival.stopper == "others" else OURS if arrival.reads == "ours" else ""
    ledger = Ledger.open(":memory:")
    ledger.append(*(entry for name, arrival in arrivals.items() for entry in arrival.list_entries(name)))
    context = ControllerContext(
        fleet, ledger, EvidenceStore(home / "evidence"), clock, home, home / "reports",
        lambda node: silent if node.pool == "silent" else far, lambda _: None,
    )  # fmt: skip
    try:
        yield World(context, far, clock, arrivals)
    finally:
        ledger.close()


@pytest.fixture(scope="module", autouse=True)
def only_cordons() -> Iterator[None]:
    """Let no other action run: the nodes of these tests are on paper."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending_effect_runner._EffectRun, "_enqueue_workflows", lambda *_: set())
        yield


DRAWN = st.builds(
    Arrival,
    st.sampled_from([*POLICY.states]),
    st.sampled_from(WAYS),
    st.sampled_from(["open", "ours"]),
    st.sampled_from(STOPPERS),
)


@given(arrivals=st.lists(DRAWN, min_size=6, max_size=6), opened=st.sets(st.sampled_from(NODES[:6])))
def test_whatever_the_state_the_way_and_the_stopper(
    tmp_path_factory: pytest.TempPathFactory, arrivals: list[Arrival], opened: set[str]
):
    with world_of(tmp_path_factory.mktemp("site"), dict(zip(NODES, arrivals, strict=False))) as world:
        memory = world.start()
        for _ in range(2):
            world.run_pass(memory)
        world.judge(memory)
        for name in opened:
            if world.arrivals[name].stopper != "others":
                world.far.cordons[name] = ""
        memory = world.start()  # the loop starts again, after somebody opened nodes
        for _ in range(2):
            world.run_pass(memory)
        world.judge(memory)


@pytest.mark.parametrize("state", [name for name, state in POLICY.states.items() if not state.in_service])
@pytest.mark.parametrize("way", WAYS)
def test_one_pass_closes_every_state_that_is_not_in_service(tmp_path: Path, state: str, way: str):
    with world_of(tmp_path, {NODES[0]: Arrival(state, way, "open", "nobody")}) as world:
        world.run_pass(world.start())
        assert is_our_reason(world.far.cordons[NODES[0]])
        begun = [entry for entry in world.context.ledger.entries(NODES[0]) if entry.kind == "decision"]
        assert "closed again" not in str([entry.body for entry in begun]), "nobody had opened it"


def test_who_holds_a_node_open_is_named_until_it_is_closed(tmp_path: Path):
    name = NODES[0]
    with world_of(tmp_path, {name: Arrival("onboard", "enrolled", "open", "hold")}) as world:
        memory = world.start()
        world.run_pass(memory)
        said = "no job may start in onboard, and its scheduler reads it as open for jobs: ann holds it: mine"
        assert make_node_status(memory.node_states()[name]).scheduler == said
        update_tickets(world.context, memory)
        titles = [entry.body["title"] for entry in world.context.ledger.entries(kinds=["ticket.opened"])]
        assert f"Ask whoever holds the node to cordon it, or `assay release` it: {name} (scheduler.open)" in titles

        world.context.ledger.append(ReleaseEntry("ann", "done").make_entry("r", format_time(world.clock.at), name))
        for _ in range(2):
            world.run_pass(memory)
        assert is_our_reason(world.far.cordons[name])
        assert make_node_status(memory.node_states()[name]).scheduler == ""


def test_a_cordon_that_a_restored_ledger_does_not_know_is_told_and_opened_by_no_guess(tmp_path: Path):
    name = NODES[0]
    with world_of(tmp_path, {name: Arrival("production", "enrolled", "ours", "nobody")}) as world:
        memory = world.start()
        for _ in range(3):
            world.run_pass(memory)
        said = f"production takes jobs, and a cordon that nothing asks for keeps it closed: {OURS}"
        assert make_node_status(memory.node_states()[name]).scheduler == said
        assert world.far.cordons[name] == OURS
        update_tickets(world.context, memory)
        (ticket,) = world.context.ledger.entries(kinds=["ticket.opened"])
        assert ticket.body["seen"] == said

        world.far.cordons[name] = ""  # who looked opens it by hand
        world.run_pass(memory)
        assert make_node_status(memory.node_states()[name]).scheduler == ""
        assert [fault for fault in memory.node_states()[name].faults if fault.is_open] == []
