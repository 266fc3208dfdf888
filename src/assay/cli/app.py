"""`assay`: the command line. `VERBS` lists the verbs; each is in a module that is imported when needed."""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from assay.cli.context_line import CHOSEN
from assay.cli.output import escape_standard_streams
from assay.declare.home import CONTEXT_VARIABLE
from assay.model.errors import AssayError, find_missing_extra
from assay.model.gc_pause import collect_rarely
from assay.model.text.safe_text import escape_line

STORAGE_ERRORS = {
    errno.ENOSPC: "make room on this disk",
    errno.EDQUOT: "make room within the quota of this disk",
    errno.EACCES: "check who owns it and its folder",
    errno.EROFS: "mount this file system writable, or name another folder",
}
DATABASE_SIGNS = {
    "disk is full": errno.ENOSPC,
    "disk I/O error": errno.ENOSPC,
    "readonly database": errno.EROFS,
}
"""What SQLite says where a file would give the error number."""


HELP_OPTIONS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class Verb(NamedTuple):
    """One verb: its module, and its group and line in `--help`.

    The module has a function of the verb's name; of a verb with commands below it, the Typer app `<verb>_app`.
    """

    module: str
    group: str
    help: str


DECLARE = "Declare the fleet"
EVIDENCE = "Collect evidence"
VALIDATION = "Validate"
OPERATE = "Operate"
ORDERS = "Give orders"
FABRIC_AND_LAB = "Fabric and virtual fleet"
VERBS = {
    "init": Verb("assay.cli.verbs.upgrade", DECLARE, "Create a fleet repository."),
    "upgrade": Verb("assay.cli.verbs.upgrade", DECLARE, "Bring a fleet repository to this version of assay."),
    "check": Verb("assay.cli.verbs.check", DECLARE, "Find every mistake in the inventory and the specs."),
    "doctor": Verb("assay.cli.verbs.doctor", DECLARE, "Show what this machine lacks to work on this fleet."),
    "schema": Verb("assay.cli.verbs.schema", DECLARE, "Print the JSON Schema of what a command answers in JSON."),
    "plan": Verb("assay.cli.verbs.plan", DECLARE, "Show what merging a change would do to the fleet."),
    "show": Verb("assay.cli.verbs.show", DECLARE, "Show what a node must be, with the file and line of each value."),
    "specs": Verb("assay.cli.verbs.specs", DECLARE, "Draft a node spec from a good node; make CODEOWNERS."),
    "discover": Verb(
        "assay.cli.verbs.discover", DECLARE, "Find machines that are no nodes yet; draft their inventory."
    ),
    "images": Verb("assay.cli.verbs.boot", DECLARE, "Show the images that nodes boot; fetch and verify their files."),
    "boot": Verb("assay.cli.verbs.boot", DECLARE, "Print what a DHCP server needs so that machines boot from assay."),
    "replay": Verb("assay.cli.verbs.replay", DECLARE, "Try a policy on past faults."),
    "observe": Verb("assay.cli.verbs.observe", EVIDENCE, "Collect evidence from nodes and BMCs."),
    "faults": Verb("assay.cli.verbs.faults", EVIDENCE, "Find faults in a kernel log or a BMC's event log."),
    "console": Verb("assay.cli.verbs.console", EVIDENCE, "Search what was recorded of a node's serial console."),
    "serve": Verb("assay.cli.verbs.serve", EVIDENCE, "Receive deliveries from the agents on the nodes."),
    "agent": Verb("assay.cli.verbs.agent", EVIDENCE, "On a node: send its kernel log and GPU events."),
    "slurm": Verb("assay.cli.verbs.slurm", EVIDENCE, "Print the configuration of Slurm's hooks on a node."),
    "trends": Verb("assay.cli.verbs.trends", EVIDENCE, "Show which parts get worse among their peers."),
    "suites": Verb("assay.cli.verbs.suites", VALIDATION, "List the checks; prove that each check can fail."),
    "validate": Verb("assay.cli.verbs.validate", VALIDATION, "Run the checks on collected evidence."),
    "results": Verb("assay.cli.verbs.results", VALIDATION, "Show the results of a run, or compare two runs."),
    "collectives": Verb(
        "assay.cli.verbs.collectives", VALIDATION, "Find the node or link that makes collectives slow, wrong or hang."
    ),
    "rejudge": Verb("assay.cli.verbs.rejudge", VALIDATION, "Judge the stored evidence of a run again."),
    "gate": Verb("assay.cli.verbs.results", VALIDATION, "Test whether a run meets the fleet's gates."),
    "report": Verb("assay.cli.verbs.report", VALIDATION, "Build the overview and the Allure report."),
    "prune": Verb("assay.cli.verbs.prune", VALIDATION, "Delete runs that are older than the policy wants."),
    "reconcile": Verb("assay.cli.verbs.reconcile", OPERATE, "Run the controller: observe, validate, decide, act."),
    "status": Verb("assay.cli.verbs.status", OPERATE, "Show the state of every node."),
    "sync": Verb("assay.cli.verbs.sync", OPERATE, "Show how far the fleet is what git says, and what differs."),
    "explain": Verb("assay.cli.verbs.explain", OPERATE, "Show why a node is in its state."),
    "history": Verb("assay.cli.verbs.history", OPERATE, "Show everything recorded about a node or a part."),
    "schedules": Verb("assay.cli.verbs.schedules", OPERATE, "Show scheduled jobs, or run the due ones."),
    "metrics": Verb("assay.cli.verbs.serve", OPERATE, "Print the metrics of fleet and controller for Prometheus."),
    "tickets": Verb("assay.cli.verbs.tickets", OPERATE, "Show the open work for technicians."),
    "ledger": Verb("assay.cli.verbs.ledger", OPERATE, "Verify the hash chains of the ledger, and seal it outside."),
    "hold": Verb("assay.cli.verbs.orders", ORDERS, "Hold a node: automation observes it but does not act."),
    "release": Verb("assay.cli.verbs.orders", ORDERS, "End a hold."),
    "move": Verb("assay.cli.verbs.orders", ORDERS, "Send a node to another state of the policy."),
    "certify": Verb("assay.cli.verbs.orders", ORDERS, "Certify that a node was inspected or repaired."),
    "approve": Verb("assay.cli.verbs.orders", ORDERS, "Say yes to what waits for a person."),
    "decline": Verb("assay.cli.verbs.orders", ORDERS, "Say no to what waits for a person."),
    "zap": Verb("assay.cli.verbs.operations", ORDERS, "Write firmware and settings that differ from the specs."),
    "operations": Verb("assay.cli.verbs.operations", ORDERS, "Order what is done to nodes by name, and follow it."),
    "rollout": Verb("assay.cli.verbs.rollout", ORDERS, "Show how far a merged change is; pause, resume or abort it."),
    "breaker": Verb("assay.cli.verbs.breaker", ORDERS, "Show what circuit breakers hold back; clear one."),
    "fabric": Verb("assay.cli.verbs.fabric", FABRIC_AND_LAB, "Compare a fabric with its design."),
    "lab": Verb("assay.cli.verbs.lab", FABRIC_AND_LAB, "Run a virtual fleet."),
    "context": Verb("assay.cli.verbs.context", FABRIC_AND_LAB, "Choose what commands work on: the fleet or its lab."),
}


