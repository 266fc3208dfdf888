"""`assay schema`: the JSON Schemas of what commands print with `--format json`.

ANSWERS names the shape of each answer as data alone, so that nothing else is imported.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from assay.cli.name_check import suggest_names
from assay.cli.options import argument
from assay.declare.schemas import build_list_schema
from assay.model.errors import AssayError

ORDER = "assay.cli.operator_orders"
BROKEN = "if the ledger is broken (exit code 1)"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
LIST_SIGN = "[]"
CONTEXT = {
    "type": "string",
    "enum": ["fleet", "lab"],
    "description": "What the command worked on: the real fleet, or its lab. Missing where it needs neither.",
}
"""The field that `format_answer` puts into each object that is an answer."""


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


ANSWERS: dict[str, Answer] = {
    "status": _forms(
        ("", "assay.cli.verbs.status:StatusAnswer"),
        ("with --server", "assay.cli.fleet_server:ServerNodesAnswer"),
    ),
    "show": _forms(
        ("", "assay.cli.verbs.show:ShowAnswer"),
        ("with --cloud-init", "assay.cli.verbs.show:CloudInitAnswer"),
    ),
    "sync": _one("assay.cli.verbs.sync:SyncAnswer"),
    "tickets": _one("assay.cli.verbs.tickets:TicketsAnswer"),
    "tickets deliver": _one("assay.cli.verbs.tickets:DeliveryAnswer"),
    "tickets preview": _one("assay.cli.verbs.tickets:TicketPreviewAnswer"),
    "tickets done": _one("assay.cli.verbs.tickets:WorkDoneAnswer"),
    "tickets repairs": _one("assay.cli.verbs.tickets:RepairsAnswer"),
    "results": _forms(
        ("", "assay.tell.report.registry:RunAnswer"),
        ("with --compare or --against", "assay.tell.report.registry:ComparisonAnswer"),
        ("with --list", "assay.tell.report.text_formats:RunListAnswer"),
    ),
    "check": _one("assay.declare.check:CheckReport"),
    "doctor": _one("assay.cli.verbs.doctor:DoctorAnswer"),
    "images": _one("assay.cli.verbs.boot:ImageFile[]"),
    "upgrade": _one("assay.cli.verbs.upgrade:UpgradeAnswer"),
    "discover": _one("assay.tell.views.machine_list:MachineList"),
    "observe": _forms(
        ("", "assay.cli.verbs.observe:ObserveAnswer"),
        ("with --here", "assay.cli.verbs.observe:LocalEvidenceAnswer"),
    ),
    "suites list": _one("assay.cli.verbs.suites:SuitesListAnswer"),
    "suites verify": _one("assay.validate.must_fail_verification:SuiteProof"),
    "rejudge": _one("assay.cli.verbs.rejudge:RejudgeAnswer"),
    "report": _one("assay.cli.verbs.report:ReportPagesAnswer"),
    "prune": _one("assay.cli.verbs.prune:PruneAnswer"),
    "lab status": _one("assay.cli.verbs.lab:LabStatusAnswer"),
    "trends": _one("assay.decide.trends.warning_answers:TrendsAnswer"),
    "collectives plan": _one("assay.cli.verbs.collectives:CollectivesPlan"),
    "collectives run": _one("assay.validate.collectives.report:CollectivesReport"),
    "collectives explain": _one("assay.validate.collectives.report:CollectivesReport"),
    "plan": _one("assay.decide.plan.output_formats:PlanAnswer"),
    "replay": _one("assay.decide.replay.result:ReplayAnswer"),
    "fabric compare": _one("assay.fabric.fabric_answers:FabricComparisonAnswer"),
    "fabric scan": _one("assay.fabric.fabric_answers:FabricComparisonAnswer"),
    "fabric evaluate": _one("assay.fabric.fabric_answers:FabricWeekAnswer"),
    "fabric impact": _one("assay.fabric.fabric_answers:ImpactAnswer"),
    "faults": _forms(
        ("", "assay.cli.verbs.faults:FaultsAnswer"),
        ("with --unknown", "assay.cli.verbs.faults:UnknownErrorsAnswer"),
    ),
    "gate": _one("assay.validate.results.run_gates:GateReport"),
    "validate": _one("assay.tell.report.registry:ValidationAnswer"),
    "explain": _forms(
        ("", "assay.tell.views.node_explanation:ExplainAnswer"),
        (
            "with --for customer, or for a customer's token",
            "assay.tell.customer.customer_explanation:CustomerExplanation",
        ),
    ),
    "history": _forms(
        ("", "assay.cli.verbs.history:NodeHistoryAnswer"),
        ("with --serial", "assay.cli.verbs.history:PartHistoryAnswer"),
        ("with --outcomes, for a node", "assay.cli.verbs.history_outcomes:NodeOutcomesAnswer"),
        ("with --outcomes, without a node", "assay.cli.verbs.history_outcomes:FlakyChecksAnswer"),
    ),
    "reconcile": (
        AnswerForm("assay.cli.verbs.reconcile:ReconcileAnswer", "with --once"),
        AnswerForm("assay.model.ledger_entry:LedgerEntry", "without --once, a document on each line", is_lines=True),
    ),
    "schedules": _one("assay.cli.verbs.schedules:SchedulesAnswer"),
    "schedules run": _one("assay.cli.verbs.schedules:ScheduledRunsAnswer"),
    "breaker": _one("assay.cli.verbs.breaker:BreakersAnswer"),
    "breaker clear": _one("assay.cli.verbs.breaker:ClearedBreakerAnswer"),
    "hold": _one(f"{ORDER}:OrdersAnswer"),
    "release": _one(f"{ORDER}:OrdersAnswer"),
    "move": _one(f"{ORDER}:OrdersAnswer"),
    "certify": _one(f"{ORDER}:OrdersAnswer"),
    "approve": _one(f"{ORDER}:OrdersAnswer"),
    "decline": _one(f"{ORDER}:OrdersAnswer"),
    "ledger verify": _one("assay.cli.verbs.ledger_copies:LedgerVerifyAnswer"),
    "ledger seal": _one("assay.cli.verbs.ledger_copies:LedgerSealAnswer"),
    "ledger backup": _forms(
        ("", "assay.cli.verbs.ledger_copies:LedgerCopyAnswer"),
        (BROKEN, "assay.cli.verbs.ledger_copies:BrokenLedgerAnswer"),
    ),
    "ledger restore": _forms(
        ("", "assay.cli.verbs.ledger_copies:LedgerCopyAnswer"),
        (BROKEN, "assay.cli.verbs.ledger_copies:BrokenLedgerAnswer"),
    ),
    "ledger archive": _forms(
        ("", "assay.cli.verbs.ledger_copies:LedgerArchiveAnswer"),
        (BROKEN, "assay.cli.verbs.ledger_copies:BrokenLedgerAnswer"),
    ),
    "operations": _one("assay.cli.verbs.operations:OperationsAnswer"),
    "zap": _one("assay.decide.state.operation_record:OperationRecord"),
    "operations start": _one("assay.decide.state.operation_record:OperationRecord"),
    "operations show": _one("assay.decide.state.operation_record:OperationRecord"),
    "operations cancel": _one("assay.decide.state.operation_record:OperationRecord"),
    "operations defer": _one("assay.decide.state.operation_record:OperationRecord"),
    "rollout": _one("assay.cli.verbs.rollout:RolloutsAnswer"),
    "rollout list": _one("assay.cli.verbs.rollout:RolloutsAnswer"),
    "rollout show": _one("assay.tell.views.rollout_view:RolloutShowAnswer"),
    "rollout pause": _one("assay.cli.verbs.rollout:RolloutOrderAnswer"),
    "rollout resume": _one("assay.cli.verbs.rollout:RolloutOrderAnswer"),
    "rollout abort": _one("assay.cli.verbs.rollout:RolloutOrderAnswer"),
}
"""The words of a command, after `assay` → its answer."""


def find_file_name(command: str) -> str:
    """Return the name of the file with the schema of a command."""
    return f"{command.replace(' ', '-')}.json"


def complete_commands(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the words that come next in commands which begin as the words before."""
    before = ctx.params.get("words") or []
    words = [command.split() for command in ANSWERS]
    fitting = {
        command[len(before)] for command in words if command[: len(before)] == [*before] and len(command) > len(before)
    }
    return sorted(word for word in fitting if word.startswith(incomplete))


