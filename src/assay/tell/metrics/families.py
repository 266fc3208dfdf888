"""Every metric family of assay, by subject: name, type, labels and unit, by Prometheus' rules for names.

The collectors use these constants; docs/metrics.md is made from them. Ages are by the fleet's clock, which is not the
real one in a lab. So they are ages, and no times of day.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from assay.act.loop.pass_log import PASS_EDGES

FamilyType = Literal["gauge", "counter", "histogram"]
UNITS = ("seconds", "bytes")


@dataclass(frozen=True, slots=True)
class Family:
    """One family. `labels` maps each label to what it says; all of its values come from the fleet's own lists.

    `edges` are the upper bounds of a histogram's buckets.
    """

    name: str
    type: FamilyType
    help: str
    labels: Mapping[str, str]
    edges: tuple[float, ...] = ()

    @property
    def unit(self) -> str:
        """The base unit with which the name ends, "" for a plain number."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return last if last in UNITS else ""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram's content: how many values each bucket of `Family.edges` has by itself, more than all edges last."""

    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a family: the values of its labels, in their order, and its number now."""

    family: Family
    values: tuple[str, ...]
    number: float | Distribution


LABELS = {
    "age": "`1 day`, `7 days` or `28 days` (at most), `older` or `never`",
    "action": "kind of change, such as `cordon`",
    "blocker": "what a pending decision waits for: `jobs`, `limits`, `breaker`, `rack`, `scheduler` or `turn`",
    "capacity": "`declared`, `delivered`, `spare` or `lacking`",
    "commit": "commit of the fleet repository, `-dirty` if files differ from it",
    "family": "file of the checks, such as `production/test_gpu`",
    "fault": "fault class of the catalogue",
    "from_state": "state before",
    "in_service": "`true` in the states in which customers use nodes, else `false`",
    "node": "node",
    "part": "part of a load; `battery: every unit` is the whole battery",
    "pool": "pool",
    "phase": "phase",
    "progress": "`waiting`, `out` (ordered out of service) or `proven`",
    "queue": "queue of DBOS, one for each pool",
    "reason": "policy rule that brought the nodes there; `person`, `rollout` or `inventory`",
    "result": "how it ended",
    "rule": "rule that paused it, `person` for a person",
    "schedule": "schedule",
    "severity": "severity of the fault or ticket",
    "source": "`agent`, `probe` or `bmc`",
    "stage": "`once` (all of `assay reconcile --once`), `observe`, `decide`, `act`, `tickets` or `jobs`",
    "state": "state of the policy",
    "status": "how far it is",
    "target": "pool or fabric, `ledger` for seals",
    "to_state": "state after",
    "verdict": "`pass`, `fail`, `error` or `skip`",
    "version": "version of assay",
}
"""What each label says, for every family that has it."""


def gauge(name: str, text: str, *labels: str) -> Family:
    """Return a family of values that go up and down."""
    return Family(name, "gauge", text, _describe(labels))


def counter(name: str, text: str, *labels: str) -> Family:
    """Return a family of values that only grow, over all of the ledger's history."""
    return Family(f"{name}_total", "counter", text, _describe(labels))


def histogram(name: str, text: str, *labels: str, edges: tuple[float, ...]) -> Family:
    """Return a family of distributions, over all of the ledger's history."""
    return Family(name, "histogram", text, _describe(labels), edges)


def _describe(labels: tuple[str, ...]) -> dict[str, str]:
    return {label: LABELS[label] for label in labels}


MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
STAY_EDGES = (10 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, DAY, 3 * DAY, 7 * DAY, 30 * DAY, 90 * DAY)
EFFECT_EDGES = (1.0, 5.0, 15.0, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, DAY)
DELAY_EDGES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, MINUTE)