def load_verb(name: str) -> typer.Typer:
    """Import the module of a verb, and return what Typer runs of it."""
    module = importlib.import_module(VERBS[name].module)
    made: typer.Typer | None = getattr(module, f"{name}_app", None)
    if made is None:
        made = typer.Typer(add_completion=False)
        made.command()(getattr(module, name))
    return made


class LazyVerbGroup(TyperGroup):
    """Imports only the module of the requested verb, and none to list them all, so that every verb starts quickly."""

    is_listing = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the list of the verbs, which `VERBS` has all of."""
        self.is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.is_listing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the verbs that begin so, without importing any."""
        self.is_listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self.is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 — the signature is click's
        """Return the verbs in the order of `VERBS`."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 — the signature is click's
        """Return the command of a verb, None for an unknown one."""
        if cmd_name not in VERBS:
            return None
        verb = VERBS[cmd_name]
        if self.is_listing:
            return TyperCommand(cmd_name, short_help=verb.help, rich_help_panel=verb.group)
        command: Any = typer.main.get_command(load_verb(cmd_name))
        command.name, command.short_help, command.rich_help_panel = cmd_name, verb.help, verb.group
        context_option: Any = copy(next(option for option in self.params if option.name == "context"))
        context_option.hidden = True
        _prepare_help(command, context_option)
        return command


def _choose_context(context: typer.Context, chosen: str | None) -> None:
    """Let this command and its children work on a context."""
    CHOSEN.set(None)  # what works on neither says neither, also after another command of the same process
    if chosen:
        before = os.environ.get(CONTEXT_VARIABLE, "")
        os.environ[CONTEXT_VARIABLE] = chosen
        context.call_on_close(lambda: os.environ.update({CONTEXT_VARIABLE: before}))


def _prepare_help(command: Any, context_option: Any) -> None:
    """Take `-h` and `--context` too, and make each paragraph of the help one line: a terminal wraps it at its width."""
    command.context_settings = {**command.context_settings, **HELP_OPTIONS}
    command.params.append(context_option)
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    for subcommand in getattr(command, "commands", {}).values():
        _prepare_help(subcommand, context_option)


app = typer.Typer(
    cls=LazyVerbGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=HELP_OPTIONS,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"assay {version('assay-fleet')}")
        raise typer.Exit


@app.callback(help="Run a GPU fleet by evidence.")
def _assay(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version, and exit.")
    ] = False,
    context: Annotated[
        Literal["fleet", "lab"] | None,
        typer.Option(
            is_eager=True,
            expose_value=False,
            callback=_choose_context,
            help="Work on the fleet or on its lab, whatever `assay context` chose. It may also follow the command.",
            show_default=False,
        ),
    ] = None,
) -> None:
    pass


def main() -> None:
    """Run one verb. Any error ends with a message on stderr and exit code 2, without a traceback."""
    collect_rarely()
    escape_standard_streams()
    warnings.showwarning = partial(_print_warning, warnings.showwarning)
    try:
        app(color=False if os.environ.get("NO_COLOR") else None)
    except AssayError as error:
        _print_error(str(error))
        sys.exit(2)
    except Exception as error:
        known = find_missing_extra(error) or _describe_storage_error(error)
        _print_error(str(known or _describe_internal_error(error)))
        sys.exit(2)


def _describe_storage_error(error: Exception) -> str:
    """Return what to do if a disk is full or read-only, or a file is somebody else's; "" for any other error."""
    if type(error).__name__ == "OperationalError" and (
        sign := next((s for s in DATABASE_SIGNS if s in str(error)), "")
    ):
        return f"a database file could not be written: {error}\n  → {STORAGE_ERRORS[DATABASE_SIGNS[sign]]}"
    if not isinstance(error, OSError) or error.errno not in STORAGE_ERRORS:
        return ""
    where = escape_line(str(error.filename or "a file"))
    if error.errno == errno.EACCES:
        return f"{where}: {error.strerror}\n  → {STORAGE_ERRORS[error.errno]}"
    folder = next((path for path in (Path(where), *Path(where).parents) if path.is_dir()), Path())
    free = f"{shutil.disk_usage(folder).free:,} bytes are free for {folder.absolute()}"
    return f"{where}: {error.strerror} ({free})\n  → {STORAGE_ERRORS[error.errno]}; then give the command again"