def schema(
    words: Annotated[
        list[str] | None,
        argument(
            "COMMAND",
            "A command as you would give it, without assay: status, or ledger verify.",
            complete=complete_commands,
        ),
    ] = None,
) -> None:
    """Print the JSON Schema (draft 2020-12) of what a command prints with --format json.

    The schema describes each field: its unit, and what null means. Without COMMAND, list the commands that have one,
    with what their answers hold. The documentation has the same, under "Answers in JSON".

    Exit codes: 0 printed; 2 there is no schema of this command.
    """
    command = " ".join(words or ()).removeprefix("assay ")
    if not command:
        typer.echo("\n".join(list_answers()))
        return
    if command not in ANSWERS:
        hint = suggest_names(command, set(ANSWERS), "`assay schema` lists the commands that have one")
        raise AssayError(f"there is no schema of `assay {command}`", fix=hint)
    typer.echo(format_answer_schema(command), nl=False)


def build_answer_schema(command: str) -> dict[str, Any]:
    """Return the schema of a command's answer. `command` are its words after `assay`."""
    answer = ANSWERS[command]
    forms, defs = zip(*map(_describe_form, answer), strict=True)
    called = f"assay {command} --format json"
    head = {"$schema": DIALECT, "title": called, "description": f"What `{called}` prints."}
    parts = {name: part for definitions in defs for name, part in definitions.items()}
    return {**head, **(forms[0] if len(forms) == 1 else {"anyOf": [*forms]}), "$defs": dict(sorted(parts.items()))}


