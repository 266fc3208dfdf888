"""`assay`: the command line. Each verb is a module of this package with one function of the same name."""

from __future__ import annotations

import importlib
import sys
import tempfile
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from assay.model.errors import Trouble

VERBS = {
    "init": "Make a fleet repository of your own.",
    "check": "Find every problem in the inventory and the specs.",
    "plan": "Show what merging would do to the fleet.",
    "show": "Show what a node must be, and which line says so.",
    "observe": "Collect evidence now.",
    "faults": "Classify a kernel log or a BMC's event log.",
    "specs": "Draft a node spec from what a good node is.",
    "suites": "Show the checks, and prove that each can fail.",
    "validate": "Run the suites and write down the outcomes.",
    "results": "Show what a run came to, and what changed since another.",
    "rejudge": "Judge the stored evidence of a run again.",
    "reconcile": "Observe, validate, decide and act.",
    "status": "Show where every node is.",
    "schedules": "Show what is done by the clock.",
    "history": "Show how a node got there.",
    "explain": "Show why, as a chain of evidence.",
    "tickets": "Show the work for technicians.",
    "replay": "Show what a policy would have done with a history of faults.",
    "policy": "Draw the states of a policy, and the ways between them.",
    "report": "Build the overview and the Allure report.",
    "gate": "Hold a run to the gates of the fleet.",
    "hold": "Freeze a node: automation looks and reports, but never acts.",
    "release": "End a hold.",
    "move": "Send a node to another state, along a way that the policy draws.",
    "zap": "Bring firmware and configuration onto a node again.",
    "certify": "Certify a technician's inspection of a node.",
    "ledger": "Hold the ledger to its hash chains.",
    "rma": "Make the dossier of a node that goes back, with its photos.",
    "fabric": "Learn, compare and scan the InfiniBand fabric.",
    "serve": "Listen to the nodes' agents.",
    "slurm": "Write what Slurm's hooks on a node look at.",
    "agent": "On a node: deliver what its kernel and its GPUs say.",
    "lab": "Run the virtual fleet.",
}


class Verbs(TyperGroup):
    """Imports a verb's module when that verb is asked for, so that `assay status` pays for `status` only."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 — the signature is click's
        """Return the verbs in the order of the loop."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 — the signature is click's
        """Return the command of a verb."""
        if cmd_name not in VERBS:
            return None
        app: typer.Typer = importlib.import_module(f"assay.cli.{cmd_name}").app
        command = typer.main.get_command(app)
        command.name = cmd_name
        command.short_help = VERBS[cmd_name]
        return command


app = typer.Typer(cls=Verbs, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback(help="Run a GPU fleet by evidence.")
def _assay() -> None:
    pass


def main() -> None:
    """Run one verb. Whatever goes wrong ends with a message for people and exit code 2, never a traceback."""
    try:
        app()
    except Trouble as trouble:
        _say(str(trouble))
        sys.exit(2)
    except Exception as error:
        _say(f"a mistake of assay itself: {type(error).__name__}: {error}\n  → please report it, with {_kept()}")
        sys.exit(2)


def _kept() -> str:
    """Write the traceback to a file and return its path. It has no values of variables, and no secret that we know."""
    with tempfile.NamedTemporaryFile("w", prefix="assay-crash-", suffix=".txt", delete=False) as file:
        file.write(_safe(traceback.format_exc()))
    return file.name


def _safe(text: str) -> str:
    """Cover what this process read as a secret, or holds in a variable that is named as one."""
    from assay.fleet.telltale import remember_environment
    from assay.model.secrets import hidden

    remember_environment()
    return hidden(text)


def _say(text: str) -> None:
    print(f"assay: {_safe(text)}", file=sys.stderr)  # noqa: T201 — this is the place that talks to people
