"""`assay`: the command line. Each verb is an app of its own in `verbs/` or `fabric/`, imported when it is asked for."""

from __future__ import annotations

import importlib
import sys
import tempfile
import traceback
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from assay.model.errors import AssayError


class Verb(NamedTuple):
    """Where a verb is: the module below `assay.cli` that has its Typer app, `<verb>_app`, and its line in `--help`."""

    module: str
    help: str


VERBS = {
    "init": Verb("verbs.init_check", "Make a fleet repository of your own."),
    "check": Verb("verbs.init_check", "Find every problem in the inventory and the specs."),
    "plan": Verb("verbs.plan", "Show what merging would do to the fleet."),
    "show": Verb("verbs.show_specs", "Show what a node must be, and which line says so."),
    "observe": Verb("verbs.observe", "Collect evidence now."),
    "faults": Verb("verbs.faults", "Classify a kernel log or a BMC's event log."),
    "specs": Verb("verbs.show_specs", "Draft a node spec from what a good node is."),
    "suites": Verb("verbs.suites", "Show the checks, and prove that each can fail."),
    "validate": Verb("verbs.validate", "Run the suites and write down the outcomes."),
    "results": Verb("verbs.results", "Show what a run came to, and what changed since another."),
    "rejudge": Verb("verbs.rejudge", "Judge the stored evidence of a run again."),
    "reconcile": Verb("verbs.reconcile", "Observe, validate, decide and act."),
    "status": Verb("verbs.status_explain", "Show where every node is."),
    "schedules": Verb("verbs.schedules", "Show what is done by the clock."),
    "history": Verb("verbs.history", "Show how a node got there."),
    "explain": Verb("verbs.status_explain", "Show why, as a chain of evidence."),
    "tickets": Verb("verbs.tickets_rma", "Show the work for technicians."),
    "replay": Verb("verbs.policy_replay", "Show what a policy would have done with a history of faults."),
    "policy": Verb("verbs.policy_replay", "Draw the states of a policy, and the ways between them."),
    "report": Verb("verbs.gate_report", "Build the overview and the Allure report."),
    "gate": Verb("verbs.gate_report", "Hold a run to the gates of the fleet."),
    "hold": Verb("verbs.hold_release", "Freeze a node: automation looks and reports, but never acts."),
    "release": Verb("verbs.hold_release", "End a hold."),
    "move": Verb("verbs.move_zap_certify", "Send a node to another state, along a way that the policy draws."),
    "zap": Verb("verbs.move_zap_certify", "Bring firmware and configuration onto a node again."),
    "certify": Verb("verbs.move_zap_certify", "Certify a technician's inspection of a node."),
    "ledger": Verb("verbs.ledger", "Hold the ledger to its hash chains."),
    "rma": Verb("verbs.tickets_rma", "Make the dossier of a node that goes back, with its photos."),
    "fabric": Verb("fabric.commands", "Learn, compare and scan the InfiniBand fabric."),
    "serve": Verb("verbs.serve_agent_slurm", "Listen to the nodes' agents."),
    "slurm": Verb("verbs.serve_agent_slurm", "Write what Slurm's hooks on a node look at."),
    "agent": Verb("verbs.serve_agent_slurm", "On a node: deliver what its kernel and its GPUs say."),
    "lab": Verb("verbs.lab", "Run the virtual fleet."),
}


class LazyVerbGroup(TyperGroup):
    """Imports a verb's module when that verb is asked for, so that `assay status` pays for `status` only."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 — the signature is click's
        """Return the verbs in the order of the loop."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 — the signature is click's
        """Return the command of a verb."""
        if cmd_name not in VERBS:
            return None
        verb = VERBS[cmd_name]
        verb_app: typer.Typer = getattr(importlib.import_module(f"assay.cli.{verb.module}"), f"{cmd_name}_app")
        command = typer.main.get_command(verb_app)
        command.name = cmd_name
        command.short_help = verb.help
        return command


app = typer.Typer(cls=LazyVerbGroup, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback(help="Run a GPU fleet by evidence.")
def _assay() -> None:
    pass


def main() -> None:
    """Run one verb. Whatever goes wrong ends with a message for people and exit code 2, never a traceback."""
    try:
        app()
    except AssayError as trouble:
        _print_error(str(trouble))
        sys.exit(2)
    except Exception as error:
        _print_error(
            f"a mistake of assay itself: {type(error).__name__}: {error}\n  → please report it, with {_write_crash_file()}"
        )
        sys.exit(2)


def _write_crash_file() -> str:
    """Write the traceback to a file and return its path. It has no values of variables, and no secret that we know."""
    with tempfile.NamedTemporaryFile("w", prefix="assay-crash-", suffix=".txt", delete=False) as file:
        file.write(_redact(traceback.format_exc()))
    return file.name


def _redact(text: str) -> str:
    """Cover what this process read as a secret, or holds in a variable that is named as one."""
    from assay.fleet.secret_detection import register_environment_secrets
    from assay.model.secret_redaction import redact

    register_environment_secrets()
    return redact(text)


def _print_error(text: str) -> None:
    print(f"assay: {_redact(text)}", file=sys.stderr)  # noqa: T201 — this is the place that talks to people
