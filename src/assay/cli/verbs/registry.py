"""Which shape the answer of each command has with `--format json`: data alone, so that nothing else is imported."""

from __future__ import annotations

from typing import NamedTuple


class AnswerForm(NamedTuple):
    """One form of an answer: the place of its `shape`, `module:name`, and `when` it comes.

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
    f"assay.cli.answers.{group}_answers" for group in ("history", "ledger", "operation", "order")
)
BROKEN = "if the ledger is broken (exit code 1)"
NO_LEDGER = "if the ledger cannot be read (exit code 2)"

ANSWERS: dict[str, Answer] = {
    "status": _forms(
        ("", "assay.cli.answers.status_answers:StatusAnswer"),
        ("with --server", "assay.cli.answers.status_answers:ServerNodesAnswer"),
        (NO_LEDGER, "assay.cli.answers.status_answers:UnknownNodesAnswer"),
    ),
    "show": _forms(
        ("", "assay.cli.answers.declaration_answers:ShowAnswer"),
        ("with --cloud-init", "assay.cli.answers.declaration_answers:CloudInitAnswer"),
    ),
    "sync": _one("assay.cli.answers.sync_answers:SyncAnswer"),
    "tickets": _forms(
        ("", "assay.cli.answers.ticket_answers:TicketsAnswer"),
        (NO_LEDGER, "assay.cli.answers.ticket_answers:UnknownTicketsAnswer"),
    ),
    "tickets deliver": _one("assay.cli.answers.ticket_answers:DeliveryAnswer"),
    "tickets done": _one("assay.cli.answers.ticket_answers:WorkDoneAnswer"),
    "results": _forms(
        ("", "assay.tell.report.outcome_answers:RunAnswer"),
        ("with --compare or --against", "assay.tell.report.outcome_answers:ComparisonAnswer"),
        ("with --list", "assay.tell.report.outcome_answers:RunListAnswer"),
        ("with --distribution", "assay.validate.results.distribution_answers:DistributionAnswer[]"),
    ),
    "check": _one("assay.declare.repository_check:CheckAnswer"),
    "doctor": _one("assay.cli.answers.declaration_answers:DoctorAnswer"),
    "images": _one("assay.cli.answers.declaration_answers:ImageFile[]"),
    "upgrade": _forms(
        ("", "assay.cli.answers.declaration_answers:UpgradeAnswer"),
        (
            "if it finished an upgrade that was broken off",
            "assay.cli.answers.declaration_answers:FinishedUpgradeAnswer",
        ),
    ),
    "discover": _one("assay.tell.views.machine_list:MachineList"),
    "observe": _forms(
        ("", "assay.cli.answers.evidence_answers:ObserveAnswer"),
        ("with --from", "assay.cli.answers.evidence_answers:RecordingAnswer"),
        ("with --here", "assay.cli.answers.evidence_answers:LocalEvidenceAnswer"),
    ),
    "suites list": _one("assay.cli.answers.run_answers:SuitesListAnswer"),
    "suites verify": _one("assay.cli.answers.run_answers:SuitesVerifyAnswer"),
    "rejudge": _one("assay.cli.answers.run_answers:RejudgeAnswer"),
    "report": _one("assay.cli.answers.run_answers:ReportPagesAnswer"),
    "prune": _one("assay.cli.answers.run_answers:PruneAnswer"),
    "lab status": _one("assay.cli.answers.evidence_answers:LabStatusAnswer"),
    "trends": _one("assay.decide.trends.warning_answers:TrendsAnswer"),
    "trends rules": _one("assay.decide.trends.warning_answers:TrendRulesAnswer"),
    "collectives plan": _one("assay.validate.collectives.search_answers:CollectivesPlanAnswer"),
    "collectives run": _one("assay.validate.collectives.search_answers:CollectivesAnswer"),
    "collectives explain": _one("assay.validate.collectives.search_answers:CollectivesAnswer"),
    "plan": _one("assay.decide.plan.plan_answers:PlanAnswer"),
    "replay": _one("assay.decide.replay.replay_answers:ReplayAnswer"),
    "fabric compare": _one("assay.cli.answers.fabric_answers:FabricComparisonAnswer"),
    "fabric scan": _one("assay.cli.answers.fabric_answers:FabricComparisonAnswer"),
    "fabric evaluate": _one("assay.cli.answers.fabric_answers:FabricWeekAnswer"),
    "fabric impact": _one("assay.cli.answers.fabric_answers:ImpactAnswer"),
    "faults": _one("assay.cli.answers.fault_answers:FaultsAnswer"),
    "gate": _one("assay.validate.results.run_gates:GateAnswer"),
    "validate": _one("assay.tell.report.outcome_answers:ValidationAnswer"),
    "explain": _forms(
        ("", "assay.tell.views.explanation_answer:ExplainAnswer"),
        (
            "with --for customer, or for a customer's token",
            "assay.tell.customer.customer_answer:CustomerExplanationAnswer",
        ),
        (NO_LEDGER, "assay.cli.answers.status_answers:UnknownNodeAnswer"),
        (f"with --for customer, {NO_LEDGER}", "assay.tell.customer.customer_answer:UnknownForCustomerAnswer"),
    ),
    "history": _forms(
        ("", f"{HISTORY}:NodeHistoryAnswer"),
        ("with --serial", f"{HISTORY}:PartHistoryAnswer"),
        ("with --outcomes, for a node", f"{HISTORY}:NodeOutcomesAnswer"),
        ("with --measurements", f"{HISTORY}:NodeMeasurementsAnswer"),
        ("with --outcomes, for the pools", f"{HISTORY}:PoolRatesAnswer"),
        (NO_LEDGER, "assay.cli.answers.status_answers:UnknownNodeAnswer"),
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
    "rollout": _one("assay.cli.answers.rollout_answers:RolloutsAnswer"),
    "rollout list": _one("assay.cli.answers.rollout_answers:RolloutsAnswer"),
    "rollout show": _one("assay.cli.answers.rollout_answers:RolloutShowAnswer"),
    "rollout pause": _one("assay.cli.answers.rollout_answers:RolloutOrderAnswer"),
    "rollout resume": _one("assay.cli.answers.rollout_answers:RolloutOrderAnswer"),
    "rollout abort": _one("assay.cli.answers.rollout_answers:RolloutOrderAnswer"),
}
"""The words of a command, after `assay` → its answer."""


def find_file_name(command: str) -> str:
    """Return the name of the file with the schema of a command."""
    return f"{command.replace(' ', '-')}.json"
