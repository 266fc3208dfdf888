"""Which shape the answer of each command has with `--format json`: data alone, so that nothing else is imported."""

from __future__ import annotations

from typing import NamedTuple


class AnswerForm(NamedTuple):
    """One form of an answer: the place of its `shape`, `module:name` below `assay`, and `when` it comes.

    `module:name[]` is a list of this shape. `is_lines`: there is such a document on each line.
    """

    shape: str
    when: str = ""
    is_lines: bool = False


Answer = tuple[AnswerForm, ...]
"""What a command prints: one document in one of these forms."""


def _one(shape: str) -> Answer:
    return (AnswerForm(shape),)


def _forms(*forms: tuple[str, str]) -> Answer:
    """Return an answer of several forms, each with the words that say when it comes."""
    return tuple(AnswerForm(shape, when) for when, shape in forms)


HISTORY, LEDGER, OPERATION, ORDER = (
    f"cli.answers.{group}_answers" for group in ("history", "ledger", "operation", "order")
)
BROKEN = "if the ledger is broken (exit code 1)"
NO_LEDGER = "if the ledger cannot be read (exit code 2)"

ANSWERS: dict[str, Answer] = {
    "status": _forms(
        ("", "cli.answers.status_answers:StatusAnswer"),
        ("with --server", "cli.answers.status_answers:ServerNodesAnswer"),
        (NO_LEDGER, "cli.answers.status_answers:UnknownNodesAnswer"),
    ),
    "show": _forms(
        ("", "cli.answers.declaration_answers:ShowAnswer"),
        ("with --cloud-init", "cli.answers.declaration_answers:CloudInitAnswer"),
    ),
    "sync": _one("cli.answers.sync_answers:SyncAnswer"),
    "tickets": _forms(
        ("", "cli.answers.ticket_answers:TicketsAnswer"),
        (NO_LEDGER, "cli.answers.ticket_answers:UnknownTicketsAnswer"),
    ),
    "tickets deliver": _one("cli.answers.ticket_answers:DeliveryAnswer"),
    "tickets done": _one("cli.answers.ticket_answers:WorkDoneAnswer"),
    "results": _forms(
        ("", "results.formats.outcome_answers:RunAnswer"),
        ("with --compare or --against", "results.formats.outcome_answers:ComparisonAnswer"),
        ("with --list", "results.formats.outcome_answers:RunListAnswer"),
        ("with --distribution", "results.distribution.distribution_answers:DistributionAnswer[]"),
    ),
    "check": _one("fleet.repository_check:CheckAnswer"),
    "doctor": _one("cli.answers.declaration_answers:DoctorAnswer"),
    "images": _one("cli.answers.declaration_answers:ImageFile[]"),
    "upgrade": _forms(
        ("", "cli.answers.declaration_answers:UpgradeAnswer"),
        ("if it finished an upgrade that was broken off", "cli.answers.declaration_answers:FinishedUpgradeAnswer"),
    ),
    "discover": _one("views.machine_list:MachineList"),
    "observe": _forms(
        ("", "cli.answers.evidence_answers:ObserveAnswer"),
        ("with --from", "cli.answers.evidence_answers:RecordingAnswer"),
        ("with --here", "cli.answers.evidence_answers:LocalEvidenceAnswer"),
    ),
    "suites list": _one("cli.answers.run_answers:SuitesListAnswer"),
    "suites verify": _one("cli.answers.run_answers:SuitesVerifyAnswer"),
    "rejudge": _one("cli.answers.run_answers:RejudgeAnswer"),
    "report": _one("cli.answers.run_answers:ReportPagesAnswer"),
    "prune": _one("cli.answers.run_answers:PruneAnswer"),
    "lab status": _one("cli.answers.evidence_answers:LabStatusAnswer"),
    "trends": _one("trends.shapes.warning_answers:TrendsAnswer"),
    "trends rules": _one("trends.shapes.warning_answers:TrendRulesAnswer"),
    "collectives plan": _one("collectives.shapes.search_answers:CollectivesPlanAnswer"),
    "collectives run": _one("collectives.shapes.search_answers:CollectivesAnswer"),
    "collectives explain": _one("collectives.shapes.search_answers:CollectivesAnswer"),
    "plan": _one("plan.shapes.plan_answers:PlanAnswer"),
    "replay": _one("trends.shapes.replay_answers:ReplayAnswer"),
    "fabric compare": _one("cli.answers.fabric_answers:FabricComparisonAnswer"),
    "fabric scan": _one("cli.answers.fabric_answers:FabricComparisonAnswer"),
    "fabric evaluate": _one("cli.answers.fabric_answers:FabricWeekAnswer"),
    "fabric impact": _one("cli.answers.fabric_answers:ImpactAnswer"),
    "faults": _one("cli.answers.fault_answers:FaultsAnswer"),
    "gate": _one("results.run_gates:GateAnswer"),
    "validate": _one("results.formats.outcome_answers:ValidationAnswer"),
    "explain": _forms(
        ("", "views.node.explanation_answer:ExplainAnswer"),
        ("with --for customer, or for a customer's token", "views.customer.customer_answer:CustomerExplanationAnswer"),
        (NO_LEDGER, "cli.answers.status_answers:UnknownNodeAnswer"),
        (f"with --for customer, {NO_LEDGER}", "views.customer.customer_answer:UnknownForCustomerAnswer"),
    ),
    "history": _forms(
        ("", f"{HISTORY}:NodeHistoryAnswer"),
        ("with --serial", f"{HISTORY}:PartHistoryAnswer"),
        ("with --outcomes, for a node", f"{HISTORY}:NodeOutcomesAnswer"),
        ("with --measurements", f"{HISTORY}:NodeMeasurementsAnswer"),
        ("with --outcomes, for the pools", f"{HISTORY}:PoolRatesAnswer"),
        (NO_LEDGER, "cli.answers.status_answers:UnknownNodeAnswer"),
    ),
    "reconcile": (
        AnswerForm(f"{OPERATION}:ReconcileAnswer", "with --once"),
        AnswerForm(f"{OPERATION}:EntryInAnswer", "without --once, a document on each line", is_lines=True),
    ),
    "schedules": _one(f"{OPERATION}:SchedulesAnswer"),
    "schedules run": _one(f"{OPERATION}:ScheduledRunsAnswer"),
    "schedules coverage": _one(f"{OPERATION}:CoverageAnswer"),
    "breaker": _one(f"{ORDER}:BreakersAnswer"),
    "breaker clear": _one(f"{ORDER}:ClearedBreakerAnswer"),
    "hold": _one(f"{ORDER}:OrdersAnswer"),
    "release": _one(f"{ORDER}:OrdersAnswer"),
    "move": _one(f"{ORDER}:OrdersAnswer"),
    "zap": _one(f"{ORDER}:OrdersAnswer"),
    "wipe": _one(f"{ORDER}:OrdersAnswer"),
    "certify": _one(f"{ORDER}:OrdersAnswer"),
    "approve": _one(f"{ORDER}:OrdersAnswer"),
    "decline": _one(f"{ORDER}:OrdersAnswer"),
    "rma": _one(f"{OPERATION}:DossierAnswer"),
    "ledger verify": _one(f"{LEDGER}:LedgerVerifyAnswer"),
    "ledger seal": _one(f"{LEDGER}:LedgerSealAnswer"),
    "ledger backup": _forms(("", f"{LEDGER}:LedgerCopyAnswer"), (BROKEN, f"{LEDGER}:BrokenLedgerAnswer")),
    "ledger restore": _forms(("", f"{LEDGER}:LedgerCopyAnswer"), (BROKEN, f"{LEDGER}:BrokenLedgerAnswer")),
    "ledger archive": _forms(("", f"{LEDGER}:LedgerArchiveAnswer"), (BROKEN, f"{LEDGER}:BrokenLedgerAnswer")),
    "rollout": _one("cli.answers.rollout_answers:RolloutsAnswer"),
    "rollout list": _one("cli.answers.rollout_answers:RolloutsAnswer"),
    "rollout show": _one("cli.answers.rollout_answers:RolloutShowAnswer"),
    "rollout pause": _one("cli.answers.rollout_answers:RolloutOrderAnswer"),
    "rollout resume": _one("cli.answers.rollout_answers:RolloutOrderAnswer"),
    "rollout abort": _one("cli.answers.rollout_answers:RolloutOrderAnswer"),
}
"""The words of a command, after `assay` → its answer."""


def find_file_name(command: str) -> str:
    """Return the name of the file with the schema of a command."""
    return f"{command.replace(' ', '-')}.json"
