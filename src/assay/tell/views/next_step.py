"""Who must act next on a node: the one answer that pages, commands and metrics give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from assay.decide.moves.held_answers import BREAKER_CAUSE
from assay.decide.moves.manual_moves import SCHEDULER_SILENT
from assay.decide.moves.proposals import FOREIGN_CAUSE
from assay.decide.state.node_state import NodeState, PendingDecision
from assay.decide.trust.gate import list_trust_waits
from assay.model.decision import HELD_RULE
from assay.model.facts import fact
from assay.model.faults.fault_record import rank_severity
from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX, LifecyclePolicy
from assay.model.specs.policy_sections import LifecycleState
from assay.model.specs.trust_rules import Trust
from assay.model.ticket import Ticket, TicketRecord

if TYPE_CHECKING:
    from assay.decide.rollouts.rollout_history import Rollout

Blocker = Literal["breaker", "limits", "profile", "rack", "scheduler", "jobs", "turn"]
WAITS: Mapping[Blocker, tuple[str, str]] = {
    "breaker": ("whoever answers for the pool", "find what the nodes have in common, or clear the breaker"),
    "limits": ("the limits of the policy", "let the node leave once others are back, or once git raises them"),
    "profile": ("a person, by the profile of the node", "do what assay may not do there"),
    "rack": ("other nodes of the rack", "come back into service"),
    "scheduler": ("the scheduler", "say which jobs run"),
    "jobs": ("running jobs", "end, so that the node can leave service"),
    "turn": ("assay", "take the node out when its turn comes"),
}
"""By what a decision about a node waits for: who must act, and how."""
ACTORS = {
    "breaker": "whoever answers for the pool",
    "foreign": "whoever closed the node",
    "rollout": "whoever answers for the change",
    "shared/commit": "whoever answers for the change",
    "trust": "a person who may say yes or no",
}
"""Who acts, by how the key of a ticket begins; technicians on all others."""


class WaitingDecision(NamedTuple):
    """What a decision about a node waits for, the state that it leads to ("" if none is ordered), and why."""

    blocker: Blocker
    to: str
    detail: str


@fact
class NextStep:
    """Who must act next on a node, and how."""

    who: str
    """Who; "" if nothing waits."""
    task: str
    """What they do."""
    detail: str
    """Why, or what exactly it waits for; "" if the task says all."""
    ticket: str
    """The id of its ticket; "" without one."""

    @property
    def line(self) -> str:
        """The step in one line."""
        ticket = f", ticket {self.ticket[:8]}" if self.ticket else ""
        return f"{self.who}: {self.task}{f' ({self.detail})' if self.detail else ''}{ticket}"


NOTHING_NEXT = NextStep("", "", "", "")


def find_waiting_decision(state: NodeState, *, serves: bool) -> WaitingDecision | None:
    """Return what a decision about a node waits for, None if none waits. `serves`: the node is in service."""
    to = state.pending.to if state.pending else ""
    if serves and (held := state.held_back_by):
        kinds: Mapping[str, Blocker] = {"breaker": "breaker", "limit": "limits", "profile": "profile"}
        return WaitingDecision(kinds[held], to, (state.note or state.breaker_reason).partition("; ")[0])
    if state.pending is None:
        return None
    goes = "the node stays cordoned" if to == state.state else f"then the node goes to {to}"
    return WaitingDecision(
        find_blocker(state.pending), to, "; ".join(filter(None, [", ".join(state.pending.blockers), goes]))
    )


def find_blocker(pending: PendingDecision) -> Blocker:
    """Return the kind of what a pending decision waits for; its blockers may be names of jobs."""
    if pending.rule_name.startswith(RACK_RULE_PREFIX):
        return "rack"
    if pending.rule_name == HELD_RULE:
        stops = any(cause.kind == BREAKER_CAUSE and cause.text in pending.blockers for cause in pending.because)
        return "breaker" if stops else "limits"
    if not pending.blockers:
        return "turn"
    return "scheduler" if pending.blockers == SCHEDULER_SILENT else "jobs"


def is_left_to_people(state: NodeState, declared: LifecycleState) -> bool:
    """Whether a node that is out of service waits for people, in its state as the policy declares it."""
    return bool(state.note or (declared.certified_to and not declared.until_idle))


def find_actor(key: str) -> str:
    """Return who acts on the ticket of a key, "" for technicians."""
    return next((who for kind, who in ACTORS.items() if key.startswith(f"{kind}/")), "")


def find_next_step(
    state: NodeState,
    policy: LifecyclePolicy | None,
    tickets: Mapping[str, Ticket],
    trust: Trust | None = None,
    rollout: Rollout | None = None,
    unread: str | None = None,
) -> NextStep:
    """Return who must act next on a node. `tickets` are its open tickets by id, the most severe first.

    With `trust`, what waits for a person's yes, or is only watched, is a step too. `rollout`: the active one, which
    brings what drifts. `unread`: why nothing reads the node, which serves and is not known; None for others.
    """
    if state.hold:
        return NextStep(state.hold.who, "release the node", state.hold.reason, "")
    declared = policy.states.get(state.state) if policy else None
    if declared is not None and declared.final:
        return NOTHING_NEXT
    ticket, serves = next(iter(tickets), ""), declared is not None and declared.in_service
    if others := next((cause.text for cause in state.noted_causes if state.note and cause.kind == FOREIGN_CAUSE), ""):
        return NextStep("whoever closed the node", "open it when the work is done", others, ticket)
    meanwhile = next((each.title for each in tickets.values() if not find_actor(each.key)), "")
    work = f"technicians meanwhile: {meanwhile}" if meanwhile else ""
    if waiting := find_waiting_decision(state, serves=serves):
        who, task = WAITS[waiting.blocker]
        task = next((each.title for each in tickets.values() if find_actor(each.key) == who), task)
        return NextStep(who, task, "; ".join(filter(None, [waiting.detail, work])), ticket)
    if policy and trust and (waits := list_trust_waits(policy, trust, state)):
        is_watched, asks = waits[0].kind == "would", ", ".join(waits[0].actions) or waits[0].text
        return NextStep("a person", waits[0].text if is_watched else f"say yes or no to {asks}", work, ticket)
    if state.certified and declared and declared.certified_to:
        return NextStep("assay", f"takes the node to {declared.certified_to} at its next round", "", "")
    if ticket:
        typed = dict.fromkeys(command for each in tickets.values() for command in each.commands)
        who = find_actor(tickets[ticket].key) or "technicians"
        return NextStep(who, tickets[ticket].order, ", then ".join(sorted(typed, key=_is_last)), ticket)
    if policy and serves:
        return _find_step_in_service(state, policy, rollout, unread)
    return _find_step_out_of_service(state, declared)


def _find_step_out_of_service(state: NodeState, declared: LifecycleState | None) -> NextStep:
    """Return the next step of a node out of service that waits for nothing else."""
    if declared is None or is_left_to_people(state, declared):
        return NextStep("technicians and engineers", "look at the node, and certify it", state.note, "")
    task = f"goes on: {declared.summary}"
    phases = " and ".join(want.phase for want in declared.requires)
    if state.burn_in and state.burn_in.is_running:
        task = f"goes on: the burn-in {state.burn_in.reason}" if state.burn_in.over_at else task
    elif phases and declared.pass_to:
        task = f"tests it: {phases} must pass before it goes to {declared.pass_to}"
    if under_way := [effect.action for effect in state.unsettled_effects]:
        task = f"{', '.join(under_way)} under way"
    return NextStep("assay", task, "", "")


def _find_step_in_service(
    state: NodeState, policy: LifecyclePolicy, rollout: Rollout | None, unread: str | None
) -> NextStep:
    """Return who acts on a node that serves, and on which no decision, ticket or person waits."""
    classes = {fault.fault_class for fault in state.open_faults}
    if rollout and classes and classes <= {*policy.breaker.drift} and state.node in rollout.unproven:
        return NextStep(f"rollout {rollout.id[:8]}", "brings the change in its wave", rollout.next_wave, "")
    if unread is not None and not classes:
        return NextStep("engineers", "find out why nothing reads the node: assay observe", unread, "")
    return NextStep("assay", "decides at its next round", state.note, "") if classes else NOTHING_NEXT


def _is_last(command: str) -> bool:
    """Whether a command ends what people do on a node: then automation goes on."""
    return command.startswith("assay certify")


def list_named_nodes(record: TicketRecord) -> set[str]:
    """Return the nodes that a ticket is about, among other devices: a part stands behind its node."""
    return {record.ticket.node, *(place.device.partition(" ")[0] for place in record.ticket.places)}


def list_open_tickets(tickets: Iterable[TicketRecord]) -> dict[str, dict[str, Ticket]]:
    """Return the open tickets that name each node or other device, or a part of it, by id, the most severe first."""
    opened = [record for record in tickets if not record.closed_at]
    opened.sort(key=lambda record: (rank_severity(record.ticket.severity), record.opened_at))
    by_node: dict[str, dict[str, Ticket]] = {}
    for record in opened:
        for name in list_named_nodes(record):
            by_node.setdefault(name, {})[record.ticket.id] = record.ticket
    return by_node