def _describe_internal_error(error: Exception) -> str:
    """Return a message for an error that nobody foresaw, with the file that holds its traceback."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="assay-crash-", suffix=".txt", delete=False) as file:
            file.write(_redact(traceback.format_exc()))  # without variables and known secrets
        report = f"with {file.name}"
    except OSError:  # no disk has room for it
        report = f"with this:\n{traceback.format_exc()}"
    return f"internal error: {type(error).__name__}: {error}\n  → please report it, {report}"


def _print_warning(others: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any) -> None:
    """Print a warning about the ledger as a line for people, and leave those of Python to `others`."""
    if category.__name__ == "LedgerReadWarning":
        _print_error(f"warning: {message}")
    else:
        others(message, category, *place)


def _redact(text: str) -> str:
    """Hide secrets: those that this process has read, and environment variables with the name of a secret."""
    from assay.declare.secret_detection import register_environment_secrets
    from assay.model.text.safe_text import redact

    register_environment_secrets()
    return redact(text)


def _print_error(text: str) -> None:
    service_log = sys.modules.get("assay.cli.service_log")  # imported by verbs that have one
    if service_log and service_log.report_error(_redact(text)):
        return
    print(f"assay: {_redact(text)}", file=sys.stderr)  # noqa: T201 — the one place that prints errors
