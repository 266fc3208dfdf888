"""`assay schema`: the JSON Schemas of what commands print with `--format json`.

ANSWERS names the shape of each answer as data alone, so that nothing else is imported.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from assay.cli.options import argument
from assay.declare.schemas import build_list_schema
from assay.model.errors import AssayError
from assay.model.text.lists import suggest_names

BROKEN = "if the ledger is broken (exit code 1)"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
LIST_SIGN, LINES_SIGN = "[]", "*"
CONTEXT = {
    "type": "string",
    "enum": ["fleet", "lab"],
    "description": "What the command worked on: the real fleet, or its lab. Missing where it needs neither.",
}
"""The field that `format_answer` puts into each object that is an answer."""


Answer = Mapping[str, str]
"""When a form of an answer comes → its shape, `module:name`; "" for the usual form.

`module:name[]` is a list of this shape; of `module:name*` there is one on each line.
"""


ANSWERS: Mapping[str, Answer] = {
    "status": {
        "": "assay.cli.verbs.status:StatusAnswer",
        "with --server": "assay.cli.fleet_server:ServerNodesAnswer",
    },
    "show": {
        "": "assay.cli.verbs.show:ShowAnswer",
        "with --cloud-init": "assay.cli.verbs.show:CloudInitAnswer",
    },
    "sync": {"": "assay.cli.verbs.sync:SyncAnswer"},
    "tickets": {"": "assay.cli.verbs.tickets:TicketsAnswer"},
    "tickets deliver": {"": "assay.cli.verbs.tickets:DeliveryAnswer"},
    "tickets preview": {"": "assay.cli.verbs.tickets:TicketPreviewAnswer"},
    "tickets done": {"": "assay.cli.verbs.tickets:WorkDoneAnswer"},
    "tickets repairs": {"": "assay.cli.verbs.tickets:RepairsAnswer"},
    "results": {
        "": "assay.tell.report.registry:RunAnswer",
        "with --compare or --against": "assay.tell.report.registry:ComparisonAnswer",
        "with --list": "assay.tell.report.text_formats:RunListAnswer",
    },
    "check": {"": "assay.declare.check:CheckReport"},
    "doctor": {"": "assay.cli.verbs.doctor:DoctorAnswer"},
    "images": {"": "assay.cli.verbs.boot:ImageFile[]"},
    "upgrade": {"": "assay.cli.verbs.upgrade:UpgradeAnswer"},
    "discover": {"": "assay.tell.views.machine_list:MachineList"},
    "observe": {
        "": "assay.cli.verbs.observe:ObserveAnswer",
        "with --here": "assay.cli.verbs.observe:LocalEvidenceAnswer",
    },
    "console": {"": "assay.observe.logs.console_log:ConsoleAnswer"},
    "suites list": {"": "assay.cli.verbs.suites:SuitesListAnswer"},
    "suites verify": {"": "assay.validate.must_fail_verification:SuiteProof"},
    "rejudge": {"": "assay.cli.verbs.rejudge:RejudgeAnswer"},
    "report": {
        "": "assay.cli.verbs.report:ReportPagesAnswer",
        "with --month": "assay.tell.views.pool_delivery:ServiceLevelRow[]",
    },
    "prune": {"": "assay.cli.verbs.prune:PruneAnswer"},
    "lab status": {"": "assay.cli.verbs.lab:LabStatusAnswer"},
    "trends": {"": "assay.decide.trends.warning_answers:TrendsAnswer"},
    "collectives plan": {"": "assay.cli.verbs.collectives:CollectivesPlan"},
    "collectives run": {"": "assay.validate.collectives.report:CollectivesReport"},
    "collectives explain": {"": "assay.validate.collectives.report:CollectivesReport"},
    "plan": {"": "assay.decide.plan.output_formats:PlanAnswer"},
    "replay": {"": "assay.decide.replay.result:ReplayAnswer"},
    "fabric compare": {"": "assay.fabric.fabric_answers:FabricComparisonAnswer"},
    "fabric scan": {"": "assay.fabric.fabric_answers:FabricComparisonAnswer"},
    "fabric evaluate": {"": "assay.fabric.fabric_answers:FabricWeekAnswer"},
    "fabric impact": {"": "assay.fabric.fabric_answers:ImpactAnswer"},
    "faults": {
        "": "assay.cli.verbs.faults:FaultsAnswer",
        "with --unknown": "assay.cli.verbs.faults:UnknownErrorsAnswer",
    },
    "gate": {"": "assay.validate.results.run_gates:GateReport"},
    "validate": {"": "assay.tell.report.registry:ValidationAnswer"},
    "explain": {
        "": "assay.tell.views.node_explanation:ExplainAnswer",
        "with --for customer, or for a customer's token": (
            "assay.tell.customer.customer_explanation:CustomerExplanation"
        ),
    },
    "history": {
        "": "assay.cli.verbs.history:NodeHistoryAnswer",
        "with --serial": "assay.cli.verbs.history:PartHistoryAnswer",
        "with --outcomes, for a node": "assay.cli.verbs.history_outcomes:NodeOutcomesAnswer",
        "with --outcomes, without a node": "assay.cli.verbs.history_outcomes:FlakyChecksAnswer",
    },
    "reconcile": {
        "with --once": "assay.cli.verbs.reconcile:ReconcileAnswer",
        "without --once, a document on each line": "assay.model.ledger_entry:LedgerEntry*",
    },
    "schedules": {"": "assay.cli.verbs.schedules:SchedulesAnswer"},
    "schedules run": {"": "assay.cli.verbs.schedules:ScheduledRunsAnswer"},
    "breaker": {"": "assay.cli.verbs.breaker:BreakersAnswer"},
    "breaker clear": {"": "assay.cli.verbs.breaker:ClearedBreakerAnswer"},
    **{
        order: {"": "assay.cli.operator_orders:OrdersAnswer"}
        for order in ("hold", "release", "move", "certify", "approve", "decline")
    },
    "ledger verify": {"": "assay.cli.verbs.ledger_copies:LedgerVerifyAnswer"},
    "ledger seal": {"": "assay.cli.verbs.ledger_copies:LedgerSealAnswer"},
    "ledger backup": {
        "": "assay.cli.verbs.ledger_copies:LedgerCopyAnswer",
        BROKEN: "assay.cli.verbs.ledger_copies:BrokenLedgerAnswer",
    },
    "ledger restore": {
        "": "assay.cli.verbs.ledger_copies:LedgerCopyAnswer",
        BROKEN: "assay.cli.verbs.ledger_copies:BrokenLedgerAnswer",
    },
    "ledger archive": {
        "": "assay.cli.verbs.ledger_copies:LedgerArchiveAnswer",
        BROKEN: "assay.cli.verbs.ledger_copies:BrokenLedgerAnswer",
    },
    "operations": {"": "assay.cli.verbs.operations:OperationsAnswer"},
    **{
        command: {"": "assay.decide.state.operation_record:OperationRecord"}
        for command in ("zap", "operations start", "operations show", "operations cancel", "operations defer")
    },
    "rollout": {"": "assay.cli.verbs.rollout:RolloutsAnswer"},
    "rollout list": {"": "assay.cli.verbs.rollout:RolloutsAnswer"},
    "rollout show": {"": "assay.tell.views.rollout_view:RolloutShowAnswer"},
    **{
        command: {"": "assay.cli.verbs.rollout:RolloutOrderAnswer"}
        for command in ("rollout pause", "rollout resume", "rollout abort")
    },
}
"""The words of a command, after `assay` → its answer."""


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
    forms, defs = zip(*(_describe_form(*form) for form in answer.items()), strict=True)
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
    yield from (
        f"{command:{width}}  {describe_form(next(iter(answer.values())))}"
        for command, answer in sorted(ANSWERS.items())
    )


def describe_form(shape: str) -> str:
    """Return what an answer holds: the first sentence of its shape's text."""
    text = inspect.cleandoc(_load_shape(shape).__doc__ or "").partition("\n\n")[0]
    sentence = f"{' '.join(text.split()).partition('. ')[0].rstrip('.')}."
    return f"A list of these: {sentence[:1].lower()}{sentence[1:]}" if shape.endswith(LIST_SIGN) else sentence


def _describe_form(when: str, shape: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a reference to the schema of a form, and the definitions that it refers to."""
    built = build_list_schema(_load_shape(shape), is_closed=True)
    if not shape.endswith(LIST_SIGN):
        name = built["items"]["$ref"].rpartition("/")[2] if "$ref" in built["items"] else ""
        (built["$defs"][name] if name else built["items"])["properties"]["context"] = CONTEXT
    form = {"type": "array", "items": built["items"]} if shape.endswith(LIST_SIGN) else built["items"]
    comes = {"description": f"{when[:1].upper()}{when[1:]}."} if when else {}
    return {**form, **comes}, built.get("$defs", {})


def _load_shape(shape: str) -> Any:
    module, _, name = shape.removesuffix(LIST_SIGN).removesuffix(LINES_SIGN).partition(":")
    return getattr(importlib.import_module(module), name)