NODES = gauge(
    "assay_nodes",
    "Nodes in each state, and why they are there; in_service is unknown where the last reading is too old.",
    *("pool", "state", "in_service", "reason"),
)
STATE_OLDEST = gauge("assay_state_oldest_age_seconds", "How long the longest stay in a state lasts.", "pool", "state")
STAYS = histogram(
    "assay_stay_duration_seconds", "How long ended stays in a state lasted.", "pool", "state", edges=STAY_EDGES
)
TRANSITIONS = counter("assay_transitions", "Moves of nodes between states.", "pool", "from_state", "to_state")
PENDING = gauge("assay_pending_decisions", "Decisions that wait.", "pool", "to_state", "blocker")
PENDING_OLDEST = gauge("assay_pending_oldest_age_seconds", "Age of the oldest decision that waits.", "pool", "blocker")
HOLDS = gauge("assay_holds", "Nodes that people hold.", "pool")
HOLD_OLDEST = gauge("assay_hold_oldest_age_seconds", "Age of the oldest hold.", "pool")
BREAKER_OPEN = gauge("assay_breaker_open", "1 while the circuit breaker of a pool holds nodes back, else 0.", "pool")
BREAKER_NODES = gauge("assay_breaker_held_nodes", "Nodes that the breaker holds back.", "pool")
JOBS_UNKNOWN = gauge("assay_jobs_unknown_nodes", "Nodes whose jobs no scheduler tells.", "pool")
NODES_UNREAD = gauge(
    "assay_nodes_unread", "Nodes in service that are not known: their last reading is too old.", "pool"
)
POOL_NODES = gauge(
    "assay_pool_capacity_nodes",
    "Nodes of a pool that declares its capacity: as declared, serving, not known, in reserve, and lacking a spare.",
    "pool",
    "capacity",
)
NODE_STATE_AGE = gauge(
    "assay_node_state_age_seconds",
    "How long a node that is not in service has been in its state. The 500 longest.",
    "node",
    "pool",
    "state",
)
NODES_UNLISTED = gauge("assay_nodes_unlisted", "Nodes out of service that assay_node_* leaves out.")

EFFECTS = counter(
    "assay_effects", "Effects that a reading of the world has ended: verified or failed.", "action", "result"
)
EFFECT_DURATION = histogram(
    "assay_effect_duration_seconds", "From the intent of an effect to its end.", "action", "result", edges=EFFECT_EDGES
)
EFFECT_RETRIES = counter("assay_effect_retries", "Attempts of effects that came to nothing.", "action")
EFFECT_UNREADABLE = counter(
    "assay_effect_unreadable", "Readings after an effect that could not tell whether it is there.", "action"
)
EFFECTS_OPEN = gauge("assay_effects_open", "Effects that have begun and not ended.", "action", "status")
EFFECT_OLDEST = gauge("assay_effect_oldest_age_seconds", "Age of the oldest effect that has not ended.", "action")

OUTCOMES = counter("assay_outcomes", "Outcomes of checks.", "family", "verdict")
RUNS = counter("assay_runs", "Recorded runs of the checks.")
RUN_AGE = gauge("assay_last_run_age_seconds", "Age of the newest run of the checks.")
PASS_OLDEST = gauge(
    "assay_phase_oldest_pass_age_seconds",
    "Age of the oldest pass on nodes whose state asks for the phase now; of each check, the newest pass counts.",
    "pool",
    "phase",
)
UNPROVEN = gauge(
    "assay_phase_unproven_nodes", "Nodes whose state asks for the phase, and that have no pass in it.", "pool", "phase"
)

FAULTS = counter(
    "assay_faults", "Faults that were found. One that is seen again while it is open counts once.", "fault", "severity"
)
FAULTS_OPEN = gauge("assay_faults_open", "Faults that nothing has cleared.", "pool", "fault", "severity")
NOT_JUDGED = gauge("assay_errors_not_judged", "Errors of watched drivers that no class of faults has.", "pool")
FAULT_OLDEST = gauge("assay_fault_oldest_age_seconds", "Age of the oldest open fault.", "pool", "severity")
TICKETS = counter("assay_tickets", "Tickets opened, reopened and closed.", "result")
TICKETS_OPEN = gauge("assay_tickets_open", "Open tickets.", "severity")
TICKET_OLDEST = gauge("assay_ticket_oldest_age_seconds", "Age of the oldest open ticket.", "severity")

ROLLOUTS = counter("assay_rollouts", "Rollouts started, finished, aborted and superseded.", "result")
ROLLOUT_NODES = gauge("assay_rollout_nodes", "Nodes of the active rollout, and how far they are.", "progress")
ROLLOUT_AGE = gauge("assay_rollout_age_seconds", "Age of the active rollout.")
ROLLOUT_PAUSE_AGE = gauge("assay_rollout_pause_age_seconds", "How long the active rollout has been paused.", "rule")
COMMITS = counter("assay_commits_adopted", "Commits of the fleet repository that the controller took up.")