def format_answer_schema(command: str) -> str:
    """Return the text of a command's schema."""
    return json.dumps(build_answer_schema(command), indent=2, ensure_ascii=False) + "\n"


def list_answers() -> Iterator[str]:
    """Yield a line for each command that has a schema, with what its answer holds."""
    width = max(map(len, ANSWERS))
    yield from (f"{command:{width}}  {describe_form(answer[0])}" for command, answer in sorted(ANSWERS.items()))


def describe_form(form: AnswerForm) -> str:
    """Return what an answer holds: the first sentence of its shape's text."""
    text = inspect.cleandoc(_load_shape(form).__doc__ or "").partition("\n\n")[0]
    sentence = f"{' '.join(text.split()).partition('. ')[0].rstrip('.')}."
    return f"A list of these: {sentence[:1].lower()}{sentence[1:]}" if _is_list(form) else sentence


def _describe_form(form: AnswerForm) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a reference to the schema of a form, and the definitions that it refers to."""
    built = build_list_schema(_load_shape(form), is_closed=True)
    if not _is_list(form):
        name = built["items"]["$ref"].rpartition("/")[2] if "$ref" in built["items"] else ""
        (built["$defs"][name] if name else built["items"])["properties"]["context"] = CONTEXT
    shape = {"type": "array", "items": built["items"]} if _is_list(form) else built["items"]
    when = {"description": f"{form.when[:1].upper()}{form.when[1:]}."} if form.when else {}
    return {**shape, **when}, built.get("$defs", {})


def _load_shape(form: AnswerForm) -> Any:
    module, _, name = form.shape.removesuffix(LIST_SIGN).partition(":")
    return getattr(importlib.import_module(module), name)


def _is_list(form: AnswerForm) -> bool:
    return form.shape.endswith(LIST_SIGN)