SCHEDULE_LAST = gauge("assay_schedule_last_end_age_seconds", "How long ago the last slot ended.", "schedule", "target")
SCHEDULE_NEXT = gauge("assay_schedule_next_start_seconds", "Time until the next slot starts.", "schedule", "target")
SCHEDULE_LATE = gauge(
    "assay_schedule_late_seconds",
    "How long a slot has been due that nobody has begun; 0 if none is due.",
    "schedule",
    "target",
)
SCHEDULE_RUNS = counter("assay_schedule_runs", "Slots that ended: done, failed or lost.", "schedule", "result")
VISITS = counter("assay_idle_visits", "Idle verifications of a node; cut if a customer took it.", "schedule", "result")
CUSTOMER_DELAY = histogram(
    "assay_idle_visit_customer_delay_seconds",
    "How long a customer waited at most until the load of an idle verification was gone.",
    "schedule",
    edges=DELAY_EDGES,
)
IDLE_COVERAGE = gauge(
    "assay_idle_coverage_gpus", "GPUs in service by the age of what covered them.", "schedule", "pool", "part", "age"
)
IDLE_LATE = gauge(
    "assay_idle_coverage_late_gpus", "GPUs not covered within `cover_days` of the schedule.", "schedule", "pool", "part"
)
VERIFICATIONS_MISSED = counter("assay_verifications_missed", "Nodes that were in use in too many slots.", "schedule")

SOURCES = gauge("assay_sources", "Agents, probes and BMCs of nodes whose state asks for checks.", "pool", "source")
SOURCES_SILENT = gauge(
    "assay_sources_silent",
    "Of these, those without an answer for longer than the policy allows, whatever the cause.",
    "pool",
    "source",
)
SOURCE_OLDEST = gauge(
    "assay_source_oldest_answer_age_seconds",
    "Age of the oldest last answer of a source that has ever answered.",
    "pool",
    "source",
)
AGENT_ITEMS = counter("assay_agent_items", "Items that agents have delivered.")
AGENT_LOSSES = counter("assay_agent_losses", "Times that an agent lost items before it could deliver them.", "pool")
LISTENING_AGE = gauge("assay_agents_heard_age_seconds", "How long ago a server last listened to agents.")

BUILD_INFO = gauge("assay_build_info", "Always 1: which assay this is.", "version")
FLEET_INFO = gauge("assay_fleet_info", "Always 1: which commit of the fleet this process works with.", "commit")
LEDGER_UP = gauge("assay_ledger_up", "1 if the ledger could be read for this scrape, else 0.")
LEDGER_ENTRIES = counter("assay_ledger_entries", "Entries of the ledger.")
LEDGER_READ = gauge("assay_ledger_read_entries", "Up to which entry the ledger is counted in these metrics.")
LEDGER_AGE = gauge("assay_ledger_last_entry_age_seconds", "Age of the newest entry.")
LEDGER_BYTES = gauge("assay_ledger_size_bytes", "Size of an SQLite ledger with its log.")
PASS_DURATION = histogram(
    "assay_pass_duration_seconds",
    "How long passes of `assay reconcile` took; the loop has a pass for each stage.",
    "stage",
    edges=PASS_EDGES,
)
PASS_CPU = counter("assay_pass_cpu_seconds", "CPU time of passes, without threads and processes of theirs.", "stage")
PASS_FAILURES = counter("assay_pass_failures", "Passes that ended with an error.", "stage")
PASS_AGE = gauge("assay_pass_last_end_age_seconds", "How long ago the last pass ended, in real time.", "stage")
WORKFLOWS = gauge("assay_dbos_workflows", "Workflows of DBOS that have not ended.", "queue", "status")
WORKFLOW_OLDEST = gauge("assay_dbos_oldest_workflow_age_seconds", "Age of the oldest of them, in real time.", "queue")
COLLECT_CPU = gauge("assay_metrics_collect_cpu_seconds", "CPU time that collecting took for this scrape.")

FIRST_OF_SUBJECT = {
    "Nodes": NODES,
    "Effects": EFFECTS,
    "Checks": OUTCOMES,
    "Faults and tickets": FAULTS,
    "Rollouts": ROLLOUTS,
    "Schedules and idle verification": SCHEDULE_LAST,
    "Agents, probes and BMCs": SOURCES,
    "assay itself": BUILD_INFO,
}
"""The families of a subject stand together above, and this one begins them."""


def _group_by_subject() -> dict[str, list[Family]]:
    subject, grouped = "", dict[str, list[Family]]()
    for family in [each for each in globals().values() if isinstance(each, Family)]:
        subject = next((name for name, first in FIRST_OF_SUBJECT.items() if first is family), subject)
        grouped.setdefault(subject, []).append(family)
    return grouped


FAMILIES = _group_by_subject()
"""Every family, by subject, in the order of docs/metrics.md."""
